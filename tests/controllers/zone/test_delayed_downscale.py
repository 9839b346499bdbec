"""Delayed downscale: which pods are called, and what comes of their answers."""

from __future__ import annotations

import asyncio

import pytest

from controllers.zone.scaling_bed import BOTH, DELAYED, NAMESPACE, NO_ANSWER, Bed, calls, play
from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.kube.connect.outbound import Answer
from kedge.kube.patches import MergePatch


def prepare(bed: Bed, letter: str, minutes_ago: dict[int, float]) -> None:
    """These pods are prepared since then."""
    now = int(bed.clock.now().timestamp())
    for ordinal, minutes in minutes_ago.items():
        bed.pods.prepared[f"ingester-zone-{letter}-{ordinal}"] = now - int(minutes * 60)


@pytest.mark.parametrize(
    ("replicas", "wanted", "ago", "took", "step"),
    [
        (5, 3, {3: 70, 4: 70}, [*calls("a", "DELETE", 0, 1, 2), *calls("a", "POST", 3, 4)], "a=3"),
        (5, 3, {3: 30, 4: 0}, [*calls("a", "DELETE", 0, 1, 2), *calls("a", "POST", 3, 4)], ""),
        (5, 3, {3: 70, 4: 0}, [*calls("a", "DELETE", 0, 1, 2), *calls("a", "POST", 3, 4)], ""),
        (5, 1, {4: 70, 3: 75, 2: 30, 1: 75}, [*calls("a", "DELETE", 0), *calls("a", "POST", 1, 2, 3, 4)], "a=3"),
        (2, 5, {}, calls("a", "DELETE", 0, 1), "a=5"),
        (3, 3, {}, calls("a", "DELETE", 0, 1, 2), ""),
    ],
)
def test_pods_are_called_and_their_answers_count(
    replicas: int, wanted: int, ago: dict[int, float], took: list[str], step: str
) -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(wanted, replicas)
        await bed.zone("a", replicas, BOTH)
        prepare(bed, "a", ago)
        assert await bed.step() == step
        assert bed.pods.took() == took
        assert {header["X-Cluster"] for header in bed.pods.headers} == {NAMESPACE}

    play(scene())


@pytest.mark.parametrize(
    "fault",
    [
        "hang",
        NO_ANSWER,
        Answer(500),
        Answer(302, headers={"location": "http://elsewhere/"}),
        Answer(404),
        Answer(409, b'{"timestamp": 1}'),
        Answer(200, b"garbage"),
        Answer(200, b""),
        Answer(200, b'{"timestamp": 0}'),
        Answer(200, b'{"timestamp": true}'),
        Answer(200, b'{"timestamp": -5}'),
        Answer(200, b'{"timestamp": 1e9}'),
        Answer(200, b'{"timestamp": 99999999999999999999}'),
    ],
    ids=str,
)
def test_a_pod_that_does_not_answer_well_keeps_its_zone_and_not_the_next(fault: Answer | str | Exception) -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        await bed.zone("b", 5, BOTH)
        for letter in "ab":
            prepare(bed, letter, {3: 70, 4: 70})
        bed.pods.faults["ingester-zone-a-3"] = fault
        loop = asyncio.get_running_loop()
        begun, result = loop.time(), await bed.adjust()
        assert (result.step.name if result.step is not None else "", loop.time() - begun < 30) == (
            "ingester-zone-b",
            True,
        )
        assert (await bed.replicas(), [wait.code for wait in result.waits]) == ("a=5 b=3", ["PodsNotPrepared"])
        assert (await bed.events())["a Warning PodsNotPrepared"] == 1

    play(scene())


def test_a_timestamp_in_the_future_waits_until_its_delay_is_over() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(4, 5)
        await bed.zone("a", 5, BOTH)
        prepare(bed, "a", {4: -10})
        (text,) = await bed.texts()
        assert text.startswith("configured downscale delay 1h0m0s has not been reached for any pods")

    play(scene())


def test_a_delayed_downscale_takes_place_when_its_time_has_come_and_not_before() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not (result := await bed.adjust()).changed:
            assert result.look_again is not None
            await asyncio.sleep(result.look_again)
        assert loop.time() - begun == pytest.approx(3600, abs=2)
        assert (await bed.replicas(), await bed.reported()) == ("a=3", 3)
        posts = [one for one in bed.pods.calls if one.startswith("POST")]
        assert len(posts) <= 2 * 62
        assert await bed.events() == {"a Normal DownscaleDelay": 1, "a Normal ScaledDown": 1}

    play(scene())


def test_waiting_pods_are_not_asked_at_every_reconcile() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        for _ in range(20):
            assert (await bed.adjust()).changed is False
        assert bed.pods.took() == [*calls("a", "DELETE", 0, 1, 2), *calls("a", "POST", 3, 4)]

    play(scene())


def test_a_pod_that_is_replaced_while_it_waits_is_asked_again() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(4, 5)
        await bed.zone("a", 5, BOTH)
        bed.show_pods("a", "u0", "u1", "u2", "u3", "u4")
        await bed.adjust()
        bed.pods.took()
        bed.show_pods("a", "u0", "u1", "u2", "u3", "new")
        await bed.adjust()
        assert bed.pods.took() == calls("a", "POST", 4)

    play(scene())


def test_a_reference_that_changes_its_mind_while_pods_are_asked_is_heard() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        prepare(bed, "a", {3: 70, 4: 70})
        bed.pods.faults["DELETE ingester-zone-a-0"] = "hang"
        running = asyncio.create_task(bed.adjust())
        await asyncio.sleep(1)
        await bed.template(5)
        assert (await running).changed is False
        assert await bed.replicas() == "a=5"

    play(scene())


def test_a_set_that_is_changed_while_its_pods_are_asked_is_looked_at_again() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        prepare(bed, "a", {3: 70, 4: 70})
        bed.pods.faults["DELETE ingester-zone-a-0"] = "hang"
        running = asyncio.create_task(bed.adjust())
        await asyncio.sleep(1)
        await bed.annotate("a", zones.DELAYED_DOWNSCALE, "2h")
        result = await running
        assert (result.changed, await bed.replicas()) == (False, "a=5")
        assert result.look_again == pytest.approx(1, abs=0.1)

    play(scene())


@pytest.mark.parametrize(
    ("force", "ago", "took", "step"),
    [
        ("2", 70, [*calls("a", "DELETE", 0, 1), *calls("a", "POST", 2, 3, 4)], "a=2"),
        ("0", 30, calls("a", "POST", 0, 1, 2, 3, 4), ""),
        ("5", 70, calls("a", "DELETE", 0, 1, 2, 3, 4), ""),
    ],
)
def test_forced_replicas_wait_for_the_delay_too(force: str, ago: float, took: list[str], step: str) -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(10, 5)
        await bed.zone("a", 5, {**BOTH, zones.FORCE_REPLICAS: force})
        prepare(bed, "a", dict.fromkeys(range(5), ago))
        assert await bed.step() == step
        assert bed.pods.took() == took

    play(scene())


def test_a_follower_that_is_forced_is_scaled_without_a_call() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 5)
        await bed.zone("b", 5, {**DELAYED, zones.DOWNSCALE_LEADER: "ingester-zone-a", zones.FORCE_REPLICAS: "0"})
        assert (await bed.step(), bed.pods.calls) == ("b=0", [])

    play(scene())


def test_the_zones_after_the_one_that_is_scaled_are_not_touched() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 5)
        await bed.zone("a", 5, {**BOTH, zones.FORCE_REPLICAS: "0"})
        await bed.zone("b", 5, BOTH)
        await bed.zone("c", 5, BOTH)
        prepare(bed, "a", dict.fromkeys(range(5), 70.0))
        assert await bed.step() == "a=0"
        assert bed.pods.took() == calls("a", "POST", 0, 1, 2, 3, 4)

    play(scene())


def test_the_ordinals_of_a_set_begin_where_it_says() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(1, 2)
        await bed.zone("a", 2, BOTH)
        change = MergePatch({"spec": {"ordinals": {"start": 7}}})
        await bed.user.patch(StatefulSet, "ingester-zone-a", change, NAMESPACE)
        await bed.adjust()
        assert bed.pods.took() == [*calls("a", "DELETE", 7), *calls("a", "POST", 8)]

    play(scene())


def test_many_pods_that_hang_take_bounded_time_and_32_calls_at_once() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(0, 500)
        await bed.zone("a", 500, BOTH)
        await bed.zone("b", 500, BOTH)
        bed.pods.faults = {f"ingester-zone-{letter}-{ordinal}": "hang" for letter in "ab" for ordinal in range(500)}
        loop = asyncio.get_running_loop()
        begun, result = loop.time(), await bed.adjust()
        assert (result.changed, loop.time() - begun < 60, bed.pods.most_at_once) == (False, True, 32)
        assert [wait.code for wait in result.waits] == ["PodsNotPrepared"] * 2

    play(scene())


def test_a_group_whose_pods_hang_does_not_delay_another() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        await bed.zone("x", 5, BOTH, group="other")
        prepare(bed, "x", {3: 70, 4: 70})
        bed.pods.faults = {f"ingester-zone-a-{ordinal}": "hang" for ordinal in range(5)}
        slow = asyncio.create_task(bed.adjust())
        await asyncio.sleep(1)
        async with asyncio.timeout(1):
            assert (await bed.adjust("other")).changed
        assert not slow.done()
        assert (await slow).changed is False

    play(scene())
