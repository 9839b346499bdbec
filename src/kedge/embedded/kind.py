"""Kind: one kind a server serves: its `Resource`, and its habits as kube-apiserver v1.36 has them.

What is left out is the habit of custom resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Protocol

from msgspec import Struct, field

from kedge.api.openapi.builtin import schema_of
from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.kind_rules import NO_RULES, KindRules, Untyped
from kedge.embedded.naming import Names
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.kube.errors import Cause

CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Called(Struct, frozen=True):
    """What people call a kind, beside its kind and plural."""

    singular: str = ""
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class Scale(Struct, frozen=True):
    """Where a kind keeps what its /scale shows: paths with dots, from the object down."""

    wanted: str = "spec.replicas"
    there: str = "status.replicas"
    selector: str = "spec.selector"  # a label selector, or one written as a text


class Custom(Protocol):
    """How one version of a kind is served because of a CRD (`custom.kinds.Served`)."""

    @property
    def schema(self) -> Schema: ...

    @property
    def warning(self) -> str:
        """What every answer about it warns of; empty if nothing."""
        ...

    @property
    def columns(self) -> Sequence[dict[str, Any]]:
        """The column definitions of its tables."""
        ...

    def cells(self, obj: Untyped, now: datetime) -> list[Any]:
        """An object's cells, one for each column."""
        ...

    def status_problems(self, old: Untyped, new: Untyped) -> Iterable[Cause]:
        """What is wrong with an object after a write to its status."""
        ...

    def warnings(self, obj: Untyped, old: Untyped | None) -> Iterable[str]:
        """What the writer of an object should know."""
        ...

    def to_stored(self, obj: Untyped) -> Untyped:
        """An object of this version, as it is kept."""
        ...

    def with_defaults(self, obj: Untyped, old: Untyped) -> Untyped:
        """The next state of an object, with what its schema fills in."""
        ...

    def to_served(self, obj: Untyped, number: int) -> Untyped:
        """An object as it is kept, as one of this version."""
        ...

    def shown(self, body: bytes, number: int) -> bytes:
        """An object as it is kept, under its resourceVersion, encoded as one of this version."""
        ...


class Kind(Struct, frozen=True):
    """One kind the server serves."""

    resource: Resource
    status: bool = True  # has /status: only what is written there changes it, and it changes nothing else
    status_takes_metadata: bool = False  # labels, annotations and finalizers may be written along with the status
    status_takes_labels: bool = True  # if it takes metadata; a Deployment's takes all but these
    generation: bool = True  # counts the changes of what is wanted
    generation_counts_annotations: bool = False
    put_needs_version: bool = True  # a PUT without resourceVersion is refused
    put_creates: bool = False  # a PUT of what is not there makes it
    names: Names = "subdomain"
    fields: Mapping[str, str] = field(default_factory=dict)  # for field selectors: path, and what a missing one is
    scale: Scale | None = None
    called: Called = Called()
    rules: KindRules = NO_RULES
    custom: Custom | None = None  # how it is served, if a CRD says so
    is_question: bool = False  # nothing is kept of it: whoever creates it is answered

    @property
    def schema(self) -> Schema | None:
        """What its objects look like; None if nobody says."""
        resource = self.resource
        return self.custom.schema if self.custom else _published(resource.group, resource.version, resource.kind)

    @property
    def ownership(self) -> KindOwnership:
        """How the fields of its objects are owned."""
        return _ownership(self.resource, self.schema, self.status, self.custom is not None)

    @property
    def subresources(self) -> tuple[str, ...]:
        """In the order of their names."""
        special = _SUBRESOURCES.get(self.resource.kind, ()) if not self.resource.group else ()
        having = (("scale", self.scale is not None), ("status", self.status))
        return tuple(sorted((*special, *(name for name, has in having if has))))

    @property
    def verbs(self) -> tuple[str, ...]:
        if self.is_question:
            return ("create",)
        if self.custom:
            return CUSTOM_VERBS
        return tuple(verb for verb in ALL_VERBS if verb != "deletecollection" or self.resource != NAMESPACES)


@lru_cache(maxsize=4096)
def _ownership(resource: Resource, schema: Schema | None, status: bool, custom: bool) -> KindOwnership:
    return KindOwnership(resource, schema, status=status, custom=custom)


@cache
def _published(group: str, version: str, kind: str) -> Schema | None:
    try:
        return schema_of(group, version, kind)
    except LookupError:
        return None


_SUBRESOURCES: Mapping[str, tuple[str, ...]] = {"Namespace": ("finalize",), "Pod": ("binding", "eviction")}
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods")
