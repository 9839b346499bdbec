"""Served versions: the kinds that a server serves because of a CRD.

    for kind in served_kinds(crd): registry.add(kind)       # done by `crd_controller`

Each served version is a `Kind` of its own; all of them show the same objects, which are stored in one version. There is
no conversion: `to_stored` and `to_served` change the apiVersion and drop what the other version's schema does not have,
as kube-apiserver does with strategy None. What is compiled from a schema is made once for all servers of the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.openapi.model import Raw, Schema
from kedge.api.resource import Resource
from kedge.embedded.custom.printer_columns import PrinterColumns
from kedge.embedded.custom.version_schema import VersionSchema
from kedge.embedded.kind import Kind, KindNames, ScalePaths
from kedge.embedded.kind_rules import KindRules
from kedge.embedded.naming import version_order
from kedge.embedded.tables.builtin_columns import Column
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_COMPILED_FROM = ("schema", "subresources", "additionalPrinterColumns")


class ServedVersion(Struct, frozen=True):
    """One served version of a custom kind: its `Kind.custom`."""

    custom: VersionSchema
    printed: PrinterColumns
    own: Resource
    stored: Resource  # the version that objects are stored in
    stored_as: VersionSchema
    since: int = 0  # the resourceVersion of the CRD: what was stored later has its defaults
    warning: str = ""  # for the Warning header of every answer

    @property
    def schema(self) -> Schema:
        return self.custom.schema

    @property
    def columns(self) -> Sequence[Column]:
        return self.printed.definitions

    def cells(self, obj: Untyped, now: datetime) -> list[Any]:
        return self.printed.cells(obj, now)

    def status_problems(self, old: Untyped, new: Untyped) -> list[Cause]:
        return self.custom.status_problems(new, old)

    def warnings(self, obj: Untyped, old: Untyped | None) -> Iterable[str]:
        return self.custom.warnings(obj, old)

    def to_stored(self, obj: Untyped) -> Untyped:
        """An object of this version, as it is stored."""
        return _as_version(obj, self.own, self.stored, self.stored_as)

    def with_defaults(self, obj: Untyped, old: Untyped) -> Untyped:
        """The next state of an object, with the defaults of its schema."""
        return self.custom.with_defaults(obj, old)

    def to_served(self, obj: Untyped, number: int) -> Untyped:
        """A stored object of any version, with its defaults, as one of this version."""
        if self._is_as_kept(number):
            return obj
        kept = _as_version(obj, None, self.stored, self.stored_as)
        return _as_version(self.stored_as.with_defaults(kept), self.stored, self.own, self.custom)

    def encoded_as_served(self, body: bytes, number: int) -> bytes:
        """The encoded object as one of this version: mostly the stored bytes themselves."""
        if self._is_as_kept(number):
            return body
        kept: Untyped = msgspec.json.decode(body)
        made = self.to_served(kept, number)
        return body if made is kept else msgspec.json.encode(made, order="deterministic")

    def _is_as_kept(self, number: int) -> bool:
        return number > self.since and self.stored.version == self.own.version


def served_kinds(crd: Untyped) -> list[Kind]:
    """The kinds of a valid CRD: one for each served version."""
    spec = crd["spec"]
    stored = next(one for one in spec["versions"] if one["storage"])
    since = int(crd["metadata"].get("resourceVersion", 0))
    return [_kind(spec, one, _served(spec, one, stored, since)) for one in spec["versions"] if one["served"]]


def _served(spec: Raw, version: Raw, stored: Raw, since: int) -> ServedVersion:
    custom, columns = _compiled(version)
    return ServedVersion(
        custom=custom,
        printed=columns,
        own=_resource(spec, version),
        stored=_resource(spec, stored),
        stored_as=custom if stored is version else _compiled(stored)[0],
        since=since,
        warning=_warning(spec, version),
    )


def _kind(spec: Raw, version: Raw, served: ServedVersion) -> Kind:
    names, custom = spec["names"], served.custom
    selectable = [one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or []]
    return Kind(
        served.own,
        status="status" in (version.get("subresources") or {}),
        generation=True,
        put_needs_version=True,
        fields=dict.fromkeys(selectable, ""),
        scale=_scale(version),
        kind_names=KindNames(
            singular=names.get("singular", names["kind"].lower()),
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
        ),
        rules=KindRules(
            with_defaults=custom.with_defaults,
            problems=custom.problems,
            update_problems=lambda old, new: custom.problems(new, old),
        ),
        custom=served,
    )


def _resource(spec: Raw, version: Raw) -> Resource:
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    return Resource(spec["group"], version["name"], names["kind"], names["plural"], namespaced=namespaced)


def _scale(version: Raw) -> ScalePaths | None:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return None
    wanted, there = scale["specReplicasPath"].removeprefix("."), scale["statusReplicasPath"].removeprefix(".")
    return ScalePaths(wanted, there, (scale.get("labelSelectorPath") or "").removeprefix("."))


def _compiled(version: Raw) -> tuple[VersionSchema, PrinterColumns]:
    return _made(msgspec.json.encode({part: version.get(part) for part in _COMPILED_FROM}))


@lru_cache(maxsize=1024)
def _made(encoded: bytes) -> tuple[VersionSchema, PrinterColumns]:
    found: dict[str, Any] = msgspec.json.decode(encoded)
    schema = Schema((found["schema"] or {}).get("openAPIV3Schema", {}))
    return VersionSchema(schema, scale=_scale(found)), PrinterColumns(found["additionalPrinterColumns"] or ())


def _as_version(obj: Untyped, now: Resource | None, wanted: Resource, as_kept: VersionSchema) -> Untyped:
    if wanted.api_version == (now.api_version if now else obj["apiVersion"]):
        return obj
    return as_kept.pruned({**obj, "apiVersion": wanted.api_version})


def _warning(spec: Raw, version: Raw) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    said = f"{group}/{version['name']} {kind} is deprecated"
    newer = [one["name"] for one in spec["versions"] if one["served"] and not one.get("deprecated")]
    own = version_order(version["name"])
    better = min((name for name in newer if version_order(name) < own), key=version_order, default="")
    return f"{said}; use {group}/{better} {kind}" if better else said
