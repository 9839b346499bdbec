"""The clusters of one binding, and what it says about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import BindingStatus, ResourceBinding
from kedge.api.karmada.clusters import Cluster, Taint, TaintEffect
from kedge.api.karmada.policies import Toleration
from kedge.plan.aligning.assigning import ScheduledReason, assigned, is_scheduled_here, placement_text, tolerates

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DIVIDED: dict[str, Any] = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
DUPLICATED: dict[str, Any] = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}


def cluster(name: str, *, is_ready: bool = True, taints: list[dict[str, str]] | None = None, **meta: Any) -> Cluster:
    ready = {"type": "Ready", "status": "True" if is_ready else "False", "reason": "x", "message": ""}
    body = {
        "metadata": {"name": name, **meta},
        "spec": {"taints": taints or []},
        "status": {"conditions": [{**ready, "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
    }
    return msgspec.convert(body, Cluster)


def binding(
    placement: dict[str, Any], replicas: int = 10, *, applied: dict[str, Any] | None = None, **more: Any
) -> ResourceBinding:
    """A binding; `applied` is the placement that it was scheduled by."""
    notes = {"policy.karmada.io/applied-placement": placement_text(applied)} if applied is not None else {}
    now = more.pop("now", {})
    spec = {
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "replicas": replicas,
        "placement": placement,
        "clusters": [{"name": name, "replicas": number} for name, number in now.items()],
        **more,
    }
    return msgspec.convert({"metadata": {"name": "web", "annotations": notes}, "spec": spec}, ResourceBinding)


def targets(given: ResourceBinding, *clusters: Cluster) -> dict[str, int] | None:
    found = assigned(given, clusters).clusters
    return None if found is None else {one.name: one.replicas for one in found}


A, B, C = cluster("a"), cluster("b"), cluster("c")
TAINTED = cluster("b", taints=[{"key": "gpu", "effect": "NoSchedule"}])


def test_replicas_are_divided_and_what_gets_none_is_left_out() -> None:
    assert targets(binding(DIVIDED), A, B) == {"a": 5, "b": 5}
    assert targets(binding(DIVIDED, 1), A, B) == {"a": 1}
    assert targets(binding(DIVIDED, 0), A, B) == {"a": 0, "b": 0}
    assert targets(binding(DUPLICATED, 0), A, B) == {"a": 0, "b": 0}
    assert targets(binding(DUPLICATED, 3), A, B) == {"a": 3, "b": 3}
    assert targets(binding({"clusterAffinity": {"clusterNames": ["a"]}}, 3), A, B) == {"a": 3}


def test_what_runs_stays_where_it_is_when_a_cluster_comes() -> None:
    given = binding(DIVIDED, now={"a": 5, "b": 5}, applied=DIVIDED)
    assert targets(given, A, B, C) == {"a": 5, "b": 5}
    more = binding(DIVIDED, 13, now={"a": 5, "b": 5}, applied=DIVIDED)
    assert targets(more, A, B, C) == {"a": 5, "b": 5, "c": 3}


def test_what_ran_in_a_cluster_that_is_gone_runs_elsewhere() -> None:
    given = binding(DIVIDED, now={"a": 5, "b": 5}, applied=DIVIDED)
    assert targets(given, A, C) == {"a": 5, "c": 5}
    leaving = cluster("b", deletionTimestamp="2030-01-01T00:00:00Z")
    assert targets(given, A, leaving, C) == {"a": 5, "c": 5}


def test_a_placement_that_changed_counts_whatever_runs() -> None:
    weight = [{"targetCluster": {"clusterNames": ["a"]}, "weight": 4}, {"targetCluster": {}, "weight": 1}]
    weighted = {"replicaScheduling": {**DIVIDED["replicaScheduling"], "weightPreference": {"staticWeightList": weight}}}
    assert targets(binding(weighted, now={"a": 5, "b": 5}, applied=DIVIDED), A, B) == {"a": 8, "b": 2}
    assert targets(binding(weighted, now={"a": 5, "b": 5}, applied=weighted), A, B) == {"a": 5, "b": 5}


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, {"a": 5, "b": 5}),
        ("2030-01-01T11:59:59Z", {"a": 5, "b": 5}),
        ("2030-01-01T12:00:00Z", {"a": 8, "b": 2}),
    ],
)
def test_replicas_are_divided_anew_once_when_somebody_asks_for_it(last: str | None, expected: dict[str, int]) -> None:
    given = binding(DIVIDED, now={"a": 8, "b": 2}, applied=DIVIDED, rescheduleTriggeredAt="2030-01-01T12:00:00Z")
    status = msgspec.convert({"lastScheduledTime": last} if last else {}, BindingStatus)
    assert targets(msgspec.structs.replace(given, status=status), A, B) == expected
    assert assigned(msgspec.structs.replace(given, status=status), [A, B]).is_triggered is (
        expected == {"a": 5, "b": 5}
    )


@pytest.mark.parametrize("other", [cluster("b", is_ready=False), TAINTED])
def test_a_cluster_that_takes_nothing_more_keeps_what_it_has(other: Cluster) -> None:
    assert targets(binding(DIVIDED), A, other) == {"a": 10}
    assert targets(binding(DIVIDED, now={"b": 10}, applied=DIVIDED), A, other) == {"b": 10}


def test_a_taint_that_is_tolerated_keeps_nothing_away() -> None:
    tolerant = {**DIVIDED, "clusterTolerations": [{"key": "gpu", "operator": "Exists"}]}
    assert targets(binding(tolerant), A, TAINTED) == {"a": 5, "b": 5}
    soft = cluster("b", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}])
    assert targets(binding(DIVIDED), A, soft) == {"a": 5, "b": 5}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="cpu", operator="Exists"), False),
        (Toleration(key="gpu", value="big"), True),
        (Toleration(key="gpu", operator="Equal", value="small"), False),
        (Toleration(value="big"), True),
        (Toleration(operator="Equal", value="small"), False),
        (Toleration(), False),
        (Toleration(key="cpu", value="big"), False),
        (Toleration(operator="Exists", effect=TaintEffect.no_execute), False),
        (Toleration(operator="Exists", effect=TaintEffect.no_schedule), True),
    ],
)
def test_tolerations(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, Taint(key="gpu", value="big", effect=TaintEffect.no_schedule)) is expected


def test_a_toleration_that_says_nothing_is_for_taints_without_a_value() -> None:
    assert tolerates(Toleration(), Taint(key="gpu", effect=TaintEffect.no_schedule))
    assert tolerates(Toleration(effect=TaintEffect.no_execute), Taint(key="gpu", effect=TaintEffect.no_execute))


@pytest.mark.parametrize(
    ("given", "reason", "message"),
    [
        (binding({"clusterAffinity": {"clusterNames": ["nowhere"]}}), ScheduledReason.no_cluster_fits, "No cluster is"),
        (binding({"spreadConstraints": [{}]}), ScheduledReason.error, "nothing is spread here"),
        (binding({"replicaScheduling": 4}), ScheduledReason.error, "spec.placement cannot be read"),
        (binding(DIVIDED, suspension={"scheduling": True}), ScheduledReason.suspended, "Scheduling is suspended"),
    ],
)
def test_what_cannot_be_scheduled_stays_where_it_is_and_says_why(
    given: ResourceBinding, reason: ScheduledReason, message: str
) -> None:
    found = assigned(given, [A, B])
    assert found.clusters is None
    condition = found.condition(3, NOW)
    assert (condition.type, condition.status, condition.reason) == ("Scheduled", "False", reason.value)
    assert message in condition.message
    assert condition.observed_generation == 3


def test_what_is_scheduled_says_so() -> None:
    condition = assigned(binding(DIVIDED), [A]).condition(3, NOW)
    assert (condition.status, condition.reason) == ("True", "Success")


def names(*clusters: str) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": list(clusters)}}


def weights(*clusters: str) -> dict[str, Any]:
    rules = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in clusters]
    return {"replicaScheduling": {**DIVIDED["replicaScheduling"], "weightPreference": {"staticWeightList": rules}}}


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        (DIVIDED, "Binding has been scheduled successfully."),
        (names("a", "b"), "Binding has been scheduled successfully."),
        (names("a", "c"), "successfully. The placement names c, which does not exist."),
        (names("a", "c10", "c9"), "successfully. The placement names c9 and c10, which do not exist."),
        ({**names("a", "c"), **weights("a", "c", "d")}, "The placement names c and d, which do not exist."),
        (weights("a"), "Binding has been scheduled successfully."),
        (names("c"), "ready and untainted. The placement names c, which does not exist."),
        (names("b"), "Binding has been scheduled successfully."),
    ],
)
def test_clusters_that_are_named_and_do_not_exist_are_told(placement: dict[str, Any], words: str) -> None:
    assert assigned(binding(placement), [A, B]).message.endswith(words)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (binding({}), False),
        (binding(DIVIDED), True),
        (binding(DIVIDED, schedulerName="default-scheduler"), True),
        (binding(DIVIDED, schedulerName="somebody-else"), False),
    ],
)
def test_who_is_scheduled_here(given: ResourceBinding, expected: bool) -> None:
    assert is_scheduled_here(given) is expected
