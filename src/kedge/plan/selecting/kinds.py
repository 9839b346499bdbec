"""Kinds: what a hub serves, and which of it can be placed.

Kinds that only mean something on the hub itself are never placed: the fleet's own kinds, nodes, pods, events, leases,
metrics. Nor are kinds that cannot be listed and watched. A custom kind is known as soon as its definition is
established, before discovery lists it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from msgspec import Struct

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.placement import GROUP as PLACEMENT_GROUP
from kedge.api.resource import Resource

NAMESPACE: Final = ("", "Namespace")
SERVICE: Final = ("", "Service")
ENDPOINTS: Final = ("", "Endpoints")
KEPT_WHERE_WORKLOADS_RUN: Final = (("", "PersistentVolumeClaim"),)
"""Kinds that are not placed from a hub where workloads run: there, controllers create them for StatefulSets."""
ENVELOPES: Final = ("ClusterResourceEnvelope", "ResourceEnvelope")

_HUB_ONLY_GROUPS: Final = frozenset(
    {
        "cluster.kubernetes-fleet.io",
        "placement.kubefleet.dev",
        "events.k8s.io",
        "coordination.k8s.io",
        "metrics.k8s.io",
    }
)
_HUB_ONLY_KINDS: Final = frozenset(
    {
        ("", "Event"),
        ("", "Node"),
        ("", "Pod"),
        ("networking.fleet.azure.com", "ServiceImport"),
        ("networking.fleet.azure.com", "TrafficManagerBackend"),
        ("networking.fleet.azure.com", "TrafficManagerProfile"),
    }
)


class Kind(Struct, frozen=True):
    """One kind in one version, as a hub serves it.

    `preferred`: the version to use where none is named. `watchable`: it can be listed and watched.
    """

    resource: Resource
    preferred: bool = True
    watchable: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return self.resource.group, self.resource.kind


class Catalogue:
    """Every kind a hub serves.

    `unavailable` are the group versions whose server does not answer. Objects of `excluded` kinds are never selected.
    """

    def __init__(
        self, kinds: Iterable[Kind], unavailable: Iterable[str] = (), excluded: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.unavailable = tuple(unavailable)
        self.excluded = frozenset(excluded)
        self._kinds: dict[tuple[str, str], dict[str, Kind]] = {}
        for kind in kinds:
            self._kinds.setdefault(kind.key, {})[kind.resource.version] = kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Catalogue):
            return False
        return (self._kinds, self.unavailable, self.excluded) == (other._kinds, other.unavailable, other.excluded)

    __hash__ = None  # type: ignore[assignment]  # as of every value that is compared by its maps

    def find(self, group: str, version: str, kind: str) -> Kind | None:
        return self._kinds.get((group, kind), {}).get(version)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions of a kind that are served."""
        return tuple(self._kinds.get((group, kind), ()))

    def preferred(self, key: tuple[str, str]) -> Kind | None:
        """The version of a kind to use where none is named: the preferred one, else the first."""
        served = self._kinds.get(key, {}).values()
        return next((kind for kind in served if kind.preferred), next(iter(served), None))

    @cached_property
    def placeable_namespaced(self) -> tuple[Kind, ...]:
        """The kinds that are placed with a namespace, each once."""
        preferred = (self.preferred(key) for key in self._kinds)
        return tuple(kind for kind in preferred if kind and kind.resource.namespaced and is_placeable(kind))


def is_placeable(kind: Kind) -> bool:
    """Whether objects of this kind can be placed."""
    return kind.watchable and not is_hub_only(kind.resource)


def is_hub_only(resource: Resource) -> bool:
    """Whether objects of this kind have a meaning only on the hub."""
    if resource.group == PLACEMENT_GROUP:
        return resource.kind not in ENVELOPES
    return resource.group in _HUB_ONLY_GROUPS or (resource.group, resource.kind) in _HUB_ONLY_KINDS


# Custom kinds


def kinds_of_crd(crd: CustomResourceDefinition) -> tuple[Kind, ...]:
    """The kind in each version that is served; nothing before the definition is established."""
    if not is_established(crd):
        return ()
    served = by_version_priority(version.name for version in crd.spec.versions or () if version.served)
    names, namespaced = crd.spec.names, crd.spec.scope == "Namespaced"
    return tuple(
        Kind(Resource(crd.spec.group, version, names.kind, names.plural, namespaced), preferred=number == 0)
        for number, version in enumerate(served)
    )


def is_established(crd: CustomResourceDefinition) -> bool:
    """Whether objects of this kind can be made and read."""
    return any(each.type == "Established" and each.status == "True" for each in crd.status.conditions or ())


def by_version_priority(versions: Iterable[str]) -> tuple[str, ...]:
    """Versions as Kubernetes prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    return tuple(sorted(versions, key=_version_priority))


def _version_priority(version: str) -> tuple[int, int, int, str]:
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not found:
        return 3, 0, 0, version
    major, stage, minor = found.groups()
    return ("", "beta", "alpha").index(stage or ""), -int(major), -int(minor or 0), version
