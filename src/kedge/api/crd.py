"""CRD: the CustomResourceDefinition of a kind, as plain data ready for the wire.

Promises stable output: the same kind and dialect give the same keys in the same order. Refuses a kind whose versions
do not have exactly one storage version among them, or whose storage version is not the one its `resource` speaks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeAlias

from msgspec import Struct

from kedge.api.dialect import Dialect
from kedge.api.markers import Column, Definition, Edition, Scale, Version
from kedge.api.resource import Resource
from kedge.api.schema import SchemaError, object_schema

Crd: TypeAlias = dict[str, Any]


class Defined(Protocol):
    """A kind that carries its own definition."""

    resource: ClassVar[Resource]
    definition: ClassVar[Definition]


def crd(kind: type[Defined], dialect: Dialect = Dialect.seed) -> Crd:
    """The whole CustomResourceDefinition of a kind."""
    resource = kind.resource
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "names": _names(resource, kind.definition),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(kind, version, dialect) for version in _checked(kind)],
        },
    }


def _checked(kind: type[Defined]) -> tuple[Version, ...]:
    stored = [version.name for version in kind.definition.versions if version.storage]
    if stored != [kind.resource.version]:
        raise SchemaError(
            f"{kind.resource.kind}: its types speak {kind.resource.version}, so that alone must be its storage version,"
            f" not {', '.join(stored) or 'none'}"
        )
    return kind.definition.versions


def _names(resource: Resource, definition: Definition) -> Crd:
    names: Crd = {
        "categories": list(definition.categories),
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "shortNames": list(definition.short_names),
        "singular": resource.kind.lower(),
    }
    return {name: value for name, value in names.items() if value}


def _version(kind: type[Defined], version: Version, dialect: Dialect) -> Crd:
    edition = Edition(version.name, dialect)
    definition = kind.definition
    assert issubclass(kind, Struct)
    parts: Crd = {
        "name": version.name,
        "served": version.served,
        "storage": version.storage,
        "deprecated": version.deprecation_warning is not None,
        "deprecationWarning": version.deprecation_warning,
        "subresources": _subresources(definition),
        "additionalPrinterColumns": [_column(c) for c in definition.columns if c.shows_in(edition)],
        "schema": {"openAPIV3Schema": object_schema(kind, edition, definition.schema)},
    }
    return {name: value for name, value in parts.items() if value or name in ("served", "storage")}


def _subresources(definition: Definition) -> Crd:
    status: Crd = {"status": {}} if definition.status else {}
    return status | ({"scale": _scale(definition.scale)} if definition.scale else {})


def _scale(scale: Scale) -> Crd:
    paths = {"specReplicasPath": scale.spec_replicas, "statusReplicasPath": scale.status_replicas}
    return paths | ({"labelSelectorPath": scale.selector} if scale.selector else {})


def _column(column: Column) -> Crd:
    shown: Crd = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | ({"priority": 1} if column.wide else {})
