"""Revisions: the component revisions (ControllerRevisions) that rollouts refer to, and the workloads they stand for.

    answer = await revisions.locate(RevisionRollout("shop", "web-v2", component="web"), status)

Where a rollout has got to is read from its status, so that it can go on and end when a revision is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from kedge.api.apps import ControllerRevision
from kedge.api.meta import ObjectMeta
from kedge.api.oam.keys import APP_REVISION_LABEL, NAME_LABEL, REVISION_LABEL
from kedge.api.oam.rollout_status import RollingState, RolloutStatus
from kedge.controllers.batch.located import FindRollouts, Located, LocateResult, NotLocated, WorkloadPlace
from kedge.controllers.batch.workloads import WorkloadAccess, in_short
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of
from kedge.kube.errors import NotFound
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.batching.moves import WorkloadRef
from kedge.plan.batching.old_revisions import (
    OldRevision,
    changes_in_place,
    old_revision,
    others,
    ran_last,
    recorded,
    running,
)
from kedge.plan.batching.records import is_in_place as was_in_place
from kedge.plan.batching.records import target_ref
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.fields import Object, patched, text
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revised_workloads import application_in, component_of, owner_problem, revised_workload
from kedge.plan.oam.workloads import handler_of, is_in_place
from kedge.plan.text import object_name
from kedge.plan.workloads import WorkloadHandler

REVISION: Final = ControllerRevision.resource
_AT_START: Final = (None, RollingState.locating)


class RevisionRollout(Struct, frozen=True):
    """What a rollout of some kind says of the revisions it is about."""

    namespace: str
    target: str
    """The revision that it moves to."""
    last: str = ""
    """The revision that it moved to last, by its status."""
    component: str = ""
    """The component; empty if only the revision says it."""
    named: tuple[str, ...] = ()
    """The revisions that it is told to move from."""
    named_workloads: tuple[WorkloadRef, ...] = ()
    """The workloads that it is told to move from."""
    application: str = ""
    app_revision: str = ""
    owners: tuple[Mapping[str, Any], ...] = ()
    """Whom a target belongs to that has to be created."""
    removes_sources: bool = False
    running_of: tuple[str, ...] | None = None
    """The Applications of whose component it moves what runs, if it is not told what; its own if None."""


class Revisions:
    """The component revisions of one cluster."""

    def __init__(self, cluster: Cluster, workloads: WorkloadAccess, namespaces: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._client = cluster.client.without_retry()
        self._workloads = workloads
        places: Sequence[str | None] = namespaces or (None,)
        self._caches = [
            cluster.cache(metadata_of(REVISION), place, transform=in_short, optional=True) for place in places
        ]

    def sources(self, find: FindRollouts, refers: Callable[[Any], Iterable[str]]) -> Iterable[Source]:
        """What wakes rollouts: the revisions that they refer to, by name."""
        for cache in self._caches:
            yield self._cluster.watch(cache, to=partial(_keys, find, refers))

    async def get(self, name: str, namespace: str) -> ControllerRevision | None:
        """A revision as it is now."""
        if not name:
            return None
        try:
            return await self._client.get(ControllerRevision, name, namespace)
        except NotFound:
            return None

    # Where the workloads of a rollout are

    async def locate(self, asked: RevisionRollout, status: RolloutStatus) -> LocateResult:
        """The workloads of a rollout; when it is under way, those that its status names."""
        revision = await self.get(asked.target, asked.namespace)
        try:
            manifest = None if revision is None else _manifest(revision, asked)
        except OamRefused as refused:
            return self._under_way(asked, status, None) or NotLocated(problem=str(refused))
        if (known := self._under_way(asked, status, manifest)) is not None:
            return await self._with_old_manifests(known, asked)
        if manifest is None:
            return _missing(asked.target, asked.namespace)
        return await self._at_start(asked, status, manifest)

    def _under_way(self, asked: RevisionRollout, status: RolloutStatus, manifest: Object | None) -> Located | None:
        """The workloads that the status names; None if the rollout has not begun."""
        ref = target_ref(status, asked.namespace)
        if ref is None or status.rolling_state in _AT_START:
            return None
        if manifest is not None and not is_in_place(manifest):
            manifest = patched(manifest, {"metadata": {"name": ref.name}})  # it may have been there by another name
        wanted = manifest if manifest is not None and ref_of(manifest) == ref else None
        sources = recorded(status, asked.namespace)
        in_place = _moves_in_place(ref, sources, status)
        return Located(
            WorkloadPlace(ref, wanted, asked.target),
            _places(sources if in_place else others(sources, ref)),
            in_place=in_place,
            removes_sources=asked.removes_sources,
        )

    async def _at_start(self, asked: RevisionRollout, status: RolloutStatus, manifest: Object) -> LocateResult:
        manifest = await self._called(manifest, asked)
        ref, namespace = ref_of(manifest), asked.namespace
        live = await self._workloads.get(ref)
        if problem := owner_problem(live, manifest):
            return NotLocated(problem=problem)
        known = await self._existing((*recorded(status, namespace), *ran_last(status, namespace, asked.last)))
        target = WorkloadPlace(ref, manifest, asked.target)
        if is_in_place(manifest):
            return await self._starts_in_place(asked, target, live, known)
        found = known or await self._first_sources(asked, manifest)
        if isinstance(found, NotLocated):
            return found
        there = await self._existing(others(found, ref))
        return Located(target, _places(there), removes_sources=asked.removes_sources)

    async def _running(self, manifest: Object, application: str) -> tuple[Object, ...]:
        return await self._workloads.of_component(ref_of(manifest), component_of(manifest), application)

    async def _called(self, manifest: Object, asked: RevisionRollout) -> Object:
        """A workload of this revision that is there under another name: it was not rolled out, but applied at once."""
        running = await self._running(manifest, application_in(manifest))
        same = [one for one in running if _revision(one) == asked.target]
        names = {text(one, "metadata", "name") for one in same}
        if is_in_place(manifest) or not names or manifest["metadata"]["name"] in names:
            return manifest
        return patched(manifest, {"metadata": {"name": min(names)}})

    async def _existing(self, found: Iterable[OldRevision]) -> tuple[OldRevision, ...]:
        """Those that exist. One of a kind that runs no pods is not even read: it is refused later."""
        return tuple([one for one in found if _handler(one.ref) is None or await self._workloads.get(one.ref)])

    async def _first_sources(self, asked: RevisionRollout, manifest: Object) -> tuple[OldRevision, ...] | NotLocated:
        """What a rollout moves from that begins for the first time."""
        owners = asked.running_of if asked.running_of is not None else (application_in(manifest),)
        live = [one for name in owners for one in await self._running(manifest, name)]
        if not asked.named and not asked.named_workloads:
            return running(live, ref_of(manifest))
        found = [OldRevision(ref) for ref in asked.named_workloads]
        for name in asked.named:
            theirs = [one for one in live if name in (text(one, "metadata", "name"), _revision(one))]
            if not theirs and await self.get(name, asked.namespace) is None:
                return _missing(name, asked.namespace)
            found += [old_revision(one, ref_of(manifest)) for one in theirs]
        return tuple(found)

    async def _starts_in_place(
        self, asked: RevisionRollout, target: WorkloadPlace, live: Object | None, known: Sequence[OldRevision]
    ) -> LocateResult:
        assert target.manifest is not None
        handler = handler_of(target.manifest)
        assert handler is not None, "a manifest is of a kind that somebody knows"
        if elsewhere := others(known, target.ref):
            return Located(target, _places(elsewhere))
        if not changes_in_place(handler, live, asked.target, known):
            return Located(target)
        label = _revision(live)
        before = [one.revision for one in known] or asked.named or ["" if label == asked.target else label]
        sources = tuple(WorkloadPlace(target.ref, revision=name) for name in dict.fromkeys(before))
        return await self._with_old_manifests(Located(target, sources, in_place=True), asked)

    async def _with_old_manifests(self, located: Located, asked: RevisionRollout) -> Located:
        """What is changed in place, with what the old revisions wanted it to be: a revert writes that back."""
        if not located.in_place:
            return located
        sources = tuple([await self._with_manifest(one, asked) for one in located.sources])
        return Located(located.target, sources, in_place=True)

    async def _with_manifest(self, place: WorkloadPlace, asked: RevisionRollout) -> WorkloadPlace:
        revision = await self.get(place.revision, asked.namespace) if place.revision else None
        if revision is None:
            return place
        try:
            manifest = _manifest(revision, asked)
        except OamRefused:
            return place
        return WorkloadPlace(place.ref, manifest if ref_of(manifest) == place.ref else None, place.revision)


def ref_of(manifest: Object) -> WorkloadRef:
    """Which workload a manifest is of."""
    meta = manifest["metadata"]
    return WorkloadRef(manifest["apiVersion"], manifest["kind"], meta["namespace"], meta["name"])


def revision_rollout_of(meta: ObjectMeta, target: str, **more: Any) -> RevisionRollout:
    """What all kinds of rollouts say in the same way: by their namespace and the labels of their Application."""
    return RevisionRollout(
        meta.namespace or "",
        target,
        application=meta.labels.get(NAME_LABEL, ""),
        app_revision=meta.labels.get(APP_REVISION_LABEL, ""),
        **more,
    )


def _manifest(revision: ControllerRevision, asked: RevisionRollout) -> Object:
    return revised_workload(
        revision,
        component=asked.component,
        application=asked.application,
        app_revision=asked.app_revision,
        owners=asked.owners,
    )


def _missing(name: str, namespace: str) -> NotLocated:
    return NotLocated(waiting_for(object_name(REVISION.kind, namespace, name), BatchCode.missing))


def _places(found: Iterable[OldRevision]) -> tuple[WorkloadPlace, ...]:
    return tuple(WorkloadPlace(one.ref, revision=one.revision) for one in found)


def _revision(live: Object | None) -> str:
    return text(live, "metadata", "labels", REVISION_LABEL)


def _handler(ref: WorkloadRef) -> WorkloadHandler | None:
    return handler_of(_kind(ref))


def _kind(ref: WorkloadRef) -> Object:
    return {"apiVersion": ref.api_version, "kind": ref.kind}


def _moves_in_place(ref: WorkloadRef, sources: Iterable[OldRevision], status: RolloutStatus) -> bool:
    """Whether a rollout that has begun changes its target in place.

    One that failed or was replaced has recorded its target as well, also if it was to scale it.
    """
    if not is_in_place(_kind(ref)) or _is_unscalable(ref):
        return is_in_place(_kind(ref))
    is_scale = bool(status.batches) and not was_in_place(status, ref)
    return any(one.ref == ref for one in sources) and not is_scale


def _is_unscalable(ref: WorkloadRef) -> bool:
    handler = _handler(ref)
    return handler is not None and handler.scale(0) is None


def _keys(
    find: FindRollouts, refers: Callable[[Any], Iterable[str]], seen: WatchedObject[PartialObject]
) -> Iterable[Key]:
    return [key for key, rollout in find(seen.meta.namespace or "") if seen.meta.name in refers(rollout)]
