"""Traits: what works on a component beside its workload. A rollout, a number of replicas, or whole objects.

The traits of an Application become objects in its ApplicationConfiguration: `rollout` a Rollout, `scaler` a
ManualScalerTrait, `raw` the object itself. Of these, a ManualScalerTrait is never written to the API: its number goes
into the workload. A rollout and anything else that sets replicas cannot work on the same component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from kedge.api.oam.applications import ApplicationTrait
from kedge.api.oam.keys import CORE, STANDARD
from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollouts import Rollout, RolloutTrait
from kedge.plan.fields import Object, at, group_of, text, whole
from kedge.plan.oam.component_types import checked_object
from kedge.plan.oam.refused import OamRefused
from kedge.plan.text import listed

_SCALER: Final = "ManualScalerTrait"
_AUTOSCALES: Final = frozenset({("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")})
_SCALES: Final = _AUTOSCALES | {(CORE, _SCALER)}
_ROLLS: Final = frozenset({(STANDARD, kind.resource.kind) for kind in (Rollout, RolloutTrait)})
_ASKED_FOR: Final = "targetRevision"


def trait_object(component: str, trait: ApplicationTrait) -> Object:
    """A trait of an Application, as an object. Refuses a type that is not known, and properties that cannot be read."""
    match trait.kind:
        case "rollout":
            return _rollout(component, trait.properties)
        case "scaler":
            return _scaler(component, trait.properties)
        case "raw":
            return checked_object(trait.properties, f"component {component}: the properties of its trait raw")
    raise OamRefused(
        f"component {component} has the trait {trait.kind!r}, which is not known here: use rollout or scaler, or raw,"
        " which takes a whole object as its properties"
    )


def is_rollout(trait: Object) -> bool:
    """Whether a trait rolls its component out in batches."""
    return _kind(trait) in _ROLLS


def is_scaler(trait: Object) -> bool:
    """Whether a trait only says how many replicas there are to be."""
    return _kind(trait) == (CORE, _SCALER)


def is_autoscaler(trait: Object) -> bool:
    """Whether a trait sets the replicas as it sees fit."""
    return _kind(trait) in _AUTOSCALES


def scaled_to(traits: Iterable[Object]) -> int | None:
    """How many replicas the traits ask for; None if none does."""
    found = (whole(trait, "spec", "replicaCount") for trait in traits if is_scaler(trait))
    return next((number for number in found if number is not None), None)


def conflict(component: str, traits: Iterable[Object], *, rolled_by: str = "") -> str:
    """Why the traits of a component cannot work together; empty if they can.

    `rolled_by` names what rolls the component out, if that is no trait.
    """
    given = tuple(traits)
    rolling = ([rolled_by] if rolled_by else []) + [text(trait, "kind") for trait in given if is_rollout(trait)]
    if len(rolling) > 1:
        return f"component {component} is rolled out by {listed(rolling)}: only one can do it, remove the others"
    scaling = [text(trait, "kind") for trait in given if _kind(trait) in _SCALES]
    if rolling and scaling:
        return (
            f"component {component} has {rolling[0]} and {listed(scaling)}, which both set its replicas: remove one, or"
            " give the rollout a targetSize instead"
        )
    return ""


def _rollout(component: str, properties: Object) -> Object:
    """The fields of a plan, and `targetRevision`. KubeVela knows four of them."""
    known = {field.encode_name for field in fields(RolloutPlan)} | {_ASKED_FOR}
    for name in properties:
        if name not in known:
            raise OamRefused(
                f"component {component}: a rollout has no property {name!r}, only {', '.join(sorted(known))}"
            )
    plan: dict[str, Any] = {name: value for name, value in properties.items() if name != _ASKED_FOR}
    try:
        msgspec.convert(plan, RolloutPlan)
    except msgspec.ValidationError as error:
        raise OamRefused(f"component {component}: its rollout cannot be read: {error}") from None
    revision = text(properties, _ASKED_FOR)
    asked = {"targetRevisionName": revision} if revision else {}
    resource = Rollout.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": component},
        "spec": {**asked, "componentName": component, "rolloutPlan": plan},
    }


def _scaler(component: str, properties: Object) -> Object:
    if set(properties) - {"replicas"}:
        raise OamRefused(f"component {component}: a scaler has the property replicas and no other")
    replicas = whole({"replicas": 1, **properties}, "replicas")
    if replicas is None or replicas < 0:
        raise OamRefused(f"component {component}: the replicas of its scaler must be a number, 0 or more")
    return {
        "apiVersion": f"{CORE}/v1alpha2",
        "kind": _SCALER,
        "metadata": {"name": component},
        "spec": {"replicaCount": replicas},
    }


def _kind(trait: Object) -> tuple[str, str]:
    return group_of(trait), text(trait, "kind")


def named(trait: Object, component: str) -> str:
    """What a trait is called: as it says, or as its component."""
    return text(trait, "metadata", "name") or component


def target_revision(traits: Iterable[Object], revision: str) -> str:
    """The revision that is to run: the one that a Rollout names, or else the configured one."""
    asked = (text(trait, "spec", "targetRevisionName") for trait in traits if is_rollout(trait))
    return next((name for name in asked if name), revision)


def rollout_spec(trait: Object, component: str, revision: str, sources: Iterable[str] = ()) -> Mapping[str, Any]:
    """The spec of a rollout with what it rolls out: the component's revision, from these older ones.

    What the trait says itself stays as it is.
    """
    given: Mapping[str, Any] = at(trait, "spec") or {}
    if text(trait, "kind") == Rollout.resource.kind:
        return {"targetRevisionName": revision, **given, "componentName": component}
    found = [_revision_ref(one) for one in sources]
    return {"targetRef": _revision_ref(revision), **({"sourceRef": found} if found else {}), **given}


def _revision_ref(name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "name": name}
