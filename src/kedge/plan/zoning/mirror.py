"""Mirror: how many replicas a StatefulSet is to have that mirrors a reference, and what the reference is told.

Up or down at once, or down after a delay in which its pods prepare (`downscale_delay`). The number that is running goes
back into the status of the reference. Where several zones mirror one reference and differ, that is the largest of
theirs: an autoscaler then does not take pods for gone that still run, and the zones do not take turns in writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.plan.moving.wait import Wait
from kedge.plan.zoning import downscale_delay
from kedge.plan.zoning.leader import leader_of
from kedge.plan.zoning.scaling import (
    Reason,
    Reference,
    ReferenceProblem,
    ReferenceScale,
    ScaleCode,
    ScaleStep,
    Scaling,
    ScalingVerdict,
    annotation,
    force_problems,
    force_replicas,
    replicas_of,
    wait_for,
)

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})


class WriteBack(Struct, frozen=True):
    """What the status of a reference is to say, and the StatefulSets it is said for."""

    reference: Reference
    replicas: int
    names: tuple[str, ...]


def reference_of(stateful_set: StatefulSet) -> Reference | Wait | None:
    """What it mirrors, or what is wrong with that; None if it mirrors nothing."""
    name, kind = annotation(stateful_set, zones.MIRROR_NAME), annotation(stateful_set, zones.MIRROR_KIND)
    if not name and not kind:
        return None
    if not (name and kind):
        missing = zones.MIRROR_KIND if name else zones.MIRROR_NAME
        return wait_for(stateful_set.metadata.name, ScaleCode.reference_incomplete, missing)
    group = _group(annotation(stateful_set, zones.MIRROR_API_VERSION))
    if group is None:
        given = annotation(stateful_set, zones.MIRROR_API_VERSION)
        return wait_for(stateful_set.metadata.name, ScaleCode.api_version_invalid, zones.MIRROR_API_VERSION, given)
    return Reference(group, kind, name)


def _group(api_version: str) -> str | None:
    """The group of an apiVersion, empty for the core group; None if it is none."""
    parts = api_version.split("/")
    if len(parts) > 2:
        return None
    return parts[0] if len(parts) == 2 else ""


def references(scaling: Scaling) -> tuple[Reference, ...]:
    """What the StatefulSets of a group mirror, each once. Those with a leader, or being deleted, mirror nothing."""
    found = {each for one in scaling.sets if isinstance(each := reference_of(one), Reference) and may_mirror(one)}
    return tuple(sorted(found))


def may_mirror(stateful_set: StatefulSet) -> bool:
    """Whether a reference counts for it: not if it follows a leader, and not if it is being deleted."""
    return not leader_of(stateful_set) and stateful_set.metadata.deletion_timestamp is None


def mirror(stateful_set: StatefulSet, scaling: Scaling) -> ScalingVerdict:
    """What mirroring its reference means for it now. A step down may still have to wait for its delay."""
    if not may_mirror(stateful_set):
        return ScalingVerdict()
    match reference_of(stateful_set):
        case Wait() as wrong:
            return ScalingVerdict(waits=(wrong,))
        case Reference() as reference:
            return _by_scale(stateful_set, reference, scaling)
        case _:
            return ScalingVerdict()


def _by_scale(stateful_set: StatefulSet, reference: Reference, scaling: Scaling) -> ScalingVerdict:
    match scaling.scales.get(reference):
        case ReferenceScale() as scale:
            return _to(stateful_set, scale, reference)
        case ReferenceProblem(text=text):
            name = stateful_set.metadata.name
            return ScalingVerdict(waits=(wait_for(name, ScaleCode.reference_unavailable, str(reference), text),))
        case _:
            return ScalingVerdict()


def _to(stateful_set: StatefulSet, scale: ReferenceScale, reference: Reference) -> ScalingVerdict:
    forced, current = force_replicas(stateful_set), replicas_of(stateful_set)
    wanted = scale.wanted if forced is None else forced
    reason, source = (Reason.reference, str(reference)) if forced is None else (Reason.forced, zones.FORCE_REPLICAS)
    ignored = force_problems(stateful_set)
    if wanted == current:
        return ScalingVerdict(waits=ignored)
    return ScalingVerdict(ScaleStep(stateful_set.metadata.name, current, wanted, reason, source), ignored)


def at_rest(scaling: Scaling) -> tuple[StatefulSet, ...]:
    """Those with a delay that have as many replicas as they should: their pods are to forget that they prepared."""
    return tuple(one for one in scaling.in_order if _is_at_rest(one, scaling))


def _is_at_rest(stateful_set: StatefulSet, scaling: Scaling) -> bool:
    reference = reference_of(stateful_set)
    known = isinstance(reference, Reference) and isinstance(scaling.scales.get(reference), ReferenceScale)
    if not known or not may_mirror(stateful_set) or mirror(stateful_set, scaling).step is not None:
        return False
    return isinstance(downscale_delay.delay_of(stateful_set), downscale_delay.Delay)


def write_backs(scaling: Scaling, patched: Mapping[str, int]) -> tuple[WriteBack, ...]:
    """What the references are to be told. `patched` are the replicas of those that were scaled just now, by name."""
    found: dict[Reference, dict[str, int]] = {}
    for one in scaling.in_order:
        reference = reference_of(one)
        if isinstance(reference, Reference) and may_mirror(one) and writes_back(one):
            has = patched.get(one.metadata.name, replicas_of(one))
            found.setdefault(reference, {})[one.metadata.name] = has
    return tuple(
        WriteBack(reference, max(running.values()), tuple(running))
        for reference, running in found.items()
        if isinstance(scale := scaling.scales.get(reference), ReferenceScale)
        and scale.reported != max(running.values())
    )


def writes_back(stateful_set: StatefulSet) -> bool:
    """Whether its reference is told how many there are: unless it says otherwise. What is no boolean says otherwise."""
    given = stateful_set.metadata.annotations.get(zones.MIRROR_WRITE_BACK)
    return given is None or given in _TRUE
