"""The pods of a CloneSet: what they are made of, and how one is updated in place. Pure.

In place, only images of containers can be changed. The pod is not ready from then on until its containers run with the
new images: its readiness gate says so first, so that nobody sees a pod that is updated and still ready from before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kedge.api.apps import ControllerRevision
from kedge.api.condition import FALSE
from kedge.api.kruise import IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY, IN_PLACE_READY, ON_DELETE, CloneSet
from kedge.api.pods import Pod, PodCondition, Template
from kedge.embedded.workloads.cloneset_plan import ClonePod, WantedClones
from kedge.embedded.workloads.owned import reference_to
from kedge.embedded.workloads.pod_writes import as_written, from_template, with_condition
from kedge.embedded.workloads.revisions import template_in
from kedge.plan.workloads import pods
from kedge.plan.workloads.clone_sets import partition_pods, update_limits

REVISION = "controller-revision-hash"
IN_PLACE = (IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY)
_GATE = {"conditionType": IN_PLACE_READY}


def wanted(seen: CloneSet, current: str, update: str, *, partition_rollback: bool) -> WantedClones:
    """What the set should be, with the names of its revisions."""
    strategy, replicas = seen.spec.update_strategy, seen.replicas
    limits = update_limits(strategy.max_unavailable, strategy.max_surge, replicas, paused=strategy.paused)
    return WantedClones(
        replicas=replicas,
        current=current,
        update=update,
        partition=partition_pods(strategy.partition, replicas),
        max_unavailable=limits.max_unavailable,
        max_surge=limits.max_surge,
        updates=not strategy.paused and strategy.type != ON_DELETE,
        partition_rollback=partition_rollback,
    )


def clone_pod(pod: Pod, min_ready_seconds: int, now: datetime) -> ClonePod:
    """What the plan needs to know of a pod."""
    return ClonePod(
        name=pod.metadata.name,
        revision=pod.metadata.labels.get(REVISION, ""),
        ready=pods.is_ready(pod),
        available=pods.is_available(pod, min_ready_seconds, now),
    )


def new_pod(seen: CloneSet, revision: ControllerRevision) -> dict[str, Any]:
    """The pod to create."""
    meta = seen.metadata
    made = from_template(template_in(revision), reference_to(seen), meta.namespace, generate_name=f"{meta.name}-")
    labels = {**made["metadata"].get("labels", {}), REVISION: revision.metadata.name}
    return {**made, "metadata": {**made["metadata"], "labels": labels}, "spec": _gated(seen, made["spec"])}


def new_images(seen: CloneSet, before: ControllerRevision | None, target: ControllerRevision) -> dict[str, str] | None:
    """The images that bring a pod from one revision to another in place; None if it has to be recreated."""
    if seen.spec.update_strategy.type not in IN_PLACE or before is None:
        return None
    return image_changes(template_in(before), template_in(target))


def with_stuck(
    seen: CloneSet, clones: Iterable[ClonePod], wanted: WantedClones, known: Mapping[str, ControllerRevision]
) -> tuple[ClonePod, ...]:
    """The pods, with those marked that cannot be brought to the other revision: in place only, and it is impossible."""
    if seen.spec.update_strategy.type != IN_PLACE_ONLY:
        return tuple(clones)
    return tuple(_with_stuck(seen, one, wanted, known) for one in clones)


def _with_stuck(
    seen: CloneSet, one: ClonePod, wanted: WantedClones, known: Mapping[str, ControllerRevision]
) -> ClonePod:
    target = known[wanted.current if one.revision == wanted.update else wanted.update]
    return replace(one, stuck=new_images(seen, known.get(one.revision), target) is None)


def _gated(seen: CloneSet, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pod that may be updated in place has a gate that is closed meanwhile."""
    gates = spec.get("readinessGates") or []
    if seen.spec.update_strategy.type not in IN_PLACE or _GATE in gates:
        return spec
    return {**spec, "readinessGates": [*gates, _GATE]}


def image_changes(old: Template, new: Template) -> dict[str, str] | None:
    """The new images by container, if nothing else differs between the templates; else None."""
    before, after = _containers(old), _containers(new)
    if [one.get("name") for one in before] != [one.get("name") for one in after]:
        return None
    if _without_images(old, before) != _without_images(new, after):
        return None
    return {
        str(one.get("name")): str(one.get("image"))
        for one, other in zip(after, before, strict=True)
        if one.get("image") != other.get("image")
    }


def _containers(template: Template) -> list[Mapping[str, Any]]:
    return list((template.get("spec") or {}).get("containers") or ())


def _without_images(template: Template, containers: list[Mapping[str, Any]]) -> dict[str, Any]:
    bare = [{name: value for name, value in one.items() if name != "image"} for one in containers]
    return {**template, "spec": {**(template.get("spec") or {}), "containers": bare}}


def closed_gate(pod: Pod, now: datetime) -> dict[str, Any]:
    """The status of a pod that is about to be updated in place: not ready."""
    conditions = pod.status.conditions
    for type_ in (IN_PLACE_READY, pods.READY):
        said = PodCondition(type=type_, status=FALSE, reason="StartInPlaceUpdate")
        conditions = with_condition(conditions, said, now)
    return {"conditions": as_written(conditions)}


def in_place_change(revision: str, images: Mapping[str, str]) -> dict[str, Any]:
    """The strategic patch that gives a pod new images."""
    containers = [{"name": name, "image": image} for name, image in images.items()]
    return {"metadata": {"labels": {REVISION: revision}}, "spec": {"containers": containers}}
