"""Applications: makes revisions of an Application, and the ApplicationConfiguration of the newest one.

An Application that a rollout brings in (annotation `app.oam.dev/rollout-template`) is left alone. What a revision is
made of is kept in it: an Application that does not change is never made anew, whatever this version of Kedge would make
of it. A configuration that is replaced goes when the new one is applied; the workloads belong to the Application.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins

from kedge.api.apps import ControllerRevision
from kedge.api.condition import is_true
from kedge.api.meta import ObjectMeta, controller_of
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration
from kedge.api.oam.keys import NAME_LABEL, ROLLING_COMPONENTS
from kedge.api.oam.rollouts import AppRollout
from kedge.controllers.application.caches import ApplicationCaches, owner_reference
from kedge.controllers.application.components import REVISION_CREATED
from kedge.controllers.application.object_writes import MANAGER
from kedge.controllers.application.writes import create, write_status
from kedge.kube.clock import Clock
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import WatchedObject, owner_of
from kedge.plan.digest import digest
from kedge.plan.fields import Object
from kedge.plan.oam.application import (
    RenderedComponent,
    application_revision,
    configuration,
    configuration_annotations,
    is_template,
    render,
    rolled_by_plan,
    rolling_now,
)
from kedge.plan.oam.application_status import application_status
from kedge.plan.oam.conditions import REFUSED, SYNCED
from kedge.plan.oam.emission import APPLIED
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import (
    Revision,
    application_hash,
    application_of,
    component_hash,
    component_revision,
    find_revision,
    named_revision,
    revision_number,
    revisions_of_application,
    revisions_of_component,
)

CONFIGURED: Final = "ConfigurationCreated"


class Applications:
    """The controller of Applications."""

    def __init__(self, caches: ApplicationCaches, *, clock: Clock) -> None:
        self._caches = caches
        self._client = caches.cluster.client
        self._events = caches.cluster.events
        self._clock = clock
        watch, owner = caches.watch, owner_of(Application)
        sources = (
            watch(caches.applications),
            watch(caches.app_revisions, to=owner),
            watch(caches.configurations, to=owner),
            watch(caches.component_revisions, to=owner),
            watch(caches.app_rollouts, to=owner),
            watch(caches.app_rollouts, to=_rolled_out),
        )
        self.controller = Controller("applications", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        application = self._caches.applications.get(key.name, key.namespace)
        if application is None or application.metadata.deletion_timestamp is not None or is_template(application):
            return Outcome.done
        try:
            components = render(application)
            revision = await self._revise(application, components)
            current = await self._configure(application, revision)
            rollout = await self._roll_out(application, revision)
        except OamRefused as refused:
            await self._refuse(application, str(refused))
            return Outcome.done
        await self._remove_replaced(application, current)
        status = application_status(application, revision, current, rollout, now=self._clock.now())
        await write_status(self._client, Application, application.metadata, application.status, status)
        return Outcome.done

    # Revisions

    async def _revise(self, application: Application, components: tuple[RenderedComponent, ...]) -> Revision:
        """The revision of its present state, made if there is none."""
        meta = application.metadata
        among = self._caches.app_revisions.by("namespace", meta.namespace or "")
        own = revisions_of_application(meta.name, (one for one in among if _is_controlled(one, meta.uid)))
        taken = [one.metadata.name for one in among]
        found = find_revision(meta.name, application_hash(to_builtins(application.spec)), own, taken)
        if found.is_new:
            revised = [(one, await self._revise_component(application, one)) for one in components]
            configured = configuration(application, found.revision.name, revised)
            owner = owner_reference(Application, meta)
            body = application_revision(application, found.revision.name, components, configured, owner)
            await create(self._client, ApplicationRevision, body)
            self._events.normal(application, REVISION_CREATED, f"created revision {found.revision.name}")
        return found.revision

    async def _revise_component(self, application: Application, rendered: RenderedComponent) -> str:
        meta, namespace = application.metadata, application.metadata.namespace or ""
        component = rendered.component(namespace)
        among = self._caches.revisions_in(namespace)
        own = revisions_of_component(rendered.name, meta.uid, among)
        made, taken = component_hash(component["spec"]), (one.metadata.name for one in among)
        if rendered.revision:
            found = named_revision(rendered.name, rendered.revision, made, own, among)
        else:
            found = find_revision(rendered.name, made, own, taken)
        if found.is_new:
            body = component_revision(component, found.revision, owner_reference(Application, meta))
            await create(self._client, ControllerRevision, body)
        return found.revision.name

    # What is made of a revision

    async def _configure(self, application: Application, revision: Revision) -> ApplicationConfiguration | None:
        """The configuration of a revision, made if there is none; None if it was made just now."""
        meta = application.metadata
        current = self._caches.configurations.get(revision.name, meta.namespace)
        if current is None:
            await self._create_configuration(application, revision)
            return None
        rolling = ",".join(self._rolling(application, revision)) or None
        if current.metadata.annotations.get(ROLLING_COMPONENTS) != rolling:
            change = {"metadata": {"annotations": {ROLLING_COMPONENTS: rolling}}}
            await self._client.amend(ApplicationConfiguration, current.metadata, change, manager=MANAGER)
        return current

    async def _create_configuration(self, application: Application, revision: Revision) -> None:
        meta = application.metadata
        kept = self._caches.app_revisions.get(revision.name, meta.namespace)
        if kept is None or kept.spec.application_configuration is None:
            return  # it was created just now: its own event comes
        made: Mapping[str, Any] = kept.spec.application_configuration
        upgrades = any(True for _ in self._others(application, revision.name))
        notes = {
            "annotations": configuration_annotations(
                application, upgrades=upgrades, rolling=self._rolling(application, revision)
            ),
            "ownerReferences": [_controller(meta)],
        }
        await create(self._client, ApplicationConfiguration, {**made, "metadata": {**made["metadata"], **notes}})
        self._events.normal(application, CONFIGURED, f"created the ApplicationConfiguration {revision.name}")

    def _rolling(self, application: Application, revision: Revision) -> tuple[str, ...]:
        """The components that are rolled out. Its own AppRollout is its plan's, which says so already."""
        meta = application.metadata
        among = self._caches.app_rollouts.by("namespace", meta.namespace or "")
        others = (one for one in among if not _is_controlled(one, meta.uid))
        return rolling_now(application, revision.name, others)

    async def _roll_out(self, application: Application, revision: Revision) -> AppRollout | None:
        """The AppRollout of the Application's own plan; none without a plan."""
        meta = application.metadata
        found = self._caches.app_rollouts.get(meta.name, meta.namespace)
        live = found if found is not None and _is_controlled(found, meta.uid) else None
        if application.spec.rollout_plan is None:
            if live is not None:
                await self._client.remove(AppRollout, live.metadata)
            return None
        if found is not None and live is None:
            raise OamRefused(f"the AppRollout {meta.name} was made by somebody else: delete it, or spec.rolloutPlan")
        spec = self._rollout_spec(application, revision)
        if live is None or live.metadata.annotations.get(APPLIED) != digest(spec):
            await self._apply_rollout(meta, spec, live)
        return live

    async def _apply_rollout(self, meta: ObjectMeta, spec: Object, live: AppRollout | None) -> None:
        body = {
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "labels": {NAME_LABEL: meta.name},
                "annotations": {APPLIED: digest(spec)},
                "ownerReferences": [_controller(meta)],
            },
            "spec": spec,
        }
        uid = live.metadata.uid if live is not None else None
        await self._client.apply(AppRollout, body, manager=MANAGER, uid=uid, force=live is not None)

    def _rollout_spec(self, application: Application, revision: Revision) -> Object:
        """To the newest revision, from the one before it."""
        meta = application.metadata
        older = [
            (number, one.metadata.name)
            for one in self._caches.app_revisions.by("namespace", meta.namespace or "")
            if _is_controlled(one, meta.uid)
            and (number := revision_number(one.metadata.name, meta.name)) is not None
            and number < revision.number
        ]
        source = {"sourceAppRevisionName": max(older)[1]} if older else {}
        return {
            "targetAppRevisionName": revision.name,
            "rolloutPlan": to_builtins(application.spec.rollout_plan),
            **source,
            "componentList": list(rolled_by_plan(application)),
        }

    # What was replaced

    async def _remove_replaced(self, application: Application, current: ApplicationConfiguration | None) -> None:
        if current is None or not is_true(current.status.conditions, SYNCED, generation=current.metadata.generation):
            return
        for one in self._others(application, current.metadata.name):
            await self._client.remove(ApplicationConfiguration, one.metadata)

    def _others(self, application: Application, but: str) -> Iterable[ApplicationConfiguration]:
        meta = application.metadata
        among = self._caches.configurations.by("namespace", meta.namespace or "")
        return (one for one in among if _is_controlled(one, meta.uid) and one.metadata.name != but)

    async def _refuse(self, application: Application, message: str) -> None:
        status = application_status(application, message, None, None, now=self._clock.now())
        if await write_status(self._client, Application, application.metadata, application.status, status):
            self._events.warning(application, REFUSED, message)


def _controller(meta: ObjectMeta) -> Mapping[str, Any]:
    return owner_reference(Application, meta) | {"controller": True, "blockOwnerDeletion": True}


def _is_controlled(obj: Any, uid: str) -> bool:
    owner = controller_of(obj.metadata)
    return owner is not None and owner.uid == uid


def _rolled_out(seen: WatchedObject[AppRollout]) -> Iterable[Key]:
    """The Application whose revision an AppRollout brings in."""
    name = application_of(seen.object.spec.target_app_revision_name)
    return [Key(seen.cluster, seen.meta.namespace, name)] if name else []
