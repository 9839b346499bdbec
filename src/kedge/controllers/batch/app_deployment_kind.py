"""App deployment kind: ApplicationDeployments, which refer to two Applications.

The target is brought in: it is marked as the rollout's own, held, and handed to its controller, which makes its
workload frozen. The source keeps its workload, without pods. A workload that is changed in place cannot move from one
Application to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kedge.api.oam.keys import NAME_LABEL, ROLLING_COMPONENTS
from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollouts import ApplicationDeployment, ApplicationDeploymentStatus
from kedge.controllers.batch.app_access import APPLICATION, AppAccess, is_at_start, missing
from kedge.controllers.batch.app_rollout_kind import solving_conflicts, told_apart
from kedge.controllers.batch.located import FindRollouts, LocateResult, NotLocated
from kedge.controllers.batch.revisions import RevisionRollout, Revisions
from kedge.kube.source import Source
from kedge.plan.batching.app_control import AppOwner, ControlledApplication, bring_in, taken_by
from kedge.plan.batching.moves import WorkloadRef, Workloads
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.fields import Object, condition, text
from kedge.plan.oam.app_revisions import component_names, latest_revision, rolled_component
from kedge.plan.oam.application import RevisedComponent, names_in
from kedge.plan.oam.conditions import PARSED
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.workloads import is_in_place
from kedge.plan.text import object_name


class AppDeploymentKind:
    """Reads ApplicationDeployments."""

    kind: Final = ApplicationDeployment

    def __init__(self, apps: AppAccess, revisions: Revisions) -> None:
        self._apps = apps
        self._revisions = revisions

    def plan(self, rollout: ApplicationDeployment) -> RolloutPlan:
        return solving_conflicts(rollout)

    def wanted(self, rollout: ApplicationDeployment) -> str:
        return rollout.spec.target_application_name

    def moving(self, status: ApplicationDeploymentStatus) -> str:
        return status.last_target_application

    def with_moving(
        self, rollout: ApplicationDeployment, status: ApplicationDeploymentStatus, target: str
    ) -> ApplicationDeploymentStatus:
        source = _source(rollout, status, target)
        return replace(status, last_target_application=target, last_source_application=source)

    def annotations(self, target: WorkloadRef) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def sources(self, find: FindRollouts) -> Iterable[Source]:
        return self._apps.sources(APPLICATION, find, _applications_of)

    # What moves

    async def locate(
        self, rollout: ApplicationDeployment, status: ApplicationDeploymentStatus, target: str
    ) -> LocateResult:
        namespace = rollout.metadata.namespace or ""
        if not is_at_start(status):
            return await self._under_way(rollout, status, target)
        name = _source(rollout, status, target)
        application = await self._apps.application(target, namespace)
        source = await self._apps.application(name, namespace) if name else None
        if application is None:
            return missing(APPLICATION, target, namespace)
        if source is None and name:
            return missing(APPLICATION, name, namespace)
        return await self._starts(rollout, status, application, source)

    async def _under_way(
        self, rollout: ApplicationDeployment, status: ApplicationDeploymentStatus, target: str
    ) -> LocateResult:
        namespace = rollout.metadata.namespace or ""
        _, component, revision = await self._apps.moved_to(status, namespace)
        owners: tuple[Mapping[str, Any], ...] = ()
        application = None if revision else await self._apps.application(target, namespace)
        if application is not None and (latest := latest_revision(application)):  # its workload is not there yet
            found = await self._apps.revision(latest, namespace)
            revised = found.component(_only_listed(rollout, application)) if found is not None else None
            if found is not None and revised is not None:
                component, revision, owners = revised.name, revised.revision, found.owners
        asked = RevisionRollout(namespace, revision, component=component, application=target, owners=owners)
        return told_apart(await self._revisions.locate(asked, status))

    async def _starts(
        self,
        rollout: ApplicationDeployment,
        status: ApplicationDeploymentStatus,
        target: Object,
        source: Object | None,
    ) -> LocateResult:
        theirs = component_names(source) if source is not None else None
        try:
            component = rolled_component(component_names(target), theirs, rollout.spec.component_list)
        except OamRefused as refused:
            return NotLocated(problem=str(refused))
        if (held := _brought_in(rollout, target, source, component)) is not None:
            return held
        revision = latest_revision(target)
        found = await self._apps.revision(revision, rollout.metadata.namespace or "") if revision else None
        revised = found.component(component) if found is not None else None
        if found is None or revised is None:
            return _not_rendered(target)
        if problem := _in_place_problem(revised, source):
            return NotLocated(problem=problem)
        asked = RevisionRollout(
            rollout.metadata.namespace or "",
            revised.revision,
            last=(await self._apps.moved_to(status, rollout.metadata.namespace or ""))[2],
            component=component,
            application=found.application,
            app_revision=found.name,
            owners=found.owners,
            running_of=(text(source, "metadata", "name"), found.application) if source is not None else (),
        )
        return told_apart(await self._revisions.locate(asked, status))

    # The Applications

    async def applications(
        self, rollout: ApplicationDeployment, status: ApplicationDeploymentStatus, workloads: Workloads | None
    ) -> tuple[ControlledApplication, ...]:
        namespace = rollout.metadata.namespace or ""
        target = status.last_target_application or rollout.spec.target_application_name
        application = await self._apps.application(target, namespace)
        if application is None:
            return ()
        app, moved, revision = await self._apps.moved_to(status, namespace)
        component = moved or _only_listed(rollout, application)
        latest = latest_revision(application)
        rolled = await self._apps.revision(latest, namespace) if latest else None
        newest = rolled.component(component) if rolled is not None else None
        is_current = app == target and newest is not None and newest.revision == revision
        mine = ControlledApplication(application, component, is_target=True, is_current=is_current)
        return (mine, *await self._old(rollout, status, workloads, component, target))

    async def _old(
        self,
        rollout: ApplicationDeployment,
        status: ApplicationDeploymentStatus,
        workloads: Workloads | None,
        component: str,
        target: str,
    ) -> tuple[ControlledApplication, ...]:
        """The Applications that it moves from, and whether each had pods."""
        before = {one.name: one.replicas for one in status.sources}
        named = status.last_source_application or rollout.spec.source_application_name
        had_pods = {named: not status.sources} if named else {}
        for one in workloads.sources if workloads is not None else ():
            name = text(one.obj, "metadata", "labels", NAME_LABEL)
            had_pods[name] = had_pods.get(name, False) or before.get(one.ref.name, 0) > 0
        found = [
            (await self._apps.application(name, rollout.metadata.namespace or ""), pods)
            for name, pods in had_pods.items()
            if name and name != target
        ]
        return tuple(ControlledApplication(one, component, had_pods=pods) for one, pods in found if one is not None)


def _brought_in(
    rollout: ApplicationDeployment, target: Object, source: Object | None, component: str
) -> NotLocated | None:
    """What has to be written, or passed by, before the Applications are the rollout's; None if they are."""
    resource, meta = ApplicationDeployment.resource, rollout.metadata
    owner = AppOwner(resource.api_version, resource.kind, meta.name, meta.uid)
    if other := taken_by(target, owner):
        return NotLocated(waiting_for(_name(target), BatchCode.taken, other))
    mine = ControlledApplication(target, component, is_target=True)
    old = [bring_in(ControlledApplication(source, component))] if source is not None else []
    writes = tuple(write for write in (*old, bring_in(mine, owner)) if write is not None)
    return NotLocated(writes=writes) if writes else None


def _only_listed(rollout: ApplicationDeployment, target: Object) -> str:
    """The component of a rollout that never began: the one that it names, or that the target alone is rolling."""
    rolling = names_in(text(target, "metadata", "annotations", ROLLING_COMPONENTS))
    return next(iter((*rollout.spec.component_list, *rolling)), "")


def _not_rendered(target: Object) -> NotLocated:
    parsed = condition(target, PARSED)
    message = text(parsed, "message") if text(parsed, "status") == "False" else ""
    return NotLocated(waiting_for(_name(target), BatchCode.not_rendered, *([message] if message else [])))


def _in_place_problem(revised: RevisedComponent, source: Object | None) -> str:
    workload = revised.component["spec"]["workload"]
    if source is None or not is_in_place(workload):
        return ""
    return (
        f"component {revised.name} is a {text(workload, 'kind')}, which is changed in place and cannot move from one"
        " Application to another: change the Application, and roll its revisions out with an AppRollout"
    )


def _name(application: Object) -> str:
    meta = application["metadata"]
    return object_name(APPLICATION.kind, meta["namespace"], meta["name"])


def _source(rollout: ApplicationDeployment, status: ApplicationDeploymentStatus, target: str) -> str:
    """The Application it moves from: the named one, or what it moved to last."""
    found = rollout.spec.source_application_name or status.last_target_application
    return found if found != target else ""


def _applications_of(rollout: ApplicationDeployment) -> Iterable[str]:
    return rollout.spec.target_application_name, rollout.spec.source_application_name
