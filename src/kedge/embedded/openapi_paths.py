"""OpenAPI paths: the operations of one kind, as the `paths` of an OpenAPI document.

Which verbs, with which options, sending and answering what; no descriptions.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.kind import Kind

Node: TypeAlias = dict[str, Any]

_REFERENCE = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = ("continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "timeoutSeconds", "watch")
_OPTIONS = {
    "get": ("pretty",),
    "list": _LIST,
    "post": _WRITE,
    "put": _WRITE,
    "patch": (*_WRITE, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
    "deletecollection": (*_LIST, "dryRun", "propagationPolicy"),
}
_INTEGERS = ("gracePeriodSeconds", "limit", "timeoutSeconds")
_BOOLEANS = ("force", "watch")
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"


class OpenApiKind(Struct, frozen=True):
    """What a document has of a kind; kinds with the same description are equal."""

    resource: Resource
    schema: Schema | None
    verbs: tuple[str, ...]
    parts: tuple[str, ...]  # of its objects that can be asked for alone: status, scale
    is_review: bool

    @classmethod
    def of(cls, kind: Kind) -> OpenApiKind:
        parts = tuple(part for part in ("status", "scale") if part in kind.subresources)
        return cls(kind.resource, kind.schema, kind.verbs, parts, kind.is_review)

    @property
    def is_published(self) -> bool:
        """Whether its schema is a published one of Kubernetes."""
        return self.schema is not None and bool(self.schema.name)

    @property
    def name(self) -> str:
        """What its definition is called: `io.k8s.api.apps.v1.Deployment`, `dev.kedge.v1.Widget`."""
        if self.schema is not None and self.schema.name:
            return self.schema.name
        resource = self.resource
        return ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))


def paths_of(kind: OpenApiKind) -> Node:
    """The paths of a kind with their operations."""
    resource, name = kind.resource, kind.name
    root = f"{resource.root}/namespaces/{{namespace}}" if resource.namespaced else resource.root
    collection = f"{root}/{resource.plural}"
    listed = f"{name}List"
    if kind.is_review:
        return {collection: {"post": _operation(kind, "post", name)}}
    paths: Node = {
        collection: {
            "get": _operation(kind, "list", listed),
            "post": _operation(kind, "post", name),
            **({"delete": _operation(kind, "deletecollection", "")} if "deletecollection" in kind.verbs else {}),
        },
        f"{collection}/{{name}}": {
            **_changes(kind, name),
            "delete": _operation(kind, "delete", ""),
        },
    }
    if resource.namespaced:
        paths[f"{resource.root}/{resource.plural}"] = {"get": _operation(kind, "list", listed)}
    for part in kind.parts:
        paths[f"{collection}/{{name}}/{part}"] = _changes(kind, _SCALE if part == "scale" else name)
    return {path: {**item, "parameters": _in_path(path)} for path, item in paths.items()}


def _changes(kind: OpenApiKind, name: str) -> Node:
    return {method: _operation(kind, method, name) for method in ("get", "put", "patch")}


def _operation(kind: OpenApiKind, action: str, name: str) -> Node:
    """One operation; `name` is the definition of what is sent and answered, empty for a Status."""
    answered = {"$ref": f"{_REFERENCE}{name or f'{_META}.Status'}"}
    body = _body(kind, action, name)
    return {
        "parameters": [_option(option) for option in _OPTIONS[action]],
        **({"requestBody": {"content": body, "required": action != "delete"}} if body else {}),
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answered}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(kind, name),
    }


def _body(kind: OpenApiKind, action: str, name: str) -> Node:
    match action:
        case "post" | "put":
            return {"application/json": {"schema": {"$ref": f"{_REFERENCE}{name}"}}}
        case "patch":
            types = (*_PATCHES, _STRATEGIC) if kind.is_published else _PATCHES
            return {media: {"schema": {"$ref": f"{_REFERENCE}{_META}.Patch"}} for media in types}
        case "delete":
            return {"application/json": {"schema": {"$ref": f"{_REFERENCE}{_META}.DeleteOptions"}}}
    return {}


def _identity(kind: OpenApiKind, name: str) -> Node:
    if name == _SCALE:
        return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _option(name: str) -> Node:
    sort = "integer" if name in _INTEGERS else "boolean" if name in _BOOLEANS else "string"
    return {"name": name, "in": "query", "schema": {"type": sort, "uniqueItems": True}}


def _in_path(path: str) -> list[Node]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in ("name", "namespace")
        if f"{{{name}}}" in path
    ]
