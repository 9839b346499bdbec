"""Request info: who asks for what: the caller, the resource path, and the kind.

`parse_path` reads what `kedge.api.resource.Resource.path` writes. It knows the structure of paths only: whether such a
kind is served is the registry's to say. There is no authorization: whoever is known may do everything.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from msgspec import Struct, field
from msgspec.structs import replace

from kedge.api.resource import Resource
from kedge.api.staged import ApprovalRequest, ClusterApprovalRequest
from kedge.embedded.kind import Kind
from kedge.kube.transport import Request

_ALWAYS_WITH_OWNERS: Final = {
    (one.resource.group, one.resource.kind) for one in (ApprovalRequest, ClusterApprovalRequest)
}
"""Kinds whose `managedFields` everybody gets: whoever wrote an approval is who approved."""


class Caller(Struct, frozen=True):
    """One client of a server. `agent` is the program it says it is (its User-Agent)."""

    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    agent: str = "kedge"
    sees_owners: bool = True  # gets `managedFields`, which most programs throw away
    token: str = ""  # what it is known by, if it came with one

    def sees_owners_of(self, resource: Resource) -> bool:
        """Whether it gets the `managedFields` of objects of a kind."""
        return self.sees_owners or (resource.group, resource.kind) in _ALWAYS_WITH_OWNERS


IN_PROCESS = Caller(sees_owners=False)  # programs in the same process
APISERVER = Caller("system:apiserver", agent="kube-apiserver")  # the server itself


# Behind the name of a namespace these are its subresources, not collections in it.
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


class ResourcePath(Struct, frozen=True):
    """A path in the API: of a collection (no name), an object, or a subresource."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def without_subresource(self) -> ResourcePath:
        """The path of the object itself."""
        return ResourcePath(self.group, self.version, self.plural, self.namespace, self.name)


@lru_cache(maxsize=1024)  # the same few recur
def parse_path(path: str) -> ResourcePath | None:
    """The resource path of a URL path; None if it is not one of resources."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    match parts:
        case ["api", version, *rest] if rest:
            return _within("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _within(group, version, rest)
    return None


def _within(group: str, version: str, rest: list[str]) -> ResourcePath:
    match rest:
        case ["namespaces", namespace, plural, *inner] if plural not in _NAMESPACE_SUBRESOURCES:
            return ResourcePath(group, version, plural, namespace, *_named(inner))
        case _:
            return ResourcePath(group, version, rest[0], "", *_named(rest[1:]))


def _named(inner: list[str]) -> tuple[str, str]:
    """The name and the subresource in the rest of a path. A deeper one is not split: no kind has one."""
    return (inner[0], "/".join(inner[1:])) if inner else ("", "")


class RequestInfo(Struct, frozen=True):
    """One request, with its kind, its path and its caller."""

    kind: Kind
    path: ResourcePath
    request: Request
    caller: Caller
    asks_webhooks: bool = False
    warnings: list[str] = field(default_factory=list)  # of webhooks, as they come

    @property
    def without_subresource(self) -> RequestInfo:
        """The same for the object itself."""
        return replace(self, path=self.path.without_subresource)

    def as_kind(self, kind: Kind) -> RequestInfo:
        """The same, answered as another kind: a `Scale`."""
        return replace(self, kind=kind)
