"""What is wrong with a pod, whose pod it is, and how that becomes the cause in a verdict."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kedge.api.meta import ObjectMeta
from kedge.api.pods import PodStatus
from kedge.plan.availability import Verdict
from kedge.plan.availability.pod_trouble import PodTrouble, explained, trouble_of
from kedge.plan.workloads.pods import PodWorkload

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
WEB = PodWorkload("apps", "Deployment", "shop", "web")
DOWN = Verdict(available=False, trackable=True, message="Deployment shop/web has 1 of 3 updated replicas")
UP = Verdict(available=True, trackable=True, message="Deployment shop/web has 3 of 3 replicas updated and available")


def meta(kind: str = "ReplicaSet", name: str = "web-5d4f", api: str = "apps/v1", **more: Any) -> ObjectMeta:
    owner = {"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": True}
    body = {
        "name": "web-5d4f-x7k2p",
        "namespace": "shop",
        "labels": {"pod-template-hash": "5d4f"},
        "creationTimestamp": NOW,
        "ownerReferences": [owner],
        **more,
    }
    return msgspec.convert(body, ObjectMeta)


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "app", "state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(code: int, reason: str = "") -> dict[str, Any]:
    return {"lastState": {"terminated": {"exitCode": code, "reason": reason}}, "restartCount": 3}


RUNNING = {"name": "app", "state": {"running": {"startedAt": "2030-01-01T12:00:00Z"}}}
STARTING = waiting("ContainerCreating")


def status(
    *containers: dict[str, Any], init: list[dict[str, Any]] | None = None, phase: str = "", **scheduled: str
) -> PodStatus:
    conditions = [{"type": "PodScheduled", **scheduled}] if scheduled else []
    body = {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": containers,
        "initContainerStatuses": init or [],
    }
    return msgspec.convert(body, PodStatus)


def said(found: PodStatus) -> str:
    """What is said at once."""
    trouble = trouble_of(meta(), found)
    return str(trouble).removeprefix("pod web-5d4f-x7k2p") if trouble and trouble.since is None else ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (status(waiting("ImagePullBackOff", 'Back-off pulling image "app:bad"')),
         ': ImagePullBackOff: Back-off pulling image "app:bad"'),
        (status(waiting("ErrImagePull", "not found")), ": ErrImagePull: not found"),
        (status(waiting("CreateContainerConfigError", 'secret "db" not found')),
         ': CreateContainerConfigError: secret "db" not found'),
        (status(waiting("CrashLoopBackOff", "back-off 40s restarting", **ended(1, "Error"))),
         ": CrashLoopBackOff: exit code 1 (Error)"),
        (status(waiting("CrashLoopBackOff", "back-off 40s restarting", **ended(0, "Completed"))),
         ": CrashLoopBackOff: exit code 0 (Completed)"),
        (status(waiting("CrashLoopBackOff", "back-off 10s restarting")),
         ": CrashLoopBackOff: back-off 10s restarting"),
        (status({**RUNNING, **ended(137, "OOMKilled")}), ": Restarted: exit code 137 (OOMKilled)"),
        (status({**RUNNING, **ended(137), "ready": True}), ""),
        (status({**RUNNING, **ended(0, "Completed")}), ""),
        (status(RUNNING), ""),
        (status(STARTING), ""),
        (status(waiting("PodInitializing")), ""),
        (status(waiting("")), ""),
        (status(), ""),
        (status(status="False", reason="Unschedulable", message="0/3 nodes are available"),
         ": Unschedulable: 0/3 nodes are available"),
        (status(status="False", reason="SchedulingGated"), ": SchedulingGated"),
        (status(status="False"), ""),
        (status(status="True"), ""),
        (status(RUNNING, {**waiting("ErrImagePull"), "name": "proxy"}), ", container proxy: ErrImagePull"),
        (status(waiting("PodInitializing"), init=[{**waiting("CrashLoopBackOff"), "name": "migrate"}]),
         ", container migrate: CrashLoopBackOff"),
        (status(waiting("ErrImagePull", "x" * 900)), f": ErrImagePull: {'x' * 500}…"),
    ],
)  # fmt: skip
def test_a_pod_says_what_is_wrong_with_it(found: PodStatus, words: str) -> None:
    assert said(found) == words


@pytest.mark.parametrize(
    ("found", "owner"),
    [
        (meta(), (WEB, "web-5d4f")),
        (meta(name="web-of-others"), (PodWorkload("apps", "ReplicaSet", "shop", "web-of-others"), "web-of-others")),
        (meta(labels={}), (PodWorkload("apps", "ReplicaSet", "shop", "web-5d4f"), "web-5d4f")),
        (meta("StatefulSet", "db"), (PodWorkload("apps", "StatefulSet", "shop", "db"), "db")),
        (meta("Job", "once", "batch/v1"), (PodWorkload("batch", "Job", "shop", "once"), "once")),
        (meta("Node", "n", "v1"), (PodWorkload("", "Node", "shop", "n"), "n")),
        (meta(ownerReferences=[]), None),
        (meta(ownerReferences=[{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}]), None),
        (meta(deletionTimestamp=NOW), None),
    ],
)  # fmt: skip
def test_trouble_concerns_the_workload_of_the_pod(found: ObjectMeta, owner: tuple[PodWorkload, str] | None) -> None:
    trouble = trouble_of(found, status(waiting("ErrImagePull")))
    assert (trouble and (trouble.workload, trouble.revision)) == owner


def trouble(
    pod: str = "a",
    revision: str = "web-1",
    age: int = 0,
    *,
    reason: str = "ImagePullBackOff",
    message: str = "",
    container: str = "",
) -> PodTrouble:
    return PodTrouble(WEB, revision, pod, NOW - timedelta(seconds=age), reason, message, container)


def test_what_is_not_available_says_why() -> None:
    assert explained(DOWN, [trouble(message="no such image")], NOW) == Verdict(
        available=False,
        trackable=True,
        message="Deployment shop/web has 1 of 3 updated replicas: pod a: ImagePullBackOff: no such image",
    )


def test_a_sentence_goes_on_after_its_full_stop() -> None:
    late = Verdict(available=False, trackable=True, message='ReplicaSet "web-1" has timed out progressing.')
    assert explained(late, [trouble()], NOW).message.endswith("has timed out progressing: pod a: ImagePullBackOff")


@pytest.mark.parametrize(("verdict", "troubles"), [(UP, [trouble()]), (DOWN, []), (UP, [])])
def test_nothing_is_explained_without_a_cause_or_without_need(verdict: Verdict, troubles: list[PodTrouble]) -> None:
    assert explained(verdict, troubles, NOW) == verdict


def test_of_many_pods_the_first_by_name_of_the_newest_revision_is_named_whatever_their_order() -> None:
    found = [trouble("y", "web-2", 5), trouble("a", "web-1", 9), trouble("x", "web-2", 7), trouble("b", "web-1", 8)]
    for order in (found, found[::-1]):
        assert explained(DOWN, order, NOW).message.endswith(": pod x: ImagePullBackOff")


@pytest.mark.parametrize(
    ("old", "new", "alike"),
    [
        (trouble(), trouble(), True),
        (trouble(), trouble(reason="ErrImagePull", message="not found"), True),
        (trouble(reason="CrashLoopBackOff"), trouble(reason="Restarted"), True),
        (trouble(), trouble(reason="CrashLoopBackOff"), False),
        (trouble(), trouble("b"), False),
        (trouble(container="app"), trouble(container="proxy"), False),
        (trouble(reason="Unschedulable", message="0/3"), trouble(reason="Unschedulable", message="0/4"), False),
        (trouble(), None, False),
    ],
)
def test_what_takes_turns_is_one_trouble(old: PodTrouble, new: PodTrouble | None, alike: bool) -> None:
    assert old.is_like(new) is alike


# Slow


def not_ready(ago: float, *containers: dict[str, Any], phase: str = "Running", message: str = "") -> PodStatus:
    at = NOW - timedelta(seconds=ago)
    ready = {"type": "Ready", "status": "False", "message": message, "lastTransitionTime": at}
    return msgspec.convert({"phase": phase, "conditions": [ready], "containerStatuses": containers}, PodStatus)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (not_ready(30, RUNNING, message="containers with unready status: [app]"),
         ": pod web-5d4f-x7k2p: NotReady: containers with unready status: [app]"),
        (not_ready(29, RUNNING), ""),
        (not_ready(30, STARTING, phase="Pending"), ": pod web-5d4f-x7k2p: ContainerCreating"),
        (not_ready(30, phase="Pending"), ": pod web-5d4f-x7k2p: Pending"),
        (status(RUNNING), ""),
        (msgspec.convert({"conditions": [{"type": "Ready", "status": "True"}]}, PodStatus), ""),
    ],
)  # fmt: skip
def test_a_pod_that_does_not_become_ready_is_named_after_a_while(found: PodStatus, words: str) -> None:
    trouble = trouble_of(meta(), found)
    assert explained(DOWN, [trouble] if trouble else [], NOW).message == DOWN.message + words


def test_a_pod_without_conditions_is_slow_since_it_was_made() -> None:
    trouble = trouble_of(meta(creationTimestamp=NOW - timedelta(seconds=40)), status(phase="Pending"))
    assert trouble is not None
    assert trouble.since == NOW - timedelta(seconds=40)


def test_a_slow_pod_is_not_named_if_another_is_worse() -> None:
    slow = replace(trouble("a", reason="NotReady"), since=NOW - timedelta(hours=1))
    for order in ([slow, trouble("b", age=90)], [trouble("b", age=90), slow]):
        assert explained(DOWN, order, NOW).message.endswith(": pod b: ImagePullBackOff")
    assert explained(DOWN, [slow], NOW).message.endswith(": pod a: NotReady")
