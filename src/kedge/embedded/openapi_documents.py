"""OpenAPI documents: OpenAPI v3 of the kinds a server serves.

    documents = OpenApiDocuments(registry.kinds())
    documents.response("/openapi/v3", {})                       # the index
    documents.response("/openapi/v3/apis/apps/v1", {"hash": …})  # one group and version

kubectl reads there whether the server validates fields (`fieldValidation` on PATCH), by which keys lists merge, and the
fields for `explain`. Documents are built when first asked for, and shared by every server of the process that serves
the same kinds. Published kinds come without descriptions. OpenAPI v2 is empty: kubectl only needs it to exist before it
applies a `List`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kedge.api.openapi.builtin import DEFINITIONS
from kedge.embedded.kind import Kind
from kedge.embedded.openapi_paths import OpenApiKind, paths_of
from kedge.kube.transport import JSON, Response

Node: TypeAlias = dict[str, Any]

ROOT = "/openapi/v3"
_V2 = "/openapi/v2"
_REFERENCE = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_COMMON_DEFINITIONS = (f"{_META}.DeleteOptions", f"{_META}.ListMeta", f"{_META}.Patch", f"{_META}.Status")
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_OBJECT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_INFO = {"title": "Kubernetes", "version": "1.36"}
_V2_PROTOBUF = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.36"  # the same as below, by gnostic's OpenAPIv2.proto
_V2_FORMS = {
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": _V2_PROTOBUF,
    JSON: msgspec.json.encode({"swagger": "2.0", "info": _INFO, "paths": {}}),
}
_NOT_THERE = Response(404)
_NOT_ACCEPTABLE = Response(406)
_INDEX_HEADERS = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-cache, private"}


class OpenApiDocument(Struct, frozen=True):
    """The document of one group and version."""

    path: str  # `apis/apps/v1`
    body: bytes
    digest: str

    @property
    def url(self) -> str:
        return f"{ROOT}/{self.path}?hash={self.digest}"


class OpenApiDocuments:
    """The documents of a server's kinds."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._all = tuple(kinds)

    @cached_property
    def _kinds(self) -> Mapping[str, tuple[OpenApiKind, ...]]:
        """By group and version. Not before somebody asks: most servers are never asked."""
        found: dict[str, tuple[OpenApiKind, ...]] = {}
        for kind in self._all:
            path = kind.resource.root.removeprefix("/")
            found[path] = (*found.get(path, ()), OpenApiKind.of(kind))
        return found

    def response(self, path: str, query: Mapping[str, str], accept: str = JSON) -> Response | None:
        """The response to a GET; None for other paths."""
        if path == ROOT:
            return Response(200, self._index(), _INDEX_HEADERS)
        if path == _V2:
            return _nothing(accept)
        if not path.startswith(f"{ROOT}/"):
            return None
        kinds = self._kinds.get(path.removeprefix(f"{ROOT}/"))
        if kinds is None:
            return _NOT_THERE
        return _response(_document(kinds), query.get("hash", ""), accept)

    def _index(self) -> bytes:
        known = {path: {"serverRelativeURL": _document(self._kinds[path]).url} for path in sorted(self._kinds)}
        return msgspec.json.encode({"paths": known})


def _nothing(accept: str) -> Response:
    """OpenAPI v2 without any kind."""
    form = next((form for form in _V2_FORMS if form in accept), JSON)
    return Response(200, _V2_FORMS[form], {"content-type": form.replace("@", "."), "vary": "Accept"})


def _response(document: OpenApiDocument, asked: str, accept: str) -> Response:
    if not any(part.partition(";")[0].strip() in (JSON, "application/*", "*/*", "") for part in accept.split(",")):
        return _NOT_ACCEPTABLE
    headers = {"content-type": JSON, "etag": f'"{document.digest}"', "vary": "Accept"}
    if asked == document.digest:
        # What has this address never changes.
        return Response(200, document.body, {**headers, "cache-control": "public, immutable, max-age=31536000"})
    if asked:
        return Response(301, b"", {**headers, "location": document.url})
    return Response(200, document.body, {**headers, "cache-control": "no-cache, private"})


@lru_cache(maxsize=256)
def _document(kinds: tuple[OpenApiKind, ...]) -> OpenApiDocument:
    root = kinds[0].resource.root
    body = msgspec.json.encode(
        {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": {path: item for kind in kinds for path, item in paths_of(kind).items()},
            "components": {"schemas": _schemas(kinds)},
        },
        order="sorted",
    )
    return OpenApiDocument(root.removeprefix("/"), body, hashlib.sha512(body).hexdigest().upper())


def _schemas(kinds: tuple[OpenApiKind, ...]) -> Node:
    custom = {kind.name: _custom(kind) for kind in kinds if not kind.is_published}
    published = [kind.name for kind in kinds if kind.is_published]
    roots = [
        *_COMMON_DEFINITIONS,
        f"{_META}.ObjectMeta",
        *([_SCALE] if any("scale" in kind.parts for kind in kinds) else []),
    ]
    lists = {f"{kind.name}List": _list(kind) for kind in kinds if not kind.is_review}
    found = {name: _plain(DEFINITIONS[name]) for name in _reachable((*roots, *published))}
    return {**found, **custom, **lists}


def _custom(kind: OpenApiKind) -> Node:
    """A custom kind's schema, with what every object has."""
    raw: Node = dict(kind.schema.raw) if kind.schema is not None else {"type": "object"}
    metadata = {"allOf": [{"$ref": f"{_REFERENCE}{_META}.ObjectMeta"}]}
    properties = {**raw.get("properties", {}), **_OBJECT, "metadata": metadata}
    return {**raw, "properties": properties, "x-kubernetes-group-version-kind": [_identity(kind)]}


def _list(kind: OpenApiKind) -> Node:
    resource = kind.resource
    items = {"type": "array", "items": {"$ref": f"{_REFERENCE}{kind.name}"}}
    metadata = {"$ref": f"{_REFERENCE}{_META}.ListMeta"}
    identity = {"group": resource.group, "version": resource.version, "kind": f"{resource.kind}List"}
    return {
        "type": "object",
        "required": ["items"],
        "properties": {**_OBJECT, "items": items, "metadata": metadata},
        "x-kubernetes-group-version-kind": [identity],
    }


def _identity(kind: OpenApiKind) -> Node:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _reachable(names: Iterable[str]) -> list[str]:
    todo = list(names)
    found: dict[str, None] = {}
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = None
            todo += _references(DEFINITIONS[name])
    return list(found)


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [str(node["$ref"]).removeprefix(_REFERENCE)] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in _references(value)]
    return [name for item in node for name in _references(item)] if isinstance(node, list) else []


def _plain(node: Any) -> Any:
    """A definition without what only we say in it."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items() if not key.startswith("x-go-")}
    return [_plain(item) for item in node] if isinstance(node, list) else node
