"""The ConfigMap that says when zones were scaled down: who writes it, and who waits because of it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from admission.zones_bed import MAPS, NS, TRACKER, A, B, Bed, C, ago, denied, play, said
from kedge.kube.codec import Untyped
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.scripted import refused

NOT = "not allowed because "
OLD = '{"lastDownscaled":"2020-01-01T00:00:00Z"}'
PATH = f"/api/v1/namespaces/{NS}/configmaps/{TRACKER}"


async def tracker(bed: Bed, **data: str) -> Untyped:
    named = {name.replace("_", "-"): value for name, value in data.items()}
    return await bed.client.create(MAPS, {"metadata": {"name": TRACKER}, "data": named}, NS)


def entry(at: str) -> str:
    return msgspec.json.encode({"lastDownscaled": at}).decode()


def test_a_new_one_has_every_zone_of_the_group_and_makes_the_first_downscale_wait() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await bed.zone("store", labels={"rollout-group": "store"})
        text = denied(await bed.prepare(A, 2))
        assert text.startswith(f"{said(A, 3, 2)}{NOT}statefulset {B} was downscaled at 2030-01-01 00:00:")
        assert text.endswith(" +0000 UTC and is labelled to wait 12h0m0s between zone downscales")
        assert sorted(await bed.tracked()) == [A, B, C]
        assert bed.pods.calls == []
        await asyncio.sleep(12 * 3600)
        assert (await bed.prepare(A, 2)).allowed

    play(scene, tracker=True)


def test_a_downscale_changes_the_entry_of_its_zone_alone_and_no_annotation() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_a=OLD, ingester_zone_b=OLD, another="anything at all")
        assert (await bed.prepare(A, 2)).allowed
        assert await bed.tracked() == {A: entry(ago()), B: OLD, "another": "anything at all"}
        assert await bed.annotation(A) is None
        assert bed.transport.writes() == [f"PUT {PATH}"]

    play(scene, tracker=True)


@pytest.mark.parametrize("data", [{}, {"ingester_zone_a": OLD}], ids=["empty", "of this zone alone"])
def test_zones_without_an_entry_hold_up_nobody(data: dict[str, str]) -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, **data)
        assert (await bed.prepare(A, 2)).allowed
        assert list(await bed.tracked()) == [A]

    play(scene, tracker=True)


def test_a_ConfigMap_without_data_is_an_empty_one() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await bed.client.create(MAPS, {"metadata": {"name": TRACKER}}, NS)
        assert (await bed.prepare(A, 2)).allowed

    play(scene, tracker=True)


def test_a_zone_waits_for_another_that_was_scaled_down_a_short_while_ago() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_a=OLD, ingester_zone_b=OLD, ingester_zone_c=entry("2029-12-31T22:00:00Z"))
        assert denied(await bed.prepare(A, 2)) == (
            f"{said(A, 3, 2)}{NOT}statefulset {C} was downscaled at 2029-12-31 22:00:00 +0000 UTC"
            " and is labelled to wait 12h0m0s between zone downscales"
        )
        assert (await bed.prepare(C, 2)).allowed

    play(scene, tracker=True)


def test_the_case_of_the_name_in_an_entry_does_not_matter() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_c='{"LastDownscaled":"2029-12-31T22:00:00Z"}')
        assert f"statefulset {C} was downscaled at 2029-12-31 22:00:00 +0000 UTC" in denied(await bed.prepare(A, 2))
        await bed.client.patch(MAPS, TRACKER, MergePatch({"data": {C: OLD.replace("last", "Last")}}), NS)
        assert (await bed.prepare(A, 2)).allowed

    play(scene, tracker=True)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "loading zones failed."),
        ("yesterday", "loading zones failed."),
        ("[]", "loading zones failed."),
        ('{"lastDownscaled":7}', "loading zones failed."),
        ('{"a":' * 100_000, "loading zones failed."),
        ("{}", "parsing parsing downscale timestamps from the zone ConfigMap failed."),
        (entry("yesterday"), "parsing parsing downscale timestamps from the zone ConfigMap failed."),
    ],
    ids=["empty", "no JSON", "a list", "a number", "deep", "no time", "not a time"],
)
def test_an_entry_that_cannot_be_read_denies(written: str, why: str) -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_b=written)
        assert denied(await bed.prepare(A, 2)) == said(A, 3, 2) + NOT + why
        assert bed.pods.calls == []

    play(scene, tracker=True)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_if_it_can_be_neither_read_nor_created_the_downscale_is_denied(method: str) -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()

        async def fault(request: Request) -> Response | None:
            return refused(403, "Forbidden") if request.method == method and "configmaps" in request.path else None

        bed.transport.fault = fault
        assert denied(await bed.prepare(A, 2)) == said(A, 3, 2) + NOT + "loading zones failed."

    play(scene, tracker=True)


def test_one_that_another_process_creates_at_the_same_time_is_taken() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()

        async def be_faster(request: Request) -> Response | None:
            if request.method == "POST":
                await tracker(bed, ingester_zone_a=OLD, ingester_zone_b=OLD, ingester_zone_c=OLD)
            return None

        bed.transport.fault = be_faster
        assert (await bed.prepare(A, 2)).allowed

    play(scene, tracker=True)


def other_writer(bed: Bed, times: int, **data: str) -> Any:
    """Somebody who changes the ConfigMap so many times, each time just before it is put."""
    left = [times]

    async def fault(request: Request) -> Response | None:
        if request.method == "PUT" and left[0]:
            left[0] -= 1
            named = {name.replace("_", "-"): value for name, value in data.items()}
            await bed.client.patch(MAPS, TRACKER, MergePatch({"data": {**named, "turn": str(left[0])}}), NS)
        return None

    return fault


def test_a_write_of_another_group_meanwhile_is_kept() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_a=OLD)
        bed.transport.fault = other_writer(bed, 1, store=OLD)
        assert (await bed.prepare(A, 2)).allowed
        assert await bed.tracked() == {A: entry(ago()), "store": OLD, "turn": "0"}

    play(scene, tracker=True)


def test_if_another_process_scaled_down_another_zone_meanwhile_this_one_is_denied_and_undone() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_a=OLD)
        bed.transport.fault = other_writer(bed, 1, ingester_zone_b=entry("2029-12-31T23:59:00Z"))
        text = denied(await bed.prepare(A, 2))
        assert text.startswith(f"{said(A, 3, 2)}{NOT}statefulset {B} was downscaled at 2029-12-31 23:59:00 +0000 UTC")
        assert bed.pods.asked("DELETE") == [f"{A}-2"]
        assert (await bed.tracked())[A] == OLD

    play(scene, tracker=True)


def test_a_second_conflict_denies_and_undoes() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await tracker(bed, ingester_zone_a=OLD)
        bed.transport.fault = other_writer(bed, 2, store=OLD)
        assert denied(await bed.prepare(A, 2)) == (
            said(A, 3, 2) + NOT + "setting downscale timestamp in the zone ConfigMap failed."
        )
        assert bed.pods.asked("DELETE") == [f"{A}-2"]
        assert (await bed.tracked())[A] == OLD

    play(scene, tracker=True)


@pytest.mark.parametrize("before", [{"ingester_zone_a": OLD}, {"store": OLD}], ids=["an entry", "none"])
def test_an_entry_that_was_written_although_its_answer_was_lost_is_taken_back(before: dict[str, str]) -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        stored = await tracker(bed, **before)
        lost: list[Request] = []

        async def lose_the_answer(request: Request) -> Response | None:
            if request.method != "PUT" or lost:
                return None
            lost.append(request)
            await bed.client.replace(MAPS, msgspec.json.decode(request.body))
            raise ConnectionFailed("connection reset", sent=True)

        bed.transport.fault = lose_the_answer
        assert denied(await bed.prepare(A, 2)).endswith("setting downscale timestamp in the zone ConfigMap failed.")
        await bed.undone()
        assert lost
        assert await bed.tracked() == stored["data"]
        assert bed.pods.asked("DELETE") == [f"{A}-2"]

    play(scene, tracker=True)


def test_a_zone_without_a_group_keeps_the_entries_of_others() -> None:
    async def scene(bed: Bed) -> None:
        await bed.zone(A, labels={"rollout-group": None})
        await tracker(bed, store=OLD)
        assert (await bed.prepare(A, 2)).allowed
        assert await bed.tracked() == {"store": OLD, A: entry(ago())}

    play(scene, tracker=True)


def test_the_verbs_of_the_peer_suffice() -> None:
    async def scene(bed: Bed) -> None:
        await bed.three_zones()
        await bed.prepare(A, 2)
        await asyncio.sleep(13 * 3600)
        assert (await bed.prepare(A, 2, scale=True)).allowed
        assert {(one.method, one.path.rpartition(f"{NS}/")[2].partition("/")[0]) for one in bed.transport.asked} == {
            ("GET", "statefulsets"),
            ("GET", "pods"),
            ("GET", "configmaps"),
            ("POST", "configmaps"),
            ("PUT", "configmaps"),
        }

    play(scene, tracker=True)
