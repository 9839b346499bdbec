"""Expected objects: what a member that applies everything will report of its objects, and of which only after a while.

Workloads take time to become available if they are new or their spec has changed. A rule of an object's own
(`kedge.dev/available-when`) is met after as long. Everything else is available at once, or cannot be tracked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.fleet import AVAILABLE_WHEN
from kedge.api.numbers import resolve
from kedge.api.reasons import MANIFEST_APPLIED, MANIFEST_APPLY_FAILED
from kedge.api.work import WorkResourceIdentifier
from kedge.plan.applying.work_status import ApplyResult
from kedge.plan.availability.kinds import KINDS
from kedge.plan.availability.verdict import available, not_available, untrackable
from kedge.plan.digest import digest
from kedge.plan.fields import at, group_of, name_of, text, whole

DEFAULT_DEADLINE: Final = 600.0
"""The default progressDeadlineSeconds of a Deployment; used for whatever has none."""
_KINDS_THAT_TAKE_TIME: Final = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps.kruise.io", "CloneSet"),
        ("batch", "Job"),
    },
)


class ExpectedObject(Struct, frozen=True):
    """One object of a Work: what decides when it becomes available."""

    identifier: WorkResourceIdentifier
    name: str
    """In a sentence: `Deployment shop/web`."""
    takes_time: bool = False
    trackable: bool = True
    digest: str = ""
    """Of everything whose change makes it start again."""
    rounds: int = 1
    """In how many rounds its pods are replaced."""
    deadline: float = DEFAULT_DEADLINE


def takes_time_kind(group: str, kind: str) -> bool:
    """Whether objects of this kind take time to become available."""
    return (group, kind) in _KINDS_THAT_TAKE_TIME


def expected_object(ordinal: int, manifest: Mapping[str, Any]) -> ExpectedObject:
    """The expected object of one manifest."""
    group, kind = group_of(manifest), text(manifest, "kind")
    identifier = WorkResourceIdentifier(
        ordinal=ordinal,
        group=group,
        version=text(manifest, "apiVersion").rpartition("/")[2],
        kind=kind,
        namespace=text(manifest, "metadata", "namespace"),
        name=text(manifest, "metadata", "name"),
    )
    ruled = isinstance(at(manifest, "metadata", "annotations", AVAILABLE_WHEN), str)
    if not ruled and not takes_time_kind(group, kind):
        return ExpectedObject(identifier, name_of(manifest), trackable=(group, kind) in KINDS)
    return ExpectedObject(
        identifier,
        name_of(manifest),
        takes_time=True,
        digest=digest({name: part for name, part in manifest.items() if name not in ("metadata", "status")}),
        rounds=_rounds(manifest) if kind == "Deployment" else 1,
        deadline=float(whole(manifest, "spec", "progressDeadlineSeconds") or DEFAULT_DEADLINE),
    )


def _rounds(deployment: Mapping[str, Any]) -> int:
    """In how many rounds a Deployment replaces its pods, by its own strategy."""
    replicas = whole(deployment, "spec", "replicas")
    replicas = 1 if replicas is None else replicas
    if text(deployment, "spec", "strategy", "type") == "Recreate" or replicas < 1:
        return 1
    rolling = at(deployment, "spec", "strategy", "rollingUpdate") or {}
    try:
        surge = resolve(rolling.get("maxSurge", "25%"), replicas, round_up=True)
        down = resolve(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    except (AttributeError, TypeError, ValueError):
        return 1
    return -(-replicas // max(1, surge + down))


def available_result(one: ExpectedObject) -> ApplyResult:
    """The result once it is available."""
    if not one.trackable:
        return _result(one, untrackable(f"nothing tells when {one.name} is available"))
    return _result(one, available(f"{one.name} is available"))


def unavailable_result(one: ExpectedObject, why: str) -> ApplyResult:
    """The result while it is not available."""
    return _result(one, not_available(f"{one.name} {why}"))


def refused_result(one: ExpectedObject, why: str) -> ApplyResult:
    """The result if it cannot be applied."""
    return ApplyResult(one.identifier, applied=False, reason=MANIFEST_APPLY_FAILED, message=why)


def _result(one: ExpectedObject, verdict: Any) -> ApplyResult:
    return ApplyResult(
        one.identifier, applied=True, reason=MANIFEST_APPLIED, message=f"{one.name} is applied", verdict=verdict
    )


def most_rounds(these: Iterable[ExpectedObject]) -> int:
    """In how many rounds the slowest of them is replaced."""
    return max((one.rounds for one in these), default=1)


def longest_deadline(these: Iterable[ExpectedObject]) -> float:
    """The longest deadline of them."""
    return max((one.deadline for one in these), default=DEFAULT_DEADLINE)
