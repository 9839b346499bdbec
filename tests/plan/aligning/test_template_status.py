"""The status of a workload in all its clusters together: what is counted, and when its generation is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import TargetCluster
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.alignment import Alignment
from kedge.plan.aligning.binding import BindingPlan
from kedge.plan.aligning.ledger import UNKNOWN, Member, Report, Spec
from kedge.plan.aligning.template_status import is_news, template_status
from kedge.plan.moving.wait import Wait

IDENTIFIER = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "demo"}
SEEN = {"generation": 2, "observedGeneration": 2, "resourceTemplateGeneration": 3}
BEHIND = {**SEEN, "resourceTemplateGeneration": 2}
COUNTS = {"replicas": 4, "updatedReplicas": 4, "readyReplicas": 4, "availableReplicas": 4}
COPIED = BindingPlan()
OF_TEMPLATE = ("updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")


def work(status: Mapping[str, Any] | None) -> Work:
    statuses = [{"identifier": IDENTIFIER, "status": status}] if status is not None else []
    return msgspec.convert({"status": {"manifestStatuses": statuses}}, Work)


def template(**status: int) -> dict[str, Any]:
    return {"metadata": {"generation": 3}, "spec": {"replicas": 8}, "status": status}


def clusters(*names: str) -> list[TargetCluster]:
    return [TargetCluster(name=name, replicas=4) for name in names]


def member(*specs: str, seq: int | None = None, wanted: int = 4, replicas: int = 4) -> Member:
    """Cluster `b`, which was asked for these templates, and acknowledged the last if nothing else is said."""
    asked = tuple(Spec(number, one, replicas) for number, one in enumerate(specs, 1))
    return Member("b", wanted, "new", asked, Report(len(asked) if seq is None else seq, 4, 4, 4))


def aligned(of_b: Member, wait: str | None = None, *, is_written: bool = False) -> BindingPlan:
    """Cluster `a` has the template; `b` is as it is said."""
    specs = {"b": Spec(9, "new", 4)} if is_written else {}
    waiting = {"b": Wait("b", wait)} if wait is not None else {}
    of_a = Member("a", 4, "new", (Spec(1, "new", 4),), Report(1, 4, 4, 4))
    return BindingPlan(alignment=Alignment(specs), waiting=waiting, members=(of_a, of_b))


def status(works: Mapping[str, Work], plan: BindingPlan = COPIED, **before: int) -> Mapping[str, Any]:
    return template_status(template(**before), works, clusters("a", "b"), plan) or {}


def test_counts_are_added_up() -> None:
    works = {"a": work({**SEEN, **COUNTS}), "b": work({**SEEN, **COUNTS, "readyReplicas": 1})}
    assert status(works) == {
        "replicas": 8,
        "updatedReplicas": 8,
        "readyReplicas": 5,
        "availableReplicas": 8,
        "observedGeneration": 3,
    }


@pytest.mark.parametrize(
    "name", ["replicas", "readyReplicas", "availableReplicas", "unavailableReplicas", *OF_TEMPLATE]
)
def test_a_count_that_only_some_clusters_report_is_the_sum_of_theirs(name: str) -> None:
    works = {"a": work({**SEEN, name: 2}), "b": work(SEEN), "c": work({**SEEN, name: 3})}
    assert status(works) == {name: 5, "observedGeneration": 3}


@pytest.mark.parametrize(
    ("before", "found", "expected"),
    [
        ({"unavailableReplicas": 1}, {"unavailableReplicas": 0}, True),
        ({"unavailableReplicas": 0}, {}, False),
        ({"replicas": 10, "readyReplicas": 9}, {"replicas": 0, "readyReplicas": 0}, True),
        ({"collisionCount": 2}, {}, False),
    ],
)
def test_a_count_that_no_cluster_reports_any_more_is_none(
    before: dict[str, int], found: dict[str, int], *, expected: bool
) -> None:
    given = template(observedGeneration=3, **before)
    counted = template_status(given, {"a": work(SEEN)}, clusters("a"), COPIED) or {}
    assert counted == {**found, "observedGeneration": 3}
    assert is_news(given, counted) is expected


def test_a_count_of_nothing_that_the_server_left_out_is_not_written_again() -> None:
    assert not is_news(template(replicas=4), {"replicas": 4, "unavailableReplicas": 0})


@pytest.mark.parametrize(
    ("of_b", "updated"),
    [
        (member("new"), 8),
        (member("old"), 4),
        (member("old", "new"), 8),
        (member("old", "new", seq=1), 4),
        (member("old", "new", seq=0), 4),
        (member("new", "new", seq=0), 8),
        (member(UNKNOWN, "new", seq=0), 4),
        (member(), 4),
    ],
)
def test_pods_of_an_older_template_are_not_updated(of_b: Member, updated: int) -> None:
    counts = {**SEEN, **COUNTS, **dict.fromkeys(OF_TEMPLATE, 4)}
    found = status({"a": work(counts), "b": work(counts)}, aligned(of_b))
    assert [found[name] for name in OF_TEMPLATE] == [updated] * 3
    assert found["replicas"] == found["availableReplicas"] == 8


def test_a_cluster_that_is_bound_no_more_and_unknown_has_no_updated_pods() -> None:
    counts = work({**SEEN, **COUNTS})
    assert status({"a": counts, "b": counts, "gone": counts}, aligned(member("new")))["updatedReplicas"] == 8


@pytest.mark.parametrize("other", [work(BEHIND), work({**SEEN, "observedGeneration": 1}), work(None), None], ids=str)
def test_a_generation_is_observed_when_every_cluster_has_observed_it(other: Work | None) -> None:
    works = {"a": work(SEEN)} if other is None else {"a": work(SEEN), "b": other}
    assert status(works, observedGeneration=2)["observedGeneration"] == 2
    assert "observedGeneration" not in status(works)


@pytest.mark.parametrize(
    ("plan", "is_observed"),
    [
        (aligned(member("old"), AlignCode.kept_back), True),
        (aligned(member("old")), True),
        (aligned(member("old"), AlignCode.paused), True),
        (aligned(member("old", seq=0), AlignCode.kept_back), False),
        (aligned(member("old"), is_written=True), False),
        (aligned(member("old"), AlignCode.budget_spent), False),
        (aligned(member("old"), AlignCode.unreachable), False),
        (aligned(member("old", replicas=3), AlignCode.kept_back), False),
        (aligned(member("new")), False),
        (aligned(member(wanted=0)), True),
        (aligned(member()), False),
    ],
)
def test_a_cluster_that_is_not_to_have_the_template_yet_keeps_no_generation_from_being_observed(
    plan: BindingPlan, *, is_observed: bool
) -> None:
    found = status({"a": work(SEEN), "b": work(BEHIND)}, plan, observedGeneration=2)
    assert found["observedGeneration"] == (3 if is_observed else 2)


def test_what_has_no_pods_has_no_counts() -> None:
    assert template_status({"metadata": {}, "data": {}}, {}, (), COPIED) is None
    clones = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"generation": 3}, "spec": {}}
    assert template_status(clones, {"a": work({**SEEN, "replicas": 1})}, (), COPIED) == {
        "replicas": 1,
        "observedGeneration": 3,
    }
