"""Mirror: brings the status of a placed object back onto the original on the hub, if its placement asks for that.

    spec.strategy.reportBackStrategy: {type: Mirror, destination: OriginalResource}

An original can show one status. So this is done while exactly one cluster is picked; with more, the placement says that
it is not, and each member's own status is on its Work. A status is shown as the member reported it: an
`observedGeneration` in it is of the member's object. Only the status is written, and nothing if it is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kedge.api.binding import ClusterResourceBinding
from kedge.api.fleet import PARENT_NAMESPACE
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.resource import Resource
from kedge.api.twins import Binding, Twins
from kedge.api.work import ManifestCondition, Work
from kedge.controllers.hub.followed import followed
from kedge.controllers.hub.indexes import BINDING, BINDINGS, PLACEMENT, WORKS, named
from kedge.controllers.hub.placements import wanted_placements
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch, difference
from kedge.kube.queue import Key
from kedge.kube.source import Seen, Source
from kedge.kube.store import Change
from kedge.plan.reporting.picking import live
from kedge.plan.revisions import parent
from kedge.plan.working.kept import kept
from kedge.plan.working.wanted import goes_back_to_original

MANAGER: Final = "kedge-mirror"


class Mirror:
    """The originals of one kind of placement. Keys are Works."""

    def __init__(self, hub: Cluster, twins: Twins) -> None:
        self._client = hub.client
        self._events = hub.events.signed("placement-controller")
        self._twins = twins
        self._placements = wanted_placements(hub, twins)
        self._bindings = followed(hub, twins.binding, indexes=BINDINGS)
        self._works = hub.cache(Work, transform=kept, indexes=WORKS)
        sources: list[Source] = [
            hub.watch(self._works, when=self._matters),
            hub.watch(self._placements, to=self._works_of, when=_asks_otherwise),
            hub.watch(self._bindings, to=self._works_beside, when=_comes_or_goes),
        ]
        self.controller = Controller(f"originals of {twins.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        work = self._works.get(key.name, key.namespace)
        placement = self._asking(work) if work is not None else None
        if work is None or placement is None or not self._is_only_one(work):
            return Outcome.done
        try:
            whole = await self._client.get(Work, key.name, key.namespace)
        except NotFound:
            return Outcome.done
        for found in whole.status.manifest_conditions:
            await self._show(placement, found)
        return Outcome.done

    async def _show(self, placement: ClusterResourcePlacement, found: ManifestCondition) -> None:
        """Make the status of an original what its member reported."""
        reported = found.back_reported_status
        status = reported.observed_status.get("status") if reported is not None else None
        if not isinstance(status, dict):
            return
        try:
            await self._write(found, status)
        except NotFound:
            return  # the original is gone, or keeps no status of its own
        except (Conflict, TooManyRequests, ServerError):
            raise
        except ApiError as error:
            which = f"{found.identifier.kind} {found.identifier.name}"
            self._events.warning(placement, "StatusNotShown", f"the status of {which} was refused: {error.message}")

    async def _write(self, found: ManifestCondition, status: dict[str, Any]) -> None:
        which = found.identifier
        kind = untyped(
            Resource(which.group, which.version, which.kind, which.resource, namespaced=bool(which.namespace))
        )
        original = await self._client.get(kind, which.name, which.namespace or None)
        change = difference(original.get("status") or {}, status)
        if not change:
            return
        meta = original["metadata"]
        await self._client.patch(
            kind,
            which.name,
            MergePatch({"status": change}),
            which.namespace or None,
            uid=meta["uid"],
            resource_version=meta["resourceVersion"],
            manager=MANAGER,
            subresource="status",
        )

    # Reading

    def _asking(self, work: Work) -> ClusterResourcePlacement | None:
        """The placement of a Work, if it wants statuses on its originals."""
        namespace = work.metadata.labels.get(PARENT_NAMESPACE)
        if (namespace is not None) != self._twins.placement.resource.namespaced:
            return None
        found = self._placements.get(parent(work.metadata), namespace)
        return found if found is not None and goes_back_to_original(found) else None

    def _is_only_one(self, work: Work) -> bool:
        """Whether a Work is of the only cluster that is picked."""
        whose = named(work.metadata.labels.get(PARENT_NAMESPACE), parent(work.metadata))
        picked = live(self._bindings.by(PLACEMENT, whose))
        return len(picked) == 1 and work in self._works.by(BINDING, _name(picked[0]))

    # Waking

    def _matters(self, change: Change[Work]) -> bool:
        return change.new is not None and self._asking(change.new) is not None

    def _works_of(self, seen: Seen[ClusterResourcePlacement]) -> Iterable[Key]:
        return self._of(seen.cluster, named(seen.meta.namespace, seen.meta.name))

    def _works_beside(self, seen: Seen[ClusterResourceBinding]) -> Iterable[Key]:
        placement = self._placements.get(parent(seen.meta), seen.meta.namespace)
        if placement is None or not goes_back_to_original(placement):
            return ()
        return self._of(seen.cluster, named(seen.meta.namespace, parent(seen.meta)))

    def _of(self, cluster: str, placement: str) -> list[Key]:
        bindings = self._bindings.by(PLACEMENT, placement)
        works = [work.metadata for binding in bindings for work in self._works.by(BINDING, _name(binding))]
        return [Key(cluster, meta.namespace, meta.name) for meta in works]


def _name(binding: Binding) -> str:
    return named(binding.metadata.namespace, binding.metadata.name)


def _asks_otherwise(change: Change[ClusterResourcePlacement]) -> bool:
    old = change.old is not None and goes_back_to_original(change.old)
    return change.new is not None and goes_back_to_original(change.new) != old


def _comes_or_goes(change: Change[ClusterResourceBinding]) -> bool:
    return _standing(change.old) != _standing(change.new)


def _standing(binding: ClusterResourceBinding | None) -> object:
    return None if binding is None else (binding.spec.state, binding.metadata.deletion_timestamp)
