"""The parts every Kubernetes object shares: metadata and owners.

Every type is frozen. An attribute that may be absent for a reason is None (or empty, for lists and maps), never zero:
`replicas: 0` and no `replicas` stay different things. Attribute names are Python's; wire names are Kubernetes'.
Reading keeps only the fields named here, so these types are read, applied or patched, never PUT back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Protocol

from msgspec import Struct, field

from kedge.api.resource import Resource


class Value(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of every API type: frozen, camelCase on the wire, absent fields left out.

    `gc=False` is safe because these are trees of values: none can hold a reference back to its owner.
    """


class OwnerReference(Value, frozen=True, gc=False):
    """Who an object belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Value, frozen=True, gc=False):
    """What identifies an object and who it belongs to."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    generate_name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Who controls an object, if anybody does."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


class FieldsOwner(Value, frozen=True, gc=False):
    """Somebody who wrote some of an object's fields, and when last."""

    manager: str = ""
    time: datetime | None = None
    subresource: str = ""
    fields_v1: Mapping[str, Any] = field(default_factory=dict)
    """Their paths, as a tree."""


class SignedMeta(ObjectMeta, frozen=True, gc=False):
    """The same with who wrote which fields: a lot to keep, so only where somebody asks."""

    managed_fields: tuple[FieldsOwner, ...] = ()


class Object(Protocol):
    """What the runtime needs to know of a typed object."""

    resource: ClassVar[Resource]

    @property
    def metadata(self) -> ObjectMeta: ...
