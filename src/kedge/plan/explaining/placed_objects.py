"""Placed objects: what was placed on a cluster, what its agent says of each, and what that makes of the binding.

A binding's conditions are written from its Works, a moment later. Whoever reads both reads two moments; so what the
Works say counts, as far as they are made of what the binding has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import TRUE, find_condition, is_true
from kedge.api.fleet import PARENT_BINDING, PARENT_SNAPSHOT_NAME
from kedge.api.placement_kinds import Binding
from kedge.api.reasons import APPLIED, AVAILABLE, DIFF_REPORTED, MANIFEST_NOT_TRACKABLE, WORK_SYNCHRONIZED
from kedge.api.work import ManifestCondition, Work, WorkSpec
from kedge.plan.state import State
from kedge.plan.text import object_name
from kedge.plan.working.binding_status import binding_status, report_from_works

_BY_MEMBERS = (APPLIED, AVAILABLE)


class PlacedObject(Struct, frozen=True):
    """One placed object on one cluster."""

    what: str
    state: State
    why: str = ""


class PlacedBinding(Struct, frozen=True):
    """A binding as its Works have it now, and the objects that are placed for it."""

    binding: Binding
    things: tuple[PlacedObject, ...] = ()


def without_manifests(work: Work) -> Work:
    """All of a Work that is told; manifests are large, and may be secret."""
    return replace(work, spec=WorkSpec())


def works_by_binding(works: Iterable[Work]) -> dict[str, list[Work]]:
    """Works by the name of the binding they were made for."""
    found: dict[str, list[Work]] = {}
    for work in sorted(works, key=lambda one: one.metadata.name):
        found.setdefault(work.metadata.labels.get(PARENT_BINDING, ""), []).append(work)
    return found


def held_now(binding: Binding, works: Sequence[Work], now: datetime) -> PlacedBinding:
    """What a cluster has: of Works that are not those of the binding as it is, nothing is told."""
    if not _are_of(binding, works):
        return PlacedBinding(binding)
    told = binding_status(binding, report_from_works(works, ""), now)
    kept = tuple(one for one in binding.status.conditions if one.type not in _BY_MEMBERS)
    news = tuple(one for one in told.conditions if one.type in _BY_MEMBERS)
    status = replace(binding.status, conditions=(*kept, *news), failed_placements=told.failed_placements)
    things = tuple(
        _thing(one, answered=_is_answered(work)) for work in works for one in work.status.manifest_conditions
    )
    return PlacedBinding(replace(binding, status=status), things)


def _are_of(binding: Binding, works: Sequence[Work]) -> bool:
    """Whether these are all Works of what the binding has, to be applied and not only compared."""
    conditions, generation = binding.status.conditions, binding.metadata.generation
    if not works or not is_true(conditions, WORK_SYNCHRONIZED, generation=generation):
        return False
    if any(find_condition(one.status.conditions, DIFF_REPORTED) for one in (binding, *works)):
        return False
    name = binding.spec.resource_snapshot_name
    return all(one.metadata.annotations.get(PARENT_SNAPSHOT_NAME, name) == name for one in works)


def _is_answered(work: Work) -> bool:
    """Whether the member speaks of the Work as it is now."""
    found = find_condition(work.status.conditions, APPLIED)
    return found is not None and found.observed_generation == work.metadata.generation


def _thing(one: ManifestCondition, *, answered: bool) -> PlacedObject:
    applied, available = find_condition(one.conditions, APPLIED), find_condition(one.conditions, AVAILABLE)
    about = one.identifier
    what = object_name(about.kind, about.namespace, about.name)
    if applied is None or not answered:
        return PlacedObject(what, State.moving)
    if applied.status != TRUE:
        return PlacedObject(what, State.failed, applied.message)
    if available is None or available.status != TRUE:
        return PlacedObject(what, State.moving, available.message if available else "")
    return PlacedObject(
        what, State.available, "cannot be tracked" if available.reason == MANIFEST_NOT_TRACKABLE else ""
    )
