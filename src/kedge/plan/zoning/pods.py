"""Pods of a zone: whether one runs and is ready, and why one is stuck.

A pod is running and ready as Grafana's rollout-operator counts it: in phase Running, not being deleted, every container
ready and running; and its condition Ready, which knows readiness gates too, does not deny it. A pod is stuck if a
container waits for a reason that does not pass by itself, or no node takes it.
"""

from __future__ import annotations

from typing import Final

from kedge.api.condition import TRUE
from kedge.api.pods import Pod
from kedge.plan.workloads import pods
from kedge.plan.workloads.pods import ready_condition

REVISION: Final = "controller-revision-hash"


def is_running_and_ready(pod: Pod) -> bool:
    """Whether it does its work. A pod without container statuses and conditions counts by its phase alone."""
    if pod.metadata.deletion_timestamp is not None or pod.status.phase != "Running":
        return False
    ready = ready_condition(pod)
    if ready is not None and ready.status != TRUE:
        return False
    return all(one.ready and one.state.running is not None for one in pod.status.container_statuses)


def stuck_reason(pod: Pod) -> str:
    """Why it cannot become ready, if that does not pass by itself; else empty."""
    if is_running_and_ready(pod):
        return ""
    return pods.stuck_reason(pod)


def revision(pod: Pod) -> str:
    """The revision of its StatefulSet that it runs; empty if it does not say."""
    return pod.metadata.labels.get(REVISION, "")
