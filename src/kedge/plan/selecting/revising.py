"""Revising: what to do so that the newest snapshot of a placement says what is wanted.

Snapshots are numbered and never change; one carries the label that it is the newest. A new one is made after the label
is off the old one, so that there are never two with it. A crash in between leaves none with it: the one with the
highest number then counts, and is confirmed or followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from kedge.api.fleet import IS_LATEST
from kedge.api.meta import ObjectMeta


class Revision(Struct, frozen=True):
    """One snapshot: its number, and what tells what it holds from other contents."""

    meta: ObjectMeta
    index: int
    hash: str

    @property
    def is_labelled(self) -> bool:
        return self.meta.labels.get(IS_LATEST) == "true"


class Step(Struct, frozen=True):
    """What to do, in this order: take the label off these, give it to this one, or make one with this number."""

    unlabel: tuple[Revision, ...] = ()
    label: Revision | None = None
    make: int | None = None


def revisions(
    metas: Iterable[ObjectMeta],
    index_of: Callable[[ObjectMeta], int | None],
    hash_of: Callable[[ObjectMeta], str],
) -> tuple[Revision, ...]:
    """The snapshots that say their number, in its order. What does not is not ours to judge."""
    numbered = [(index, meta) for meta in metas if (index := index_of(meta)) is not None]
    return tuple(Revision(meta, index, hash_of(meta)) for index, meta in sorted(numbered, key=lambda each: each[0]))


def newest(known: Sequence[Revision]) -> Revision | None:
    """The one that counts as the newest."""
    return max(known, key=lambda revision: (revision.is_labelled, revision.index), default=None)


def step(known: Sequence[Revision], wanted: str, used: Collection[int] = ()) -> Step:
    """What to do so that the newest holds what is wanted. To return to what was once is a new number too.

    `used` are numbers that others go by: they are not given again, though somebody may have deleted what they meant.
    """
    current = newest(known)
    if current is None or current.hash != wanted:
        labelled = tuple(revision for revision in known if revision.is_labelled)
        return Step(unlabel=labelled, make=1 + max((*(revision.index for revision in known), *used), default=-1))
    others = tuple(revision for revision in known if revision.is_labelled and revision is not current)
    return Step(unlabel=others, label=None if current.is_labelled else current)


def surplus(known: Sequence[Revision], limit: int, needed: Collection[int]) -> tuple[Revision, ...]:
    """The oldest beyond those that are kept, but none that is needed. The newest always stays."""
    current = newest(known)
    old = known[: max(0, len(known) - max(1, limit))]
    return tuple(revision for revision in old if revision.index not in needed and revision is not current)
