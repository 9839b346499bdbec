"""Parts: the objects of one revision, as a placement's Works hold them: one Work for each snapshot they came in.

Objects are kept as bytes, encoded once for however many clusters. Overrides will change them, and envelopes add parts
of their own, between here and `wanted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from kedge.api.fleet import NUMBER_OF_SNAPSHOTS, resource_snapshot_part
from kedge.api.meta import ObjectMeta
from kedge.plan.digest import digest
from kedge.plan.revisions import parent, resource_index


class Part(Struct, frozen=True):
    """The objects of one snapshot."""

    manifests: Raw | None
    """The list of them, in JSON; None if there are none, which is how a Work without any is written."""
    digest: str

    @property
    def size(self) -> int:
        """In bytes."""
        return len(bytes(self.manifests)) if self.manifests is not None else 0


class Resources(Struct, frozen=True):
    """All objects of one revision."""

    name: str
    """The snapshot a binding names: the first of them."""
    index: str
    parts: tuple[Part, ...]


def part(manifests: Sequence[Mapping[str, Any]]) -> Part:
    """The part that holds these objects."""
    return Part(Raw(msgspec.json.encode(manifests)) if manifests else None, digest(manifests))


def further_parts(master: ObjectMeta) -> tuple[str, ...]:
    """The names of the snapshots that hold the rest of a revision. Raises ValueError if its master makes no sense."""
    index, told = resource_index(master), master.annotations.get(NUMBER_OF_SNAPSHOTS, "1")
    if index is None:
        raise ValueError(f"snapshot {master.name} does not say its index")
    if not told.isdecimal() or int(told) < 1:
        raise ValueError(f"snapshot {master.name} says it comes in {told!r} parts, which is no number of parts")
    return tuple(resource_snapshot_part(parent(master), index, number) for number in range(int(told) - 1))
