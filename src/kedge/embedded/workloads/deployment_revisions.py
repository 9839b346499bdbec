"""Revisions of a Deployment: which ReplicaSet is the new one, what it is called, and what its annotations say.

The hash in a name is ours, in Kubernetes' alphabet: two servers agree on what is the same template, not on how it is
called. There is no count of collisions: a name taken by a stranger is an error that is tried again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kedge.api.apps import Deployment, ReplicaSet, ReplicaSetSpec
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Template
from kedge.api.selector import LabelSelector
from kedge.embedded.workloads.owned import reference_to
from kedge.plan.moving.budget import Budget

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
)
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_HISTORY = 2000


def template_hash(template: Template) -> str:
    """A short name for a template: the same for the same one, whatever the order of its fields."""
    digest = hashlib.blake2s(msgspec.json.encode(template, order="deterministic"), digest_size=4).digest()
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(int.from_bytes(digest)))


def split(wanted: Deployment, found: Iterable[ReplicaSet]) -> tuple[ReplicaSet | None, tuple[ReplicaSet, ...]]:
    """The ReplicaSet of the wanted template (the oldest, should there be two), and the others, oldest first."""
    in_order = sorted(found, key=age)
    new = next((one for one in in_order if _same_template(wanted.spec.template, one.spec.template)), None)
    return new, tuple(one for one in in_order if one is not new)


def age(found: ReplicaSet) -> tuple[Any, ...]:
    """A key to sort by: older is less."""
    return found.metadata.creation_timestamp, found.metadata.name


def revision(found: ReplicaSet | Deployment) -> int:
    """Which revision it is; 0 if it does not say."""
    text = found.metadata.annotations.get(REVISION, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def next_revision(olds: Iterable[ReplicaSet]) -> int:
    return 1 + max((revision(old) for old in olds), default=0)


def first_of(wanted: Deployment, olds: Sequence[ReplicaSet], replicas: int, budget: Budget) -> ReplicaSet:
    """The ReplicaSet of a template that has none yet."""
    hashed = template_hash(wanted.spec.template)
    template = _labelled(wanted.spec.template, hashed)
    selector = wanted.spec.selector or LabelSelector()
    meta = wanted.metadata
    annotations = {**_copied(meta.annotations), REVISION: str(next_revision(olds)), **sized(budget)}
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{meta.name}-{hashed}",
            namespace=meta.namespace,
            labels=template["metadata"]["labels"],
            annotations=annotations,
            owner_references=(reference_to(wanted),),
        ),
        spec=ReplicaSetSpec(
            replicas=replicas,
            selector=replace(selector, match_labels={**selector.match_labels, HASH: hashed}),
            template=template,
            min_ready_seconds=wanted.spec.min_ready_seconds,
        ),
    )


def refreshed(wanted: Deployment, new: ReplicaSet, olds: Iterable[ReplicaSet]) -> ReplicaSet:
    """The new ReplicaSet with what it takes over from its Deployment: annotations, revision, minReadySeconds."""
    annotations = {**new.metadata.annotations, **_copied(wanted.metadata.annotations)}
    newest = next_revision(olds)
    if revision(new) < newest:
        annotations = _promoted(annotations, newest)
    return replace(
        new,
        metadata=replace(new.metadata, annotations=annotations),
        spec=replace(new.spec, min_ready_seconds=wanted.spec.min_ready_seconds),
    )


def resized(found: ReplicaSet, replicas: int, budget: Budget) -> ReplicaSet:
    """The same ReplicaSet, to be of this size, remembering what the size was made for."""
    annotations = {**found.metadata.annotations, **sized(budget)}
    return replace(
        found,
        metadata=replace(found.metadata, annotations=annotations),
        spec=replace(found.spec, replicas=replicas),
    )


def sized(budget: Budget) -> dict[str, str]:
    """What a ReplicaSet remembers of the Deployment it was sized for."""
    return {DESIRED: str(budget.desired), MOST: str(budget.most)}


def number(found: ReplicaSet, annotation: str) -> int | None:
    text = found.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def _promoted(annotations: Mapping[str, str], newest: int) -> dict[str, str]:
    """An old revision that is wanted again becomes the newest, and remembers what it was."""
    before = annotations.get(REVISION)
    result = {**annotations, REVISION: str(newest)}
    if before is None:
        return result
    told = [part for part in annotations.get(HISTORY, "").split(",") if part]
    while told and len(",".join([*told, before])) > _LONGEST_HISTORY:
        told = told[1:]
    return {**result, HISTORY: ",".join([*told, before])}


def _copied(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key not in _NOT_COPIED}


def _labelled(template: Template, hashed: str) -> dict[str, Any]:
    meta = template.get("metadata") or {}
    return {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), HASH: hashed}}}


def _same_template(one: Template, other: Template) -> bool:
    return one == other or _unlabelled(one) == _unlabelled(other)


def _unlabelled(template: Template) -> dict[str, Any]:
    """A template without its hash: with it, no two would be the same."""
    meta = {**(template.get("metadata") or {})}
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    return {**template, "metadata": {key: value for key, value in meta.items() if value}}
