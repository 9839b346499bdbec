"""An explanation does not contradict itself or the facts, whichever moments its objects were read at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.binding import BindingState, ClusterResourceBinding
from kedge.api.cluster import MemberCluster, MemberClusterSpec
from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition
from kedge.api.fleet import PARENT_BINDING, PARENT_SNAPSHOT_NAME
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_status import ClusterPlacementStatus, PlacementStatus
from kedge.api.rollout import RolloutStrategy, RolloutStrategyType
from kedge.api.work import ManifestCondition, Work, WorkResourceIdentifier, WorkSpec, WorkStatus
from kedge.plan.explaining.phrases import explained
from kedge.plan.explaining.story import tell
from plan.explaining import objects
from plan.explaining.objects import snapshot
from plan.rolling.making import NEW, NOW, OLD, SAID, binding, pick_n, placement
from support.explained import available_by_works, contradiction

CLUSTERS = [f"cluster-{number}" for number in range(1, 5)]
SNAPSHOTS = [snapshot(0), snapshot(1, latest=True)]
WAIT = "at most 1 of 3 clusters may be unavailable"
WEB = WorkResourceIdentifier(ordinal=0, group="apps", version="v1", kind="Deployment", namespace="shop", name="web")


def condition(kind: str, status: str, generation: int, reason: str = "Because", message: str = "") -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=NOW - timedelta(seconds=5),
        observed_generation=generation,
    )


class Read(Struct, frozen=True):
    """What was read of one cluster, its parts at different moments."""

    binding: ClusterResourceBinding
    works: tuple[Work, ...]
    status: ClusterPlacementStatus
    member: MemberCluster | None


@st.composite
def work_of(draw: st.DrawFn, bound: ClusterResourceBinding) -> Work:
    said, generation = draw(st.sampled_from([None, FALSE, TRUE, TRUE])), draw(st.sampled_from([1, 2, 2, 2]))
    own = [] if said is None else [condition("Applied", TRUE, 1), condition("Available", said, 1, message="0 of 3")]
    shown = () if said is None else (ManifestCondition(WEB, tuple(own)),)
    return Work(
        metadata=ObjectMeta(
            name=f"{bound.metadata.name}-work",
            generation=2,
            labels={PARENT_BINDING: bound.metadata.name},
            annotations={PARENT_SNAPSHOT_NAME: draw(st.sampled_from([bound.spec.resource_snapshot_name, OLD]))},
        ),
        spec=WorkSpec(),
        status=WorkStatus(
            conditions=tuple(replace(one, observed_generation=generation) for one in own), manifest_conditions=shown
        ),
    )


@st.composite
def cluster(draw: st.DrawFn, name: str) -> Read:
    """A binding with words of the rollout that may be old, and a status that may be older still."""
    bound = binding(
        name,
        draw(st.sampled_from(SAID)),
        state=draw(st.sampled_from([BindingState.bound, BindingState.bound, BindingState.bound, *BindingState])),
        has=draw(st.sampled_from([OLD, NEW])),
        spoken_at=draw(st.sampled_from([3, 3, 3, 2])),
        deleting=draw(st.integers(0, 9)) == 0,
        since=draw(st.sampled_from([5.0, 100.0])),
    )
    other = draw(st.sampled_from(CLUSTERS))
    words = f"{name} waits: at most 1 of 4 clusters may be unavailable, and {other} is not available: 0 of 3"
    started = condition(reasons.ROLLOUT_STARTED, draw(st.sampled_from([FALSE, TRUE])), 3, message=words)
    status = replace(bound.status, conditions=(started, *bound.status.conditions))
    steps = [condition(kind, TRUE, 1) for kind in objects.STEPS[: draw(st.integers(1, 6))]]
    step = objects.STEPS[len(steps) % 6]
    said = words if step == reasons.ROLLOUT_STARTED else "0 of 3"
    last = condition(step, draw(st.sampled_from([FALSE, UNKNOWN])), 1, message=said)
    return Read(
        binding=replace(bound, status=status),
        works=tuple(draw(st.lists(work_of(bound), max_size=1))),
        status=ClusterPlacementStatus(cluster_name=name, conditions=(*steps, last)[:6], observed_resource_index="1"),
        member=draw(st.sampled_from([member(name), member(name), member(name), silent(name), None])),
    )


def member(name: str, *conditions: Condition) -> MemberCluster:
    found = MemberCluster(metadata=ObjectMeta(name=name), spec=MemberClusterSpec(identity={}))  # type: ignore[arg-type]  # not read
    return replace(found, status=replace(found.status, conditions=conditions))


def silent(name: str) -> MemberCluster:
    return member(name, condition(reasons.HEALTHY, FALSE, 1, message=f"{name} cannot be reached"))


@st.composite
def fleets(draw: st.DrawFn) -> list[Read]:
    return [draw(cluster(name)) for name in draw(st.lists(st.sampled_from(CLUSTERS), min_size=1, unique=True))]


@st.composite
def placements(draw: st.DrawFn, fleet: Sequence[Read]) -> ClusterResourcePlacement:
    rolling: dict[str, Any] = {"max_unavailable": draw(st.integers(0, 2)), "unavailable_period_seconds": 60}
    placed = placement(draw(st.sampled_from([None, pick_n(len(fleet))])), **rolling)
    if draw(st.integers(0, 3)) == 0:
        external = RolloutStrategy(type=RolloutStrategyType.external)
        placed = replace(placed, spec=replace(placed.spec, strategy=external))
    said = draw(st.integers(1, 6))
    whole = [
        condition(f"{objects.PREFIX}{kind}", TRUE if n < said else FALSE, 0) for n, kind in enumerate(objects.STEPS)
    ]
    status = PlacementStatus(
        conditions=tuple(whole[: said + 1]),
        observed_resource_index=draw(st.sampled_from(["0", "1"])),
        placement_statuses=tuple(one.status for one in fleet if draw(st.booleans())),
    )
    return replace(placed, status=status)


@given(st.data(), fleets())
def test_no_explanation_contradicts_itself_or_what_is_so(data: st.DataObject, fleet: list[Read]) -> None:
    placed, bindings = data.draw(placements(fleet)), [one.binding for one in fleet]
    works = [work for one in fleet for work in one.works]
    members = {one.member.metadata.name: one.member for one in fleet if one.member is not None}
    told = tell(
        placed, bindings, works, SNAPSHOTS, members=data.draw(st.sampled_from([members, members, None])), now=NOW
    )
    assert not contradiction(told, available_by_works(bindings, works))


def test_clusters_that_are_available_and_queued_are_not_said_not_to_be() -> None:
    """The rollout has not looked at a new revision yet."""
    maybe = objects.condition("RolloutStarted", "Unknown", "RolloutStartedUnknown", "This cluster may have to wait")
    names = CLUSTERS[:3]
    placed = objects.placement(
        [*objects.passed("Scheduled", prefix=objects.PREFIX), {**maybe, "type": f"{objects.PREFIX}RolloutStarted"}],
        [objects.on(name, *objects.passed("Scheduled"), maybe) for name in names],
    )
    bindings = [objects.binding(name, index=0) for name in names]
    assert explained(tell(placed, bindings, (), SNAPSHOTS, now=NOW)) == [
        "ClusterResourcePlacement crp: revision 1 on 0 of 3 clusters, 3 of 3 available",
        "cluster-1: revision 0, is next",
        f"cluster-2 and cluster-3: revision 0, wait: {WAIT}, and cluster-1 is being given its resources",
    ]


def test_what_a_cluster_was_said_to_wait_for_is_not_repeated_when_it_is_over() -> None:
    bindings = [objects.binding("cluster-1"), objects.binding("cluster-2", index=0)]
    assert explained(tell(objects.STUCK, bindings, (), SNAPSHOTS, now=NOW)) == [
        "ClusterResourcePlacement crp: revision 1 on 1 of 2 clusters, 2 of 2 available",
        "cluster-1: revision 1",
        "cluster-2: revision 0, is next",
    ]


def test_where_nothing_counts_as_one_who_is_next_says_that_another_hub_takes_it_literally() -> None:
    placed = replace(objects.ALL_WELL, spec=placement(max_unavailable=0).spec)
    story = tell(placed, [objects.binding("cluster-1", index=0)], (), SNAPSHOTS, now=NOW)
    assert "--dialect kubefleet" in story.places[0].why


@pytest.mark.parametrize("others", [True, False])
def test_a_cluster_that_is_given_time_is_not_shown_as_proven_while_others_wait_for_it(others: bool) -> None:
    young = binding("cluster-1", SAID[1], has=NEW, since=5.0)
    bindings = [young, *([binding("cluster-2")] if others else [])]
    placed = replace(placement(max_unavailable=1, unavailable_period_seconds=60), status=objects.ALL_WELL.status)
    story = tell(placed, bindings, (), SNAPSHOTS, now=NOW)
    assert story.places[0].state == ("unknown" if others else "available")
