"""The rolling strategy and status of workloads, by kind; and the budget that a template asks for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.plan.aligning import interpreter
from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.interpreter import (
    NotAligned,
    RollingStrategy,
    UnifiedRollingStatus,
    aim_of,
    calculate_template_hash,
    get_rolling_strategy,
    goes_in_order,
    interpret_rolling_status,
    report_of,
    revise_rolling_strategy,
    revised,
    without_replicas,
)
from kedge.plan.aligning.ledger import Report, Spec
from kedge.plan.workloads.registry import BrokenHandler


def workload(kind: str, api_version: str = "apps/v1", image: str = "app:1", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "app", "image": image}]}}
    return {"apiVersion": api_version, "kind": kind, "spec": {"replicas": 4, "template": template, **spec}}


def deployment(unavailable: int | str, surge: int | str, **spec: Any) -> dict[str, Any]:
    rolling = {"maxUnavailable": unavailable, "maxSurge": surge}
    return workload("Deployment", strategy={"type": "RollingUpdate", "rollingUpdate": rolling}, **spec)


def clone_set(image: str = "app:1", **strategy: Any) -> dict[str, Any]:
    return workload("CloneSet", "apps.kruise.io/v1alpha1", image, updateStrategy=strategy)


def test_strategies_and_statuses_are_written_as_the_proposal_types_them() -> None:
    strategy = RollingStrategy(paused=False, partition=4, max_unavailable="25%")
    assert msgspec.to_builtins(strategy) == {"paused": False, "partition": 4, "maxUnavailable": "25%"}
    status = UnifiedRollingStatus(generation=2, observed_generation=1, updated_ready_replicas=3)
    assert msgspec.to_builtins(status) == {"generation": 2, "observedGeneration": 1, "updatedReadyReplicas": 3}


@pytest.mark.parametrize(
    ("template", "replicas", "aim"),
    [
        (deployment(2, 1), 10, Aim(10, 2, 1)),
        (deployment("25%", "25%"), 10, Aim(10, 2, 3)),
        (deployment("25%", 0), 3, Aim(3, 1, 0)),
        (deployment(1, 1, paused=True), 5, Aim(5, 1, 1, is_paused=True)),
        (workload("Deployment", strategy={"type": "Recreate"}), 6, Aim(6, 6, recreates=True)),
        (clone_set(partition=4, maxUnavailable=2), 10, Aim(10, 2, 0, 4, is_partitioned=True)),
        (clone_set(partition="50%", maxUnavailable="25%"), 5, Aim(5, 2, 0, 3, is_partitioned=True)),
        (clone_set(partition="99%"), 10, Aim(10, 2, 0, 9, is_partitioned=True)),
        (clone_set(partition="100%"), 10, Aim(10, 2, 0, 10, is_partitioned=True)),
        (clone_set(maxSurge="10%", maxUnavailable="25%"), 10, Aim(10, 2, 1, is_partitioned=True)),
        (workload("StatefulSet"), 3, Aim(3, 1, is_partitioned=True)),
    ],
)
def test_percentages_are_of_all_replicas(template: dict[str, Any], replicas: int, aim: Aim) -> None:
    assert aim_of(template, replicas) == aim


def test_a_workload_can_be_made_without_its_pods_and_what_has_none_stays_as_it_is() -> None:
    for one in (deployment(1, 1), clone_set(), workload("StatefulSet")):
        assert without_replicas(one) == {**one, "spec": {**one["spec"], "replicas": 0}}
    for other in (workload("DaemonSet"), workload("FooSet", "example.com/v1"), {"apiVersion": "v1", "kind": "Secret"}):
        assert without_replicas(other) == other


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (workload("StatefulSet", updateStrategy={"type": "OnDelete"}), "its strategy is OnDelete"),
        (workload("Game", "example.com/v1"), "^Game of example.com/v1 is not a kind of workload that is known here$"),
        (workload("DaemonSet"), "has no replicas to divide"),
    ],
)
def test_what_cannot_be_aligned_is_refused_in_words(template: dict[str, Any], message: str) -> None:
    with pytest.raises(NotAligned, match=message):
        aim_of(template, 3)


def test_a_kind_whose_handler_cannot_be_used_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BrokenHandler("games", "Game.example.com", "it has no replicas")
    monkeypatch.setattr(interpreter, "find_handler", lambda *_: broken)
    with pytest.raises(NotAligned, match=r"the workload handler Game\.example\.com .* it has no replicas"):
        aim_of(workload("Game", "example.com/v1"), 3)


def test_a_kind_without_a_strategy_is_given_none() -> None:
    with pytest.raises(NotAligned, match=r"^ReplicaSet has no rolling strategy to set$"):
        revise_rolling_strategy(workload("ReplicaSet"), RollingStrategy(max_unavailable=1))


@pytest.mark.parametrize(
    ("kind", "api_version", "expected"),
    [
        ("StatefulSet", "apps/v1", True),
        ("Deployment", "apps/v1", False),
        ("StatefulSet", "apps.kruise.io/v1beta1", False),
    ],
)
def test_the_pods_of_a_statefulset_have_an_order(kind: str, api_version: str, expected: bool) -> None:
    assert goes_in_order(workload(kind, api_version)) is expected


def test_only_the_pod_template_tells_one_hash_from_another() -> None:
    first = calculate_template_hash(clone_set(partition=4))
    assert first == calculate_template_hash(clone_set(partition=0))
    assert first != calculate_template_hash(clone_set("app:2"))


def test_a_strategy_that_is_set_is_read_back() -> None:
    wanted = RollingStrategy(paused=False, partition=3, max_unavailable=2, max_surge=0)
    assert get_rolling_strategy(revise_rolling_strategy(clone_set(), wanted)) == wanted
    given = revise_rolling_strategy(deployment("50%", 3), RollingStrategy(max_unavailable=1, max_surge=0))
    assert given["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_a_manifest_gets_the_numbers_of_its_spec() -> None:
    found = revised(clone_set(), Spec(7, "hash", 6, 2, 1, 4))
    assert found["spec"]["replicas"] == 6
    assert found["spec"]["updateStrategy"] | {"type": ""} == {
        "type": "",
        "partition": 4,
        "maxUnavailable": 2,
        "maxSurge": 1,
    }
    found = revised(deployment("50%", 3), Spec(7, "hash", 6, 2, 1, 4))
    assert found["spec"]["replicas"] == 6
    assert found["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 2, "maxSurge": 1}


COUNTS = {"replicas": 6, "updatedReplicas": 3, "availableReplicas": 5}


@pytest.mark.parametrize(
    ("status", "report"),
    [
        ({"generation": 4, "observedGeneration": 4, "alignmentSeq": 9, **COUNTS}, Report(9, 6, 3, 5)),
        ({"generation": 5, "observedGeneration": 4, "alignmentSeq": 9, **COUNTS}, Report(0, 6, 3, 5)),
        ({"alignmentSeq": 9, **COUNTS}, Report(0, 6, 3, 5)),
        ({"generation": 4, "observedGeneration": 4, **COUNTS}, Report(0, 6, 3, 5)),
        ({"generation": 1, "observedGeneration": 1, "updatedAvailableReplicas": 2, **COUNTS}, Report(0, 6, 3, 5, 2)),
        ({"currentRevision": "web-1", "updateRevision": "web-2", **COUNTS}, Report(0, 6, 3, 5)),
        ({"currentRevision": "web-1", "updateRevision": "web-1", **COUNTS}, Report(0, 6, 3, 5, is_back=True)),
        ({}, Report(0)),
    ],
)
def test_a_status_proves_only_what_its_controller_has_seen(status: dict[str, Any], report: Report) -> None:
    assert report_of(interpret_rolling_status(status)) == report


def test_every_count_of_a_status_is_read() -> None:
    status = {
        "generation": 1,
        "observedGeneration": 2,
        "resourceTemplateGeneration": 3,
        "replicas": 4,
        "readyReplicas": 5,
        "availableReplicas": 6,
        "updatedReplicas": 7,
        "updatedReadyReplicas": 8,
        "updatedAvailableReplicas": 9,
        "alignmentSeq": 10,
    }
    assert interpret_rolling_status(status) == UnifiedRollingStatus(*range(1, 11))
