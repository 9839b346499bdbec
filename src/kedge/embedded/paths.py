"""Paths: which collection, object or subresource a URL names.

Promises to read what `kedge.api.resource.Resource.path` writes. Knows the shape of paths only: whether such a kind
is served is the registry's to say.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct

# What stands behind a namespace's name and is a part of the namespace, not a collection in it.
_OF_NAMESPACES = ("status", "finalize")


class Place(Struct, frozen=True):
    """A place in the API: a collection (no name), an object, or a subresource of one."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def of_the_whole(self) -> Place:
        """The place of the object this is a part of."""
        return Place(self.group, self.version, self.plural, self.namespace, self.name)


@lru_cache(maxsize=1024)  # the same few are asked for again and again
def parse(path: str) -> Place | None:
    """The place a path names; None if it is not a path of resources at all."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    match parts:
        case ["api", version, *rest] if rest:
            return _within("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _within(group, version, rest)
    return None


def _within(group: str, version: str, rest: list[str]) -> Place:
    match rest:
        case ["namespaces", namespace, plural, *inner] if plural not in _OF_NAMESPACES:
            return Place(group, version, plural, namespace, *_named(inner))
        case _:
            return Place(group, version, rest[0], "", *_named(rest[1:]))


def _named(inner: list[str]) -> tuple[str, str]:
    """The name and the subresource in what is left of a path. Deeper ones stay whole: no kind has such a one."""
    return (inner[0], "/".join(inner[1:])) if inner else ("", "")
