"""Where a rollout group stands, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.zones import DOWNSCALE_LEADER, PAUSED
from kedge.plan.state import State
from kedge.plan.zoning import replicas
from kedge.plan.zoning.budget_spec import ZoneBudget
from kedge.plan.zoning.disruption import BudgetZones
from kedge.plan.zoning.group import GroupPlan, plan
from kedge.plan.zoning.group_story import (
    GroupStory,
    explained_group,
    explained_pod,
    explained_zone,
    kept_by_budgets,
    tell_group,
    zones_of,
)
from kedge.plan.zoning.replicas import ScalingPlan
from kedge.plan.zoning.scaling import Reason, ScaleCode, ScaleStep, Scaling, wait_for
from kedge.plan.zoning.scaling_text import step_text, wait_text
from kedge.plan.zoning.zone import Zone
from plan.zoning.making import NOW, zone


def told(*zones: Zone) -> GroupStory:
    return tell_group("test", "ingester", zones)


def states(story: GroupStory) -> list[str]:
    return [zone.state.value for zone in story.zones]


@pytest.mark.parametrize(
    ("zones", "state", "of_zones"),
    [
        ([zone("a", "nnn"), zone("b", "nnn")], "available", ["available", "available"]),
        ([zone("a", "ooo"), zone("b", "ooo")], "moving", ["moving", "waiting"]),
        ([zone("a", "Sno"), zone("b", "ooo")], "moving", ["moving", "waiting"]),
        ([zone("a", "nnS"), zone("b", "nnn")], "moving", ["moving", "available"]),
        ([zone("a", "nnX"), zone("b", "ooo")], "failed", ["failed", "waiting"]),
        ([zone("a", "ooo", strategy="RollingUpdate"), zone("b", "nnn")], "failed", ["failed", "failed"]),
        ([zone("a", "ooo", annotations={PAUSED: "true"}), zone("b", "nnn")], "paused", ["paused", "available"]),
        ([zone("a", "nnn", generation=2), zone("b", "nnn")], "unknown", ["unknown", "available"]),
        ([zone("a", "")], "available", ["available"]),
        ([zone("a", "xoo")], "moving", ["moving"]),
    ],
)
def test_a_group_is_as_its_zones_are(zones: list[Zone], state: str, of_zones: list[str]) -> None:
    story = told(*zones)
    assert (story.state.value, states(story)) == (state, of_zones)
    assert story.is_done == (state == "available")
    assert [zone.is_done for zone in story.zones] == [each == "available" for each in of_zones]


def test_what_is_deleted_next_and_what_waits_is_told_of_each_pod() -> None:
    story = told(zone("a", "ooo"), zone("b", "oo"))
    first, second = story.zones
    assert story.deletes == ("ingester-zone-a-0", "ingester-zone-a-1")
    assert [pod.state for pod in first.pods] == [State.next, State.next, State.waiting]
    assert first.pods[0].why == "is deleted next, to update it to revision last"
    assert [pod.wait.code for pod in second.pods if pod.wait] == ["OtherZone", "OtherZone"]
    assert explained_group(story) == [
        "rollout group test/ingester is moving: 0 of 5 pods updated, 5 ready; 2 zones",
        (
            "  ingester-zone-a: 0 of 3 pods updated, 3 ready, 2 pods to be deleted now: "
            "ingester-zone-a-0 and ingester-zone-a-1"
        ),
        (
            "  ingester-zone-b: 0 of 2 pods updated, 2 ready, waits: ingester-zone-a is rolled out first, "
            "with 0 of 3 pods updated"
        ),
    ]


def test_the_state_of_each_pod_is_told() -> None:
    (only,) = told(zone("a", "nXSo")).zones
    assert [pod.state for pod in only.pods] == [State.available, State.failed, State.moving, State.waiting]


def test_a_zone_that_is_done_needs_no_reason() -> None:
    assert explained_group(told(zone("a", "nnn"), zone("b", "noo"))) == [
        "rollout group test/ingester is moving: 4 of 6 pods updated, 6 ready; 2 zones",
        "  ingester-zone-a: 3 of 3 pods updated, 3 ready",
        (
            "  ingester-zone-b: 1 of 3 pods updated, 3 ready, 2 pods to be deleted now: "
            "ingester-zone-b-1 and ingester-zone-b-2"
        ),
    ]


@pytest.mark.parametrize(
    ("zones", "begins"),
    [
        ([zone("a", "nnn"), zone("b", "nnX")], "ingester-zone-b: all its pods are updated"),
        ([zone("a", "ooo"), zone("b", "nnX")], "ingester-zone-b: all its pods are updated"),
        ([zone("a", "ooo")], "ingester-zone-a: 2 pods to be deleted now"),
    ],
)
def test_a_group_waits_for_what_the_zone_that_decides_waits_for(zones: list[Zone], begins: str) -> None:
    assert told(*zones).why.startswith(begins)


def test_a_group_that_is_done_waits_for_nothing() -> None:
    story = told(zone("a", "nnn"), zone("b", "nnn"))
    assert story.why == ""
    assert explained_group(story)[0] == "rollout group test/ingester is done: 6 of 6 pods updated, 6 ready; 2 zones"


def test_a_pod_that_is_not_ready_is_called_so() -> None:
    story = told(zone("a", "nU"))
    (only,) = story.zones
    assert [explained_pod(story, only, pod)[0].split(": ")[1].split(", ")[0] for pod in only.pods] == [
        "ready",
        "not ready",
    ]


def test_a_pod_that_holds_a_group_up_says_why() -> None:
    story = told(zone("a", "nnX"), zone("b", "oo"))
    first, second = story.zones
    assert explained_zone(first) == [
        (
            "ingester-zone-a: 3 of 3 pods updated, 2 ready, waits: all its pods are updated, and "
            "ingester-zone-a-2 (CrashLoopBackOff) is not ready; at most 2 pods unavailable; revision last"
        ),
        "  ingester-zone-a-0: revision last",
        "  ingester-zone-a-1: revision last",
        "  ingester-zone-a-2: revision last, is not ready (CrashLoopBackOff)",
    ]
    assert explained_pod(story, second, second.pods[0]) == [
        (
            "pod ingester-zone-b-0 of rollout group test/ingester, zone ingester-zone-b: ready, revision prev, "
            "outdated, waits: all pods of the other zones have to be ready, and ingester-zone-a-2 (CrashLoopBackOff) "
            "is not ready"
        ),
        (
            "  the zone is to run revision last: 0 of 2 pods updated, 2 ready, waits: all pods of the other zones have "
            "to be ready, and ingester-zone-a-2 (CrashLoopBackOff) is not ready"
        ),
    ]
    assert story.why.startswith("ingester-zone-a: all its pods are updated, and ")


def test_missing_and_terminating_pods_are_told() -> None:
    (only,) = told(zone("a", "-tn")).zones
    assert [pod.why for pod in only.pods] == [
        "is missing: the StatefulSet controller has to create it", "is terminating", "",
    ]  # fmt: skip
    assert (only.updated, only.ready, only.replicas) == (2, 1, 3)
    assert explained_zone(only)[1].startswith("  ingester-zone-a-0: not there, is missing")


def test_a_bad_annotation_is_told() -> None:
    (only,) = told(zone("a", "nnn", limit="many")).zones
    assert "'many'" in only.problem
    assert only.problem in explained_zone(only)[0]


def test_waits_are_data() -> None:
    data = msgspec.json.decode(msgspec.json.encode(told(zone("a", "nnX"), zone("b", "oo"))))
    blocker = {"key": "ingester-zone-a-2", "proof": "failed", "since": None, "until": None, "reported": ""}
    assert data["zones"][1]["wait"] == {
        "unit": "ingester-zone-b",
        "code": "ProofLost",
        "numbers": {"lost": 1},
        "blockers": [blocker],
    }


def test_pods_are_given_to_the_set_that_controls_them() -> None:
    made = [zone("b", "on"), zone("a", "n")]
    pods = [pod for one in made for pod in one.pods]
    assert zones_of([one.stateful_set for one in made], pods) == tuple(sorted(made, key=lambda one: one.name))


def test_what_is_done_about_replicas_is_told_of_each_zone() -> None:
    follows = {DOWNSCALE_LEADER: "nobody"}
    zones = (
        zone("a", "nn", annotations={DOWNSCALE_LEADER: "ingester-zone-b"}),
        zone("b", "nnn"),
        zone("c", "nn", annotations=follows),
    )
    scaling = replicas.plan(Scaling(tuple(one.stateful_set for one in zones), NOW))
    a, b, c = tell_group("test", "ingester", zones, scaling).zones
    assert a.scaling == "is to be scaled up from 2 to 3 replicas to match leader ingester-zone-b"
    assert (b.scaling, b.scaling_waits) == ("", ())
    assert c.scaling == "", "one at a time: it is looked at when the step is done"
    others = (zone("b", "nnn"), zone("c", "nn", annotations=follows))
    scaling = replicas.plan(Scaling(tuple(one.stateful_set for one in others), NOW))
    b, c = tell_group("test", "ingester", others, scaling).zones
    assert (b.scaling, b.scaling_waits) == ("", ())
    assert [wait.code for wait in c.scaling_waits] == ["LeaderMissing"]
    assert "could not find leader for ingester-zone-c" in explained_zone(c)[0]


def test_a_step_is_told_before_what_is_wrong() -> None:
    zones = (zone("a", "nn"), zone("b", "nnn"))
    wrong = wait_for("ingester-zone-a", ScaleCode.force_invalid, "force", "x")
    step = ScaleStep("ingester-zone-a", 2, 1, Reason.reference, "Thing/x")
    for scaling, ends in (
        (ScalingPlan(step=step, waits=(wrong,)), ""),
        (ScalingPlan(ask=step, waits=(wrong,)), ", once its pods are prepared"),
    ):
        a, b = tell_group("test", "ingester", zones, scaling).zones
        assert a.scaling == f"is to be {step_text(step)}{ends}; {wait_text(wrong)}"
        assert b.scaling == ""


def test_a_budget_without_allowance_lets_a_rollout_go_on() -> None:
    none = ZoneBudget("test", "pods", {}, max_unavailable=0)
    story = tell_group("test", "ingester", (zone("a", "nnn"), zone("b", "ooo")), kept=kept_by(none))
    assert story.deletes == ("ingester-zone-b-0", "ingester-zone-b-1")


def test_a_budget_keeps_nothing_of_a_group_that_is_done() -> None:
    zones = (zone("a", "nnn"), zone("b", "nnn"))
    assert tell_group("test", "ingester", zones, kept=kept_by(ZoneBudget("test", "pods", {}))) == told(*zones)


def test_a_pod_outside_a_budget_does_not_count_for_those_inside() -> None:
    inside = {"tier": "inside"}
    zones = [zone("a", "ooo", labels=inside), zone("b", "ooo", labels=inside)]
    first, *rest = zones[0].pods
    labelled = [replace(one, metadata=replace(one.metadata, labels={**one.metadata.labels, **inside})) for one in rest]
    zones[0] = replace(zones[0], pods=(first, *labelled))
    story = tell_group("test", "ingester", zones, kept=kept_by(ZoneBudget("test", "pods", inside)))
    assert story.deletes == ("ingester-zone-a-0", "ingester-zone-a-1")


def kept_by(budget: ZoneBudget) -> Callable[[GroupPlan, tuple[Zone, ...]], GroupPlan]:
    def kept(found: GroupPlan, zones: tuple[Zone, ...]) -> GroupPlan:
        return kept_by_budgets((BudgetZones(budget, zones),), NOW, found, zones)

    return kept


def test_what_a_disruption_budget_keeps_is_told() -> None:
    budget, every = ZoneBudget("test", "pods", {"app": "another"}), ZoneBudget("test", "pods", {})
    zones = (zone("a", "ooo"), zone("b", "ooo"))
    assert tell_group("test", "ingester", zones, kept=kept_by(budget)) == told(*zones)
    story = tell_group("test", "ingester", zones, kept=kept_by(every))
    assert story.deletes == ("ingester-zone-a-0",), "one may go, and counts for the next"
    second = story.zones[0].pods[1]
    assert second.wait is not None
    assert second.wait.code == "DisruptionBudget"
    assert "1 pod not ready in ingester-zone-a" in second.why
    alone = tell_group("test", "ingester", zones[:1], kept=kept_by(every))
    assert (alone.deletes, alone.state.value) == ((), "moving")
    assert "minimum number of StatefulSets not found" in explained_group(alone)[1]


def test_zones_of_other_groups_count_for_a_budget() -> None:
    every, own, other = ZoneBudget("test", "pods", {}), zone("a", "ooo"), zone("b", "nnx")
    budgets = (BudgetZones(every, (own, other)),)
    story = tell_group("test", "ingester", (own,), kept=partial(kept_by_budgets, budgets, NOW))
    assert (story.deletes, story.zones[0].wait is not None) == ((), True)
    assert "1 pod not ready in ingester-zone-b" in story.zones[0].why


LETTERS = st.text("ontTxXuUsSfp-", max_size=4)


@given(st.lists(LETTERS, min_size=1, max_size=3))
def test_the_story_says_what_the_plan_says(groups: list[str]) -> None:
    zones = [zone(name, pods) for name, pods in zip("abc", groups, strict=False)]
    story, found = told(*zones), plan(zones)
    assert {one.name: one.wait for one in story.zones if one.wait is not None} == dict(found.waits)
    assert story.deletes == found.delete
    assert story.is_done == all(one.is_done for one in zones)
    for one in story.zones:
        assert one.is_done or one.why or one.name == found.zone, "whoever is not done says why"
    assert explained_group(story)
