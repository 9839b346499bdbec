"""Configurations: writes the workloads and traits that an ApplicationConfiguration asks for.

Only the newest configuration of an Application is at work. What it writes belongs to the Application, or to itself if
there is none, and goes with it. A component that cannot be written does not keep the others from it; its problem is in
the status. What is not asked for any more is removed last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kedge.api.apps import ControllerRevision
from kedge.api.meta import controller_of
from kedge.api.oam.applications import Application
from kedge.api.oam.components import ApplicationConfiguration
from kedge.api.oam.keys import COMPONENT_LABEL, CREATING, NAME_LABEL
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.controllers.application.caches import ApplicationCaches, owner_reference
from kedge.controllers.application.component_writes import REMOVED, ComponentWrites, OwnedBy
from kedge.controllers.application.object_writes import MANAGER, ObjectWrites
from kedge.controllers.application.writes import write_status
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal, Source, WatchedObject
from kedge.plan.fields import Object, name_of, text
from kedge.plan.oam.application import rolling_components
from kedge.plan.oam.conditions import REFUSED
from kedge.plan.oam.configuration_status import ComponentResult, configuration_status
from kedge.plan.oam.emission import is_claimed
from kedge.plan.oam.revisions import revision_number

LOOK_AGAIN: Final = 15.0
"""Seconds until something that was refused, or cannot be watched, is looked at again."""


class Configurations:
    """The controller of ApplicationConfigurations."""

    def __init__(self, caches: ApplicationCaches, objects: ObjectWrites, *, clock: Clock) -> None:
        self._caches = caches
        self._client = caches.cluster.client
        self._events = caches.cluster.events
        self._objects = objects
        self._clock = clock
        self._components = ComponentWrites(caches, objects)
        watch = caches.watch
        clone_sets = Signal(caches.cluster.name)  # no source, since a cluster may not have the kind
        watch(caches.clone_sets, to=self._of_workload).subscribe(clone_sets.wake)
        sources: list[Source] = [
            watch(caches.configurations),
            watch(caches.component_revisions, to=self._in_namespace),
            *(watch(cache, to=self._of_workload) for cache in caches.workloads),
            clone_sets,
        ]
        self.controller = Controller("configurations", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        configuration = self._caches.configurations.get(key.name, key.namespace)
        if configuration is None or configuration.metadata.deletion_timestamp is not None:
            return Outcome.done
        if self._is_replaced(configuration):
            return Outcome.done
        owner, rolling = _owner(configuration), rolling_components(configuration)
        results = [
            await self._components.write(configuration, one, owner, one.component_name in rolling)
            for one in configuration.spec.components
        ]
        if not any(one.problem for one in results):
            await self._remove_others(configuration, owner, results)
        await self._say(configuration, results)
        return Outcome.again(after=LOOK_AGAIN) if self._polls(results) else Outcome.done

    # What is not asked for any more

    async def _remove_others(
        self, configuration: ApplicationConfiguration, owner: OwnedBy, results: Iterable[ComponentResult]
    ) -> None:
        found = tuple(results)
        namespace = configuration.metadata.namespace or ""
        names = {one.emitted.component_name for one in found}
        for workload in self._caches.workloads_in(namespace, owner.application):
            if text(workload, "metadata", "labels", COMPONENT_LABEL) not in names and not is_claimed(workload):
                await self._remove(configuration, workload)
        wanted = {ref for one in found for ref in one.emitted.traits}
        for ref in self._traits_before(configuration, owner) - wanted:
            live = await self._objects.find(ref, namespace)
            if live is not None and text(live, "metadata", "labels", NAME_LABEL) == owner.application:
                await self._remove(configuration, live)

    def _traits_before(self, configuration: ApplicationConfiguration, owner: OwnedBy) -> set[ObjectReference]:
        """The traits that this configuration, or one that it replaces, has written."""
        among = (configuration, *self._siblings(configuration, owner.application))
        return {ref for one in among for emitted in one.status.workloads for ref in emitted.traits}

    async def _remove(self, configuration: ApplicationConfiguration, live: Object) -> None:
        await self._objects.remove(live)
        self._events.normal(configuration, REMOVED, f"removed {name_of(live)}, which is not asked for any more")

    # What is said

    async def _say(self, configuration: ApplicationConfiguration, results: Iterable[ComponentResult]) -> None:
        found, meta = tuple(results), configuration.metadata
        status = configuration_status(configuration, found, now=self._clock.now())
        changed = await write_status(self._client, ApplicationConfiguration, meta, configuration.status, status)
        problem = next((one.problem for one in found if one.problem), "")
        if changed and problem:
            self._events.warning(configuration, REFUSED, problem)
        is_over = not any(one.problem or one.wait for one in found)
        if not changed and is_over and CREATING in meta.annotations:
            change = {"metadata": {"annotations": {CREATING: None}}}
            await self._client.amend(ApplicationConfiguration, meta, change, manager=MANAGER)

    def _polls(self, results: Iterable[ComponentResult]) -> bool:
        return any(
            one.problem or (one.emitted.workload_ref is not None and not self._is_watched(one.emitted.workload_ref))
            for one in results
        )

    def _is_watched(self, ref: ObjectReference) -> bool:
        return self._caches.knows({"apiVersion": ref.api_version, "kind": ref.kind})

    # Which one is at work

    def _is_replaced(self, configuration: ApplicationConfiguration) -> bool:
        """Whether its Application has a newer one."""
        owner, name = _owner(configuration), configuration.metadata.name
        own = revision_number(name, owner.application) or 0
        newer = (
            revision_number(one.metadata.name, owner.application) or 0
            for one in self._siblings(configuration, owner.application)
        )
        return any(number > own for number in newer)

    def _siblings(self, configuration: ApplicationConfiguration, application: str) -> list[ApplicationConfiguration]:
        meta = configuration.metadata
        return [
            one
            for one in self._caches.configurations.by("namespace", meta.namespace or "")
            if one.metadata.labels.get(NAME_LABEL) == application
            and one.metadata.name != meta.name
            and controller_of(one.metadata) == controller_of(meta) is not None
        ]

    # Who wakes it

    def _in_namespace(self, seen: WatchedObject[ControllerRevision]) -> Iterable[Key]:
        """A revision may be the one that a configuration of its namespace waits for."""
        among = self._caches.configurations.by("namespace", seen.meta.namespace or "")
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in among]

    def _of_workload(self, seen: WatchedObject[Untyped]) -> Iterable[Key]:
        application = seen.meta.labels.get(NAME_LABEL, "")
        among = self._caches.configurations.by("namespace", seen.meta.namespace or "")
        return [
            Key(seen.cluster, one.metadata.namespace, one.metadata.name)
            for one in among
            if application in (one.metadata.name, one.metadata.labels.get(NAME_LABEL))
        ]


def _owner(configuration: ApplicationConfiguration) -> OwnedBy:
    """The Application it was made of, or itself."""
    meta, controller = configuration.metadata, controller_of(configuration.metadata)
    if controller is None or controller.kind != Application.resource.kind:
        return OwnedBy(meta.name, "", owner_reference(ApplicationConfiguration, meta))
    reference = {
        "apiVersion": controller.api_version,
        "kind": controller.kind,
        "name": controller.name,
        "uid": controller.uid,
    }
    return OwnedBy(controller.name, meta.name, reference)
