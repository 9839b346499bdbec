"""Kinds: what a hub serves, and which of it can be placed at all.

What only means something on the hub itself (the fleet's own kinds, nodes, pods, events, leases, metrics) is never
placed, nor is what cannot be followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from msgspec import Struct

from kedge.api.placement import GROUP as PLACEMENT_GROUP
from kedge.api.resource import Resource

NAMESPACE: Final = ("", "Namespace")
SERVICE: Final = ("", "Service")
ENDPOINTS: Final = ("", "Endpoints")
RUN_ON_THE_HUB: Final = (("", "PersistentVolumeClaim"),)
"""What stays on a hub where workloads run: there, too, controllers make these for StatefulSets."""
ENVELOPES: Final = ("ClusterResourceEnvelope", "ResourceEnvelope")

_GROUPS_OF_THE_HUB: Final = frozenset(
    {
        "cluster.kubernetes-fleet.io",
        "placement.kubefleet.dev",
        "events.k8s.io",
        "coordination.k8s.io",
        "metrics.k8s.io",
    }
)
_KINDS_OF_THE_HUB: Final = frozenset(
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

    `preferred`: this is the version to take where none is named. `followed`: it can be listed and watched.
    """

    resource: Resource
    preferred: bool = True
    followed: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return self.resource.group, self.resource.kind


class Catalogue:
    """Every kind a hub serves.

    `silent` are the groups of which that is not known now; objects of kinds that are `left_out` are never selected.
    """

    def __init__(
        self, kinds: Iterable[Kind], silent: Iterable[str] = (), left_out: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.silent = tuple(silent)
        self.left_out = frozenset(left_out)
        self._kinds: dict[tuple[str, str], dict[str, Kind]] = {}
        for kind in kinds:
            self._kinds.setdefault(kind.key, {})[kind.resource.version] = kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Catalogue):
            return False
        return (self._kinds, self.silent, self.left_out) == (other._kinds, other.silent, other.left_out)

    __hash__ = None  # type: ignore[assignment]  # as of every value that is compared by its maps

    def find(self, group: str, version: str, kind: str) -> Kind | None:
        return self._kinds.get((group, kind), {}).get(version)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions of a kind that are served."""
        return tuple(self._kinds.get((group, kind), ()))

    def preferred(self, key: tuple[str, str]) -> Kind | None:
        """The version of a kind to take where none is named: the group's preferred one, else the first it names."""
        served = self._kinds.get(key, {}).values()
        return next((kind for kind in served if kind.preferred), next(iter(served), None))

    @cached_property
    def of_namespaces(self) -> tuple[Kind, ...]:
        """What may be in a namespace and can be placed with it: each kind once."""
        preferred = (self.preferred(key) for key in self._kinds)
        return tuple(kind for kind in preferred if kind and kind.resource.namespaced and is_placeable(kind))


def is_placeable(kind: Kind) -> bool:
    """Whether objects of this kind can be placed."""
    return kind.followed and not is_of_the_hub(kind.resource)


def is_of_the_hub(resource: Resource) -> bool:
    """Whether objects of this kind only mean something on the hub."""
    if resource.group == PLACEMENT_GROUP:
        return resource.kind not in ENVELOPES
    return resource.group in _GROUPS_OF_THE_HUB or (resource.group, resource.kind) in _KINDS_OF_THE_HUB
