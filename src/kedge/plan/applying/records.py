"""Records: how an object was last left on a member, and what that means for the next pass over its Work.

An object that still is as it was left costs nothing. One that others changed is put back, which is a repair. While it
is not to be repaired yet, it is held as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.applying.observed import ObservedObject, content_of

Content: TypeAlias = tuple[str, bytes]
"""An object (its uid), and what it looks like."""


class ObjectRecord(Struct, frozen=True):
    """What is remembered of one object. All of it can be found out again."""

    digest: str = ""
    """Of the manifest it was written for."""
    content: Content | None = None
    """How it was found, or left, as that manifest wants it."""
    left: Mapping[str, Any] | None = None
    """The same in full, without its status."""
    held: Content | None = None
    """How it looked when it differed and was not to be repaired yet."""

    def written(self, digest: str, obj: Mapping[str, Any]) -> ObjectRecord:
        """The object is as a manifest with this digest wants it."""
        return replace(self, digest=digest, content=content(obj), left=without_status(obj))

    def holding(self, obj: Mapping[str, Any]) -> ObjectRecord:
        """The object differs, and is left so for now."""
        return replace(self, held=content(obj))

    def needs_nothing(self, digest: str, shown: ObservedObject, repair_wait: float) -> bool:
        """Whether there is nothing to do: it is as a manifest wants it, or is not to be repaired yet."""
        if shown.metadata.deletion_timestamp is not None:
            return False
        seen = (shown.metadata.uid, shown.content)
        return (self.held == seen and repair_wait > 0) or (self.digest == digest and self.content == seen)

    def is_repair(self, digest: str) -> bool:
        """Whether to write this manifest is to put back what others changed."""
        return self.content is not None and self.digest == digest

    def known(self, shown: ObservedObject | None) -> dict[str, Any] | None:
        """The object in full, if the member shows it as it was left."""
        if shown is None or self.left is None or shown.metadata.deletion_timestamp is not None:
            return None
        if self.content != (shown.metadata.uid, shown.content):
            return None
        return {**self.left, "metadata": {**self.left["metadata"], "resourceVersion": shown.metadata.resource_version}}


def content(obj: Mapping[str, Any]) -> Content:
    return obj["metadata"]["uid"], content_of(obj)


def without_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its status and without the list of who wrote which field."""
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}
