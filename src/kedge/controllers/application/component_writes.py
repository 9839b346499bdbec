"""Component writes: writes the workload and the traits of one component of an ApplicationConfiguration.

Rollouts come first, so that whoever moves a workload knows of a new revision before its workload shows it; then the
workload, then everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.apps import ControllerRevision
from kedge.api.oam.components import ApplicationConfiguration, ConfiguredComponent, EmittedWorkload
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollouts import RolloutTrait
from kedge.controllers.application.caches import ApplicationCaches
from kedge.controllers.application.object_writes import ObjectWrites
from kedge.kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, NotFound
from kedge.plan.fields import Object, name_of, text
from kedge.plan.oam import traits as traiting
from kedge.plan.oam.configuration_status import ComponentResult
from kedge.plan.oam.emission import Emission, WantedComponent, belongs_to, emission, is_available, is_settled
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import component_in, revisions_of_component
from kedge.plan.oam.trait_objects import check_owner, is_applied, rollout_sources, trait_body
from kedge.plan.oam.workloads import revision_of

WORKLOAD_APPLIED, TRAIT_APPLIED, REMOVED = "WorkloadApplied", "TraitApplied", "Removed"
_REFUSALS: Final = (Invalid, Forbidden, BadRequest, NotFound)


class OwnedBy(Struct, frozen=True):
    """Whom the workloads of a configuration belong to."""

    application: str
    app_revision: str
    reference: Mapping[str, Any]


class ComponentWrites:
    """Writes the components of configurations."""

    def __init__(self, caches: ApplicationCaches, objects: ObjectWrites) -> None:
        self._caches = caches
        self._events = caches.cluster.events
        self._objects = objects

    async def write(
        self, configuration: ApplicationConfiguration, configured: ConfiguredComponent, owner: OwnedBy, rolled: bool
    ) -> ComponentResult:
        """Bring one component to what is asked for. A refusal, ours or the server's, is the result."""
        name = configured.component_name or configured.revision_name
        emitted = EmittedWorkload(component_name=name, component_revision_name=configured.revision_name)
        try:
            return await self._write(configuration, configured, owner, rolled)
        except OamRefused as refused:
            return ComponentResult(emitted, problem=str(refused))
        except ApiError as error:
            if not (isinstance(error, _REFUSALS) or _is_owned_by_others(error)):
                raise
            return ComponentResult(emitted, problem=f"component {name}: {error.message}")

    async def _write(
        self, configuration: ApplicationConfiguration, configured: ConfiguredComponent, owner: OwnedBy, rolled: bool
    ) -> ComponentResult:
        wanted = self._wanted(configuration, configured, owner, rolled)
        traits = tuple(one.trait for one in configured.traits if not traiting.is_scaler(one.trait))
        rollouts = [one for one in traits if traiting.is_rollout(one)]
        refs = [
            await self._write_trait(configuration, wanted, one, owner, wanted.workload(rolled=rolled))
            for one in rollouts
        ]
        found, workload = await self._write_workload(configuration, wanted, owner)
        for one in (one for one in traits if not traiting.is_rollout(one)):
            if rolled and traiting.is_autoscaler(one) and not is_settled(workload):
                refs += await self._kept(wanted, one, workload)
            else:
                refs.append(await self._write_trait(configuration, wanted, one, owner, workload))
        return ComponentResult(_emitted(wanted, found, workload, refs), wait=found.wait)

    # What is wanted

    def _wanted(
        self, configuration: ApplicationConfiguration, configured: ConfiguredComponent, owner: OwnedBy, rolled: bool
    ) -> WantedComponent:
        namespace = configuration.metadata.namespace or ""
        traits = tuple(one.trait for one in configured.traits)
        newest = configured.revision_name or self._newest(configured.component_name, namespace)
        name = traiting.target_revision(traits, newest) if rolled else newest
        component = component_in(self._revision(name, namespace))
        of = text(component, "metadata", "name")
        if configured.component_name not in ("", of):
            raise OamRefused(f"the component revision {name} is of {of}, not of {configured.component_name}")
        if problem := traiting.conflict(of, traits):
            raise OamRefused(problem)
        return WantedComponent(
            component,
            name,
            owner.application,
            owner.app_revision,
            rolled,
            traiting.scaled_to(traits),
            any(traiting.is_autoscaler(one) for one in traits),
        )

    def _newest(self, component: str, namespace: str) -> str:
        found = self._caches.components.get(component, namespace)
        if found is None:
            raise OamRefused(f"the Component {component} does not exist")
        own = revisions_of_component(component, found.metadata.uid, self._caches.revisions_in(namespace))
        if not own:
            raise OamRefused(f"the Component {component} has no revision yet")
        return max(own).name

    def _revision(self, name: str, namespace: str) -> ControllerRevision:
        found = self._caches.component_revisions.get(name, namespace)
        if found is None:
            raise OamRefused(
                f"the component revision {name} does not exist: there is no ControllerRevision of this name"
            )
        return found

    # The workload

    async def _write_workload(
        self, configuration: ApplicationConfiguration, wanted: WantedComponent, owner: OwnedBy
    ) -> tuple[Emission, Object]:
        """What was decided, and the workload as it is now or is to be."""
        found = await self._decide(wanted)
        now = found.live
        if found.apply is not None:
            now = await self._objects.apply(found.apply, owner.reference, found.live)
            self._events.normal(
                configuration, WORKLOAD_APPLIED, f"applied {name_of(now)} of revision {wanted.revision}"
            )
        elif found.patch is not None and found.live is not None:
            now = await self._objects.patch(found.live, found.patch)
        for one in found.remove:
            await self._objects.remove(one)
            self._events.normal(configuration, REMOVED, f"removed {name_of(one)}, which is not needed any more")
        return found, now if now is not None else wanted.workload(rolled=wanted.rolled)

    async def _decide(self, wanted: WantedComponent) -> Emission:
        """Before something is created, the server is asked: caches show only what has our labels."""
        workload, namespace = wanted.workload(rolled=wanted.rolled), text(wanted.component, "metadata", "namespace")
        known = self._caches.workloads_of(workload, namespace, wanted.name)
        found = emission(wanted, known)
        if found.live is not None or (found.apply is None and self._caches.knows(workload)):
            return found
        there = await self._objects.get(found.apply or workload)
        return emission(wanted, (*known, there)) if there is not None else found

    # Traits

    async def _write_trait(
        self,
        configuration: ApplicationConfiguration,
        wanted: WantedComponent,
        trait: Object,
        owner: OwnedBy,
        workload: Object,
    ) -> ObjectReference:
        named = trait_body(trait, wanted, workload)
        live = await self._objects.get(named)
        check_owner(live, wanted)
        body = trait_body(trait, wanted, workload, self._sources(live, wanted, named))
        if not is_applied(body, live):
            await self._objects.apply(body, owner.reference, live)
            self._events.normal(configuration, TRAIT_APPLIED, f"applied {name_of(body)}")
        return reference(body)

    async def _kept(self, wanted: WantedComponent, trait: Object, workload: Object) -> list[ObjectReference]:
        """An autoscaler has no place while the workload moves: one that is there stays as it is, none is written."""
        live = await self._objects.get(trait_body(trait, wanted, workload))
        return [reference(live)] if live is not None and belongs_to(live, wanted.application, wanted.name) else []

    def _sources(self, live: Object | None, wanted: WantedComponent, trait: Object) -> tuple[str, ...]:
        if text(trait, "kind") != RolloutTrait.resource.kind:
            return ()
        workload, namespace = wanted.workload(rolled=True), text(wanted.component, "metadata", "namespace")
        running = self._caches.workloads_of(workload, namespace, wanted.name)
        return rollout_sources(live, wanted.revision, sorted(revision_of(one) for one in running))


def reference(obj: Object) -> ObjectReference:
    """As a status names it."""
    return ObjectReference(
        api_version=text(obj, "apiVersion"), kind=text(obj, "kind"), name=text(obj, "metadata", "name")
    )


def _emitted(
    wanted: WantedComponent, found: Emission, workload: Object, traits: list[ObjectReference]
) -> EmittedWorkload:
    is_there = found.live is not None or found.apply is not None
    return EmittedWorkload(
        component_name=wanted.name,
        component_revision_name=wanted.revision,
        workload_ref=reference(workload) if is_there else None,
        traits=tuple(traits),
        available=is_there and is_available(workload),
        message=found.wait,
    )


def _is_owned_by_others(error: ApiError) -> bool:
    return isinstance(error, Conflict) and any(cause.reason == "FieldManagerConflict" for cause in error.causes)
