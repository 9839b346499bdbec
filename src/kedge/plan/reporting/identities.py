"""Identities: which objects a snapshot holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedge.api.placement_status import ResourceIdentifier


def identities(manifests: Iterable[Mapping[str, Any]]) -> tuple[ResourceIdentifier, ...]:
    """How statuses name these objects, in their order."""
    return tuple(_identity(found) for found in manifests)


def _identity(found: Mapping[str, Any]) -> ResourceIdentifier:
    group, _, version = str(found.get("apiVersion", "")).rpartition("/")
    meta = found.get("metadata") or {}
    return ResourceIdentifier(
        group=group,
        version=version,
        kind=found.get("kind", ""),
        name=meta.get("name", ""),
        namespace=meta.get("namespace") or None,
    )
