"""Components: keeps each state of a Component as a ControllerRevision, and says in its status which is the newest."""

from __future__ import annotations

from typing import Final

from msgspec import to_builtins

from kedge.api.apps import ControllerRevision
from kedge.api.condition import FALSE, TRUE, new_condition, set_condition
from kedge.api.oam.components import Component, ComponentStatus
from kedge.controllers.application.caches import ApplicationCaches, owner_reference
from kedge.controllers.application.writes import create, write_status
from kedge.kube.clock import Clock
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import owner_of
from kedge.plan.oam.conditions import REFUSED, SUCCEEDED, SYNCED
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import Revision, component_hash, component_revision, find_revision, revisions_of_component

REVISION_CREATED: Final = "RevisionCreated"
_UNUSED: Final = "spec.parameters is not used: put the values into spec.workload"


class Components:
    """The controller of Components."""

    def __init__(self, caches: ApplicationCaches, *, clock: Clock) -> None:
        self._caches = caches
        self._client = caches.cluster.client
        self._events = caches.cluster.events
        self._clock = clock
        watch = caches.watch
        sources = (watch(caches.components), watch(caches.component_revisions, to=owner_of(Component)))
        self.controller = Controller("components", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        component = self._caches.components.get(key.name, key.namespace)
        if component is None or component.metadata.deletion_timestamp is not None:
            return Outcome.done
        try:
            revision = await self._revise(component)
        except OamRefused as refused:
            await self._say(component, None, str(refused))
            return Outcome.done
        await self._say(component, revision, _UNUSED if component.spec.parameters else "")
        return Outcome.done

    async def _revise(self, component: Component) -> Revision:
        """The revision of its present state, made if there is none."""
        meta, spec = component.metadata, to_builtins(component.spec)
        namespace = meta.namespace or ""
        among = self._caches.revisions_in(namespace)
        own = revisions_of_component(meta.name, meta.uid, among)
        found = find_revision(meta.name, component_hash(spec), own, (one.metadata.name for one in among))
        if found.is_new:
            whole = {"metadata": {"name": meta.name, "namespace": namespace}, "spec": spec}
            body = component_revision(whole, found.revision, owner_reference(Component, meta))
            await create(self._client, ControllerRevision, body)
            self._events.normal(component, REVISION_CREATED, f"created revision {found.revision.name}")
        return found.revision

    async def _say(self, component: Component, revision: Revision | None, message: str) -> None:
        meta, old = component.metadata, component.status
        reason, holds = (SUCCEEDED, TRUE) if revision is not None else (REFUSED, FALSE)
        said = new_condition(SYNCED, holds, reason, message, now=self._clock.now(), generation=meta.generation)
        status = ComponentStatus(
            conditions=set_condition(old.conditions, said),
            latest_revision=revision.latest if revision is not None else old.latest_revision,
            observed_generation=meta.generation,
        )
        if await write_status(self._client, Component, meta, old, status) and revision is None:
            self._events.warning(component, REFUSED, message)
