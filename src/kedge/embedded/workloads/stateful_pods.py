"""The pods and claims of a StatefulSet: their names, what they are made of, and whose the claims are. Pure.

A claim that belongs to the set goes with the set; one that belongs to a pod goes with the pod, which is how the claims
of pods beyond the wanted number are deleted. A claim of a set or pod that is gone is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kedge.api.apps import RetentionPolicy, StatefulSet
from kedge.api.core import PersistentVolumeClaim
from kedge.api.meta import Object, OwnerReference
from kedge.api.pods import Pod, Template
from kedge.embedded.workloads.owned import reference_to
from kedge.embedded.workloads.pod_writes import from_template
from kedge.embedded.workloads.stateful_plan import OrdinalPod, Wanted
from kedge.plan.workloads import pods, stateful_sets

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"
DELETE = "Delete"


def ordinal_of(seen: StatefulSet, pod: Pod) -> int | None:
    """Which pod of the set this is; None if its name says that it is none of it."""
    return stateful_sets.ordinal_of(pod.metadata.name, seen.metadata.name)


def wanted(seen: StatefulSet, current: str, update: str) -> Wanted:
    """What the set should be, with the names of its revisions."""
    spec = seen.spec
    rolling = spec.update_strategy.rolling_update
    return Wanted(
        replicas=1 if spec.replicas is None else spec.replicas,
        current=current,
        update=update,
        start=spec.ordinals.start if spec.ordinals else 0,
        partition=(rolling.partition or 0) if rolling else 0,
        parallel=spec.pod_management_policy == "Parallel",
        on_delete=spec.update_strategy.type == "OnDelete",
    )


def ordinal_pod(pod: Pod, ordinal: int, min_ready_seconds: int, now: datetime) -> OrdinalPod:
    """What the plan needs to know of a pod."""
    phase = pod.status.phase
    return OrdinalPod(
        ordinal=ordinal,
        revision=pod.metadata.labels.get(REVISION, ""),
        ready=phase == "Running" and pods.is_ready(pod),
        available=pods.is_available(pod, min_ready_seconds, now),
        terminating=pod.metadata.deletion_timestamp is not None,
        ended=pods.is_finished(pod),
        pending=phase in ("", "Pending"),
    )


def new_pod(seen: StatefulSet, template: Template, one: OrdinalPod) -> dict[str, Any]:
    """The pod to create."""
    name = f"{seen.metadata.name}-{one.ordinal}"
    made = from_template(template, reference_to(seen), seen.metadata.namespace, name=name)
    labels = {
        **made["metadata"].get("labels", {}),
        POD_INDEX: str(one.ordinal),
        REVISION: one.revision,
        POD_NAME: name,
    }
    spec = {**made["spec"], "hostname": name, **_volumes(seen, made["spec"], one.ordinal)}
    if seen.spec.service_name:
        spec["subdomain"] = seen.spec.service_name
    return {**made, "metadata": {**made["metadata"], "labels": labels}, "spec": spec}


def claims(seen: StatefulSet, ordinal: int) -> list[dict[str, Any]]:
    """The claims a pod needs."""
    return [_claim(seen, template, ordinal) for template in seen.spec.volume_claim_templates or ()]


def _claim(seen: StatefulSet, template: Mapping[str, Any], ordinal: int) -> dict[str, Any]:
    meta = template.get("metadata") or {}
    selected = seen.spec.selector.match_labels if seen.spec.selector else {}
    labels = {**(meta.get("labels") or {}), **selected}
    kept = {"annotations": meta["annotations"]} if meta.get("annotations") else {}
    named = {"name": _claim_name(seen, template, ordinal), "namespace": seen.metadata.namespace}
    return {"metadata": {**named, **kept, "labels": labels}, "spec": template.get("spec") or {}}


def _claim_name(seen: StatefulSet, template: Mapping[str, Any], ordinal: int) -> str:
    return f"{template['metadata']['name']}-{seen.metadata.name}-{ordinal}"


def _volumes(seen: StatefulSet, spec: Mapping[str, Any], ordinal: int) -> dict[str, Any]:
    """A volume for each claim, in place of any of that name."""
    templates = seen.spec.volume_claim_templates or ()
    mine = {template["metadata"]["name"]: {"claimName": _claim_name(seen, template, ordinal)} for template in templates}
    if not mine:
        return {}
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in mine]
    return {"volumes": [{"name": name, "persistentVolumeClaim": claim} for name, claim in mine.items()] + others}


def claim_owners(
    seen: StatefulSet, pod: Pod, claim: PersistentVolumeClaim, *, surplus: bool
) -> tuple[OwnerReference, ...] | None:
    """The owners a claim of this pod should have; None if it has them, or is not ours to change."""
    have = claim.metadata.owner_references
    ours = (seen, pod)
    if any(_is_stale(owner, one) for owner in have for one in ours) or _has_stranger(have, ours):
        return None
    others = tuple(owner for owner in have if not any(_means(owner, one) for one in ours))
    wanted = _claim_owner(seen, pod, surplus=surplus)
    new = others if wanted is None else (*others, reference_to(wanted))
    return None if set(new) == set(have) else new


def is_left_over(seen: StatefulSet, pod_name: str, claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is to go with a pod that is gone: until it has, its successor must wait."""
    if retention_policy(seen).when_scaled != DELETE:
        return False
    return any((owner.kind, owner.name) == ("Pod", pod_name) for owner in claim.metadata.owner_references)


def retention_policy(seen: StatefulSet) -> RetentionPolicy:
    return seen.spec.persistent_volume_claim_retention_policy or RetentionPolicy()


def _claim_owner(seen: StatefulSet, pod: Pod, *, surplus: bool) -> Object | None:
    """Who should own the claim: with the pod it goes when scaled down, with the set when that is deleted."""
    asked = retention_policy(seen)
    if surplus and asked.when_scaled == DELETE:
        return pod
    return seen if asked.when_deleted == DELETE else None


def _has_stranger(have: Iterable[OwnerReference], ours: tuple[Object, ...]) -> bool:
    return any(owner.controller and not any(_means(owner, one) for one in ours) for owner in have)


def _means(owner: OwnerReference, one: Object) -> bool:
    resource = one.resource
    named = (owner.api_version, owner.kind, owner.name)
    return named == (resource.api_version, resource.kind, one.metadata.name)


def _is_stale(owner: OwnerReference, one: Object) -> bool:
    return _means(owner, one) and owner.uid != one.metadata.uid
