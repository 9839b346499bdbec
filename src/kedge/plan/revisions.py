"""Revisions: the numbers of a placement's snapshots, read from their labels.

The newest has the label for it. A crash between removing the label from the old one and creating the new one leaves
none with the label: then the highest number counts, which is what the hub was about to confirm or to follow.
"""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.fleet import IS_LATEST, PARENT_PLACEMENT, POLICY_INDEX, RESOURCE_HASH, RESOURCE_INDEX
from kedge.api.meta import ObjectMeta


def parent(meta: ObjectMeta) -> str:
    """The placement a snapshot or binding belongs to; empty if it does not say."""
    return meta.labels.get(PARENT_PLACEMENT, "")


def resource_index(meta: ObjectMeta) -> int | None:
    """The number of the resources a snapshot holds; None if its label is missing or no number."""
    return _number(meta.labels.get(RESOURCE_INDEX))


def resource_index_in(snapshot: str, placement: str) -> int | None:
    """The number in the name of a snapshot of resources, which may be deleted; None if it is no such name."""
    return _number(snapshot.removeprefix(f"{placement}-").removesuffix("-snapshot"))


def policy_index(meta: ObjectMeta) -> int | None:
    """The number of the policy a snapshot holds; None if its label is missing or no number."""
    return _number(meta.labels.get(POLICY_INDEX))


def is_master(meta: ObjectMeta) -> bool:
    """Whether this is the first of the snapshots that hold one revision of the resources together."""
    return RESOURCE_HASH in meta.annotations


def newest_resources(snapshots: Iterable[ObjectMeta]) -> ObjectMeta | None:
    """The master of the newest resources; None if there is none."""
    masters = [meta for meta in snapshots if is_master(meta) and resource_index(meta) is not None]
    return max(masters, key=lambda meta: (_labelled(meta), resource_index(meta) or 0), default=None)


def newest_policy(snapshots: Iterable[ObjectMeta]) -> ObjectMeta | None:
    """The newest policy; None if there is none."""
    known = [meta for meta in snapshots if policy_index(meta) is not None]
    return max(known, key=lambda meta: (_labelled(meta), policy_index(meta) or 0), default=None)


def _labelled(meta: ObjectMeta) -> bool:
    return meta.labels.get(IS_LATEST) == "true"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
