"""Whose the claims of a StatefulSet are, so that they go when its retention policy says so. Pure.

A claim that belongs to the set goes with the set; one that belongs to a pod goes with the pod, which is how the claims
of pods beyond the wanted number are deleted. A claim of a set or pod that is no more is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.apps import RetentionPolicy, StatefulSet
from kedge.api.core import PersistentVolumeClaim
from kedge.api.meta import Object, OwnerReference
from kedge.api.pods import Pod
from kedge.embedded.workloads.owned import reference_to

DELETE = "Delete"


def owners(
    seen: StatefulSet, pod: Pod, claim: PersistentVolumeClaim, *, surplus: bool
) -> tuple[OwnerReference, ...] | None:
    """The owners a claim of this pod should have; None if it has them, or is not ours to change."""
    have = claim.metadata.owner_references
    ours = (seen, pod)
    if any(_is_stale(owner, one) for owner in have for one in ours) or _has_stranger(have, ours):
        return None
    others = tuple(owner for owner in have if not any(_means(owner, one) for one in ours))
    wanted = _wanted(seen, pod, surplus=surplus)
    new = others if wanted is None else (*others, reference_to(wanted))
    return None if set(new) == set(have) else new


def is_left_over(seen: StatefulSet, pod_name: str, claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is to go with a pod that is gone: until it has, its successor must wait."""
    if policy(seen).when_scaled != DELETE:
        return False
    return any((owner.kind, owner.name) == ("Pod", pod_name) for owner in claim.metadata.owner_references)


def policy(seen: StatefulSet) -> RetentionPolicy:
    return seen.spec.persistent_volume_claim_retention_policy or RetentionPolicy()


def _wanted(seen: StatefulSet, pod: Pod, *, surplus: bool) -> Object | None:
    """Who should own the claim: with the pod it goes when scaled down, with the set when that is deleted."""
    asked = policy(seen)
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
