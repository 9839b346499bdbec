"""Execution: the controller of one member that brings its Works to its cluster, and reports what came of them.

Wakes at a change of a Work, and of what it made there: what others change is put back, what they delete is made again.
Fields that a Work does not set are the cluster's own, and stay as they are.

What it reflects is one look at the object: its status, its generation, and the number of what it was asked for last, so
that the hub knows what the status is about.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, Condition, is_true, new_condition, set_condition
from kedge.api.karmada.keys import (
    CONFLICT_RESOLUTION,
    EXECUTION_FINALIZER,
    WORK_NAME,
    WORK_NAMESPACE,
)
from kedge.api.karmada.works import ManifestStatus, ResourceIdentifier, Work, WorkStatus
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.controllers.align.member_objects import MANAGER, MemberObjects, NotApplied, name_in, version_of
from kedge.controllers.followed_kinds import FollowedKinds
from kedge.controllers.kinds import Kinds
from kedge.controllers.repairs import Repairs
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, Untyped, untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import AlreadyExists, ApiError, Conflict
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change
from kedge.plan.aligning.aggregating import APPLIED
from kedge.plan.aligning.interpreter import sequence_of
from kedge.plan.aligning.names import work_namespace
from kedge.plan.aligning.reflecting import reflected
from kedge.plan.aligning.retaining import with_retained
from kedge.plan.applying.manifests import ObjectKey
from kedge.plan.applying.outcomes import DELETED_AGAIN, DISPUTED
from kedge.plan.fields import Object, at, covers, group_of, patched, text

AGAIN: Final = 10.0
"""Seconds after which what a member refused is tried again, and what may not be watched is looked at again."""
LOOK_EVERY: Final = 0.5
"""Seconds between two looks at an object that acts on what was asked for: while it rolls, each pod changes its status
several times."""
APPLIED_MESSAGE: Final = "Manifest has been successfully applied"
SEVERAL: Final = "the Work has {} manifests, and none is written here: create a Work for each of them"


class Execution:
    """The Works of one member."""

    def __init__(self, hub: Cluster, member: Cluster, name: str, *, clock: Clock) -> None:
        self._hub = hub.client
        self._objects = MemberObjects(member.client)
        self._kinds = Kinds(member.client)
        self._clock = clock
        self._works = hub.cache(Work, work_namespace(name))
        self._written: dict[Key, tuple[str, int]] = {}
        """Which Work, by its uid, and which generation of it was applied last."""
        self._reported: dict[str, WorkStatus] = {}
        """The status of each Work, by its uid, as it was written here last."""
        self._looks = Throttle(LOOK_EVERY)
        self._repairs = Repairs()
        self._followed = FollowedKinds(member, only=_is_made_here)
        self._kind_of: dict[Key, Resource] = {}
        sources: list[Source] = [
            hub.watch(self._works, when=self._is_of_others),
            self._followed.source(partial(_of_object, hub.name)),
        ]
        self.controller = Controller(f"works of {name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        work = self._works.get(key.name, key.namespace)
        if work is None:
            self._forget(key)
            return Outcome.done
        if not work.spec.workload.manifests:
            return Outcome.done
        manifest = work.spec.workload.manifests[0]
        if work.metadata.deletion_timestamp is not None:
            return await self._removed(work, manifest)
        if len(work.spec.workload.manifests) > 1:
            await self._report(work, manifest, None, None, SEVERAL.format(len(work.spec.workload.manifests)))
            return Outcome.done
        if self._is_written(key, work) and (later := self._looks.remaining(key)):
            return Outcome.again(after=later)
        resource = await self._resource(manifest)
        if resource is None:
            await self._report(work, manifest, None, None, f"the cluster serves no {text(manifest, 'kind')}")
            return Outcome.again(after=AGAIN)
        self._follow(key, resource)
        identity = _identity(manifest)
        try:
            if work.spec.suspend_dispatching:
                found = await self._held_back(work, resource, manifest)
            else:
                found = await self._applied(key, work, resource, manifest)
        except (AlreadyExists, Conflict):
            raise
        except (ApiError, NotApplied) as error:
            await self._report(work, manifest, resource, None, str(error))
            return Outcome.again(after=self._repairs.wait(identity) or AGAIN)
        is_disputed = self._repairs.are_disputed(identity)
        await self._report(work, manifest, resource, found, "", DISPUTED if is_disputed else APPLIED_MESSAGE)
        if found is not None and _is_observed(found):
            self._looks.restart(key)
        if is_disputed:
            return Outcome.again(after=self._repairs.next_look(identity))
        return Outcome.done if self._followed.is_watched(resource) else Outcome.again(after=AGAIN)

    def _is_of_others(self, change: Change[Work]) -> bool:
        """Whether a change of a Work is not only the status that was written here."""
        old, new = change.old, change.new
        if old is None or new is None or self._reported.get(new.metadata.uid) != new.status:
            return True
        return _without_version(old.metadata) != _without_version(new.metadata) or old.spec != new.spec

    def _is_written(self, key: Key, work: Work) -> bool:
        """Whether what a Work asks for was applied."""
        return self._written.get(key) == (work.metadata.uid, work.metadata.generation)

    def _follow(self, key: Key, resource: Resource) -> None:
        """Watch the kind of what a Work makes, from now on."""
        self._kind_of[key] = resource
        self._followed.look(resource)

    def _forget(self, key: Key) -> None:
        """The Work is gone; with the last one of its kind goes the watch."""
        uid, _ = self._written.pop(key, ("", 0))
        self._reported.pop(uid, None)
        self._looks.reset(key)
        resource = self._kind_of.pop(key, None)
        if resource is not None and resource not in self._kind_of.values():
            self._followed.drop(resource)

    async def _resource(self, manifest: Object) -> Resource | None:
        return await self._kinds.find(text(manifest, "apiVersion"), text(manifest, "kind"))

    async def _held_back(self, work: Work, resource: Resource, manifest: Object) -> Untyped | None:
        """The object as it is: what it reports counts also while nothing is written to it."""
        found = await self._objects.get(resource, manifest)
        return found if found is not None and _is_of(work, found) else None

    async def _applied(self, key: Key, work: Work, resource: Resource, manifest: Object) -> Untyped:
        """The object, with what the manifest asks for. It is written if it is another manifest, or has been changed.

        Written in the very version that was looked at: a request that is late must not bring back what was asked for
        before. An object that is ahead of the Work is left alone, unless the hub says that the Work is the newest. What
        somebody in the cluster keeps changing is put back less and less often.
        """
        meta, identity = work.metadata, _identity(manifest)
        body: Object = patched(
            manifest, {"metadata": {"annotations": {WORK_NAMESPACE: meta.namespace, WORK_NAME: meta.name}}}
        )
        live = await self._objects.get(resource, manifest)
        is_repair = self._is_written(key, work)
        if live is not None:
            body = with_retained(body, live)
            if is_repair and covers(live, body):
                return live
            if sequence_of(live) > sequence_of(manifest):
                newest = await self._hub.get(Work, meta.name, meta.namespace)
                if newest.metadata.generation != meta.generation:
                    return live
            _check_owner(work, live, manifest)
        if is_repair and self._repairs.wait(identity) > 0:
            if live is None:
                raise NotApplied(DELETED_AGAIN)
            return live
        applied = await self._objects.write(untyped(resource), body, live)
        if is_repair and (live is None or version_of(applied) != version_of(live)):
            self._repairs.note(identity)
        self._written[key] = meta.uid, meta.generation
        return applied

    async def _removed(self, work: Work, manifest: Object) -> Outcome:
        if EXECUTION_FINALIZER not in work.metadata.finalizers:
            return Outcome.done
        resource = await self._resource(manifest)
        if resource is not None:
            found = await self._objects.get(resource, manifest)
            if found is not None and _is_of(work, found):
                is_kept = work.spec.preserve_resources_on_deletion
                await (self._objects.unmark if is_kept else self._objects.remove)(resource, found)
        rest = [one for one in work.metadata.finalizers if one != EXECUTION_FINALIZER]
        await self._hub.amend(Work, work.metadata, {"metadata": {"finalizers": rest}}, manager=MANAGER)
        return Outcome.done

    async def _report(
        self,
        work: Work,
        manifest: Object,
        resource: Resource | None,
        found: Object | None,
        problem: str,
        success: str = APPLIED_MESSAGE,
    ) -> None:
        now = self._clock.now()
        conditions = set_condition(work.status.conditions, _dispatching(work, now))
        applied = new_condition(
            APPLIED,
            status=FALSE if problem else TRUE,
            reason="AppliedFailed" if problem else "AppliedSuccessful",
            message=problem or success,
            generation=work.metadata.generation,
            now=now,
        )
        if problem or not work.spec.suspend_dispatching:
            conditions = set_condition(conditions, applied)
        statuses = work.status.manifest_statuses
        if found is not None and resource is not None:
            statuses = (ManifestStatus(identifier=_identifier(manifest, resource), status=reflected(found)),)
        status = WorkStatus(conditions=conditions, manifest_statuses=statuses)
        if status != work.status:
            change = {"status": difference(to_builtins(work.status), to_builtins(status))}
            written = await self._hub.amend(Work, work.metadata, change, manager=MANAGER, subresource="status")
            self._reported[work.metadata.uid] = written.status


def _is_observed(obj: Object) -> bool:
    """Whether nobody waits for it to acknowledge what it is asked for."""
    is_aligned = sequence_of(obj) > 0
    return not is_aligned or at(obj, "status", "observedGeneration") == at(obj, "metadata", "generation")


def _without_version(meta: ObjectMeta) -> ObjectMeta:
    return replace(meta, resource_version="")


def _dispatching(work: Work, now: datetime) -> Condition:
    """Whether what is asked for is written to the cluster."""
    is_held = bool(work.spec.suspend_dispatching)
    return new_condition(
        "Dispatching",
        status=FALSE if is_held else TRUE,
        reason="SuspendDispatching" if is_held else "Dispatching",
        message="Work dispatching is in a suspended state." if is_held else "Work is being dispatched.",
        generation=work.metadata.generation,
        now=now,
    )


def _identity(manifest: Object) -> ObjectKey:
    name, namespace = name_in(manifest)
    return ObjectKey(group_of(manifest), text(manifest, "kind"), namespace or "", name)


def _is_of(work: Work, found: Object) -> bool:
    """Whether an object was made by this Work."""
    return bool(at(found, "metadata", "annotations", WORK_NAME) == work.metadata.name)


def _identifier(manifest: Object, resource: Resource) -> ResourceIdentifier:
    return ResourceIdentifier(
        ordinal=0,
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        resource=resource.plural,
        namespace=text(manifest, "metadata", "namespace"),
        name=text(manifest, "metadata", "name"),
    )


def _is_made_here(found: PartialObject) -> bool:
    """Whether some Work made it. Others of its kind are not kept, however many there are."""
    return WORK_NAME in found.metadata.annotations


def _of_object(hub: str, _: str, seen: WatchedObject[PartialObject]) -> Iterable[Key]:
    notes = seen.meta.annotations
    if WORK_NAME in notes:
        yield Key(hub, notes.get(WORK_NAMESPACE), notes[WORK_NAME])


def _check_owner(work: Work, live: Object, manifest: Object) -> None:
    """Refuse to take over an object that somebody else made, unless it is said that this is meant."""
    is_meant = at(manifest, "metadata", "annotations", CONFLICT_RESOLUTION) == "overwrite"
    if is_meant or is_true(work.status.conditions, APPLIED) or WORK_NAME in (at(live, "metadata", "annotations") or {}):
        return
    raise NotApplied(
        f"{text(manifest, 'kind')} {text(manifest, 'metadata', 'name')} is in the cluster already, and somebody else"
        " made it: delete it there, or set conflictResolution to Overwrite"
    )
