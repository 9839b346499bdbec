"""Coming: what a member that does as told will say of the objects it is given, and of which only after a while.

Workloads take time to come up, when they are new or their spec is another; a rule of an object's own
(`kedge.dev/available-when`) is met after as long. Everything else is available at once, or nothing tells when it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.fleet import AVAILABLE_WHEN
from kedge.api.numbers import resolve
from kedge.api.reasons import MANIFEST_APPLIED, MANIFEST_APPLY_FAILED
from kedge.api.work import WorkResourceIdentifier
from kedge.plan.applying.reporting import Result
from kedge.plan.availability.kinds import KINDS
from kedge.plan.availability.verdict import available, not_available, untrackable
from kedge.plan.digest import digest
from kedge.plan.fields import at, group_of, name_of, text, whole

DEADLINE: Final = 600.0
"""Seconds a Deployment allows itself by default; taken for whatever does not say."""
_TAKE_TIME: Final = frozenset(
    {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")},
)


class Coming(Struct, frozen=True):
    """One object of a Work, as far as it matters when it will be available."""

    identifier: WorkResourceIdentifier
    name: str
    """In a sentence: `Deployment shop/web`."""
    takes_time: bool = False
    trackable: bool = True
    digest: str = ""
    """Of what makes it come up anew."""
    rounds: int = 1
    """In how many steps its pods are replaced."""
    deadline: float = DEADLINE


def takes_time_kind(group: str, kind: str) -> bool:
    """Whether objects of this kind have to come up."""
    return (group, kind) in _TAKE_TIME


def coming(ordinal: int, manifest: Mapping[str, Any]) -> Coming:
    """What is to be known of one manifest."""
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
        return Coming(identifier, name_of(manifest), trackable=(group, kind) in KINDS)
    return Coming(
        identifier,
        name_of(manifest),
        takes_time=True,
        digest=digest({name: part for name, part in manifest.items() if name not in ("metadata", "status")}),
        rounds=_rounds(manifest) if kind == "Deployment" else 1,
        deadline=float(whole(manifest, "spec", "progressDeadlineSeconds") or DEADLINE),
    )


def _rounds(deployment: Mapping[str, Any]) -> int:
    """In how many steps a Deployment replaces its pods: so many at a time as its own strategy allows."""
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


def is_up(one: Coming) -> Result:
    """What is said of it once it is there, and has come up if it has to."""
    if not one.trackable:
        return _result(one, untrackable(f"nothing tells when {one.name} is available"))
    return _result(one, available(f"{one.name} is available"))


def comes_up(one: Coming, why: str) -> Result:
    """What is said of it meanwhile."""
    return _result(one, not_available(f"{one.name} {why}"))


def is_refused(one: Coming, why: str) -> Result:
    """What is said if it cannot be applied."""
    return Result(one.identifier, applied=False, reason=MANIFEST_APPLY_FAILED, message=why)


def _result(one: Coming, verdict: Any) -> Result:
    return Result(
        one.identifier, applied=True, reason=MANIFEST_APPLIED, message=f"{one.name} is applied", verdict=verdict
    )


def rounds_of(these: Iterable[Coming]) -> int:
    """In how many steps the slowest of them is replaced."""
    return max((one.rounds for one in these), default=1)


def deadline_of(these: Iterable[Coming]) -> float:
    """How long the slowest of them allows itself."""
    return max((one.deadline for one in these), default=DEADLINE)
