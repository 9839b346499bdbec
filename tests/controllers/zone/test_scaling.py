"""Scaling a rollout group on an embedded server: steps, refusals, waits and what is told of them."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from controllers.zone.scaling_bed import MIRRORS, NAMESPACE, Bed, play
from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.kube.patches import MergePatch
from plan.zoning.scaled_sets import stamp

FOLLOWS_A = {zones.DOWNSCALE_LEADER: "ingester-zone-a"}
FOLLOWS_B = {zones.DOWNSCALE_LEADER: "ingester-zone-b"}


def test_a_group_that_asks_for_nothing_costs_no_request() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 3)
        result = await bed.adjust()
        assert (result.changed, result.waits, result.look_again, bed.api.asked) == (False, (), None, [])

    play(scene())


def test_a_chain_of_followers_is_scaled_one_at_a_time() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 5)
        await bed.zone("b", 3, FOLLOWS_A)
        await bed.zone("c", 3, FOLLOWS_B)
        assert [await bed.step(), await bed.step(), await bed.step()] == ["b=5", "c=5", ""]
        patches = ["PATCH statefulsets/ingester-zone-b", "PATCH statefulsets/ingester-zone-c"]
        assert bed.api.writes() == patches
        assert await bed.events() == {"b Normal ScaledUp": 1, "c Normal ScaledUp": 1}

    play(scene())


def test_the_patch_names_the_uid_and_no_resource_version() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 2)
        made = await bed.zone("b", 3, FOLLOWS_A)
        assert await bed.step() == "b=2"
        (body,) = bed.api.bodies
        assert msgspec.json.decode(body) == {"spec": {"replicas": 2}, "metadata": {"uid": made.metadata.uid}}

    play(scene())


def test_a_follower_is_scaled_down_when_the_minimum_time_is_over_and_not_before() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 2, {zones.LAST_DOWNSCALE: stamp(bed.clock.now())})
        await bed.zone("b", 3, FOLLOWS_A, **{zones.MIN_TIME_BETWEEN_ZONES: "12h"})
        result = await bed.adjust()
        assert result.look_again is not None
        assert result.look_again == pytest.approx(12 * 3600, abs=1)
        await asyncio.sleep(result.look_again - 0.01)
        assert (await bed.adjust()).changed is False
        await asyncio.sleep(0.01)
        assert await bed.step() == "b=2"
        assert await bed.events() == {"b Normal MinTimeBetweenZones": 1, "b Normal ScaledDown": 1}

    play(scene())


def test_what_another_zone_did_a_moment_ago_counts_though_the_cache_does_not_show_it() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 2)
        await bed.zone("b", 3, FOLLOWS_A, **{zones.MIN_TIME_BETWEEN_ZONES: "12h"})
        bed.stale = (await bed.group()).sets
        await bed.annotate("a", zones.LAST_DOWNSCALE, stamp(bed.clock.now()))
        assert (await bed.adjust()).changed is False
        assert bed.api.writes() == []

    play(scene())


def test_replicas_that_somebody_else_has_set_already_are_not_set_again() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 2)
        await bed.zone("b", 3, FOLLOWS_A)
        bed.stale = (await bed.group()).sets
        await bed.scale("b", 2)
        assert (await bed.adjust()).changed is False
        assert bed.api.writes() == []

    play(scene())


def test_a_set_that_is_refused_waits_and_the_next_one_is_scaled() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, FOLLOWS_A)
        await bed.zone("c", 2, FOLLOWS_A)
        bed.api.refused["PATCH statefulsets/ingester-zone-b"] = 403
        result = await bed.adjust()
        assert (result.changed, await bed.replicas()) == (True, "a=4 b=2 c=4")
        assert await bed.texts() == ["not scaled: denied"]
        assert await bed.events() == {"c Normal ScaledUp": 1, "b Warning ScalingRefused": 1}

    play(scene())


def test_a_set_that_is_refused_again_and_again_is_tried_less_and_less() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, FOLLOWS_A)
        bed.api.refused["PATCH statefulsets/ingester-zone-b"] = 403
        waits: list[float] = []
        for _ in range(8):
            result = await bed.adjust()
            assert result.look_again is not None
            waits.append(result.look_again)
            assert (await bed.adjust()).changed is False
            await asyncio.sleep(result.look_again)
        assert len(bed.api.writes()) == 8
        assert (waits[0] <= 5, 30 <= waits[-1] <= 60) == (True, True)
        bed.api.refused.clear()
        assert await bed.step() == "b=4"

    play(scene())


def test_a_change_of_the_group_is_worth_another_attempt() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, FOLLOWS_A)
        bed.api.refused["PATCH statefulsets/ingester-zone-b"] = 403
        for _ in range(6):
            await asyncio.sleep((await bed.adjust()).look_again or 0)
        await bed.adjust()
        bed.api.refused.clear()
        await bed.scale("a", 5)
        await asyncio.sleep(5)
        assert await bed.step() == "b=5"

    play(scene())


def test_a_patch_in_doubt_counts_as_a_change() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, FOLLOWS_A)
        bed.api.refused["PATCH statefulsets/ingester-zone-b"] = None
        result = await bed.adjust()
        assert (result.changed, result.step, await bed.replicas()) == (True, None, "a=4 b=4")
        assert result.look_again is not None

    play(scene())


def test_a_group_that_cannot_be_read_is_not_scaled_and_raises_nothing() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, FOLLOWS_A)
        bed.api.refused["GET statefulsets"] = 403
        assert await bed.texts() == ["not scaled: the StatefulSets of the group cannot be read: denied"]
        bed.api.refused.clear()
        assert await bed.step() == "b=4"

    play(scene())


def test_a_set_that_was_made_anew_is_not_scaled_for_the_old_one() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        old = await bed.zone("b", 2, FOLLOWS_A)
        group = await bed.group()
        await bed.user.delete(StatefulSet, "ingester-zone-b", NAMESPACE, uid=old.metadata.uid)
        await bed.zone("b", 2)
        assert (await bed.scaling.adjust(group)).changed is False
        assert await bed.replicas() == "a=4 b=2"

    play(scene())


def test_a_wait_is_told_once_and_again_when_it_comes_back() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, {zones.DOWNSCALE_LEADER: "nobody"})
        for _ in range(5):
            await bed.adjust()
        assert await bed.events() == {"b Warning LeaderMissing": 1}
        await bed.annotate("b", zones.DOWNSCALE_LEADER, "ingester-zone-a")
        await bed.adjust()
        await bed.annotate("b", zones.DOWNSCALE_LEADER, "nobody")
        await bed.adjust()
        assert (await bed.events())["b Warning LeaderMissing"] == 2

    play(scene())


def test_steps_and_refusals_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 4)
        await bed.zone("b", 2, FOLLOWS_A)
        await bed.zone("c", 2, {zones.DOWNSCALE_LEADER: "nobody"})
        for _ in range(3):
            await bed.adjust()

    with caplog.at_level(logging.INFO, "kedge.controllers.zone.scaling"):
        play(scene())
    logged = [(record.levelname, record.getMessage()) for record in caplog.records if record.name.endswith("scaling")]
    assert len(logged) == 2, "each is logged once"
    assert ("INFO", "ingester-zone-b: scaled up from 2 to 4 replicas to match leader ingester-zone-a") in logged
    (warning,) = [text for level, text in logged if level == "WARNING"]
    assert warning.startswith("ingester-zone-c: could not find leader for ingester-zone-c")


def test_a_missing_leader_does_not_keep_a_mirror_from_being_scaled() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 5)
        await bed.zone("a", 3, {zones.DOWNSCALE_LEADER: "nobody"})
        await bed.zone("b", 3, MIRRORS)
        assert await bed.step() == "b=5"

    play(scene())


def test_a_group_that_is_gone_is_forgotten() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("b", 2, {zones.DOWNSCALE_LEADER: "nobody"})
        await bed.adjust()
        assert len(bed.scaling._groups) == 1
        bed.scaling.forget(NAMESPACE, "ingester")
        bed.scaling.forget(NAMESPACE, "other")
        assert not bed.scaling._groups

    play(scene())


def test_an_upscale_waits_for_the_leaders_pods() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 2)
        await bed.zone("b", 1, {**FOLLOWS_A, zones.UPSCALE_WHEN_LEADER_READY: "true"})
        status = {"status": {"replicas": 2, "readyReplicas": 2, "observedGeneration": 1}}
        await bed.user.patch(StatefulSet, "ingester-zone-a", MergePatch(status), NAMESPACE, subresource="status")
        bed.show_pods("a", "one")
        assert len(await bed.texts()) == 1
        bed.show_pods("a", "one", "two")
        assert await bed.step() == "b=2"

    play(scene())
