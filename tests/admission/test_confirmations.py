"""A downscale that was allowed and not stored after all is undone; one that was stored is left alone."""

from __future__ import annotations

import asyncio

import pytest

from admission.zones_bed import MAPS, NS, SETS, TRACKER, A, B, Bed, play
from kedge.admission.confirmations import AFTER
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response
from support.scripted import refused

LAST = "grafana.com/last-downscale"
OLD = '{"lastDownscaled":"2020-01-01T00:00:00Z"}'


async def store(bed: Bed, replicas: int) -> None:
    await bed.client.patch(SETS, A, MergePatch({"spec": {"replicas": replicas}}), NS)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("before", [None, "2020-01-01T00:00:00Z"])
def test_a_downscale_that_was_not_stored_is_undone(scale: bool, before: str | None) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, annotations={LAST: before})
        assert (await bed.prepare(A, 1, scale=scale)).allowed
        await asyncio.sleep(AFTER - 1)
        assert bed.pods.asked("DELETE") == []
        await asyncio.sleep(2)
        assert sorted(bed.pods.asked("DELETE")) == [f"{A}-1", f"{A}-2"]
        assert await bed.annotation(A) == before
        await asyncio.sleep(10 * AFTER)
        assert len(bed.pods.asked("DELETE")) == 2

    play(scene)


def test_its_entry_in_the_zone_tracker_is_taken_back() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        await bed.client.create(MAPS, {"metadata": {"name": TRACKER}, "data": {A: OLD, "x": "y"}}, NS)
        assert (await bed.prepare(A, 1)).allowed
        assert (await bed.tracked())[A] != OLD
        await asyncio.sleep(AFTER + 1)
        assert await bed.tracked() == {A: OLD, "x": "y"}

    play(scene, tracker=True)


@pytest.mark.parametrize("replicas", [[1], [1, 3], [0]], ids=["stored", "and scaled up again", "something else"])
def test_one_that_was_stored_is_left_alone(replicas: list[int]) -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 1)).allowed
        at = await bed.annotation(A)
        for number in replicas:
            await store(bed, number)
        await asyncio.sleep(10 * AFTER)
        assert bed.pods.asked("DELETE") == []
        assert await bed.annotation(A) == at

    play(scene)


def test_a_zone_that_is_gone_is_left_alone() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 1)).allowed
        await bed.client.delete(SETS, A, NS)
        await asyncio.sleep(10 * AFTER)
        assert bed.pods.asked("DELETE") == []

    play(scene)


def test_the_time_begins_anew_when_the_same_is_asked_again() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 1)).allowed
        await asyncio.sleep(AFTER - 5)
        assert (await bed.prepare(A, 1)).allowed
        await asyncio.sleep(10)  # the first would be looked at now, in the middle of the second
        assert bed.pods.asked("DELETE") == []
        await store(bed, 1)
        await asyncio.sleep(10 * AFTER)
        assert bed.pods.asked("DELETE") == []

    play(scene)


def test_if_nobody_can_be_asked_it_looks_again_later() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 1)).allowed

        async def down(_: Request) -> Response:
            return refused(503, "ServiceUnavailable")

        bed.transport.fault = down
        await asyncio.sleep(AFTER + 30)
        assert bed.pods.asked("DELETE") == []
        bed.transport.fault = None
        await asyncio.sleep(AFTER)
        assert len(bed.pods.asked("DELETE")) == 2

    play(scene)


def test_it_does_not_get_in_the_way_of_another_zone() -> None:
    async def scene(bed: Bed) -> None:
        no_wait = {"grafana.com/min-time-between-zones-downscale": None}
        await bed.zone(A, labels=no_wait)
        await bed.zone(B, labels=no_wait)
        assert (await bed.prepare(A, 1)).allowed
        bed.pods.answers[("POST", f"{B}-2")] = 4.0
        await asyncio.sleep(AFTER - 2)
        assert (await bed.prepare(B, 2)).allowed
        assert bed.pods.asked("DELETE") == []
        await bed.client.patch(SETS, B, MergePatch({"spec": {"replicas": 2}}), NS)
        await asyncio.sleep(AFTER)
        assert sorted(bed.pods.asked("DELETE")) == [f"{A}-1", f"{A}-2"]

    play(scene)


def test_a_time_that_somebody_else_wrote_stays() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A)
        assert (await bed.prepare(A, 1)).allowed
        other = "2025-01-01T00:00:00Z"
        await bed.client.patch(SETS, A, MergePatch({"metadata": {"annotations": {LAST: other}}}), NS)
        await asyncio.sleep(AFTER + 1)
        assert len(bed.pods.asked("DELETE")) == 2
        assert await bed.annotation(A) == other

    play(scene)
