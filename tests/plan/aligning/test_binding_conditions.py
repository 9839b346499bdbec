"""What a binding says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

from kedge.api.condition import Condition, find_condition
from kedge.api.karmada.bindings import AggregatedStatusItem, BindingSpec, BoundResource, TargetCluster
from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.alignment import Alignment, align
from kedge.plan.aligning.binding import BindingPlan
from kedge.plan.aligning.binding_conditions import ToldWait, news, says_starting, waits_of, with_conditions
from kedge.plan.aligning.ledger import Member, Report, Spec
from kedge.plan.moving.wait import Wait

NOW = datetime(2030, 1, 1, tzinfo=UTC)
AIM = Aim(10, 2, 1)
SPEC = BindingSpec(
    resource=BoundResource(api_version="apps/v1", kind="Deployment", name="web"),
    clusters=(TargetCluster(name="a", replicas=4), TargetCluster(name="b", replicas=6)),
)


def items(*applied: str) -> list[AggregatedStatusItem]:
    return [AggregatedStatusItem(cluster_name=name, applied=name in applied) for name in ("a", "b")]


def conditions(plan: BindingPlan, *applied: str, before: tuple[Condition, ...] = ()) -> tuple[Condition, ...]:
    return with_conditions(before, SPEC, items(*applied), plan, generation=2, now=NOW)


def aligned(plan: BindingPlan) -> Condition:
    found = find_condition(conditions(plan), "Aligned")
    assert found is not None
    assert found.observed_generation == 2
    return found


def waiting(**codes: AlignCode) -> BindingPlan:
    numbers = {"maxUnavailable": 2, "maxSurge": 1, "replicas": 10, "fewest": 8, "most": 11, "updated": 1, "goal": 4}
    waits = {name: Wait(name, code, numbers) for name, code in codes.items()}
    return BindingPlan(waiting=waits, aim=AIM, alignment=Alignment())


def test_a_binding_is_applied_when_all_its_clusters_are() -> None:
    found = find_condition(conditions(BindingPlan(), "a", "b"), "FullyApplied")
    assert found is not None
    assert (found.status, found.reason) == ("True", "FullyAppliedSuccess")
    assert found.message == "All works have been successfully applied"
    found = find_condition(conditions(BindingPlan(), "a"), "FullyApplied")
    assert found is not None
    assert (found.status, found.reason, found.message) == ("False", "FullyAppliedFailed", "Not applied yet: b")
    nowhere = BindingSpec(resource=SPEC.resource)
    (found,) = with_conditions((), nowhere, (), BindingPlan(), generation=2, now=NOW)
    assert (found.status, found.message) == ("False", "No cluster is scheduled")


def test_what_is_copied_says_nothing_of_alignment() -> None:
    before = conditions(waiting(a=AlignCode.paused))
    assert find_condition(conditions(BindingPlan(), before=before), "Aligned") is None


def test_a_binding_that_is_done_says_so() -> None:
    found = aligned(BindingPlan(aim=AIM, alignment=Alignment()))
    assert (found.status, found.reason) == ("True", "Aligned")
    assert found.message == "All clusters are where they are to be"


def test_a_binding_whose_pods_do_not_work_is_not_done_though_nobody_waits() -> None:
    members = [
        Member("a", 4, "v1", (Spec(1, "v1", 4, 1),), Report(1, 4, 4, 1)),
        Member("b", 6, "v1", (Spec(2, "v1", 6, 1),), Report(2, 6, 6, 6)),
    ]
    plan = BindingPlan(aim=AIM, alignment=align(AIM, members), members=tuple(members))
    found = aligned(plan)
    assert (found.status, found.reason, found.message) == ("False", "Rolling", "a: 1 of 4 pods available")


def test_a_binding_says_what_each_cluster_waits_for_and_names_what_somebody_has_to_see_to() -> None:
    found = aligned(waiting(a=AlignCode.rolling, b=AlignCode.unreachable))
    assert (found.status, found.reason) == ("False", "Unreachable")
    assert "a: it replaces its pods with what it holds: 1 of 4 pods" in found.message
    assert "b: it is not heard from" in found.message
    assert aligned(waiting(a=AlignCode.rolling)).reason == "Rolling"


def test_a_binding_that_gives_pods_time_to_start_says_so_first() -> None:
    found = waiting(a=AlignCode.unreachable, b=AlignCode.starting)
    assert aligned(found).reason == "StartingPods"
    assert says_starting(conditions(found))
    assert not says_starting(conditions(waiting(a=AlignCode.unreachable)))
    assert not says_starting(())
    assert list(news((), waits_of(waiting(b=AlignCode.starting)))) == []


def test_a_binding_whose_clusters_are_written_to_is_on_its_way() -> None:
    members = [
        Member(name, number, "v2", (Spec(1, "v1", number, 1),), Report(1, number, number, number))
        for name, number in (("a", 4), ("b", 6))
    ]
    found = align(AIM, members)
    only_written = BindingPlan(aim=AIM, alignment=Alignment(specs=found.specs))
    condition = aligned(only_written)
    assert (condition.status, condition.reason, condition.message) == ("False", "Rolling", "written to: b")
    new = [Member(name, 5, "v2") for name in ("b", "a")]
    assert aligned(BindingPlan(aim=AIM, alignment=align(AIM, new))).message == "written to: a and b"


def test_waits_are_told_by_name() -> None:
    waits = waits_of(waiting(b=AlignCode.paused, a=AlignCode.rolling))
    assert [one.cluster for one in waits] == ["a", "b"]


def test_of_very_much_to_say_a_part_is_said() -> None:
    many = tuple(f"problem {number}" for number in range(1, 13))
    assert aligned(BindingPlan(problems=many)).message.endswith("problem 10; and 2 more")
    assert len(aligned(BindingPlan(problems=("x" * 5_000,))).message) == 4_096


def test_a_problem_comes_first() -> None:
    condition = aligned(BindingPlan(problems=("the cluster c does not exist",)))
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "NotAligned",
        "the cluster c does not exist",
    )


def test_news_are_waits_that_were_not_told_and_are_no_part_of_the_way() -> None:
    first = waits_of(waiting(a=AlignCode.rolling, b=AlignCode.budget_spent))
    assert [one.cluster for one in news((), first)] == ["b"]
    assert list(news(first, first)) == []
    second = waits_of(waiting(a=AlignCode.unacknowledged, b=AlignCode.unreachable))
    assert [(one.cluster, one.code) for one in news(first, second)] == [("b", "Unreachable")]
    assert list(news((ToldWait("b", "Unreachable", "in other words"),), second)) == []
