"""Trait objects: what is written to the API for the traits of one component. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedge.api.oam.rollout_status import RollingState
from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, patched, text
from kedge.plan.oam.emission import APPLIED, WantedComponent, belongs_to
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.traits import is_autoscaler, is_rollout, named, rollout_spec
from kedge.plan.oam.workloads import labels_of


def trait_body(trait: Object, wanted: WantedComponent, workload: Object, sources: Iterable[str] = ()) -> Object:
    """A trait as it is applied: named, labelled, and referring to its component's revision or workload."""
    namespace = text(wanted.component, "metadata", "namespace")
    if text(trait, "metadata", "namespace") not in ("", namespace):
        kind = text(trait, "kind")
        raise OamRefused(
            f"component {wanted.name}: its trait {kind} has another namespace than {namespace}: leave it out"
        )
    labels = labels_of(wanted.application, wanted.name, "", wanted.app_revision)
    meta = {"name": named(trait, wanted.name), "namespace": namespace, "labels": labels}
    body = patched({**trait, "spec": _spec(trait, wanted, workload, sources)}, {"metadata": meta})
    return patched(body, {"metadata": {"annotations": {APPLIED: _hash(body)}}})


def is_applied(body: Object, live: Object | None) -> bool:
    """Whether a live trait is what was last applied."""
    return text(live, "metadata", "annotations", APPLIED) == text(body, "metadata", "annotations", APPLIED)


def check_owner(live: Object | None, wanted: WantedComponent) -> None:
    """Refuses to write a trait that is somebody else's."""
    if live is not None and not belongs_to(live, wanted.application, wanted.name):
        kind, name = text(live, "kind"), text(live, "metadata", "name")
        raise OamRefused(
            f"component {wanted.name}: its trait {kind} {name} exists already and belongs to somebody else: give it"
            " another name"
        )


def rollout_sources(live: Object | None, target: str, running: Iterable[str]) -> tuple[str, ...]:
    """The revisions that a RolloutTrait moves from, by name: those that run, without the target.

    They stay as they are while the target is the same. One that is replaced midway leaves pods of all its revisions.
    """
    if live is None:
        return _without(target, running)
    before = [text(one, "name") for one in at(live, "spec", "sourceRef") or ()]
    last = text(live, "spec", "targetRef", "name")
    if last == target:
        return tuple(before)
    is_over = text(live, "status", "rollingState") == RollingState.succeeded
    return _without(target, [last] if is_over else [*before, last])


def _without(target: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name and name != target)


def _spec(trait: Object, wanted: WantedComponent, workload: Object, sources: Iterable[str]) -> Mapping[str, Any] | None:
    if is_rollout(trait):
        return rollout_spec(trait, wanted.name, wanted.revision, sources)
    given: Mapping[str, Any] | None = at(trait, "spec")
    if is_autoscaler(trait) and at(trait, "spec", "scaleTargetRef") is None:
        ref = {name: text(workload, name) for name in ("apiVersion", "kind")}
        return {**(given or {}), "scaleTargetRef": {**ref, "name": text(workload, "metadata", "name")}}
    return given


def _hash(body: Object) -> str:
    """Of all but the labels, of which the revision of the Application changes when nothing else does."""
    return digest(patched(body, {"metadata": {"labels": None}}))
