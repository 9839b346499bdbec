"""Leader election: who leads, until when, and that work never outlives it. In virtual time."""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
import uvloop

from kedge.kube.client import Client
from kedge.kube.fencing import FencedTransport, NotLeading
from kedge.kube.lease import Election, LeadershipLost, ticks_of, uptime
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import Request, Response
from support.scripted import DOWN, RESET, ScriptedStream, answer, refused
from support.virtual import VirtualLoop, run

Trouble: TypeAlias = Callable[[Request], Awaitable[Response | None]]

START = datetime(2026, 1, 1, tzinfo=UTC)
PATH = "/apis/coordination.k8s.io/v1/namespaces/kedge-system/leases"
WRITE = Request("PATCH", "/api/v1/namespaces/shop/configmaps/web", body=b"{}")


class LeaseServer:
    """Keeps one Lease as the API would, except while its trouble answers instead (None: no trouble after all)."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.trouble: Trouble | None = None
        self.asked: list[tuple[float, Request]] = []
        self._version = 100

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    @property
    def writes(self) -> list[tuple[float, dict[str, Any]]]:
        return [(at, json.loads(request.body)) for at, request in self.asked if request.method in {"POST", "PATCH"}]

    def put(self, **spec: Any) -> None:
        """What someone else writes."""
        self._store({"metadata": {"name": "hub", "uid": "u1"}, "spec": spec})

    def touch(self) -> None:
        """A change that has nothing to do with who leads."""
        assert self.lease is not None
        self._store(self.lease)

    async def send(self, request: Request, *, timeout: float) -> Response:
        self.asked.append((asyncio.get_running_loop().time(), request))
        instead = await self.trouble(request) if self.trouble else None
        return instead or self._answer(request)

    def stream(
        self, request: Request, *, timeout: float, silence: float
    ) -> AbstractAsyncContextManager[ScriptedStream]:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def _answer(self, request: Request) -> Response:
        if request == WRITE:
            return answer(200, {})
        if request.method == "POST":
            return self._create(request)
        assert request.path == f"{PATH}/hub"
        if self.lease is None:
            return refused(404, "NotFound")
        return answer(200, self.lease) if request.method == "GET" else self._patch(self.lease, request)

    def _create(self, request: Request) -> Response:
        assert request.path == PATH
        if self.lease is not None:
            return refused(409, "AlreadyExists")
        body = json.loads(request.body)
        return self._store({"metadata": body["metadata"] | {"uid": "u1"}, "spec": body["spec"]})

    def _patch(self, lease: dict[str, Any], request: Request) -> Response:
        body = json.loads(request.body)
        if body["metadata"] != {key: lease["metadata"][key] for key in ("uid", "resourceVersion")}:
            return refused(409, "Conflict")
        return self._store({"metadata": lease["metadata"], "spec": lease["spec"] | body["spec"]})

    def _store(self, lease: dict[str, Any]) -> Response:
        self._version += 1
        self.lease = lease | {"metadata": lease["metadata"] | {"resourceVersion": str(self._version)}}
        return answer(200, self.lease)


class WallClock:
    """A clock on the wall, which someone may set."""

    def __init__(self) -> None:
        self.error = timedelta()

    def now(self) -> datetime:
        return START + timedelta(seconds=loop_time()) + self.error


class Work:
    """Work that takes note of itself, and needs a while to stop."""

    def __init__(self, *, stopping: float = 0.0) -> None:
        self.started = asyncio.Event()
        self.over_at: float | None = None
        self._stopping = stopping

    async def __call__(self) -> None:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self._stopping)
            self.over_at = loop_time()


class RecordingSwitch:
    """A switch that only takes note of when it would strike."""

    def __init__(self) -> None:
        self.strikes_at: list[float] = []
        self.disarmed_at: list[float] = []

    def postpone(self, seconds: float) -> None:
        self.strikes_at.append(loop_time() + seconds)

    def disarm(self) -> None:
        self.disarmed_at.append(loop_time())


def loop_time() -> float:
    return asyncio.get_running_loop().time()


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def contender(server: LeaseServer, name: str = "a", **options: Any) -> Election:
    # Each attempt is one request here; the client's own retries are its tests' affair.
    client = Client(server, limiter=Limiter(rate=0), retry=Retry(attempts=1))
    settings: dict[str, Any] = {"clock": WallClock(), "rng": random.Random(1)}
    return Election(client, "hub", "kedge-system", name, **settings | options)


async def until_leading(election: Election, work: Work) -> asyncio.Task[None]:
    leading = asyncio.create_task(election.lead(work))
    await work.started.wait()
    assert election.is_leading()
    return leading


async def stop(leading: asyncio.Task[None]) -> None:
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading


def virtually(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that runs in virtual time."""

    def test() -> None:
        run(scenario())

    test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
    return test


# What goes over the wire


@virtually
async def test_a_missing_lease_is_created_as_client_go_would() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await stop(leading)


@virtually
async def test_a_renewal_changes_nothing_but_the_time() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    before = server.spec
    await asyncio.sleep(2.5)
    assert server.spec == before | {"renewTime": "2026-01-01T00:00:02.000000Z"}
    await stop(leading)


@virtually
async def test_a_takeover_counts_as_a_transition() -> None:
    server = LeaseServer()
    server.put(holderIdentity="", leaseDurationSeconds=1, leaseTransitions=7, acquireTime="long ago")
    leading = await until_leading(contender(server), Work())
    assert (server.spec["leaseTransitions"], server.spec["acquireTime"]) == (8, "2026-01-01T00:00:00.000000Z")
    await stop(leading)


@virtually
async def test_release_leaves_the_lease_to_nobody_for_a_second() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    await stop(leading)
    assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
    assert server.spec["leaseTransitions"] == 0


@virtually
async def test_every_change_of_a_lease_names_the_version_it_changes() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    await asyncio.sleep(7)
    await stop(leading)
    changes = [body["metadata"] for _, body in server.writes[1:]]
    assert changes == [{"uid": "u1", "resourceVersion": str(101 + n)} for n in range(4)]


# Waiting for it


@virtually
async def test_a_contender_waits_a_full_duration_after_it_saw_the_last_change() -> None:
    server = LeaseServer()
    server.put(holderIdentity="b", leaseDurationSeconds=15, renewTime="1")
    work = Work()
    leading = asyncio.create_task(contender(server).lead(work))
    await asyncio.sleep(14)
    server.put(holderIdentity="b", leaseDurationSeconds=15, renewTime="2")
    await work.started.wait()
    seen = min(at for at, _ in server.asked if at >= 14.0)
    assert loop_time() == pytest.approx(seen + 15.0)
    await stop(leading)


@pytest.mark.parametrize(("said", "wait"), [({"leaseDurationSeconds": 60}, 60.0), ({}, 15.0)], ids=["60", "nothing"])
def test_the_holder_says_how_long_to_wait_and_without_a_word_it_is_as_long_as_ours(
    said: dict[str, int], wait: float
) -> None:
    async def scenario() -> None:
        server, work = LeaseServer(), Work()
        server.put(holderIdentity="b", renewTime="1", **said)
        leading = asyncio.create_task(contender(server).lead(work))
        await work.started.wait()
        assert loop_time() == pytest.approx(wait)
        await stop(leading)

    run(scenario())


@virtually
async def test_a_change_beside_the_point_does_not_put_off_a_takeover() -> None:
    server = LeaseServer()
    server.put(holderIdentity="b", leaseDurationSeconds=15, renewTime="1")
    work = Work()
    leading = asyncio.create_task(contender(server).lead(work))
    await asyncio.sleep(10)
    server.touch()
    await work.started.wait()
    assert loop_time() <= 15.0 + 2.4
    await stop(leading)


@virtually
async def test_a_released_lease_is_taken_at_the_next_look() -> None:
    server = LeaseServer()
    first = await until_leading(contender(server, "a"), Work())
    work = Work()
    second = asyncio.create_task(contender(server, "b").lead(work))
    await asyncio.sleep(20)
    await stop(first)
    await work.started.wait()
    assert loop_time() <= 20 + 2.4
    await stop(second)


def test_when_two_bid_at_once_one_leads_and_the_other_has_nothing_to_complain_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def slowly(request: Request) -> None:
        await asyncio.sleep(0.1)

    async def scenario() -> None:
        server = LeaseServer()
        server.trouble = slowly  # both have looked before either has written
        contenders = [contender(server, name) for name in "ab"]
        bids = [asyncio.create_task(each.lead(Work())) for each in contenders]
        await asyncio.sleep(60)
        assert [each.is_leading() for each in contenders] == [True, False]
        for bid in reversed(bids):
            await stop(bid)

    run(scenario())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("error", [timedelta(hours=1), timedelta(hours=-1)], ids=["ahead", "behind"])
def test_what_clocks_show_does_not_matter(error: timedelta) -> None:
    async def scenario() -> None:
        server = LeaseServer()
        clocks = [WallClock(), WallClock()]
        contenders = [contender(server, name, clock=clock) for name, clock in zip("ab", clocks, strict=True)]
        first = await until_leading(contenders[0], Work())
        second = asyncio.create_task(contenders[1].lead(Work()))
        for clock in clocks:
            await asyncio.sleep(30)
            clock.error = error
        await asyncio.sleep(30)
        assert [each.is_leading() for each in contenders] == [True, False]
        assert server.spec["leaseTransitions"] == 0
        await stop(second)
        await stop(first)

    run(scenario())


def test_a_refusal_is_reported_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def forbid(request: Request) -> Response:
        return refused(403, "Forbidden", "no leases for you")

    async def scenario() -> None:
        server = LeaseServer()
        server.trouble = forbid
        work = Work()
        leading = asyncio.create_task(contender(server).lead(work))
        await asyncio.sleep(300)
        assert 10 <= len(server.asked) <= 30  # with growing pauses
        server.trouble = None
        await work.started.wait()
        await stop(leading)

    run(scenario())
    assert "lease kedge-system/hub cannot be had" in caplog.text
    assert "Forbidden: GET /apis/coordination.k8s.io/v1/namespaces/kedge-system/leases/hub: 403" in caplog.text


@virtually
async def test_pauses_grow_with_each_trouble_anew() -> None:
    server = LeaseServer()
    server.put(holderIdentity="b", leaseDurationSeconds=10_000, renewTime="1")
    waiting = asyncio.create_task(contender(server).lead(Work()))
    for trouble in (connection_refused, None, connection_refused):
        server.asked.clear()
        server.trouble = trouble
        await asyncio.sleep(60)
    early = [at for at, _ in server.asked if at < 120 + 10]
    assert len(early) >= 3
    await stop(waiting)


@virtually
async def test_a_server_that_hangs_does_not_keep_a_contender_from_trying_again() -> None:
    server, work = LeaseServer(), Work()
    server.trouble = a_hanging_server
    leading = asyncio.create_task(contender(server).lead(work))
    await asyncio.sleep(1)
    server.trouble = None
    await work.started.wait()
    assert loop_time() <= 5.0 + 2.0
    await stop(leading)


@virtually
async def test_a_lease_that_came_too_slowly_is_asked_for_again_before_work_begins() -> None:
    server, watchdog = LeaseServer(), RecordingSwitch()

    async def stand_still(request: Request) -> None:
        if request.method == "POST":
            virtual_loop().skip(30)

    server.trouble = stand_still
    leading = await until_leading(contender(server, watchdog=watchdog), Work())
    assert [request.method for _, request in server.asked] == ["GET", "POST", "GET", "PATCH"]
    assert watchdog.strikes_at == [30 + 12.5]
    await stop(leading)


@virtually
async def test_whoever_stops_waiting_has_written_nothing() -> None:
    server = LeaseServer()
    server.put(holderIdentity="b", leaseDurationSeconds=15, renewTime="1")
    waiting = asyncio.create_task(contender(server).lead(Work()))
    await asyncio.sleep(5)
    await stop(waiting)
    assert server.writes == []


# Losing it


async def connection_refused(request: Request) -> Response:
    raise DOWN


async def connection_reset(request: Request) -> Response:
    raise RESET


async def a_hanging_server(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def conflicts(request: Request) -> Response | None:
    return refused(409, "Conflict") if request.method == "PATCH" else None


async def no_permission(request: Request) -> Response:
    return refused(403, "Forbidden")


async def a_proxy_in_between(request: Request) -> Response:
    return Response(502, b"<html>Bad Gateway</html>")


async def nonsense(request: Request) -> Response:
    return Response(200, b"hello")


async def a_defect_of_our_own(request: Request) -> Response:
    raise KeyError("token")


TROUBLES = {
    connection_refused: "connection refused",
    connection_reset: "connection reset",
    a_hanging_server: "no answer in time",
    conflicts: "409 Conflict",
    no_permission: "403 Forbidden",
    a_proxy_in_between: "502",
    nonsense: "the answer is no Lease",
    a_defect_of_our_own: "KeyError: 'token'",
}


@pytest.mark.parametrize(("trouble", "said"), TROUBLES.items(), ids=[each.__name__ for each in TROUBLES])
def test_work_stops_in_time_when_the_lease_cannot_be_renewed(trouble: Trouble, said: str) -> None:
    async def scenario() -> None:
        server, work = LeaseServer(), Work()
        election = contender(server)
        leading = await until_leading(election, work)
        await asyncio.sleep(20.5)
        server.trouble = trouble
        with pytest.raises(LeadershipLost, match=said):
            await leading
        last_renewal = max(at for at, _ in server.asked if at <= 20.5)
        assert work.over_at == loop_time() <= last_renewal + 10.0
        assert not election.is_leading()

    run(scenario())


@pytest.mark.parametrize("trouble", TROUBLES, ids=[each.__name__ for each in TROUBLES])
def test_trouble_that_passes_in_time_costs_nothing(trouble: Trouble) -> None:
    async def scenario() -> None:
        server = LeaseServer()
        leading = await until_leading(contender(server), Work())
        for _ in range(5):
            await asyncio.sleep(30)
            server.trouble = trouble
            await asyncio.sleep(5)
            server.trouble = None
        assert not leading.done()
        assert server.spec["leaseTransitions"] == 0
        await stop(leading)

    run(scenario())


@virtually
async def test_slow_renewals_are_renewals() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())

    async def slowly(request: Request) -> None:
        await asyncio.sleep(4.5)

    server.trouble = slowly
    await asyncio.sleep(100)
    assert not leading.done()
    await stop(leading)


@virtually
async def test_a_renewal_counts_from_when_it_was_asked_for() -> None:
    server = LeaseServer()
    election = contender(server)
    leading = await until_leading(election, Work())

    async def hang_after_the_next(request: Request) -> Response | None:
        await asyncio.sleep(4.5)
        server.trouble = a_hanging_server
        return None

    server.trouble = hang_after_the_next  # asked for at 2.0, answered at 6.5
    with pytest.raises(LeadershipLost):
        await leading
    assert loop_time() <= 12.0


@virtually
async def test_a_stolen_lease_ends_the_work_at_the_next_renewal() -> None:
    server, work = LeaseServer(), Work()
    leading = await until_leading(contender(server), work)
    server.put(holderIdentity="thief", leaseDurationSeconds=15, renewTime="1")
    with pytest.raises(LeadershipLost, match="lease kedge-system/hub is held by thief now, not by a"):
        await leading
    assert work.over_at == loop_time() == 2.0
    assert server.spec["holderIdentity"] == "thief"


@virtually
async def test_a_deleted_lease_ends_the_work_too() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    server.lease = None
    with pytest.raises(LeadershipLost, match="held by nobody"):
        await leading
    assert loop_time() == 2.0


@virtually
async def test_a_change_by_someone_who_does_not_want_to_lead_is_no_loss() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    for _ in range(10):
        server.touch()
        await asyncio.sleep(5)
    assert not leading.done()
    await stop(leading)


@virtually
async def test_the_loss_is_told_only_when_the_work_is_over() -> None:
    server, work = LeaseServer(), Work(stopping=100)
    election = contender(server)
    leading = await until_leading(election, work)
    server.trouble = a_hanging_server
    await asyncio.sleep(50)
    assert not election.is_leading()
    assert not leading.done()
    with pytest.raises(LeadershipLost):
        await leading
    assert work.over_at == loop_time()


# Standing still


@virtually
async def test_after_a_standstill_nothing_is_written_before_any_timer_fires() -> None:
    server, work = LeaseServer(), Work()
    election = contender(server)
    acting = FencedTransport(server, election)
    leading = await until_leading(election, work)
    assert (await acting.send(WRITE, timeout=1)).status == 200
    asked = len(server.asked)
    virtual_loop().skip(30)  # as SIGSTOP and SIGCONT: time has passed, and no other line of code has run
    with pytest.raises(NotLeading, match="a does not hold lease kedge-system/hub"):
        await acting.send(WRITE, timeout=1)
    assert len(server.asked) == asked
    with pytest.raises(LeadershipLost, match="this process stood still"):
        await leading
    assert len(server.asked) == asked


@virtually
async def test_the_answer_to_a_renewal_from_before_a_standstill_does_not_make_a_leader() -> None:
    server = LeaseServer()
    election = contender(server)
    leading = await until_leading(election, Work())

    async def stand_still(request: Request) -> None:
        virtual_loop().skip(30)

    server.trouble = stand_still
    with pytest.raises(LeadershipLost, match="this process stood still"):
        await leading
    assert server.spec["renewTime"] > "2026-01-01T00:00:00.000000Z"  # renewed it was
    assert not election.is_leading()


@virtually
async def test_a_renewal_that_succeeds_after_leadership_ran_out_does_not_bring_it_back() -> None:
    server = LeaseServer()
    election = contender(server)
    leading = await until_leading(election, Work())

    async def stand_still_at_the_third(request: Request) -> Response | None:
        if loop_time() < 6.0:
            raise DOWN
        virtual_loop().skip(4.5)  # asked for at 6.0, the answer would be good until 16.0
        return None

    server.trouble = stand_still_at_the_third
    with pytest.raises(LeadershipLost):
        await leading
    assert loop_time() == 10.5


# Ending well


@virtually
async def test_the_lease_is_renewed_until_slow_work_is_over_and_only_then_released() -> None:
    server, work = LeaseServer(), Work(stopping=60)
    election = contender(server)
    leading = await until_leading(election, work)
    await asyncio.sleep(1)
    leading.cancel()
    await asyncio.sleep(59)
    assert election.is_leading()
    with pytest.raises(asyncio.CancelledError):
        await leading
    released = [at for at, body in server.writes if body["spec"]["holderIdentity"] == ""]
    assert released == [work.over_at] == [61.0]


@virtually
async def test_work_that_swallows_its_cancellation_is_cancelled_again_with_us() -> None:
    server, asked = LeaseServer(), 0

    async def stubborn() -> None:
        nonlocal asked
        while asked < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                asked += 1

    leading = asyncio.create_task(contender(server).lead(stubborn))
    for _ in range(3):
        await asyncio.sleep(1)
        assert server.spec["holderIdentity"] == "a"
        leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    assert asked == 3
    assert server.spec["holderIdentity"] == ""


def test_work_that_fails_while_it_is_stopped_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def clumsy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("dropped the tray")

    async def scenario() -> None:
        server = LeaseServer()
        leading = asyncio.create_task(contender(server).lead(clumsy))
        await asyncio.sleep(1)
        await stop(leading)
        assert server.spec["holderIdentity"] == ""

    run(scenario())
    assert "failed while being stopped" in caplog.text
    assert "dropped the tray" in caplog.text


@virtually
async def test_work_that_ends_by_itself_gives_up_the_lease() -> None:
    server = LeaseServer()

    async def brief() -> None:
        await asyncio.sleep(1)

    await contender(server).lead(brief)
    assert server.spec["holderIdentity"] == ""


@virtually
async def test_work_that_fails_gives_up_the_lease_and_is_heard() -> None:
    server = LeaseServer()

    async def failing() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await contender(server).lead(failing)
    assert server.spec["holderIdentity"] == ""


def test_a_lease_that_cannot_be_released_is_left_to_expire(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = LeaseServer()
        leading = await until_leading(contender(server), Work())
        server.trouble = a_hanging_server
        await stop(leading)
        assert loop_time() <= 5.0

    run(scenario())
    assert "was not released, it will expire: no answer in time" in caplog.text


@virtually
async def test_a_renewal_that_was_cut_short_but_arrived_does_not_hinder_the_release() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())

    async def arrive_unheard(request: Request) -> Response | None:
        server.trouble = None
        server.touch()
        await asyncio.Event().wait()
        raise AssertionError

    server.trouble = arrive_unheard
    await asyncio.sleep(2.5)
    await stop(leading)
    assert server.spec["holderIdentity"] == ""


@virtually
async def test_a_lease_that_is_someone_elses_by_now_is_not_released() -> None:
    server = LeaseServer()
    leading = await until_leading(contender(server), Work())
    server.put(holderIdentity="thief", leaseDurationSeconds=15, renewTime="1")
    await stop(leading)
    assert server.spec["holderIdentity"] == "thief"


@virtually
async def test_changes_of_leadership_are_told() -> None:
    told: list[bool] = []
    election = contender(LeaseServer(), on_change=told.append)
    leading = await until_leading(election, Work())
    assert told == [True]
    await stop(leading)
    assert told == [True, False]


@virtually
async def test_whoever_lost_may_try_again() -> None:
    server = LeaseServer()
    told: list[bool] = []
    election = contender(server, on_change=told.append)
    leading = await until_leading(election, Work())
    server.trouble = connection_refused
    with pytest.raises(LeadershipLost):
        await leading
    server.trouble = None
    await stop(await until_leading(election, Work()))
    assert told == [True, False, True, False]


@virtually
async def test_the_switch_is_put_off_with_each_renewal_and_strikes_before_anyone_else_may_lead() -> None:
    server, watchdog = LeaseServer(), RecordingSwitch()
    leading = await until_leading(contender(server, watchdog=watchdog), Work(stopping=3))

    async def slowly(request: Request) -> None:
        await asyncio.sleep(0.5)

    server.trouble = slowly
    await asyncio.sleep(5)
    server.trouble = a_hanging_server
    with pytest.raises(LeadershipLost):
        await leading
    assert watchdog.strikes_at == [12.5, 2 + 12.5, 4 + 12.5]  # counted from when the renewal was asked for
    assert watchdog.disarmed_at == [loop_time()]


@virtually
async def test_the_switch_is_disarmed_when_waiting_ends() -> None:
    server, watchdog = LeaseServer(), RecordingSwitch()
    server.put(holderIdentity="b", leaseDurationSeconds=15, renewTime="1")
    waiting = asyncio.create_task(contender(server, watchdog=watchdog).lead(Work()))
    await asyncio.sleep(5)
    await stop(waiting)
    assert (watchdog.strikes_at, watchdog.disarmed_at) == ([], [5.0])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_whoever_does_not_lead_may_not_write(method: str) -> None:
    with pytest.raises(NotLeading, match=f"{method} /x: refused, a does not hold lease kedge-system/hub"):
        contender(LeaseServer()).guard(Request(method, "/x"))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_whoever_does_not_lead_may_read(method: str) -> None:
    contender(LeaseServer()).guard(Request(method, "/x"))


@pytest.mark.parametrize("seed", range(12))
def test_whatever_goes_wrong_two_never_lead_at_once(seed: int) -> None:
    """Contenders whose clocks run at different paces, before a server that hangs, breaks and refuses by turns."""

    async def scenario() -> None:
        rng, server = random.Random(seed), LeaseServer()
        contenders: list[Election] = []
        leaders: set[str] = set()

        async def trouble(request: Request) -> Response | None:
            await asyncio.sleep(rng.choice([0.01, 0.01, 0.01, 1.0, 4.0]))
            bad = rng.choice([None, None, None, None, *TROUBLES])
            return await bad(request) if bad else None

        async def look() -> None:
            while True:
                leading = {each.identity for each in contenders if each.is_leading()}
                assert len(leading) <= 1
                leaders.update(leading)
                await asyncio.sleep(0.2)

        async def go_on(election: Election) -> None:
            while True:
                try:
                    async with asyncio.timeout(rng.uniform(1, 200)):
                        await election.lead(Work(stopping=rng.choice([0, 1, 30])))
                except (LeadershipLost, TimeoutError):
                    await asyncio.sleep(rng.uniform(0, 5))

        server.trouble = trouble
        contenders += [contender(server, name, rng=rng, ticks=pace(rng.uniform(1.0, 1.4))) for name in "abc"]
        tasks = [asyncio.create_task(look()), *(asyncio.create_task(go_on(each)) for each in contenders)]
        done, _ = await asyncio.wait(tasks, timeout=1800, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert not done, [task.exception() for task in done]
        assert leaders == {"a", "b", "c"}

    logging.disable()
    try:
        run(scenario())
    finally:
        logging.disable(logging.NOTSET)


def pace(rate: float) -> Callable[[], float]:
    return lambda: loop_time() * rate


# What it is made of


def test_the_identity_is_the_host_and_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node-1")
    rng = random.Random(1)
    names = {contender(LeaseServer(), "", rng=rng).identity for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("node-1_") and len(name) == len("node-1_") + 16 for name in names)


@pytest.mark.parametrize(
    ("duration", "renew_deadline", "retry"), [(10, 10.0, 2.0), (15, 2.0, 2.0), (15, 10.0, 0.0), (15, 16.0, 17.0)]
)
def test_times_that_would_let_two_lead_are_refused(duration: int, renew_deadline: float, retry: float) -> None:
    with pytest.raises(ValueError, match="a leader has to stop before another may start"):
        contender(LeaseServer(), duration=duration, renew_deadline=renew_deadline, retry=retry)


@pytest.mark.parametrize("make", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_on_a_real_loop_suspension_counts(make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    loop = make()
    try:
        assert ticks_of(loop) is uptime
        assert 0 < uptime() <= uptime()
    finally:
        loop.close()


def test_on_a_virtual_loop_only_its_own_time_counts() -> None:
    loop = VirtualLoop()
    try:
        assert ticks_of(loop) == loop.time
    finally:
        loop.close()
