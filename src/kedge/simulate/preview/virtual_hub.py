"""Virtual hub: an embedded server with the objects of a fleet, including their uids, generations and statuses.

Missing objects are created: those that a hub has for every member and, of kinds of which the fleet has nothing, the
objects in the newest revision of a placement. Members that were healthy when the fleet was read stay healthy: instead
of a heartbeat every few seconds they have one from the end of the simulated time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec
from msgspec import to_builtins

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import MemberCluster
from kedge.api.crd import Crd
from kedge.api.resource import Resource
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.store import AlreadyExists, key_of
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.limits import Limiter
from kedge.plan import membership
from kedge.plan.heartbeats import has_joined
from kedge.plan.revisions import newest_resources, resource_index
from kedge.simulate.preview.fleet_state import (
    FLEET_GROUPS,
    BadFleetFile,
    FleetState,
    Target,
    belongs_to,
    group_of,
    meta_of,
)

DEFINITIONS: Final = untyped(CustomResourceDefinition.resource)
_STORED: Final = "v1beta1"  # the version in which the fleet's kinds are kept


class VirtualHub:
    """The server to simulate on, and a client for it."""

    def __init__(self, cluster: EmbeddedCluster, rng: Random) -> None:
        self.cluster = cluster
        self.client = Client(cluster.transport(), limiter=Limiter(rate=0))
        self._rng = rng

    async def load(self, fleet: FleetState, definitions: Iterable[Crd], until: datetime) -> None:
        """Load the fleet. Members that are healthy stay so until then."""
        others = list(fleet.of(CustomResourceDefinition.resource))
        for definition in [*definitions, *map(_bare, others)]:
            await self.client.create(DEFINITIONS, definition)
        kinds = self._kinds()
        everything = [*_without_definitions(fleet), *missing(fleet)]
        uids = {one["metadata"].get("uid") for one in everything}
        for obj in [*everything, *_around_members(fleet), *_spaces(everything)]:
            self._put(kinds, _heard(obj, until), uids)

    async def change(self, objects: Iterable[Untyped]) -> None:
        """What a user would do with a file: each object as it says, new or in place of the one there is.

        Fields that are not known are refused, as kubectl does.
        """
        for obj in sorted(objects, key=_order):
            kind = self._kinds().get(_key(obj))
            if kind is None:
                what = f"{obj['kind']} of {obj['apiVersion']}"
                raise BadFleetFile(f"{obj['kind']} {obj['metadata']['name']}: the hub serves no {what}")
            await self._change(kind, obj)

    async def _change(self, kind: Kind, obj: Untyped) -> None:
        form, meta = untyped(kind.resource), obj["metadata"]
        place = meta.get("namespace") if kind.resource.namespaced else None
        there = self.cluster.server.store.all(kind).get(key_of(place or "", meta["name"]))
        if there is None:
            await self.client.create(form, obj, place, strict=True)
            return
        before = there.decode()
        kept = before["metadata"]
        merged = {name: {**(kept.get(name) or {}), **(meta.get(name) or {})} for name in ("labels", "annotations")}
        status = {"status": before["status"]} if "status" in before else {}
        body = {**obj, **status, "metadata": {**kept, **merged}}
        await self.client.replace(form, body, strict=True)

    # What is there

    def _kinds(self) -> dict[tuple[str, str, str], Kind]:
        return {_named(kind.resource): kind for kind in self.cluster.server.registry.kinds()}

    def _put(self, kinds: dict[tuple[str, str, str], Kind], obj: Untyped, known: set[str | None]) -> None:
        kind = kinds.get(_key(obj))
        if kind is None:
            return  # of a kind that only the real hub serves: it is not selected there either, or its definition is
        meta = {name: value for name, value in obj["metadata"].items() if name not in ("managedFields", "selfLink")}
        meta["uid"] = meta.get("uid") or str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        meta["generation"] = meta.get("generation") or 1
        if "ownerReferences" in meta:  # garbage collection would delete objects whose owner the fleet does not have
            meta["ownerReferences"] = [one for one in meta["ownerReferences"] if one.get("uid") in known]
        key = key_of(meta.get("namespace") or "" if kind.resource.namespaced else "", meta["name"])
        try:
            self.cluster.server.store.create(kind, key, {**obj, "metadata": meta})
        except AlreadyExists:
            return


def _around_members(fleet: FleetState) -> Iterator[Untyped]:
    """What the hub keeps for each member, so that nothing of it has to be made while time runs."""
    for member in fleet.typed(MemberCluster):
        state = membership.LEAVE if member.metadata.deletion_timestamp else membership.JOIN
        for made in (membership.namespace, membership.role, membership.role_binding):
            yield _as_object(made(member))
        yield _as_object(membership.internal_member_cluster(member, state))


def missing(fleet: FleetState) -> Iterator[Untyped]:
    """Selected objects that the fleet lacks, from the newest revision."""
    shown = {(group_of(one), one["kind"]) for one in fleet.objects}
    for target in fleet.targets:
        for manifest in _newest(fleet, target):
            if (group_of(manifest), manifest["kind"]) not in shown:
                yield manifest


def _newest(fleet: FleetState, target: Target) -> Iterator[Untyped]:
    """The manifests of the newest revision."""
    kind = target.kinds.resource_snapshot.resource
    parts = [one for one in fleet.of(kind) if _is_of(one, target)]
    master = newest_resources(meta_of(one) for one in parts)
    for part in parts:
        if master is not None and resource_index(meta_of(part)) == resource_index(master):
            yield from part.get("spec", {}).get("selectedResources") or ()


def _is_of(obj: Untyped, target: Target) -> bool:
    return belongs_to(target, obj["metadata"].get("labels") or {}, obj["metadata"].get("namespace"))


def _without_definitions(fleet: FleetState) -> Iterator[Untyped]:
    """All but definitions; the fleet's own kinds in the version in which they are kept."""
    for obj in fleet.objects:
        group = group_of(obj)
        if (group, obj["kind"]) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
            continue
        yield {**obj, "apiVersion": f"{group}/{_STORED}"} if group in FLEET_GROUPS else obj


def _heard(obj: Untyped, until: datetime) -> Untyped:
    """A member that was healthy when the fleet was read stays healthy until the end."""
    if (group_of(obj), obj["kind"]) != (MemberCluster.resource.group, MemberCluster.resource.kind):
        return obj
    member = msgspec.convert(obj, MemberCluster)
    if not has_joined(member) or membership.unreachable_message(member):
        return obj
    agents = [{**one, "lastReceivedHeartbeat": _written(until)} for one in obj["status"]["agentStatus"]]
    return {**obj, "status": {**obj["status"], "agentStatus": agents}}


def _written(moment: datetime) -> str:
    text: str = to_builtins(moment.replace(microsecond=0))
    return text


def _spaces(objects: Iterable[Untyped]) -> Iterator[Untyped]:
    """The namespaces that objects are in."""
    for name in dict.fromkeys(one["metadata"].get("namespace") for one in objects):
        if name:
            yield {
                "apiVersion": "v1",
                "kind": NAMESPACES.kind,
                "metadata": {"name": name},
                "status": {"phase": "Active"},
            }


def _as_object(made: Any) -> Untyped:
    kind: Resource = made.resource
    return {"apiVersion": kind.api_version, "kind": kind.kind, **to_builtins(made)}


def _bare(definition: Untyped) -> Untyped:
    meta = definition["metadata"]
    kept = {name: meta[name] for name in ("name", "labels", "annotations") if name in meta}
    return {**{name: part for name, part in definition.items() if name != "status"}, "metadata": kept}


def _named(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.kind


def _order(obj: Untyped) -> int:
    """What others need comes first."""
    first = ("CustomResourceDefinition", "Namespace")
    return first.index(obj["kind"]) if obj["kind"] in first else len(first)


def _key(obj: Untyped) -> tuple[str, str, str]:
    return group_of(obj), str(obj["apiVersion"]).rpartition("/")[2], obj["kind"]
