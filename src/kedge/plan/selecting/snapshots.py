"""Snapshots: when changes become a new snapshot, how snapshots are numbered, and how their content is divided.

Snapshots are numbered and never change; one has the label that it is the latest. A new one is created after the label
is removed from the old one, so there are never two with it. A crash in between leaves none with the label: then the
highest number counts, and is confirmed or followed.

A snapshot of more than 800 KB comes in several parts, since an object in etcd may not be larger than about 1.5 MB.

Nobody says which change is the last of a `kubectl apply`, so changes are collected for a moment (`ChangeBurst`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from kedge.api.fleet import IS_LATEST
from kedge.api.meta import ObjectMeta
from kedge.api.placement import GROUP
from kedge.plan.selecting.candidates import Manifest
from kedge.plan.selecting.kinds import ENVELOPES


class NumberedSnapshot(Struct, frozen=True):
    """A snapshot with its number and the hash of its content."""

    meta: ObjectMeta
    index: int
    hash: str

    @property
    def is_labelled(self) -> bool:
        return self.meta.labels.get(IS_LATEST) == "true"


class SnapshotChange(Struct, frozen=True):
    """What to do, in this order: remove the label from these, give it to this one, or create one with this number."""

    unlabel: tuple[NumberedSnapshot, ...] = ()
    label: NumberedSnapshot | None = None
    create_index: int | None = None


def numbered_snapshots(
    metas: Iterable[ObjectMeta],
    index_of: Callable[[ObjectMeta], int | None],
    hash_of: Callable[[ObjectMeta], str],
) -> tuple[NumberedSnapshot, ...]:
    """The snapshots that have a number, sorted by it. Others are left alone."""
    numbered = [(index, meta) for meta in metas if (index := index_of(meta)) is not None]
    return tuple(
        NumberedSnapshot(meta, index, hash_of(meta)) for index, meta in sorted(numbered, key=lambda each: each[0])
    )


def newest_snapshot(known: Sequence[NumberedSnapshot]) -> NumberedSnapshot | None:
    """The snapshot that counts as the latest."""
    return max(known, key=lambda revision: (revision.is_labelled, revision.index), default=None)


def snapshot_change(known: Sequence[NumberedSnapshot], wanted: str, used: Collection[int] = ()) -> SnapshotChange:
    """What to do so that the latest snapshot has the wanted hash. Going back to an earlier content is a new number too.

    `used` are numbers that bindings or runs refer to. They are not used again, even if their snapshot was deleted.
    """
    current = newest_snapshot(known)
    if current is None or current.hash != wanted:
        labelled = tuple(revision for revision in known if revision.is_labelled)
        return SnapshotChange(
            unlabel=labelled, create_index=1 + max((*(revision.index for revision in known), *used), default=-1)
        )
    others = tuple(revision for revision in known if revision.is_labelled and revision is not current)
    return SnapshotChange(unlabel=others, label=None if current.is_labelled else current)


def surplus_snapshots(
    known: Sequence[NumberedSnapshot], limit: int, needed: Collection[int]
) -> tuple[NumberedSnapshot, ...]:
    """The oldest snapshots beyond the limit, but none that is needed. The latest always stays."""
    current = newest_snapshot(known)
    old = known[: max(0, len(known) - max(1, limit))]
    return tuple(revision for revision in old if revision.index not in needed and revision is not current)


# Content


MAX_PART_BYTES: Final = 800 * 1024
"""How many bytes of JSON one part holds at most, unless a single object is larger."""

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def resource_hash(manifests: Sequence[Manifest]) -> str:
    """The hash of these resources, as KubeFleet computes it: so either hub recognises the snapshots of the other."""
    text = _ENCODER.encode({"selectedResources": list(manifests)})
    for plain, written in _GO_ESCAPES.items():
        text = text.replace(plain, written)
    return hashlib.sha256(text).hexdigest()


_GO_ESCAPES: Final[Mapping[bytes, bytes]] = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def split_into_parts(manifests: Iterable[Manifest], largest: int = MAX_PART_BYTES) -> tuple[tuple[Manifest, ...], ...]:
    """The manifests in order, in parts that are small enough; one empty part if there are none."""
    divided: list[list[Manifest]] = [[]]
    size = 0
    for manifest in manifests:
        needs = len(_ENCODER.encode(manifest))
        if divided[-1] and size + needs > largest:
            divided.append([])
            size = 0
        divided[-1].append(manifest)
        size += needs
    return tuple(tuple(part) for part in divided)


def count_envelopes(manifests: Iterable[Mapping[str, Any]]) -> int:
    """How many of these are envelopes."""
    return sum(
        1
        for manifest in manifests
        if manifest.get("kind") in ENVELOPES and str(manifest.get("apiVersion")).startswith(f"{GROUP}/")
    )


# Changes that come one after another


MAX_WAITS: Final = 20  # changes that do not end are collected for at most this many times `quiet`
PAUSES_WAITED: Final = 4  # the next change is waited for this many times the pause between the last two


class ChangeBurst(Struct, frozen=True):
    """Changes that are no revision yet: when the first and the last came, and the pause before the last.

    A single change becomes a revision soon. After two, the next is waited for in proportion to the pause between them:
    over a slow line changes come slowly. Changes that do not end become a revision after `MAX_WAITS`.
    """

    since: float
    last: float
    pause: float = 0.0

    @classmethod
    def first(cls, now: float, before: float) -> ChangeBurst:
        """A change that comes now; `before` is when the last change of the revision before came."""
        return cls(now, now, now - before)

    def next(self, now: float) -> ChangeBurst:
        """With another change that comes now."""
        return ChangeBurst(self.since, now, now - self.last)

    def ends(self, quiet: float) -> float:
        """When the changes become a revision, if no other comes. `quiet` is how many seconds a single change waits."""
        longest = MAX_WAITS * quiet
        wait = max(quiet, PAUSES_WAITED * self.pause) if self.pause <= longest else quiet
        return min(self.last + wait, self.since + longest)
