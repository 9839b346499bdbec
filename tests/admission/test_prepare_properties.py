"""Downscales of one group at any time, with pods and an API server that fail in any way: what always holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from admission.zones_bed import MAPS, NS, SETS, TRACKER, A, B, Bed, C, denied, play, pod_of
from kedge.api.admission import AdmissionResponse
from kedge.kube.connect.outbound import OutboundFailed
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.scripted import refused

REPLICAS = 3
OLD = '{"lastDownscaled":"2020-01-01T00:00:00Z"}'


class Wish(Struct, frozen=True):
    """Somebody wants fewer replicas of a zone after so many seconds, and gives up after so many."""

    zone: str
    replicas: int
    at: float
    scale: bool
    patience: float


def patient(zone: str, replicas: int, *, at: float) -> Wish:
    return Wish(zone, replicas, at, False, 60.0)


WISHES = st.lists(
    st.builds(
        Wish,
        zone=st.sampled_from([A, B, C]),
        replicas=st.integers(0, REPLICAS - 1),
        at=st.sampled_from([0.0, 0.0, 0.005, 0.5, 4.0, 7.0]),
        scale=st.booleans(),
        patience=st.sampled_from([60.0, 60.0, 0.01, 3.0]),
    ),
    min_size=1,
    max_size=4,
)
POD_FAULTS = st.dictionaries(
    st.tuples(
        st.sampled_from(["POST", "DELETE"]),
        st.builds("{}-{}".format, st.sampled_from([A, B, C]), st.integers(0, REPLICAS - 1)),
    ),
    st.sampled_from([500, 409, 2.0, 30.0]) | st.builds(OutboundFailed, st.just("nobody there")),
    max_size=3,
)
API_FAULTS = st.dictionaries(st.integers(0, 25), st.sampled_from(["403", "503", "cut", "lost", "hang"]), max_size=3)


def faulty(bed: Bed, faults: Mapping[int, str]) -> Any:
    """What goes wrong with which request of the rules."""
    count = iter(range(10_000))

    async def fault(request: Request) -> Response | None:
        match faults.get(next(count)):
            case "403":
                return refused(403, "Forbidden")
            case "503":
                return refused(503, "ServiceUnavailable")
            case "cut":
                raise ConnectionFailed("connection refused", sent=False)
            case "lost":
                await bed.client.transport.send(request, timeout=10)
                raise ConnectionFailed("connection reset", sent=True)
            case "hang":
                await asyncio.sleep(30)
        return None

    return fault


class Outcome(Struct, frozen=True):
    """What became of a wish: how many replicas there were, and the answer; none if its patience ended first."""

    wish: Wish
    old: int
    answer: AdmissionResponse | None

    @property
    def is_prepared(self) -> bool:
        """Whether pods were told, and the downscale allowed. What is none is allowed too, without a word."""
        return self.answer is not None and self.answer.allowed and self.answer.status is not None

    @property
    def pods(self) -> list[str]:
        return [f"{self.wish.zone}-{number}" for number in range(self.wish.replicas, self.old)]


async def fulfil(bed: Bed, wish: Wish) -> Outcome:
    """Ask for a wish, and store it if it is allowed, as an API server does."""
    await asyncio.sleep(wish.at)
    request = await bed.request(wish.zone, wish.replicas, scale=wish.scale)
    old = (request.old_object or {})["spec"]["replicas"]
    try:
        async with asyncio.timeout(wish.patience):
            answer = await bed.ask("/admission/prepare-downscale", request)
    except TimeoutError:
        return Outcome(wish, old, None)
    if answer.allowed:
        await bed.client.patch(SETS, wish.zone, MergePatch({"spec": {"replicas": wish.replicas}}), NS)
    return Outcome(wish, old, answer)


@pytest.mark.parametrize("tracker", [False, True], ids=["annotations", "zone tracker"])
@settings(max_examples=25)
@given(WISHES, POD_FAULTS, API_FAULTS)
@example([patient(C, 0, at=0.0), Wish(C, 0, 4.0, False, 0.01), patient(A, 0, at=0.0), patient(C, 1, at=0.5)], {}, {})
def test_at_most_one_zone_shrinks_and_no_pod_is_left_prepared_for_nothing(
    tracker: bool, wishes: Sequence[Wish], pods: Any, api: Mapping[int, str]
) -> None:
    async def scene(bed: Bed) -> None:
        for name in (A, B, C):
            await bed.zone(name, REPLICAS)
        await bed.client.create(MAPS, {"metadata": {"name": TRACKER}, "data": dict.fromkeys((A, B, C), OLD)}, NS)
        bed.pods.answers = dict(pods)
        bed.transport.fault = faulty(bed, api)
        outcomes = await asyncio.gather(*(fulfil(bed, wish) for wish in wishes))
        await bed.undone()
        judge(bed, outcomes, left={name: await bed.replicas(name) for name in (A, B, C)})

    play(scene, tracker=tracker)


def judge(bed: Bed, outcomes: Sequence[Outcome], *, left: Mapping[str, int]) -> None:
    """`left` is how many replicas each zone has in the end: a pod that is wanted again may have been told so."""
    done = [one for one in outcomes if one.is_prepared]
    assert len({one.wish.zone for one in done}) <= 1
    last = {pod_of(call): call.method for call in bed.pods.calls}
    told = {pod for pod, method in last.items() if method == "POST"}
    prepared = {pod for one in done for pod in one.pods}
    wanted = {f"{zone}-{number}" for zone, replicas in left.items() for number in range(replicas)}
    assert prepared - wanted <= told <= prepared
    for one in outcomes:
        if one.answer is not None and not one.answer.allowed:
            assert " is not allowed because " in denied(one.answer)


@pytest.mark.parametrize("tracker", [False, True], ids=["annotations", "zone tracker"])
@settings(max_examples=10)
@given(WISHES)
def test_if_nothing_fails_exactly_one_zone_shrinks(tracker: bool, wishes: Sequence[Wish]) -> None:
    async def scene(bed: Bed) -> None:
        for name in (A, B, C):
            await bed.zone(name, REPLICAS)
        await bed.client.create(MAPS, {"metadata": {"name": TRACKER}, "data": dict.fromkeys((A, B, C), OLD)}, NS)
        patient = [Wish(wish.zone, wish.replicas, wish.at, wish.scale, 60.0) for wish in wishes]
        outcomes = await asyncio.gather(*(fulfil(bed, wish) for wish in patient))
        assert len({one.wish.zone for one in outcomes if one.is_prepared}) == 1
        assert bed.pods.asked("DELETE") == []

    play(scene, tracker=tracker)
