"""Kind: one kind that a server serves, with its behaviour as in kube-apiserver v1.36; and the registry of kinds.

The defaults are those of custom resources.
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
from kedge.embedded.kind_rules import NO_RULES, KindRules
from kedge.embedded.naming import NameRule
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class KindNames(Struct, frozen=True):
    """Other names of a kind."""

    singular: str = ""
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class ScalePaths(Struct, frozen=True):
    """The field paths behind the /scale of a kind."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "spec.selector"  # a label selector, or one as a string


def value_at(obj: Any, path: str) -> Any:
    """The value at a field path; None if it does not exist."""
    for step in path.strip(".").split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


class CustomKind(Protocol):
    """How one version of a custom kind is served (`custom.served_versions.ServedVersion`)."""

    @property
    def schema(self) -> Schema: ...

    @property
    def warning(self) -> str:
        """The warning in every answer about it; may be empty."""
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
        """Warnings for the writer of an object."""
        ...

    def to_stored(self, obj: Untyped) -> Untyped:
        """An object of this version, as it is stored."""
        ...

    def with_defaults(self, obj: Untyped, old: Untyped) -> Untyped:
        """The next state of an object, with the defaults of its schema."""
        ...

    def to_served(self, obj: Untyped, number: int) -> Untyped:
        """A stored object, as one of this version."""
        ...

    def encoded_as_served(self, body: bytes, number: int) -> bytes:
        """A stored object, encoded as one of this version."""
        ...


class Kind(Struct, frozen=True):
    """One kind that the server serves."""

    resource: Resource
    status: bool = True  # has /status: the status is written there, and nothing else
    status_takes_metadata: bool = False  # labels, annotations and finalizers may be written along with the status
    status_takes_labels: bool = True  # if it takes metadata; that of a Deployment does not
    generation: bool = True  # counts the changes of the spec
    generation_counts_annotations: bool = False
    put_needs_version: bool = True  # a PUT without resourceVersion is refused
    put_creates: bool = False  # a PUT of a missing object creates it
    name_rule: NameRule = "subdomain"
    fields: Mapping[str, str] = field(default_factory=dict)  # for field selectors: path and default
    fields_elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # where else: the first with a value
    scale: ScalePaths | None = None
    kind_names: KindNames = KindNames()
    rules: KindRules = NO_RULES
    custom: CustomKind | None = None  # for kinds of CRDs
    is_review: bool = False  # is answered, not stored: a SubjectAccessReview

    @property
    def schema(self) -> Schema | None:
        """The schema of its objects, if there is one."""
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
        if self.is_review:
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


class Registry:
    """The kinds that one server serves. Those of CRDs are added and removed while it runs."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self.revision = 0  # changes with every addition and removal
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve this kind, in place of one with the same group, version and plural."""
        resource = kind.resource
        self.revision += 1
        self._kinds[resource.group, resource.version, resource.plural] = kind

    def remove(self, kind: Kind) -> None:
        """Stop serving this kind."""
        resource = kind.resource
        self.revision += 1
        del self._kinds[resource.group, resource.version, resource.plural]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def served(self, api_version: str, kind: str) -> Resource | None:
        """The resource of this version and kind, if it is served."""
        found = (one.resource for one in self._kinds.values())
        return next((one for one in found if (one.api_version, one.kind) == (api_version, kind)), None)

    def has_group(self, group: str) -> bool:
        return any(known == group for known, _, _ in self._kinds)

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(self._kinds.values())
