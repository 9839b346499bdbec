"""The next step of a Deployment, and what it says of itself. What a whole rollout looks like: `tests/real`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from embedded.workloads.making import NOW, ago
from kedge.api.apps import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus
from kedge.api.condition import find_condition
from kedge.embedded.workloads.deployment_revisions import HISTORY, REVISION, split, template_hash
from kedge.embedded.workloads.deployment_step import ObservedDeployment, Step, step

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
OTHER = {**TEMPLATE, "spec": {"containers": [{"name": "web", "image": "web:2"}]}}


def deployment(template: Any = TEMPLATE, *, annotations: Any = None, status: Any = None, **spec: Any) -> Deployment:
    wanted = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    meta = {"name": "web", "namespace": "shop", "uid": "web", "generation": 1, "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta, "spec": wanted, "status": status or {}}, Deployment)


def stepped(wanted: Deployment, *sets: ReplicaSet, pods: Mapping[str, int] | None = None) -> Step:
    return step(ObservedDeployment(wanted, sets, pods or {}), NOW)


def made(planned: Step, *, pods: int = 0, seconds_ago: float = 60.0) -> ReplicaSet:
    """The ReplicaSet a step asks for, as it is once it is there and so many of its pods are available."""
    assert planned.make is not None
    new = planned.make
    meta = replace(new.metadata, uid=new.metadata.name, creation_timestamp=NOW - timedelta(seconds=seconds_ago))
    status = ReplicaSetStatus(replicas=new.replicas, ready_replicas=pods, available_replicas=pods)
    return replace(new, metadata=meta, status=status)


def progress(status: DeploymentStatus) -> tuple[str, str]:
    found = find_condition(status.conditions, "Progressing")
    return ("", "") if found is None else (found.status, found.reason)


def test_a_new_deployment_gets_a_replica_set_named_after_its_template() -> None:
    planned = stepped(
        deployment(annotations={"team": "shop", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
    )
    new = planned.make
    assert new is not None
    hashed = template_hash(TEMPLATE)
    assert new.metadata.name == f"web-{hashed}"
    assert new.metadata.labels == {"app": "web", "pod-template-hash": hashed}
    assert new.spec.selector is not None
    assert new.spec.selector.match_labels == new.metadata.labels == new.spec.template["metadata"]["labels"]
    assert new.metadata.annotations == {
        "team": "shop",
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert (planned.revision, progress(planned.status)) == (1, ("True", "NewReplicaSetCreated"))


def test_the_hash_is_of_what_a_template_says_not_of_the_order_it_says_it_in() -> None:
    assert template_hash({"a": 1, "b": {"c": 2, "d": 3}}) == template_hash({"b": {"d": 3, "c": 2}, "a": 1})
    assert template_hash(TEMPLATE) != template_hash(OTHER)
    assert set(template_hash(TEMPLATE)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_of_two_replica_sets_with_the_wanted_template_the_older_is_the_new_one() -> None:
    one = made(stepped(deployment()))
    twin = replace(one, metadata=replace(one.metadata, name="web-twin", uid="twin", creation_timestamp=NOW))
    assert split(deployment(), [twin, one]) == (one, (twin,))


def test_a_revision_that_is_wanted_again_becomes_the_newest_and_remembers_what_it_was() -> None:
    first = made(stepped(deployment()), pods=3)
    second = made(stepped(deployment(OTHER), first), seconds_ago=30)
    planned = stepped(deployment(), first, second)
    changed = {after.metadata.uid: after for _, after in planned.change}
    annotations = changed[first.metadata.uid].metadata.annotations
    assert (annotations[REVISION], annotations[HISTORY]) == ("3", "1")
    assert planned.revision == 3


@pytest.mark.parametrize(
    ("reason", "since", "deadline", "expected"),
    [
        pytest.param("ReplicaSetUpdated", 601, None, ("False", "ProgressDeadlineExceeded"), id="late"),
        pytest.param("ReplicaSetUpdated", 599, None, ("True", "ReplicaSetUpdated"), id="not yet late"),
        pytest.param("NewReplicaSetCreated", 31, 30, ("False", "ProgressDeadlineExceeded"), id="a deadline of its own"),
        pytest.param("ReplicaSetUpdated", 99999, 2**31 - 1, ("", ""), id="no deadline, no progress"),
    ],
)
def test_a_rollout_that_does_not_move_is_late_after_its_deadline(
    reason: str, since: int, deadline: int | None, expected: tuple[str, str]
) -> None:
    new = made(stepped(deployment()))
    said = {"type": "Progressing", "status": "True", "reason": reason, "message": "", "lastUpdateTime": ago(since)}
    status = {"replicas": 3, "updatedReplicas": 3, "conditions": [said], "observedGeneration": 1}
    planned = stepped(deployment(status=status, progressDeadlineSeconds=deadline), new)
    assert progress(planned.status) == expected


def test_it_looks_again_when_the_deadline_has_passed() -> None:
    new = made(stepped(deployment()))
    said = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "lastUpdateTime": ago(100)}
    status = {"replicas": 3, "updatedReplicas": 3, "conditions": [said], "observedGeneration": 1}
    assert stepped(deployment(status=status), new).look_again == 501


def test_a_failure_of_a_replica_set_is_the_deployments_too_as_long_as_it_lasts() -> None:
    new = made(stepped(deployment()))
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    status = msgspec.convert({"conditions": [failed]}, ReplicaSetStatus)
    planned = stepped(deployment(), replace(new, status=status))
    said = find_condition(planned.status.conditions, "ReplicaFailure")
    assert said is not None
    assert (said.reason, said.message) == ("FailedCreate", "exceeded quota")
    again = stepped(replace(deployment(), status=planned.status), new)
    assert find_condition(again.status.conditions, "ReplicaFailure") is None


def test_recreate_waits_for_pods_that_are_on_their_way_out() -> None:
    old = replace(made(stepped(deployment())), status=ReplicaSetStatus(replicas=0))
    empty = replace(old, spec=replace(old.spec, replicas=0))
    wanted = deployment(OTHER, strategy={"type": "Recreate"})
    assert stepped(wanted, empty, pods={old.metadata.uid: 1}).make is None
    assert stepped(wanted, empty, pods={old.metadata.uid: 0}).make is not None


def test_while_paused_nothing_moves_but_the_size() -> None:
    old = made(stepped(deployment()), pods=3)
    planned = stepped(deployment(OTHER, paused=True, replicas=5), old)
    assert planned.make is None
    assert [(before.replicas, after.replicas) for before, after in planned.change] == [(3, 5)]
    assert progress(planned.status) == ("Unknown", "DeploymentPaused")


def test_a_step_that_changes_nothing_says_the_same_again() -> None:
    new = made(stepped(deployment()), pods=3)
    wanted = deployment()
    for _ in range(3):
        planned = stepped(wanted, new)
        wanted = replace(wanted, status=planned.status)
    assert stepped(wanted, new) == Step(status=wanted.status, revision=1)
    assert progress(wanted.status) == ("True", "NewReplicaSetAvailable")


def test_a_deployment_on_its_way_out_only_counts() -> None:
    new = made(stepped(deployment()), pods=3)
    wanted = deployment(OTHER)
    leaving = replace(wanted, metadata=replace(wanted.metadata, deletion_timestamp=NOW))
    planned = stepped(leaving, new)
    assert (planned.make, planned.change, planned.delete) == (None, (), ())
    assert planned.status.available_replicas == 3
