"""What can be said of a pod: whether it ended, is ready and available, and of which revision it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.plan.workloads import pods
from kedge.plan.workloads.pods import NotReady, why_not_ready

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def pod(phase: str = "Running", ready: str | None = None, ago: float | None = 0, **more: Any) -> Pod:
    """A pod of this phase; with what its condition Ready is, and for how many seconds."""
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": None if ago is None else after(-ago)}
    status = {"phase": phase, "conditions": [condition] if ready else [], **more.pop("status", {})}
    return msgspec.convert({"metadata": more, "status": status}, Pod)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("found", "finished", "terminating", "active"),
    [
        (pod("Running"), False, False, True),
        (pod("Pending"), False, False, True),
        (pod("Succeeded"), True, False, False),
        (pod("Failed"), True, False, False),
        (pod("Running", deletionTimestamp=NOW), False, True, False),
        (pod("Failed", deletionTimestamp=NOW), True, False, False),
    ],
)
def test_a_pod_counts_until_it_ended_or_is_deleted(found: Pod, finished: bool, terminating: bool, active: bool) -> None:
    assert (pods.is_finished(found), pods.is_terminating(found), pods.is_active(found)) == (
        finished,
        terminating,
        active,
    )


@pytest.mark.parametrize(
    ("found", "since"),
    [(pod(), None), (pod(ready="False"), None), (pod(ready="Unknown"), None), (pod(ready="True", ago=5), after(-5))],
)
def test_a_pod_is_ready_if_its_condition_says_so(found: Pod, since: datetime | None) -> None:
    assert pods.is_ready(found) is (since is not None)
    assert pods.ready_since(found) == since
    assert pods.becomes_available(found, 7) == (since and after(2))


@pytest.mark.parametrize(
    ("found", "wait", "available"),
    [
        (pod(ready="True", ago=None), 0, True),
        (pod(ready="True", ago=None), 1, False),
        (pod(ready="True", ago=-1), 0, True),
        (pod(ready="False", ago=9), 0, False),
        (pod(), 0, False),
        (pod(ready="True", ago=4), 5, False),
        (pod(ready="True", ago=5), 5, True),
        (pod(ready="True", ago=6), 5, True),
        (pod(ready="True", ago=1), 1, True),
        (pod(ready="True", ago=0), 1, False),
        (pod(ready="False", ago=9), 5, False),
    ],
)
def test_a_pod_is_available_once_it_was_ready_for_long_enough(found: Pod, wait: int, available: bool) -> None:
    assert pods.is_available(found, wait, NOW) is available


def test_the_next_pod_that_becomes_available_by_time_alone() -> None:
    some = [pod(ready="True", ago=9), pod(ready="True", ago=2), pod(ready="True", ago=1), pod(ready="False"), pod()]
    assert pods.next_available(some, 5, NOW) == 3
    assert pods.next_available(some[:1], 5, NOW) is None
    assert pods.next_available([pod(ready="True", ago=5)], 5, NOW) is None
    assert pods.next_available([], 5, NOW) is None


def test_the_container_that_restarted_most_counts() -> None:
    some = [{"name": "a", "restartCount": 1}, {"name": "b", "restartCount": 4}, {"name": "c"}]
    assert pods.restarts(pod(status={"containerStatuses": some})) == 4
    assert pods.restarts(pod()) == 0


@pytest.mark.parametrize(
    ("labels", "revision"),
    [
        ({"app": "web", "pod-template-hash": "5d4f"}, "5d4f"),
        ({"app": "web", "controller-revision-hash": "web-7"}, "web-7"),
        ({"app": "web"}, ""),
    ],
)
def test_a_label_says_of_which_revision_a_pod_is(labels: dict[str, str], revision: str) -> None:
    assert pods.revision_of(ObjectMeta(labels=labels)) == revision


@pytest.mark.parametrize(
    ("name", "kind", "called"),
    [("web-5", "Deployment", "web"), ("web-", "ReplicaSet", "web-"), ("web", "ReplicaSet", "web")],
)
def test_a_replica_set_with_the_hash_in_its_name_is_of_a_deployment(name: str, kind: str, called: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": True}
    hashed = "5" if name.endswith("5") else ""
    meta = {"labels": {"pod-template-hash": hashed}, "ownerReferences": [owner]}
    found = pods.owner_of(msgspec.convert(meta, ObjectMeta))
    assert found is not None
    assert (found.workload.kind, found.workload.name, found.maker) == (kind, called, name)


def ended(restarts: int, reason: str = "") -> Pod:
    """A pod whose container ended before."""
    last = {"terminated": {"exitCode": 1, "reason": reason}}
    return pod(status={"containerStatuses": [{"name": "a", "restartCount": restarts, "lastState": last}]})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (ended(1), NotReady("Restarted", "exit code 1")),
        (ended(1, "Error"), NotReady("Restarted", "exit code 1 (Error)")),
        (ended(0), NotReady("NotReady", since=NOW)),
        (pod("Pending", "False", 3), NotReady("Pending", since=after(-3))),
        (pod(ready="True"), None),
    ],
)
def test_a_pod_says_why_it_is_not_ready(found: Pod, why: NotReady | None) -> None:
    assert why_not_ready(ObjectMeta(creation_timestamp=NOW), found.status) == why
