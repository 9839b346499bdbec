"""Things: the objects placed on a cluster, and what its agent says of each."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import PARENT_BINDING
from kedge.api.reasons import APPLIED, AVAILABLE, MANIFEST_NOT_TRACKABLE
from kedge.api.work import ManifestCondition, Work, WorkSpec
from kedge.plan.telling.state import State


class Thing(Struct, frozen=True):
    """One placed object on one cluster."""

    what: str
    state: State
    why: str = ""


def without_manifests(work: Work) -> Work:
    """All of a Work that is told; manifests are large, and may be secret."""
    return replace(work, spec=WorkSpec())


def things_by_binding(works: Iterable[Work]) -> dict[str, tuple[Thing, ...]]:
    """What was placed, by the name of the binding it was placed for."""
    found: dict[str, tuple[Thing, ...]] = {}
    for work in sorted(works, key=lambda one: one.metadata.name):
        binding = work.metadata.labels.get(PARENT_BINDING, "")
        found[binding] = (*found.get(binding, ()), *map(_thing, work.status.manifest_conditions))
    return found


def _thing(one: ManifestCondition) -> Thing:
    applied, available = find_condition(one.conditions, APPLIED), find_condition(one.conditions, AVAILABLE)
    about = one.identifier
    what = f"{about.kind} {about.namespace}/{about.name}" if about.namespace else f"{about.kind} {about.name}"
    if applied is None:
        return Thing(what, State.moving)
    if applied.status != TRUE:
        return Thing(what, State.failed, applied.message)
    if available is None or available.status != TRUE:
        return Thing(what, State.moving, available.message if available else "")
    return Thing(what, State.available, "cannot be tracked" if available.reason == MANIFEST_NOT_TRACKABLE else "")
