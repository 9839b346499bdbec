"""Fleet reader: reads from a hub what a preview starts from, and finds the placements that select what changes.

It only reads: lists and gets. Selected kinds that we may not read are left out; the newest revision of the placement
shows how they were. A hub serves the kinds that an embedded server has, and custom kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import MemberCluster
from kedge.api.fleet import PARENT_NAMESPACE, PARENT_PLACEMENT
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PLACEMENT_KINDS, PlacementKinds
from kedge.api.resource import Resource
from kedge.api.staged import (
    ApprovalRequest,
    ClusterApprovalRequest,
    ClusterStagedUpdateRun,
    ClusterStagedUpdateStrategy,
    StagedUpdateRun,
    StagedUpdateStrategy,
)
from kedge.api.work import Work
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.selecting.candidates import candidate, is_hub_object
from kedge.plan.selecting.kinds import Catalogue, Kind, kinds_of_crd
from kedge.plan.selecting.selectors import ResolvedSelector, ResolvedSelectors, index_keys_of, resolve_selectors
from kedge.simulate.preview.fleet_state import FLEET_GROUPS, FleetState, Target, group_of, meta_of

_STAGED: Final[dict[PlacementKinds, tuple[Any, ...]]] = {
    CLUSTER: (ClusterStagedUpdateStrategy, ClusterStagedUpdateRun, ClusterApprovalRequest),
    NAMESPACED: (StagedUpdateStrategy, StagedUpdateRun, ApprovalRequest),
}
_WORKS_AT_ONCE: Final = 100


async def read_fleet(
    client: Client, targets: Sequence[Target], changed: Sequence[Untyped], now: datetime
) -> FleetState:
    """What the hub holds of these placements; of none in particular, of those that select what changes."""
    found = await _Reader(client).fleet(targets, changed)
    return FleetState(now, tuple(found))


class _Reader:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def fleet(self, targets: Sequence[Target], changed: Sequence[Untyped]) -> list[Untyped]:
        definitions = await self._definitions()
        catalogue = catalogue_of(definitions)
        placements = await self._placements(targets, changed, catalogue)
        found = [*await self.all(MemberCluster.resource), *placements]
        for placement in placements:
            found += await self._belonging(placement)
        meant = [meaning_of(one, catalogue) for one in [*placements, *_placements_in(changed)]]
        chosen = _once([one for meaning in meant for one in await self._selected(meaning, catalogue)])
        groups = {group_of(one) for one in [*chosen, *changed]} - set(FLEET_GROUPS)
        needed = [one for one in definitions if one["spec"]["group"] in groups]
        return [*needed, *found, *chosen]

    async def _definitions(self) -> list[Untyped]:
        """Those of others; those of the fleet come with us."""
        try:
            found = await self.all(CustomResourceDefinition.resource)
        except Forbidden:
            return []  # what is selected of custom kinds is then not known, and taken from the newest revision
        return [one for one in found if one["spec"]["group"] not in FLEET_GROUPS]

    async def _placements(
        self, targets: Sequence[Target], changed: Sequence[Untyped], catalogue: Catalogue
    ) -> list[Untyped]:
        if targets:
            return [one for target in targets if (one := await self._placement(target)) is not None]
        known = [
            one for placement_kinds in PLACEMENT_KINDS for one in await self.all(placement_kinds.placement.resource)
        ]
        return placements_selecting(known, changed, catalogue)

    async def _placement(self, target: Target) -> Untyped | None:
        resource = target.kinds.placement.resource
        try:
            found = await self._client.get(untyped(resource), target.name, target.namespace)
        except NotFound:
            return None
        return _named(resource, found)

    async def _belonging(self, placement: Untyped) -> list[Untyped]:
        """A placement's snapshots, bindings and Works; and the runs that move it, if that is what does."""
        name, namespace = placement["metadata"]["name"], placement["metadata"].get("namespace")
        placement_kinds = Target(name, namespace).kinds
        labels = f"{PARENT_PLACEMENT}={name}"
        found: list[Untyped] = []
        for kind in (placement_kinds.policy_snapshot, placement_kinds.resource_snapshot, placement_kinds.binding):
            found += await self.all(kind.resource, namespace, labels)
        place = f"{PARENT_NAMESPACE}={namespace}" if namespace else f"!{PARENT_NAMESPACE}"
        found += await self.all(Work.resource, None, f"{labels},{place}")
        if ((placement.get("spec") or {}).get("strategy") or {}).get("type") == "External":
            for kind in _STAGED[placement_kinds]:
                found += await self.all(kind.resource, namespace)
        return found

    # What is selected

    async def _selected(self, meant: ResolvedSelectors, catalogue: Catalogue) -> list[Untyped]:
        found: list[Untyped] = []
        for pick in meant.selectors:
            own = await self._picked(pick)
            found += own
            if pick.includes_contents:
                for space in own:
                    found += await self._contents(space["metadata"]["name"], catalogue)
        return found

    async def _picked(self, pick: ResolvedSelector) -> list[Untyped]:
        fields = {"metadata.name": pick.selector.name} if pick.selector.name else None
        found = await self._readable(pick.resource, pick.namespace, fields)
        wanted = pick.selector.label_selector
        return [one for one in found if wanted is None or wanted.matches(one["metadata"].get("labels") or {})]

    async def _contents(self, namespace: str, catalogue: Catalogue) -> list[Untyped]:
        found: list[Untyped] = []
        for kind in catalogue.placeable_namespaced:
            found += await self._readable(kind.resource, namespace)
        return found

    async def _readable(
        self, resource: Resource, namespace: str | None = None, fields: dict[str, str] | None = None
    ) -> list[Untyped]:
        """What may be read of a kind, and placed."""
        try:
            found = await self.all(resource, namespace, fields=fields)
        except (Forbidden, NotFound):
            return []
        return [one for one in found if not is_hub_object(resource, meta_of(one), one)]

    # Reading

    async def all(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: str | None = None,
        fields: dict[str, str] | None = None,
    ) -> list[Untyped]:
        size = _WORKS_AT_ONCE if resource == Work.resource else 500
        page = await self._client.list(untyped(resource), namespace, labels=labels, fields=fields, page_size=size)
        return [_named(resource, one) for one in page.items]


def _named(resource: Resource, obj: Untyped) -> Untyped:
    """With what lists leave out of their items, and without who wrote what."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _placements_in(objects: Iterable[Untyped]) -> list[Untyped]:
    kinds = {
        (placement_kinds.placement.resource.group, placement_kinds.placement.resource.kind)
        for placement_kinds in PLACEMENT_KINDS
    }
    return [one for one in objects if (group_of(one), one["kind"]) in kinds]


def _once(objects: Iterable[Untyped]) -> list[Untyped]:
    return list({one["metadata"]["uid"]: one for one in objects}.values())


# What is selected


def catalogue_of(definitions: Iterable[Untyped]) -> Catalogue:
    """What is served: the kinds built in, and these."""
    built_in = [Kind(one.resource, watchable=not one.is_review) for one in BUILT_IN]
    custom = [kind for one in definitions for kind in kinds_of_crd(msgspec.convert(one, CustomResourceDefinition))]
    return Catalogue([*built_in, *custom])


def meaning_of(placement: Untyped, catalogue: Catalogue) -> ResolvedSelectors:
    """What a placement's selectors mean; nothing, if it cannot be read."""
    placement_kinds = NAMESPACED if placement["metadata"].get("namespace") else CLUSTER
    try:
        return resolve_selectors(msgspec.convert(placement, placement_kinds.placement), catalogue)
    except msgspec.ValidationError:
        return ResolvedSelectors()


def placements_selecting(
    placements: Iterable[Untyped], changed: Iterable[Untyped], catalogue: Catalogue
) -> list[Untyped]:
    """Those of the placements that select, or may select, something that changes."""
    tokens = {token for one in changed for token in _tokens(one, catalogue)}
    return [one for one in placements if tokens & set(meaning_of(one, catalogue).index_keys())]


def _tokens(obj: Untyped, catalogue: Catalogue) -> Iterable[tuple[str, ...]]:
    kind = catalogue.find(group_of(obj), str(obj["apiVersion"]).rpartition("/")[2], obj["kind"])
    return () if kind is None else index_keys_of(kind.resource, candidate(kind.resource, obj))
