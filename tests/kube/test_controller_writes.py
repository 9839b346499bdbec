"""No reconcile decides on a cache that does not show what the last one wrote."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from kedge.api.core import ConfigMap, Secret
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import KubeError
from kedge.kube.expectations import record_writes
from kedge.kube.metrics import Metrics
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Signal
from kedge.kube.transport import Request, Response
from support.scripted import answer, refused
from support.tiny import Tiny, map_path
from support.virtual import run

A = Key("hub", "shop", "a")


class Bench:
    """A server whose events take `lag` seconds, a cluster on it, and a reconcile that is woken by hand."""

    def __init__(self, lag: float) -> None:
        self.server = Tiny(lag)
        self.server.put(map_path("a"), data={"n": "0"})
        self.cluster = Cluster("hub", Client(self.server), clock=SystemClock(), rng=random.Random(1))
        self.maps = self.cluster.cache(ConfigMap)
        self.signal = Signal("hub")
        self.metrics = Metrics()
        self.seen: list[tuple[float, str | None]] = []
        self.act: Callable[[str], Awaitable[object]] = self.count_up

    async def reconcile(self, key: Key) -> Outcome:
        found = self.maps.get("a", "shop")
        shown = None if found is None or found.metadata.deletion_timestamp else found.data["n"]
        self.seen.append((asyncio.get_running_loop().time(), shown))
        if shown is not None:
            await self.act(shown)
        return Outcome.done

    async def count_up(self, shown: str) -> object:
        patch = MergePatch({"data": {"n": str(int(shown) + 1)}})
        return await self.cluster.client.patch(ConfigMap, "a", patch, "shop")

    async def delete(self, shown: str) -> object:
        found = self.maps.get("a", "shop")
        assert found is not None
        await self.cluster.client.delete(ConfigMap, "a", "shop", uid=found.metadata.uid)
        return None

    def shown(self) -> list[str | None]:
        return [value for _, value in self.seen]

    def waits(self) -> float:
        return self.metrics.registry.get_sample_value("stale_sync_waits_total", {"controller": "test"}) or 0

    async def wake(self, times: int, every: float) -> None:
        """Wake the key so many times, then stop."""
        controller = Controller("test", self.reconcile, [self.signal], catch_up=2.0)
        following = asyncio.create_task(self.cluster.run())
        await self.maps.synced()
        working = asyncio.create_task(controller.run(rng=random.Random(1), metrics=self.metrics))
        for _ in range(times):
            await asyncio.sleep(every)
            self.signal.wake(A)
        await asyncio.sleep(10)
        controller.stop()
        await working
        following.cancel()
        await asyncio.wait([following])

    def gets(self) -> int:
        return sum(request.method == "GET" and request.path == map_path("a") for request in self.server.asked)


def test_a_write_is_seen_before_the_next_decision() -> None:
    async def main() -> None:
        bench = Bench(lag=0.5)
        await bench.wake(times=5, every=0.01)
        counted = bench.shown()
        assert counted == [str(n) for n in range(len(counted))]  # never the same number twice
        assert bench.waits() > 0
        assert bench.gets() == 0  # the events came in time

    run(main())


def test_what_is_shown_already_is_not_waited_for() -> None:
    async def main() -> None:
        bench = Bench(lag=0.1)
        await bench.wake(times=3, every=1)
        assert bench.shown() == ["0", "1", "2"]
        assert bench.waits() == 0

    run(main())


def test_what_was_written_for_keys_that_never_come_back_is_forgotten() -> None:
    async def main() -> None:
        bench = Bench(lag=0.1)

        async def reconcile(key: Key) -> Outcome:
            meta = {"name": key.name, "namespace": key.namespace}
            await bench.cluster.client.apply(ConfigMap, {"metadata": meta}, manager="test")
            return Outcome.done

        controller = Controller("test", reconcile, [bench.signal])
        controller._sweep_at = 5
        tasks = [asyncio.create_task(bench.cluster.run()), asyncio.create_task(controller.run(rng=random.Random(1)))]
        await bench.maps.synced()
        for n in range(50):
            bench.signal.wake(Key("hub", "shop", f"{n}"))
            await asyncio.sleep(1)
            assert len(controller._unseen_writes) <= 6
            controller._sweep_at = 5
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    run(main())


def test_when_the_watch_lags_too_long_the_server_is_asked() -> None:
    async def main() -> None:
        bench = Bench(lag=60)
        await bench.wake(times=2, every=0.5)
        assert bench.shown() == ["0", "1"]
        assert bench.gets() == 1

    run(main())


def test_old_events_do_not_undo_what_was_asked_for() -> None:
    async def main() -> None:
        bench = Bench(lag=3)
        await bench.wake(times=12, every=0.5)
        counted = bench.shown()
        assert counted == [str(n) for n in range(len(counted))]
        assert len(counted) >= 3

    run(main())


def test_a_write_that_changed_nothing_is_not_waited_for() -> None:
    async def main() -> None:
        bench = Bench(lag=60)

        async def nothing(shown: str) -> object:
            return await bench.cluster.client.get(ConfigMap, "a", "shop")

        bench.act = nothing
        await bench.wake(times=3, every=0.5)
        assert bench.waits() == 0

    run(main())


@pytest.mark.parametrize("lag", [0.5, 60])
def test_a_deleted_object_is_not_seen_again(lag: float) -> None:
    async def main() -> None:
        bench = Bench(lag)
        bench.act = bench.delete
        await bench.wake(times=3, every=0.1)
        assert bench.shown()[0] == "0"
        assert set(bench.shown()[1:]) == {None}
        assert bench.server.writes() == [f"DELETE {map_path('a')}"]

    run(main())


def test_an_object_on_its_way_out_counts_as_deleted() -> None:
    async def main() -> None:
        bench = Bench(lag=0.5)

        def linger(request: Request) -> Response | None:
            if request.method != "DELETE":
                return None
            meta = bench.server.objects[request.path]["metadata"]
            ending = {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}
            return answer(200, bench.server.put(request.path, metadata=ending, data={"n": "0"}))

        bench.server.fault = linger
        bench.act = bench.delete
        await bench.wake(times=3, every=0.1)
        assert set(bench.shown()[1:]) == {None}
        assert bench.gets() == 0

    run(main())


class Ending(Bench):
    """An object on its way out, held by one finalizer, which is taken off."""

    def __init__(self, lag: float) -> None:
        super().__init__(lag)
        meta = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kedge.dev/last"]}
        self.server.put(map_path("a"), metadata=meta)
        self.server.fault = self.let_go

    def let_go(self, request: Request) -> Response | None:
        """As the API server does: the object is gone, and the answer is what it was, version and all."""
        was = self.server.objects.get(map_path("a"))
        if request.method != "PATCH" or was is None:
            return None
        body = {**was, "metadata": {**was["metadata"], "finalizers": []}}
        self.server.remove(map_path("a"))
        return answer(200, body)

    async def reconcile(self, key: Key) -> Outcome:
        found = self.maps.get("a", "shop")
        self.seen.append((asyncio.get_running_loop().time(), None if found is None else "there"))
        if found is not None:
            patch = MergePatch({"metadata": {"finalizers": None}})
            await self.cluster.client.patch(ConfigMap, "a", patch, "shop")
        return Outcome.done


@pytest.mark.parametrize("lag", [0.5, 60])
def test_an_object_whose_last_finalizer_was_taken_off_is_not_seen_again(lag: float) -> None:
    async def main() -> None:
        bench = Ending(lag)
        await bench.wake(times=3, every=0.1)
        assert bench.shown()[0] == "there"
        assert set(bench.shown()[1:]) == {None}

    run(main())


def test_a_write_whose_answer_was_lost_is_asked_for() -> None:
    async def main() -> None:
        bench = Bench(lag=60)

        async def once(shown: str) -> object:
            bench.server.lose_answers = shown == "0"
            return await bench.count_up(shown)

        bench.act = once
        await bench.wake(times=1, every=0.1)
        assert bench.shown() == ["0", "1"]  # the failed one is tried again, and sees what it did

    run(main())


def test_a_write_the_server_may_have_made_before_it_failed_is_asked_for() -> None:
    async def main() -> None:
        bench = Bench(lag=60)
        failures = iter([True])

        async def once(shown: str) -> object:
            if next(failures, False):
                bench.server.fault = lambda request: refused(500, "InternalError") if request.method != "GET" else None
            try:
                return await bench.count_up(shown)
            finally:
                bench.server.fault = lambda _: None

        bench.act = once
        await bench.wake(times=1, every=0.1)
        assert bench.shown() == ["0", "0"]
        assert bench.gets() == 1

    run(main())


def test_a_write_cut_short_by_the_time_limit_is_asked_for() -> None:
    async def main() -> None:
        bench = Bench(lag=60)

        async def cut_short(shown: str) -> object:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await bench.count_up(shown)
            return None

        bench.act = cut_short
        await bench.wake(times=2, every=0.1)
        assert bench.gets() == 1

    run(main())


def test_while_the_server_cannot_be_asked_nothing_is_decided() -> None:
    async def main() -> None:
        bench = Bench(lag=60)

        async def then_down(shown: str) -> object:
            await bench.count_up(shown)
            bench.server.down = True
            asyncio.get_running_loop().call_later(5, setattr, bench.server, "down", False)
            return None

        bench.act = then_down
        await bench.wake(times=2, every=0.5)
        assert bench.shown() == ["0", "1"]
        (first, _), (second, _) = bench.seen
        assert second - first > 5

    run(main())


def test_a_cluster_that_was_let_go_is_not_waited_for() -> None:
    async def main() -> None:
        bench = Bench(lag=60)
        with record_writes() as footprint:
            await bench.count_up("0")
        assert not footprint.shown()
        await bench.cluster.close()
        assert footprint.shown()

    run(main())


def test_a_dry_run_is_not_waited_for() -> None:
    async def main() -> None:
        bench = Bench(lag=60)

        async def dry(shown: str) -> object:
            return await bench.cluster.client.patch(ConfigMap, "a", MergePatch({}), "shop", dry_run=True)

        bench.act = dry
        await bench.wake(times=3, every=0.5)
        assert bench.waits() == 0

    run(main())


def test_writes_made_by_tasks_of_a_reconcile_count_too() -> None:
    async def main() -> None:
        bench = Bench(lag=0.5)

        async def in_a_task(shown: str) -> object:
            async with asyncio.TaskGroup() as tasks:
                return tasks.create_task(
                    bench.cluster.client.patch(ConfigMap, "a", MergePatch({"data": {"n": "7"}}), "shop")
                )

        bench.act = in_a_task
        await bench.wake(times=2, every=0.1)
        assert bench.shown() == ["0", "7"]

    run(main())


def test_created_applied_and_replaced_objects_are_waited_for_too() -> None:
    async def main() -> None:
        server = Tiny(lag=1)
        cluster = Cluster("hub", Client(server), clock=SystemClock(), rng=random.Random(1))
        cluster.cache(ConfigMap)
        following = asyncio.create_task(cluster.run())
        body = {"metadata": {"name": "a", "namespace": "shop"}}
        whole = untyped(ConfigMap.resource)
        for write in (
            lambda: cluster.client.create(ConfigMap, body),
            lambda: cluster.client.apply(ConfigMap, body, manager="test"),
            lambda: cluster.client.apply(whole, body, manager="test"),
        ):
            with record_writes() as footprint:
                await write()
            assert not footprint.shown()
            await footprint.settle(within=2)
            assert footprint.shown()
        following.cancel()
        await asyncio.wait([following])

    run(main())


def test_caches_of_other_namespaces_and_kinds_owe_nothing() -> None:
    async def main() -> None:
        cluster = Cluster("hub", Client(Tiny()), clock=SystemClock(), rng=random.Random(1))
        cluster.cache(ConfigMap, "elsewhere")
        cluster.cache(Secret)
        with record_writes() as footprint:
            await cluster.client.apply(ConfigMap, {"metadata": {"name": "a", "namespace": "shop"}}, manager="test")
        assert footprint.shown()

    run(main())


def test_a_write_that_was_never_sent_is_not_in_doubt() -> None:
    async def main() -> None:
        server = Tiny()
        cluster = Cluster("hub", Client(server), clock=SystemClock(), rng=random.Random(1))
        cluster.cache(ConfigMap)
        server.down = True
        with record_writes() as footprint, pytest.raises(KubeError):
            await cluster.client.apply(ConfigMap, {"metadata": {"name": "a", "namespace": "shop"}}, manager="test")
        assert footprint.shown()

    run(main())
