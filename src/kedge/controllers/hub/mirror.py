"""Mirror: brings the status of a placed object back onto the original on the hub, if its placement asks for that.

    spec.strategy.reportBackStrategy: {type: Mirror, destination: OriginalResource}

An original can show one status. So this is done while exactly one cluster is picked; with more, the placement says that
it is not, and each member's own status is on its Work. A status is shown as the member reported it: an
`observedGeneration` in it is of the member's object. Only the status is written, and nothing if it is the same.

A member names nothing that is written to: what may be shown is decided by what the hub has placed there
(`plan.working.report_back`), and where it is written by what the hub says of its kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from kedge.api.binding import ClusterResourceBinding
from kedge.api.fleet import PARENT_NAMESPACE
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import Binding, PlacementKinds
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.work import Work
from kedge.controllers.hub.caches import (
    BINDING,
    BINDINGS,
    PLACEMENT,
    SNAPSHOTS,
    WORKS,
    named,
    placements_without_status,
    trusted_cache,
)
from kedge.controllers.hub.snapshot_contents import Selected
from kedge.controllers.hub.wakes import was_created
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of, untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch, difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change
from kedge.plan.placements import reports_to_original
from kedge.plan.placing.bindings import remaining_bindings
from kedge.plan.reporting.placement_status import parts_of_revision
from kedge.plan.revisions import parent, resource_index
from kedge.plan.selecting.kinds import Catalogue
from kedge.plan.working.report_back import ReportedStatus, is_work_of, reported_statuses
from kedge.plan.working.work_contents import compacted

MANAGER: Final = "kedge-mirror"


class Kinds(Protocol):
    """Knows which kinds the hub serves."""

    @property
    def catalogue(self) -> Catalogue | None:
        """All of them; None as long as the hub has not said."""
        ...


class Mirror:
    """The originals of one kind of placement. Keys are Works."""

    def __init__(self, hub: Cluster, placement_kinds: PlacementKinds, kinds: Kinds) -> None:
        self._client = hub.client
        self._events = hub.events.signed("placement-controller")
        self._placement_kinds = placement_kinds
        self._kinds = kinds
        self._selected = Selected(hub.client, placement_kinds)
        self._placements = placements_without_status(hub, placement_kinds)
        self._bindings = trusted_cache(hub, placement_kinds.binding, indexes=BINDINGS)
        self._snapshots = trusted_cache(hub, metadata_of(placement_kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._works = hub.cache(Work, transform=compacted, indexes=WORKS)
        sources: list[Source] = [
            hub.watch(self._works, when=self._matters),
            hub.watch(self._placements, to=self._works_of, when=_report_back_changed),
            hub.watch(self._bindings, to=self._works_of_placement_of, when=_binding_repointed),
            hub.watch(self._snapshots, to=self._works_of_placement_of, when=was_created),
        ]
        self.controller = Controller(f"originals of {placement_kinds.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        work = self._works.get(key.name, key.namespace)
        placement = self._placement_of(work) if work is not None else None
        binding = self._only_binding(work) if work is not None else None
        if placement is None or binding is None:
            return Outcome.done
        catalogue = self._kinds.catalogue
        if catalogue is None:
            return Outcome.not_yet
        try:
            whole = await self._client.get(Work, key.name, key.namespace)
        except NotFound:
            return Outcome.done
        found = reported_statuses(placement, binding, whole, await self._placed(binding))
        for one in found.shown:
            await self._show(placement, one, catalogue)
        if found.not_placed:
            cluster = binding.spec.target_cluster
            said = f"{cluster} reported {found.not_placed} statuses of objects that were not placed there: not shown"
            self._events.warning(placement, "StatusNotShown", said)
        return Outcome.done

    async def _show(self, placement: ClusterResourcePlacement, found: ReportedStatus, catalogue: Catalogue) -> None:
        """Make the status of an original what its member reported."""
        try:
            await self._write(found, catalogue)
        except NotFound:
            return  # the original is gone, or keeps no status of its own
        except (Conflict, TooManyRequests, ServerError):
            raise
        except ApiError as error:
            which = f"{found.original.kind} {found.original.name}"
            self._events.warning(placement, "StatusNotShown", f"the status of {which} was refused: {error.message}")

    async def _write(self, found: ReportedStatus, catalogue: Catalogue) -> None:
        which = found.original
        served = catalogue.find(which.group, which.version, which.kind)
        if served is None:
            return  # the hub no longer serves this kind, and has no original of it
        kind = untyped(served.resource)
        original = await self._client.get(kind, which.name, which.namespace)
        change = difference(original.get("status") or {}, found.status)
        if not change:
            return
        meta = original["metadata"]
        await self._client.patch(
            kind,
            which.name,
            MergePatch({"status": change}),
            which.namespace,
            uid=meta["uid"],
            resource_version=meta["resourceVersion"],
            manager=MANAGER,
            subresource="status",
        )

    # Reading

    def _placement_of(self, work: Work) -> ClusterResourcePlacement | None:
        """The placement of a Work, if it wants statuses on its originals."""
        namespace = work.metadata.labels.get(PARENT_NAMESPACE)
        if (namespace is not None) != self._placement_kinds.placement.resource.namespaced:
            return None
        found = self._placements.get(parent(work.metadata), namespace)
        return found if found is not None and reports_to_original(found) else None

    def _only_binding(self, work: Work) -> Binding | None:
        """The binding of a Work, if its cluster is the only one that is picked."""
        whose = named(work.metadata.labels.get(PARENT_NAMESPACE), parent(work.metadata))
        picked = remaining_bindings(self._bindings.by(PLACEMENT, whose))
        return picked[0] if len(picked) == 1 and is_work_of(picked[0], work) else None

    async def _placed(self, binding: Binding) -> tuple[ResourceIdentifier, ...]:
        """What the hub has placed by a binding: the objects of the snapshot that it points at."""
        meta = binding.metadata
        master = self._snapshots.get(binding.spec.resource_snapshot_name, meta.namespace)
        if master is None or parent(master.metadata) != parent(meta):
            return ()
        ours = self._snapshots.by(PLACEMENT, named(meta.namespace, parent(meta)))
        index = str(resource_index(master.metadata))
        return await self._selected.of(parts_of_revision([one.metadata for one in ours], index))

    # Waking

    def _matters(self, change: Change[Work]) -> bool:
        return change.new is not None and self._placement_of(change.new) is not None

    def _works_of(self, seen: WatchedObject[ClusterResourcePlacement]) -> Iterable[Key]:
        return self._of(seen.cluster, named(seen.meta.namespace, seen.meta.name))

    def _works_of_placement_of(
        self, seen: WatchedObject[ClusterResourceBinding] | WatchedObject[PartialObject]
    ) -> Iterable[Key]:
        placement = self._placements.get(parent(seen.meta), seen.meta.namespace)
        if placement is None or not reports_to_original(placement):
            return ()
        return self._of(seen.cluster, named(seen.meta.namespace, parent(seen.meta)))

    def _of(self, cluster: str, placement: str) -> list[Key]:
        bindings = self._bindings.by(PLACEMENT, placement)
        works = [work.metadata for binding in bindings for work in self._works.by(BINDING, _name(binding))]
        return [Key(cluster, meta.namespace, meta.name) for meta in works]


def _name(binding: Binding) -> str:
    return named(binding.metadata.namespace, binding.metadata.name)


def _report_back_changed(change: Change[ClusterResourcePlacement]) -> bool:
    old = change.old is not None and reports_to_original(change.old)
    return change.new is not None and reports_to_original(change.new) != old


def _binding_repointed(change: Change[ClusterResourceBinding]) -> bool:
    """Whether a binding came or went, or is to have other resources."""
    return _target(change.old) != _target(change.new)


def _target(binding: ClusterResourceBinding | None) -> object:
    if binding is None:
        return None
    return binding.spec.state, binding.spec.resource_snapshot_name, binding.metadata.deletion_timestamp
