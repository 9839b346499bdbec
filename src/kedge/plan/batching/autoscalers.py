"""Autoscalers: who else sets the replicas of the workloads of a rollout, and how that is stopped and given back.

    autoscaler_step(autoscalers, workloads, plan.on_autoscaler, claim)    # a wait, or writes that stop them
    give_back(autoscalers, claim, target)                                 # writes that let them go on

A HorizontalPodAutoscaler is stopped by a target that cannot exist: its name gets a suffix with capital letters, the one
that OpenKruise uses. It then does nothing and says so. Its own means would not do: without policies it still enforces
its minimum and maximum, and a deleted one could not be given back. A ScaledObject of KEDA is paused by its annotation;
KEDA then deletes the HorizontalPodAutoscaler that it made, which is waited for.

What an autoscaler was before is written to it in the same patch that stops it, so that no crash loses it. A copy is for
the status. Whoever changes an autoscaler while it is stopped is not overruled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from kedge.api.oam.keys import AUTOSCALER_BEFORE, NAME_LABEL
from kedge.api.oam.rollout_plan import ObjectReference, OnAutoscaler
from kedge.api.oam.rollout_status import Remembered
from kedge.api.resource import Resource
from kedge.plan.batching.moves import DONE, Step, WorkloadRef, Write
from kedge.plan.batching.rollout_waits import BatchCode
from kedge.plan.fields import Object, at, text
from kedge.plan.moving.wait import Blocker, Wait

HPA: Final = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
SCALED_OBJECT: Final = Resource("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
SUFFIX: Final = "-DisableByRollout"
PAUSED: Final = "autoscaling.keda.sh/paused"
PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
_KEDA_KEYS: Final = (PAUSED, PAUSED_REPLICAS)
_TARGET: Final = ("spec", "scaleTargetRef")


class Autoscaler(Struct, frozen=True):
    """One autoscaler, as it was observed: a HorizontalPodAutoscaler or a ScaledObject."""

    ref: WorkloadRef
    obj: Object

    @property
    def is_keda(self) -> bool:
        return self.ref.kind == SCALED_OBJECT.kind

    @property
    def uid(self) -> str:
        return text(self.obj, "metadata", "uid")

    @property
    def is_made_by_keda(self) -> bool:
        """Whether it belongs to a ScaledObject, which makes it again if it is changed."""
        owners = at(self.obj, "metadata", "ownerReferences")
        return isinstance(owners, list) and any(text(owner, "kind") == SCALED_OBJECT.kind for owner in owners)

    @property
    def is_stopped(self) -> bool:
        """Whether it sets no replicas. KEDA sets those of its other annotation even if it is paused."""
        if self.is_keda:
            return self.annotation(PAUSED) == "true" and self.annotation(PAUSED_REPLICAS) is None
        return text(self.obj, *_TARGET, "name").endswith(SUFFIX)

    def annotation(self, key: str) -> str | None:
        found = at(self.obj, "metadata", "annotations", key)
        return found if isinstance(found, str) else None

    def scales(self, workload: WorkloadRef) -> bool:
        """Whether it sets the replicas of this workload. Versions do not matter, nor a group that is not given."""
        target = at(self.obj, *_TARGET)
        kind = text(target, "kind") or ("Deployment" if self.is_keda else "")
        group = text(target, "apiVersion").rpartition("/")[0]
        is_meant = (kind, text(target, "name")) == (workload.kind, workload.name) and group in ("", workload.group)
        return is_meant and self.ref.namespace == workload.namespace


class AutoscalerStep(Struct, frozen=True):
    """What to do about autoscalers now, and what is to be kept in the status of those that were stopped."""

    step: Step = DONE
    remembered: tuple[Remembered, ...] = ()


class _Memory(Struct, frozen=True):
    """What is written to an autoscaler that is stopped."""

    rollout: str
    before: Mapping[str, Any]


def conflicts(autoscalers: Iterable[Autoscaler], workloads: Sequence[WorkloadRef]) -> tuple[Autoscaler, ...]:
    """The autoscalers that set the replicas of one of these workloads."""
    found = (one for one in autoscalers if not one.is_stopped and any(map(one.scales, workloads)))
    return tuple(sorted(found, key=lambda one: one.ref))


def autoscaler_step(
    autoscalers: Sequence[Autoscaler], workloads: Sequence[WorkloadRef], on: OnAutoscaler | None, claim: str
) -> AutoscalerStep:
    """Stop the autoscalers of these workloads if that is asked for, else wait until somebody does."""
    found = conflicts(autoscalers, workloads)
    kept = tuple(_remembered(one) for one in autoscalers if _memory(one.annotation(AUTOSCALER_BEFORE), claim))
    if on is not OnAutoscaler.take_over:
        return AutoscalerStep(_waiting(found, workloads, BatchCode.autoscaler), kept)
    writes = tuple(_stop(one, claim) for one in found if not one.is_made_by_keda)
    return AutoscalerStep(
        Step(writes=writes) if writes else _waiting(found, workloads, BatchCode.autoscaler_stopping), kept
    )


def _waiting(found: Sequence[Autoscaler], workloads: Sequence[WorkloadRef], code: BatchCode) -> Step:
    if not found:
        return DONE
    scaled = next(one for one in workloads if found[0].scales(one))
    return Step(wait=Wait(str(scaled), code, blockers=tuple(Blocker(str(one.ref)) for one in found)))


def _stop(one: Autoscaler, claim: str) -> Write:
    if one.is_keda:
        before: Mapping[str, Any] = {key: one.annotation(key) for key in _KEDA_KEYS}
        return _patch(one, {PAUSED: "true", PAUSED_REPLICAS: None, **_note(claim, before)})
    before = at(one.obj, *_TARGET)
    return _patch(one, _note(claim, before), {"name": f"{before['name']}{SUFFIX}"})


def _note(claim: str, before: Mapping[str, Any]) -> dict[str, str]:
    return {AUTOSCALER_BEFORE: msgspec.json.encode(_Memory(claim, before), order="sorted").decode()}


def _patch(one: Autoscaler, annotations: Mapping[str, str | None], target: Mapping[str, Any] | None = None) -> Write:
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}}
    if target:
        patch["spec"] = {"scaleTargetRef": target}
    return Write(one.ref, patch=patch, uid=one.uid, resource_version=text(one.obj, "metadata", "resourceVersion"))


def _remembered(one: Autoscaler) -> Remembered:
    ref = one.ref
    named = ObjectReference(
        api_version=ref.api_version, kind=ref.kind, name=ref.name, namespace=ref.namespace, uid=one.uid
    )
    return Remembered(ref=named, value=one.annotation(AUTOSCALER_BEFORE) or "")


def _memory(value: str | None, claim: str) -> _Memory | None:
    """What this rollout wrote; None if it is another's, or nothing that can be read."""
    try:
        found = msgspec.json.decode(value or "", type=_Memory)
    except msgspec.DecodeError:
        return None
    return found if found.rollout == claim else None


# At the end


def give_back(
    autoscalers: Sequence[Autoscaler],
    claim: str,
    target: WorkloadRef | None = None,
    remembered: Sequence[Remembered] = (),
    application: str = "",
) -> tuple[Write, ...]:
    """Let the autoscalers that this rollout stopped go on. Those that are gone meanwhile are left out.

    With a target, which has all pods now, one of them scales that; without one they are as before. `remembered` is what
    the status kept, in case that somebody removed the annotation. `application` is the target's: an autoscaler of
    another Application stays with that.
    """
    taken = [(one, found) for one in sorted(autoscalers, key=_ref) if (found := _taken(one, claim, remembered))]
    heir = None if target is None else _autoscaler_of_target(taken, target, application)
    return tuple(_resume(one, found.before, target if one is heir else None) for one, found in taken)


def _ref(one: Autoscaler) -> WorkloadRef:
    return one.ref


def _taken(one: Autoscaler, claim: str, remembered: Sequence[Remembered]) -> _Memory | None:
    if one.annotation(AUTOSCALER_BEFORE) is not None or not one.is_stopped:
        return _memory(one.annotation(AUTOSCALER_BEFORE), claim)
    kept = [found.value for found in remembered if (found.ref.kind, found.ref.uid) == (one.ref.kind, one.uid)]
    return _memory(kept[0], claim) if kept else None


def _autoscaler_of_target(
    taken: Sequence[tuple[Autoscaler, _Memory]], target: WorkloadRef, application: str
) -> Autoscaler | None:
    """The autoscaler that scales the target from now on: two would fight."""
    if any(_as_before(one, found).scales(target) for one, found in taken):
        return None
    labels = ((one, text(one.obj, "metadata", "labels", NAME_LABEL)) for one, _ in taken)
    return next((one for one, label in labels if label in ("", application)), None)


def _as_before(one: Autoscaler, found: _Memory) -> Autoscaler:
    if one.is_keda:
        return one
    return Autoscaler(one.ref, {"spec": {"scaleTargetRef": found.before}})


def _resume(one: Autoscaler, before: Mapping[str, Any], target: WorkloadRef | None) -> Write:
    """Undo what stopped it; what somebody else changed since stays."""
    annotations: dict[str, str | None] = {AUTOSCALER_BEFORE: None}
    if not one.is_stopped:
        return _patch(one, annotations)
    scaled = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name} if target else None
    if one.is_keda:
        return _patch(one, annotations | {key: before.get(key) for key in _KEDA_KEYS}, scaled)
    return _patch(one, annotations, scaled or before)
