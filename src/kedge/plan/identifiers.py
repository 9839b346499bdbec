"""Identifiers: how statuses name the objects that manifests describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedge.api.placement_status import ResourceIdentifier


def identifiers_of(manifests: Iterable[Mapping[str, Any]]) -> tuple[ResourceIdentifier, ...]:
    """The identifiers of these objects, in their order."""
    return tuple(identifier_of(manifest) for manifest in manifests)


def identifier_of(manifest: Mapping[str, Any]) -> ResourceIdentifier:
    """The identifier of one object."""
    group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
    meta = manifest.get("metadata") or {}
    return ResourceIdentifier(
        group=group,
        version=version,
        kind=str(manifest.get("kind", "")),
        name=str(meta.get("name", "")),
        namespace=meta.get("namespace") or None,
    )
