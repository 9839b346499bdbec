"""Clusters and controllers together: how they start, live with trouble, and stop."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from aiohttp import ClientSession

from kedge.api.core import ConfigMap, Secret
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.crash import Crashed
from kedge.kube.health import Address
from kedge.kube.lease import Election, LeadershipLost
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal
from kedge.kube.transport import Request
from support.scripted import refused
from support.tiny import Tiny, map_path
from support.virtual import run
from support.waiting import until


class VirtualClock:
    """The loop's time, as a date."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)


def make(**options: object) -> Manager:
    return Manager(clock=VirtualClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


class Work:
    """A reconcile that takes a while; notes what began and what ended."""

    def __init__(self, takes: float = 0.0) -> None:
        self.began: list[Key] = []
        self.ended: list[Key] = []
        self._takes = takes

    async def reconcile(self, key: Key) -> Outcome:
        self.began.append(key)
        await asyncio.sleep(self._takes)
        self.ended.append(key)
        return Outcome.done


def a_server() -> Tiny:
    server = Tiny()
    server.put(map_path("a"))
    return server


async def stop_after(manager: Manager, seconds: float) -> None:
    await asyncio.sleep(seconds)
    manager.stop()


def test_it_runs_until_it_is_told_to_stop_and_closes_everything() -> None:
    async def main() -> None:
        server, work = a_server(), Work()
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            maps = cluster.cache(ConfigMap)
            manager.add_controller(Controller("test", work.reconcile, [cluster.watch(maps)]))
            stopping = asyncio.create_task(stop_after(manager, 10))
            await manager.run(signals=False)
            await stopping
        assert work.ended == [Key("hub", "shop", "a")]
        assert server.closed

    run(main())


def test_a_manager_that_never_runs_leaves_nothing_behind() -> None:
    async def main() -> None:
        server = a_server()
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            maps = cluster.cache(ConfigMap)
            await maps.synced()
        assert server.closed

    run(main())


def test_a_manager_left_at_once_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with make() as manager:
            await manager.connect("hub", a_server())

    run(main())


def test_what_goes_wrong_beside_it_is_raised_as_it_is() -> None:
    async def main() -> None:
        async with make() as manager:
            await manager.connect("hub", a_server())
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(main())


def test_what_was_begun_may_end_within_the_grace_period() -> None:
    async def main() -> None:
        work = Work(takes=20)
        async with make(grace=30.0) as manager:
            cluster = await manager.connect("hub", a_server())
            manager.add_controller(Controller("test", work.reconcile, [cluster.watch(cluster.cache(ConfigMap))]))
            stopping = asyncio.create_task(stop_after(manager, 5))
            await manager.run(signals=False)
            await stopping
        assert len(work.ended) == 1

    run(main())


def test_what_does_not_end_within_the_grace_period_is_cancelled() -> None:
    async def main() -> None:
        work = Work(takes=1000)
        async with make(grace=30.0) as manager:
            cluster = await manager.connect("hub", a_server())
            manager.add_controller(Controller("test", work.reconcile, [cluster.watch(cluster.cache(ConfigMap))]))
            stopping = asyncio.create_task(stop_after(manager, 5))
            await manager.run(signals=False)
            await stopping
        assert (len(work.began), len(work.ended)) == (1, 0)
        assert asyncio.get_running_loop().time() == pytest.approx(35, abs=1)

    run(main())


def test_an_unreachable_cluster_stops_no_other_and_recovers_on_its_own() -> None:
    async def main() -> None:
        up, down, work = a_server(), a_server(), Work()
        down.down = True
        async with make() as manager:
            hub = await manager.connect("hub", up)
            member = await manager.connect("member", down, essential=False)
            sources = [cluster.watch(cluster.cache(ConfigMap)) for cluster in (hub, member)]
            manager.add_controller(Controller("test", work.reconcile, sources))
            running = asyncio.create_task(manager.run(signals=False))
            await asyncio.sleep(30)
            assert hub.state.phase == "connected"
            assert (member.state.phase, member.state.reason) == ("failing", "connection refused")
            assert member.state.since.timestamp() < 1
            assert [key.cluster for key in work.ended] == ["hub"]
            down.down = False
            await asyncio.sleep(30)
            assert member.state.phase == "connected"
            assert [key.cluster for key in work.ended] == ["hub", "member"]
            manager.stop()
            await running

    run(main())


def test_what_failed_for_want_of_a_cluster_is_tried_as_soon_as_it_is_back() -> None:
    async def main() -> None:
        server, now = a_server(), asyncio.get_running_loop().time
        done: list[float] = []
        async with make() as manager:
            cluster = await manager.connect("member", server)
            maps, wakes = cluster.cache(ConfigMap), Signal("member")

            async def reconcile(key: Key) -> Outcome:
                await cluster.client.get(ConfigMap, "a", "shop")
                done.append(now())
                return Outcome.done

            manager.add_controller(Controller("test", reconcile, [wakes]))
            running = asyncio.create_task(manager.run(signals=False))
            await until(lambda: maps.is_synced)
            server.down = True
            server.break_watches()
            wakes.wake(Key("member", "shop", "a"))
            await asyncio.sleep(300)  # by now it is tried once a minute, and the watch every ten seconds
            assert not done
            server.down = False
            back = now()
            await until(lambda: done and maps.problem is None)
            assert now() - back < 5
            manager.stop()
            await running

    run(main())


def test_handlers_are_told_of_every_state() -> None:
    async def main() -> None:
        server = a_server()
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            told: list[str] = []
            cluster.on_state(lambda state: told.append(str(state)))
            assert str(cluster.state) == "connecting"
            await asyncio.sleep(15)
            server.down = True
            server.break_watches()
            await asyncio.sleep(30)
            server.down = False
            await asyncio.sleep(30)
        assert told == ["connected", "failing: connection refused", "connected"]

    run(main())


def test_a_new_reason_is_told_and_the_trouble_is_as_old_as_it_was() -> None:
    async def main() -> None:
        server = a_server()
        server.down = True
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            told: list[str] = []
            cluster.on_state(lambda state: told.append(str(state)))
            await asyncio.sleep(30)
            server.down = False
            server.fault = lambda _: refused(503, "Unavailable")
            await asyncio.sleep(30)
            assert cluster.state.since.timestamp() < 1
        assert told == ["failing: connection refused", "failing: the server answers 503"]

    run(main())


def test_one_lost_probe_is_no_failing_cluster() -> None:
    async def main() -> None:
        server = a_server()
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            await asyncio.sleep(5)
            told: list[str] = []
            cluster.on_state(lambda state: told.append(str(state)))
            lost = iter([True])
            server.fault = lambda _: refused(503, "Unavailable") if next(lost, False) else None
            await asyncio.sleep(60)
        assert told == []

    run(main())


@pytest.mark.parametrize(
    ("code", "reason"),
    [(503, "the server answers 503"), (401, "401: the server does not know who we are: check the credentials")],
)
def test_a_server_that_refuses_everything_is_failing(code: int, reason: str) -> None:
    async def main() -> None:
        server = a_server()
        server.fault = lambda _: refused(code, "No")
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            await asyncio.sleep(5)
            assert (cluster.state.phase, cluster.state.reason) == ("failing", reason)

    run(main())


def test_a_watch_that_breaks_raises_a_doubt_at_once() -> None:
    async def main() -> None:
        server = a_server()
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            cluster.cache(ConfigMap)
            await asyncio.sleep(11)
            server.down = True
            server.break_watches()
            broke = asyncio.get_running_loop().time()
            await until(lambda: cluster.state.phase == "failing")
            assert asyncio.get_running_loop().time() - broke < 5  # not at the next probe but one

    run(main())


def test_clusters_come_and_go_while_it_runs() -> None:
    async def main() -> None:
        work = Work()
        servers = {name: a_server() for name in ("hub", "member")}
        async with make() as manager:
            controller = Controller("test", work.reconcile)
            manager.add_controller(controller)
            running = asyncio.create_task(manager.run(signals=False))
            for name, server in servers.items():
                cluster = await manager.connect(name, server)
                controller.add_source(cluster.watch(cluster.cache(ConfigMap)))
            await asyncio.sleep(5)
            assert {key.cluster for key in work.ended} == {"hub", "member"}
            await manager.remove("member")
            assert (servers["member"].closed, servers["hub"].closed) == (True, False)
            assert list(manager.clusters) == ["hub"]
            work.ended.clear()
            for server in servers.values():
                server.put(map_path("b"))
            await asyncio.sleep(5)
            assert [str(key) for key in work.ended] == ["hub/shop/b"]
            back = await manager.connect("member", servers["member"])
            assert back.state.phase == "connecting"
            manager.stop()
            await running

    run(main())


def test_a_removed_cluster_is_no_longer_waited_for() -> None:
    async def main() -> None:
        server = a_server()
        server.down = True
        async with make() as manager:
            cluster = await manager.connect("hub", server)
            source = cluster.watch(cluster.cache(ConfigMap))
            manager.add_controller(Controller("test", Work().reconcile, [source]))
            running = asyncio.create_task(manager.run(signals=False))
            await asyncio.sleep(5)
            assert [check.problem for check in manager.checks()][1:] == ["waits for the caches of hub"]
            await manager.remove("hub")
            await asyncio.sleep(0)
            assert [check.problem for check in manager.checks()] == [""]
            manager.stop()
            await running

    run(main())


def test_two_clusters_or_controllers_of_one_name_are_refused() -> None:
    async def main() -> None:
        async with make() as manager:
            await manager.connect("hub", Tiny())
            with pytest.raises(ValueError, match="there is a cluster hub already"):
                await manager.connect("hub", Tiny())
            manager.add_controller(Controller("test", Work().reconcile))
            with pytest.raises(ValueError, match="there is a controller test already"):
                manager.add_controller(Controller("test", Work().reconcile))

    run(main())


def test_a_controller_can_be_added_while_it_runs() -> None:
    async def main() -> None:
        work = Work()
        async with make() as manager:
            cluster = await manager.connect("hub", a_server())
            running = asyncio.create_task(manager.run(signals=False))
            await asyncio.sleep(1)
            manager.add_controller(Controller("test", work.reconcile, [cluster.watch(cluster.cache(ConfigMap))]))
            await asyncio.sleep(1)
            assert len(work.ended) == 1
            manager.stop()
            await running

    run(main())


class Broken(Signal):
    """A source with a bug."""

    async def ready(self) -> None:
        await asyncio.sleep(3)
        raise LookupError("a bug")


def test_a_controller_that_crashes_ends_the_process_with_its_name() -> None:
    async def main() -> None:
        server = a_server()
        with pytest.raises(Crashed, match="controller bad crashed: LookupError: a bug") as crash:
            async with make() as manager:
                await manager.connect("hub", server)
                manager.add_controller(Controller("good", Work().reconcile))
                manager.add_controller(Controller("bad", Work().reconcile, [Broken("hub")]))
                await manager.run(signals=False)
        assert crash.value.component == "controller bad"
        assert server.closed

    run(main())


def test_a_cluster_that_crashes_ends_the_process_with_its_name() -> None:
    async def main() -> None:
        def bug(_: object) -> None:
            raise LookupError("a bug")

        with pytest.raises(Crashed, match="cluster hub crashed: LookupError: a bug"):
            async with make() as manager:
                cluster = await manager.connect("hub", a_server())
                cluster.on_state(bug)
                await manager.run(signals=False)

    run(main())


class Fate:
    """A leader whose fortune is in our hands."""

    def __init__(self) -> None:
        self.elected = asyncio.Event()
        self.story: list[str] = []

    def is_leading(self) -> bool:
        return self.elected.is_set()

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        await self.elected.wait()
        self.story.append("leading")
        await work()
        self.story.append("released")


def test_controllers_run_only_while_leading_and_the_lease_is_released_last() -> None:
    async def main() -> None:
        fate, work = Fate(), Work(takes=3)
        async with make(leader=fate) as manager:
            cluster = await manager.connect("hub", a_server())
            manager.add_controller(Controller("test", work.reconcile, [cluster.watch(cluster.cache(ConfigMap))]))
            running = asyncio.create_task(manager.run(signals=False))
            await asyncio.sleep(10)
            assert work.began == []
            fate.elected.set()
            await until(lambda: work.began)
            leads = manager.metrics.registry.get_sample_value("leader_election_master_status", {"name": "kedge"})
            assert leads == 1
            manager.stop()
            await asyncio.sleep(1)
            assert fate.story == ["leading"]
            await running
            assert (fate.story, len(work.ended)) == (["leading", "released"], 1)

    run(main())


def test_while_the_leader_has_doubts_no_reconcile_begins() -> None:
    async def main() -> None:
        fate, work, waking = Fate(), Work(), Signal("hub")
        fate.elected.set()
        async with make(leader=fate) as manager:
            manager.add_controller(Controller("test", work.reconcile, [waking]))
            running = asyncio.create_task(manager.run(signals=False))
            await asyncio.sleep(1)
            fate.elected.clear()
            waking.wake(Key("hub", None, "a"))
            await asyncio.sleep(10)
            assert work.began == []
            manager.stop()
            await running

    run(main())


def test_the_last_events_are_written_before_the_lease_is_released() -> None:
    async def main() -> None:
        fate, server = Fate(), a_server()
        fate.elected.set()
        async with make(leader=fate) as manager:
            cluster = await manager.connect("hub", server)
            maps = cluster.cache(ConfigMap)

            async def reconcile(key: Key) -> Outcome:
                await asyncio.sleep(5)
                found = maps.get(key.name, key.namespace)
                assert found is not None
                cluster.events.normal(found, "Moved", "moved")
                fate.story.append("told")
                return Outcome.done

            def note(request: Request) -> None:
                if request.path.endswith("/events"):
                    fate.story.append("written")

            server.fault = note
            server.latency = 0.5
            manager.add_controller(Controller("test", reconcile, [cluster.watch(maps)]))
            stopping = asyncio.create_task(stop_after(manager, 3))
            await manager.run(signals=False)
            await stopping
        assert fate.story == ["leading", "told", "written", "released"]

    run(main())


def test_one_that_waits_to_lead_stops_at_once() -> None:
    async def main() -> None:
        async with make(leader=Fate()) as manager:
            running = asyncio.create_task(manager.run(signals=False))
            await asyncio.sleep(10)
            manager.stop()
            await running
        assert asyncio.get_running_loop().time() == pytest.approx(10)

    run(main())


def test_a_lost_lease_ends_the_process() -> None:
    async def main() -> None:
        server = a_server()
        client = Client(server, rng=random.Random(1))
        election = Election(client, "kedge", "system", "me", clock=VirtualClock(), rng=random.Random(1))
        with pytest.raises(Crashed, match="leader election crashed: LeadershipLost") as crash:
            async with make(leader=election) as manager:
                cluster = await manager.connect("hub", server)
                work = Work(takes=1000)
                manager.add_controller(Controller("test", work.reconcile, [cluster.watch(cluster.cache(ConfigMap))]))
                asyncio.get_running_loop().call_later(30, setattr, server, "down", True)
                await manager.run(signals=False)
        assert isinstance(crash.value.__cause__, LeadershipLost)
        assert (len(work.began), len(work.ended)) == (1, 0)

    run(main())


def test_a_crash_inside_a_group_of_the_leader_still_has_its_name() -> None:
    class Grouping(Fate):
        async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._do(work))

        async def _do(self, work: Callable[[], Awaitable[None]]) -> None:
            await work()

    async def main() -> None:
        with pytest.raises(Crashed) as crash:
            async with make(leader=Grouping()) as manager:
                manager.add_controller(Controller("bad", Work().reconcile, [Broken("hub")]))
                await manager.run(signals=False)
        assert crash.value.component == "controller bad"

    run(main())


def test_a_leader_that_lets_go_by_itself_ends_the_process() -> None:
    class Fickle(Fate):
        async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
            return

    async def main() -> None:
        with pytest.raises(Crashed, match="ended without having been told to"):
            async with make(leader=Fickle()) as manager:
                await manager.run(signals=False)

    run(main())


async def test_a_signal_stops_it_in_good_order_and_a_second_one_at_once() -> None:
    work = Work(takes=1000)
    waking = Signal("hub")
    async with Manager() as manager:
        manager.add_controller(Controller("test", work.reconcile, [waking]))
        running = asyncio.create_task(manager.run())
        await until(lambda: signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waking.wake(Key("hub", None, "a"))
        await until(lambda: work.began)
        os.kill(os.getpid(), signal.SIGTERM)
        await until(manager._stopping.is_set)
        assert not running.done()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait([running])
        assert running.cancelled()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_health_and_metrics_are_served_while_it_runs() -> None:
    async with Manager(health=Address(port=0)) as manager, ClientSession() as session:
        cluster = await manager.connect("hub", a_server())
        down = Tiny()
        down.down = True
        await manager.connect("member", down, essential=False)
        source = cluster.watch(cluster.cache(ConfigMap))
        manager.add_controller(Controller("test", Work().reconcile, [source]))
        running = asyncio.create_task(manager.run(signals=False))
        await until(lambda: manager.health_url and not manager.checks()[0].problem and not manager.checks()[2].problem)
        await until(lambda: manager.clusters["member"].state.phase == "failing")
        async with session.get(f"{manager.health_url}/readyz") as answer:
            assert (answer.status, (await answer.text()).splitlines()) == (
                200,
                [
                    "[+] cluster hub ok",
                    "[~] cluster member: failing: connection refused",
                    "[+] controller test ok",
                    "ready",
                ],
            )
        async with session.get(f"{manager.health_url}/metrics") as answer:
            text = await answer.text()
            assert 'rest_client_requests_total{code="200",method="GET"}' in text
            assert 'workqueue_depth{name="test"} 0.0' in text
        manager.stop()
        await running


async def test_an_essential_cluster_that_fails_means_not_ready() -> None:
    server = Tiny()
    server.down = True
    async with Manager() as manager:
        cluster = await manager.connect("hub", server)
        cluster.cache(ConfigMap)
        await until(lambda: cluster.state.phase == "failing")
        (check,) = manager.checks()
        assert check.line.startswith("[-] cluster hub: failing: connection refused; configmaps: ")


async def test_caches_are_shared_by_those_who_ask_for_the_same() -> None:
    cluster = Cluster("hub", Client(Tiny()), clock=SystemClock(), rng=random.Random(1))
    assert cluster.cache(ConfigMap) is cluster.cache(ConfigMap)
    assert cluster.cache(ConfigMap, labels={"a": "b"}) is cluster.cache(ConfigMap, labels="a=b")
    different = [
        cluster.cache(ConfigMap),
        cluster.cache(Secret),
        cluster.cache(ConfigMap, "shop"),
        cluster.cache(ConfigMap, labels="a=b"),
        cluster.cache(ConfigMap, fields="metadata.name=a"),
        cluster.cache(ConfigMap, transform=_as_it_is),
        cluster.cache(ConfigMap, indexes={"name": _by_name}),
    ]
    assert len({id(cache) for cache in different}) == len(different)
    assert cluster.cache(ConfigMap, indexes={"name": _by_name}) is different[-1]


def _as_it_is(found: ConfigMap) -> ConfigMap:
    return found


def _by_name(found: ConfigMap) -> list[str]:
    return [found.metadata.name]
