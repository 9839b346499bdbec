"""Whatever happens to a group, it is scaled one step at a time, never too early, and comes to what is asked for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.zone.scaling_bed import BOTH, NAMESPACE, NO_ANSWER, Bed, play
from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.api.times import parse_micro_time
from kedge.controllers.zone.scaling import ScalingResult
from kedge.kube.connect.outbound import Answer
from kedge.kube.patches import MergePatch
from kedge.plan.zoning.scaling import Reason
from plan.zoning.scaled_sets import stamp

MIN_TIME = {zones.MIN_TIME_BETWEEN_ZONES: "12h"}
FAULTS = ["hang", NO_ANSWER, Answer(500), Answer(302), Answer(200, b"garbage"), Answer(200, b'{"timestamp": 0}')]
SIZE = st.integers(0, 6)
ACTIONS = st.one_of(
    st.tuples(st.just("leader"), SIZE),
    st.tuples(st.just("reference"), SIZE),
    st.tuples(st.just("fault"), st.tuples(st.sampled_from("de"), SIZE, st.sampled_from(range(len(FAULTS))))),
    st.tuples(st.just("refuse"), st.sampled_from("bcde")),
    st.tuples(st.just("heal"), st.none()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1, 61, 1800, 3601, 43_300])),
)


class Group:
    """A leader, two that follow it in a chain, and two that mirror with a delay."""

    def __init__(self) -> None:
        self.bed = Bed()
        self.before: dict[str, StatefulSet] = {}

    async def prepare(self) -> None:
        await self.bed.template(3, 3)
        await self.bed.zone("a", 3)
        await self.bed.zone("b", 3, {zones.DOWNSCALE_LEADER: "ingester-zone-a"}, **MIN_TIME)
        await self.bed.zone("c", 3, {zones.DOWNSCALE_LEADER: "ingester-zone-b"}, **MIN_TIME)
        for letter in "de":
            await self.bed.zone(letter, 3, BOTH)

    async def act(self, what: str, value: Any) -> None:
        bed = self.bed
        match what:
            case "leader":
                await bed.scale("a", value)
            case "reference":
                await bed.template(value)
            case "fault":
                letter, ordinal, fault = value
                bed.pods.faults[f"ingester-zone-{letter}-{ordinal}"] = FAULTS[fault]
            case "refuse":
                bed.api.refused[f"PATCH statefulsets/ingester-zone-{value}"] = 403
            case "heal":
                self.heal()
            case "restart":
                bed.restarted()
            case _:
                await asyncio.sleep(value)

    def heal(self) -> None:
        self.bed.pods.faults.clear()
        self.bed.api.refused.clear()

    async def adjust(self) -> ScalingResult:
        """One adjustment, judged by what pods and the server say."""
        self.before = {one.metadata.name: one for one in (await self.bed.group()).sets}
        prepared = dict(self.bed.pods.prepared)
        self.bed.api.writes()
        result = await self.bed.adjust()
        refused = [*self.bed.api.refused]
        done = [one for one in self.bed.api.writes() if one.startswith("PATCH statefulsets") and one not in refused]
        assert len(done) == (result.step is not None)
        if result.step is not None and result.step.is_down:
            self.judge(result, prepared)
            await self.annotate(result.step.name)
        return result

    def judge(self, result: ScalingResult, prepared: dict[str, int]) -> None:
        step, now = result.step, self.bed.clock.now()
        assert step is not None
        if step.reason is Reason.reference:
            gone = range(step.replicas, step.current)
            since = [prepared[f"{step.name}-{ordinal}"] for ordinal in gone]  # before this adjustment, all of them
            assert all(now.timestamp() - each >= 3600 for each in since)
        others = [one for name, one in self.before.items() if name != step.name]
        stamps = [one.metadata.annotations.get(zones.LAST_DOWNSCALE) for one in others]
        if step.reason is Reason.leader:
            assert all(now - parse_micro_time(text) > timedelta(hours=12) for text in stamps if text is not None)

    async def annotate(self, name: str) -> None:
        """As the webhook does that prepares a downscale."""
        change = MergePatch({"metadata": {"annotations": {zones.LAST_DOWNSCALE: stamp(self.bed.clock.now())}}})
        await self.bed.user.patch(StatefulSet, name, change, NAMESPACE)

    async def settle(self) -> None:
        """Adjust until nothing but looking at the reference is left to do."""
        for _ in range(1000):
            result = await self.adjust()
            if not (result.changed or result.waits):
                return
            await asyncio.sleep(0 if result.changed else 300)  # looking more often changes nothing
        raise AssertionError(f"it does not settle: {await self.bed.replicas()}")


@settings(max_examples=25)
@given(st.lists(ACTIONS, max_size=12))
def test_a_group_is_scaled_step_by_step_and_comes_to_what_is_asked_for(actions: list[tuple[str, Any]]) -> None:
    async def scene() -> None:
        group = Group()
        await group.prepare()
        for what, value in actions:
            await group.act(what, value)
            await group.adjust()
        group.heal()
        await asyncio.sleep(6)  # a scale that was read lately is not read again
        await group.settle()
        sets = {one.metadata.name[-1]: one.spec.replicas for one in (await group.bed.group()).sets}
        scale = await group.bed.user.get(zones.ReplicaTemplate, "replicas", NAMESPACE)
        assert sets["b"] == sets["c"] == sets["a"]
        assert sets["d"] == sets["e"] == scale.spec.replicas == scale.status.replicas

    play(scene())
