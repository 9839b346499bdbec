"""Object forms: an object as it is sent, served, stored and shown, for built-in and custom kinds alike."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.embedded.kind import Kind
from kedge.embedded.ownership.field_owners import FieldOwners
from kedge.embedded.schema import zero_values
from kedge.embedded.store import Version
from kedge.kube.codec import Untyped


def warnings(kind: Kind, obj: Untyped, old: Untyped | None = None) -> Iterable[str]:
    return kind.custom.warnings(obj, old) if kind.custom else kind.rules.warnings(obj)


def as_served(kind: Kind, current: Version) -> Untyped:
    """A stored object in the requested version."""
    return kind.custom.to_served(current.decode(), current.number) if kind.custom else current.decode()


def with_defaults(kind: Kind, obj: Untyped, old: Untyped) -> Untyped:
    """The next state of an object with its defaults."""
    return kind.custom.with_defaults(obj, old) if kind.custom else kind.rules.with_defaults(obj)


def as_stored(kind: Kind, obj: Untyped) -> Untyped:
    """An object as it is stored."""
    return kind.custom.to_stored(obj) if kind.custom else obj


def with_owners(obj: Untyped, owners: FieldOwners) -> Untyped:
    """The object with its managedFields, as clients see it."""
    return {**obj, "metadata": {**obj["metadata"], "managedFields": owners.entries()}}


def with_zero_values(kind: Kind, obj: Untyped) -> Untyped:
    """The object with the zero values that kube-apiserver writes."""
    schema = kind.schema
    return obj if schema is None or kind.custom else zero_values.with_zero_values(schema, obj)
