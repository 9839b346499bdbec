"""Steering: how a pod's annotations and image say what becomes of it. Pure.

    kedge.dev/ready-after: 2s         from running to ready; a Go duration; 200ms unless told
    kedge.dev/never-ready: "true"     not ready, and no longer ready if it was
    kedge.dev/crash-loop: "true"      not ready, its containers in CrashLoopBackOff
    kedge.dev/flap-every: 5s          no longer ready after so long; ready again as at first
    kedge.dev/complete-after: 2s      pods of a Job: from ready to succeeded; 200ms unless told
    kedge.dev/delete-after: 2s        from deleted to gone; at once unless told

An image with ":bad" in it cannot be pulled: such a pod stays Pending, in ImagePullBackOff. All of it may be changed
while the pod runs. The simulated nodes of the real control plane know the same words.
"""

from __future__ import annotations

from kedge.api.duration import parse_duration
from kedge.api.meta import controller_of
from kedge.api.pods import Pod

PREFIX = "kedge.dev/"
A_WHILE = 0.2


def told(pod: Pod, word: str) -> bool:
    """Whether the pod is told to do this."""
    return pod.metadata.annotations.get(PREFIX + word) == "true"


def seconds(pod: Pod, word: str, default: float) -> float:
    """How long the pod is told to take; the default if it is not told, or in no way that can be read."""
    text = pod.metadata.annotations.get(PREFIX + word)
    try:
        return default if text is None else max(0.0, parse_duration(text).total_seconds())
    except ValueError:
        return default


def flaps(pod: Pod) -> bool:
    return PREFIX + "flap-every" in pod.metadata.annotations


def cannot_be_pulled(pod: Pod) -> bool:
    return any(":bad" in container.image for container in pod.spec.containers or ())


def belongs_to_a_job(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == "Job"
