"""A link with faults: what it promises, whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.transport import ConnectionFailed, Request, Response
from kedge.simulate import faults as every_fault
from kedge.simulate.clock import LoopClock
from kedge.simulate.faults import NONE, ROUGH, SOME, Faults
from kedge.simulate.loop import run
from kedge.simulate.network import Link

MAPS = "/api/v1/namespaces/default/configmaps"
SEEDS = st.integers(0, 2**32)


class World:
    """A server, a link to it with faults, and a way to it without."""

    def __init__(self, faults: Faults, seed: int = 1) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = Server(clock=LoopClock(self.loop, datetime(2030, 1, 1, tzinfo=UTC)), rng=Random(seed))
        self.heard_at: list[float] = []
        self.link = Link(
            "a → b",
            InProcessTransport(self.server, rng=Random(seed + 1)),
            rng=Random(seed + 2),
            faults=faults,
            newest=lambda: self.server.store.number,
        )

    async def send(self, request: Request, timeout: float = 30.0) -> Response:
        return await self.link.send(request, timeout=timeout)

    async def attempt(self, request: Request, timeout: float = 30.0) -> Response | ConnectionFailed:
        try:
            return await self.send(request, timeout)
        except ConnectionFailed as failed:
            return failed

    def put(self, name: str, value: str = "") -> None:
        """Straight to the server."""
        answer = self.server.handle(create(name, value))
        if answer.status == 409:
            patch = msgspec.json.encode({"data": {"value": value}})
            answer = self.server.handle(
                Request("PATCH", f"{MAPS}/{name}", body=patch, content_type="application/merge-patch+json")
            )
        assert answer.status < 300

    def has(self, name: str) -> bool:
        return self.server.handle(Request("GET", f"{MAPS}/{name}")).status == 200


def create(name: str, value: str = "") -> Request:
    return Request("POST", MAPS, body=msgspec.json.encode({"metadata": {"name": name}, "data": {"value": value}}))


def only(**rates: Any) -> Faults:
    return Faults(**rates)


def within(faults: Faults, work: Callable[[World], Awaitable[None]], seed: int = 1) -> None:
    """Do this in a world with these faults."""

    async def whole() -> None:
        await work(World(faults, seed))

    run(whole(), seed=seed)


# One request


def test_without_faults_it_is_as_if_it_were_not_there() -> None:
    async def work(world: World) -> None:
        assert (await world.send(create("web"))).status == 201
        assert (await world.send(Request("GET", f"{MAPS}/web"))).body == world.server.handle(
            Request("GET", f"{MAPS}/web")
        ).body

    within(NONE, work)


@pytest.mark.parametrize(
    ("fault", "sent", "arrives"),
    [("refused", False, False), ("lost_request", True, False), ("lost_response", True, True)],
)
def test_what_is_lost_says_whether_it_may_have_arrived(fault: str, sent: bool, arrives: bool) -> None:
    async def work(world: World) -> None:
        with pytest.raises(ConnectionFailed) as failed:
            await world.send(create("web"))
        assert failed.value.sent is sent
        await asyncio.sleep(1000)
        assert world.has("web") is arrives

    within(only(**{fault: 1.0}), work)


@pytest.mark.parametrize(
    ("fault", "status", "after"),
    [
        ("too_many", 429, "1"),
        ("unavailable", 503, "1"),
        ("conflict", 409, None),
        ("unauthorized", 401, None),
        ("forbidden", 403, None),
        ("denied", 422, None),
    ],
)
def test_an_answer_that_says_no_means_it(fault: str, status: int, after: str | None) -> None:
    async def work(world: World) -> None:
        world.put("web", "before")
        number = world.server.store.number
        request = Request("PUT", f"{MAPS}/web", body=create("web", "after").body)
        answer = await world.send(request)
        assert answer.status == status
        assert answer.headers.get("retry-after") == after
        assert msgspec.json.decode(answer.body)["code"] == status
        assert world.server.store.number == number

    within(only(**{fault: 1.0}), work)


def test_a_conflict_is_only_for_changes_of_what_is_there() -> None:
    async def work(world: World) -> None:
        assert (await world.send(create("web"))).status == 201
        assert (await world.send(Request("GET", f"{MAPS}/web"))).status == 200

    within(only(conflict=1.0), work)


def test_admission_denies_only_writes() -> None:
    async def work(world: World) -> None:
        world.put("web", "before")
        assert (await world.send(Request("GET", f"{MAPS}/web"))).status == 200

    within(only(denied=1.0), work)


def test_a_500_may_or_may_not_have_been_carried_out() -> None:
    async def work(world: World) -> None:
        for number in range(40):
            assert (await world.send(create(f"n{number}"))).status == 500
        done = sum(world.has(f"n{number}") for number in range(40))
        assert 5 < done < 35

    within(only(server_error=1.0), work)


def test_a_late_request_arrives_after_its_client_has_given_up() -> None:
    async def work(world: World) -> None:
        with pytest.raises(ConnectionFailed, match="no answer in time") as failed:
            await world.send(create("web"), timeout=5.0)
        assert failed.value.sent
        assert world.loop.time() == 5.0
        assert not world.has("web")
        await asyncio.sleep(61)
        assert world.has("web")

    within(only(late=1.0), work)


def test_a_late_request_arrives_even_if_its_process_is_gone_by_then() -> None:
    async def work(world: World) -> None:
        with pytest.raises(ConnectionFailed):
            await world.send(create("web"), timeout=5.0)
        await world.link.close()
        await asyncio.sleep(61)
        assert world.has("web")

    within(only(late=1.0), work)


def test_slow_takes_its_time_and_no_more_than_the_client_waits() -> None:
    async def work(world: World) -> None:
        assert (await world.send(create("web"))).status == 201
        assert 1.0 <= world.loop.time() <= 2.0
        began = world.loop.time()
        with pytest.raises(ConnectionFailed, match="no answer in time"):
            await world.send(create("db"), timeout=0.5)
        assert world.loop.time() - began == 0.5
        assert not world.has("db")

    within(only(slow=1.0, slow_seconds=(1.0, 2.0)), work)


@given(SEEDS)
def test_an_answer_is_true_and_a_refusal_was_not_sent(seed: int) -> None:
    async def work(world: World) -> None:
        for number in range(10):
            name = f"n{number}"
            answer = await world.attempt(create(name))
            if isinstance(answer, ConnectionFailed):
                assert answer.sent or not world.has(name)
            else:
                assert answer.status in (201, 401, 403, 422, 429, 500, 503)
                assert world.has(name) or answer.status != 201
                assert not world.has(name) or answer.status in (201, 500)
        await asyncio.sleep(200)  # for what is late

    within(ROUGH, work, seed)


@given(SEEDS)
def test_once_calm_everything_goes_well(seed: int) -> None:
    async def work(world: World) -> None:
        for number in range(5):
            await world.attempt(create(f"n{number}"))
        world.link.end_faults()
        began = world.loop.time()
        for number in range(5, 10):
            assert (await world.send(create(f"n{number}"))).status == 201
        assert world.loop.time() == began
        await asyncio.sleep(200)  # for what is late

    within(ROUGH, work, seed)


# Cut


@given(SEEDS, st.floats(0.0, 40.0))
def test_once_cut_nothing_gets_through_until_it_is_mended(seed: int, after: float) -> None:
    async def work(world: World) -> None:
        under_way = [asyncio.create_task(world.send(create(f"n{number}"))) for number in range(5)]
        await asyncio.sleep(after)
        world.link.cut()
        number = world.server.store.number
        with pytest.raises(ConnectionFailed) as failed:
            await world.send(create("web"))
        assert not failed.value.sent
        ended = await asyncio.gather(*under_way, return_exceptions=True)
        assert all(isinstance(end, Response | ConnectionFailed) for end in ended)
        assert world.server.store.number == number or any(not isinstance(end, Response) for end in ended)
        world.link.mend()
        world.link.end_faults()
        assert (await world.send(create("web"))).status == 201
        await asyncio.sleep(200)

    within(SOME, work, seed)


def test_what_is_cut_for_good_stays_cut() -> None:
    async def work(world: World) -> None:
        world.link.cut("dead", for_good=True)
        world.link.mend()
        with pytest.raises(ConnectionFailed, match="dead"):
            await world.send(create("web"))
        assert not world.has("web")

    within(NONE, work)


def test_in_a_partition_requests_wait_and_time_out() -> None:
    async def work(world: World) -> None:
        answered = lost = 0
        for _ in range(200):
            began = world.loop.time()
            answer = await world.attempt(Request("GET", "/version"), timeout=5.0)
            if isinstance(answer, ConnectionFailed):
                assert answer.sent
                assert world.loop.time() - began == pytest.approx(5.0)
                lost += 1
            else:
                answered += 1
            await asyncio.sleep(10)
        assert answered > 50
        assert lost > 20

    within(only(partitions=60.0, partition_seconds=(10.0, 60.0)), work)


# Watches


async def watched(world: World, version: str, seconds: float = 600.0, silence: float = 75.0) -> tuple[list[str], str]:
    """The names that a watch tells of, in order, and how it ended."""
    query = (("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", str(round(seconds))))
    names: list[str] = []
    try:
        stream = world.link.stream(Request("GET", MAPS, query), timeout=30.0, silence=silence)
        async with stream as opened:
            if opened.status != 200:
                return names, str(opened.status)
            async for line in opened.lines():
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    return names, str(event["object"]["code"])
                names.append(event["object"]["metadata"]["name"])
                world.heard_at.append(world.loop.time())
    except ConnectionFailed as failed:
        return names, str(failed)
    return names, "the end"


async def written_while_watched(world: World, count: int = 20, **watch: Any) -> tuple[list[str], str]:
    start = str(world.server.store.number)
    watching = asyncio.create_task(watched(world, start, **watch))
    for number in range(count):
        await asyncio.sleep(10.0)
        world.put(f"n{number:02}")
    return await watching


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ("gone", "410"),
        ("dropped", "connection reset"),
        ("ended", "the end"),
        ("silent", "nothing came for 75 s"),
    ],
)
def test_how_a_watch_ends(fault: str, end: str) -> None:
    async def work(world: World) -> None:
        names, ended = await written_while_watched(world)
        assert ended == end
        assert len(names) < 20
        assert names == [f"n{number:02}" for number in range(len(names))]

    within(only(**{fault: 1.0}, watch_seconds=(95.0, 95.0)), work)


def test_a_watch_that_lags_tells_everything_in_order_and_late() -> None:
    async def work(world: World) -> None:
        names, ended = await written_while_watched(world, silence=1000.0)
        assert names == [f"n{number:02}" for number in range(20)]
        assert ended == "the end"
        late = [at - 10.0 * (number + 1) for number, at in enumerate(world.heard_at)]
        assert min(late) > 0
        assert max(late) > 30, "what lags holds up what is behind it"

    within(only(lagging=0.5, lag_seconds=(5.0, 30.0)), work)


@given(SEEDS)
def test_a_watch_never_skips_or_repeats(seed: int) -> None:
    async def work(world: World) -> None:
        names, _ = await written_while_watched(world)
        assert names == [f"n{number:02}" for number in range(len(names))]
        await asyncio.sleep(200)

    within(ROUGH, work, seed)


@given(SEEDS)
def test_a_watch_of_a_calm_link_ends_well_unless_it_had_fallen_silent(seed: int) -> None:
    async def work(world: World) -> None:
        watching = asyncio.create_task(watched(world, str(world.server.store.number)))
        await asyncio.sleep(60.0)
        over = watching.done()
        world.link.end_faults()
        _, ended = await watching
        assert over or ended in ("the end", "nothing came for 75 s", "connection reset", "no answer in time")
        if ended in ("connection reset", "no answer in time"):
            assert world.loop.time() <= 100.0, "of trouble that had begun"

    within(ROUGH, work, seed)


def test_a_watch_is_cut_with_its_link() -> None:
    async def work(world: World) -> None:
        watching = asyncio.create_task(watched(world, str(world.server.store.number)))
        await asyncio.sleep(10.0)
        world.link.cut("the process is dead")
        assert await watching == ([], "the process is dead")
        assert world.loop.time() == 10.0

    within(NONE, work)


@pytest.mark.parametrize("seed", range(20))
def test_a_watch_can_be_cut_the_moment_its_trouble_begins(seed: int) -> None:
    async def work(world: World) -> None:
        watching = asyncio.create_task(watched(world, str(world.server.store.number), silence=1000.0))
        world.loop.call_at(95.0, world.link.cut, "the process is dead")
        names, ended = await watching
        assert names == []
        assert ended in ("the process is dead", "connection reset")

    within(only(dropped=1.0, watch_seconds=(95.0, 95.0)), work, seed)


# Stale reads


def versions_of(world: World) -> list[str]:
    """A ConfigMap written thirty times; the values it had."""
    for number in range(30):
        world.put("web", str(number))
    return [str(number) for number in range(30)]


async def values(world: World, path: str, *query: tuple[str, str]) -> set[str]:
    """What forty reads show."""
    shown = set[str]()
    for _ in range(40):
        answer = await world.send(Request("GET", path, query))
        assert answer.status == 200, answer.body
        body = msgspec.json.decode(answer.body)
        for item in body.get("items", [body]):
            assert {"apiVersion", "kind"} <= set(body)
            if item["metadata"]["name"] == "web":
                shown.add(item["data"]["value"])
    return shown


@pytest.mark.parametrize(
    ("path", "query", "oldest"),
    [
        pytest.param(MAPS, (("resourceVersion", "0"),), 9, id="a list of any version may be old"),
        pytest.param(MAPS, (("resourceVersion", "0"), ("limit", "1")), 9, id="and is not paged"),
        pytest.param(f"{MAPS}/web", (("resourceVersion", "0"),), 9, id="so may an object"),
        pytest.param(MAPS, (), 29, id="a list without a version is the newest"),
        pytest.param(f"{MAPS}/web", (), 29, id="and so is an object"),
        pytest.param(MAPS, (("limit", "500"),), 29, id="also in pages"),
    ],
)
def test_what_may_be_old_is(path: str, query: tuple[tuple[str, str], ...], oldest: int) -> None:
    async def work(world: World) -> None:
        known = versions_of(world)
        shown = await values(world, path, *query)
        assert shown <= set(known[oldest:])
        assert (len(shown) > 3) is (oldest < 29)

    within(only(stale=1.0), work)


def test_not_older_than_is_kept() -> None:
    async def work(world: World) -> None:
        known = versions_of(world)
        least = world.server.store.number - 4
        query = (("resourceVersion", str(least)), ("resourceVersionMatch", "NotOlderThan"))
        shown = await values(world, MAPS, *query)
        assert shown <= set(known[-5:])
        assert len(shown) > 1

    within(only(stale=1.0), work)


def test_a_watch_of_any_version_may_begin_in_the_past_and_leads_to_now() -> None:
    async def work(world: World) -> None:
        versions_of(world)
        names, ended = await watched(world, "0", seconds=30.0)
        assert ended == "the end"
        assert 1 < len(names) <= 22
        assert set(names) - {"kube-root-ca.crt"} == {"web"}

    within(only(stale=1.0), work)


# Faults as values


@pytest.mark.parametrize("faults", [NONE, SOME, ROUGH, only(late=0.5, slow_seconds=(0.5, 2.0), stale_versions=3)])
def test_faults_can_be_written_and_read(faults: Faults) -> None:
    assert every_fault.parse_faults(every_fault.format_faults(faults)) == faults


def test_faults_are_read_with_changes() -> None:
    assert every_fault.parse_faults("some,late=0") == msgspec.structs.replace(SOME, late=0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("plenty", "there are no faults called plenty"),
        ("late=2", "late is 2.0: it is a share"),
        ("late=0.6,slow=0.6", "are more than 1 in all"),
        ("lag=1", "unknown field `lag`"),
    ],
)
def test_faults_that_make_no_sense_are_refused(text: str, why: str) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError), match=why):
        every_fault.parse_faults(text)
