"""Whether a pod runs and is ready, and why one is stuck."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE
from kedge.api.pods import ContainerState, ContainerStatus, Pod, PodCondition, PodStatus, Running, Waiting
from kedge.plan.zoning.pods import is_running_and_ready, revision, stuck_reason
from plan.zoning.making import pod

READY = ContainerStatus(name="c", ready=True, state=ContainerState(running=Running()))
UNREADY = ContainerStatus(name="c", ready=False, state=ContainerState(running=Running()))
WAITING = ContainerStatus(name="c", ready=True, state=ContainerState(waiting=Waiting(reason="ContainerCreating")))


def with_status(*containers: ContainerStatus, phase: str = "Running", ready: str = "") -> Pod:
    conditions = (PodCondition(type="Ready", status=ready),) if ready else ()
    return replace(pod("a", 0), status=PodStatus(phase=phase, container_statuses=containers, conditions=conditions))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (with_status(READY), True),
        (with_status(READY, READY, ready=TRUE), True),
        (with_status(), True),
        (with_status(READY, phase="Pending"), False),
        (with_status(READY, ready=FALSE), False),
        (with_status(READY, UNREADY), False),
        (with_status(READY, WAITING), False),
        (pod("a", 0, "terminating"), False),
    ],
)
def test_a_pod_is_ready_if_all_of_it_runs_and_is_ready(one: Pod, expected: bool) -> None:
    assert is_running_and_ready(one) is expected


@pytest.mark.parametrize(
    "reason",
    [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "Unschedulable",
    ],
)
def test_a_pod_is_stuck_for_what_does_not_pass_by_itself(reason: str) -> None:
    assert stuck_reason(pod("a", 0, reason)) == reason


@pytest.mark.parametrize("state", ["ready", "unready", "starting", "failed", "ContainerCreating"])
def test_a_pod_that_may_still_become_ready_is_not_stuck(state: str) -> None:
    assert stuck_reason(pod("a", 0, state)) == ""


def test_a_pod_that_is_ready_is_not_stuck_whatever_became_of_what_started_it() -> None:
    crashed = ContainerStatus(name="init", state=ContainerState(waiting=Waiting(reason="CrashLoopBackOff")))
    one = with_status(READY, ready=TRUE)
    assert stuck_reason(replace(one, status=replace(one.status, init_container_statuses=(crashed,)))) == ""


def test_a_pod_says_which_revision_it_runs() -> None:
    one = pod("a", 0, revision="abc")
    assert revision(one) == "abc"
    assert revision(replace(one, metadata=replace(one.metadata, labels={}))) == ""
