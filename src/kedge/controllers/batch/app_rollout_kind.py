"""App rollout kind: AppRollouts, which refer to revisions of one Application.

The component that moves is found in the revisions. What it moves from is whatever runs of it; without a source the
target is deployed or scaled. Conflicts are solved by the rollout itself: autoscalers are stopped unless the plan says
otherwise, and Services told apart. Workloads of old revisions are deleted after a success. An AppRollout that an
Application made of its own plan takes nothing over: the plan says it already.

An Application that waits to be brought in makes no revisions: the first AppRollout to its next one takes it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from kedge.api.meta import controller_of
from kedge.api.oam.rollout_plan import OnAutoscaler, RolloutPlan
from kedge.api.oam.rollouts import ApplicationDeployment, AppRollout, AppRolloutStatus
from kedge.controllers.batch.app_access import APP_REVISION, APPLICATION, AppAccess, is_at_start, missing
from kedge.controllers.batch.located import FindRollouts, Located, LocateResult, NotLocated
from kedge.controllers.batch.revisions import RevisionRollout, Revisions
from kedge.kube.source import Source
from kedge.plan.batching.app_control import ControlledApplication, awaits, bring_in
from kedge.plan.batching.moves import WorkloadRef, Workloads
from kedge.plan.oam.app_revisions import AppRevision, component_names, latest_revision, rolled_component
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import application_of
from kedge.plan.oam.workloads import is_in_place


class AppRolloutKind:
    """Reads AppRollouts."""

    kind: Final = AppRollout

    def __init__(self, apps: AppAccess, revisions: Revisions) -> None:
        self._apps = apps
        self._revisions = revisions

    def plan(self, rollout: AppRollout) -> RolloutPlan:
        return solving_conflicts(rollout)

    def wanted(self, rollout: AppRollout) -> str:
        return rollout.spec.target_app_revision_name

    def moving(self, status: AppRolloutStatus) -> str:
        return status.last_target_app_revision

    def with_moving(self, rollout: AppRollout, status: AppRolloutStatus, target: str) -> AppRolloutStatus:
        source = _source(rollout, status, target)
        return replace(status, last_target_app_revision=target, last_source_app_revision=source)

    def annotations(self, target: WorkloadRef) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def sources(self, find: FindRollouts) -> Iterable[Source]:
        revisions = self._apps.sources(APP_REVISION, find, _revisions_of)
        return [*revisions, *self._apps.sources(APPLICATION, find, _applications_of)]

    # What moves

    async def locate(self, rollout: AppRollout, status: AppRolloutStatus, target: str) -> LocateResult:
        namespace = rollout.metadata.namespace or ""
        found = await self._apps.revision(target, namespace)
        if not is_at_start(status):
            return await self._under_way(rollout, status, found)
        name = _source(rollout, status, target)
        source = await self._apps.revision(name, namespace) if name else None
        if found is None:
            return await self._handed_over(rollout, target) or missing(APP_REVISION, target, namespace)
        if source is None and name:
            return missing(APP_REVISION, name, namespace)
        return await self._starts(rollout, status, found, source)

    async def _handed_over(self, rollout: AppRollout, target: str) -> NotLocated | None:
        """What makes a revision of an Application that nobody looks after yet; None if its controller does."""
        name = application_of(target)
        application = await self._apps.application(name, rollout.metadata.namespace or "") if name else None
        if application is None or not awaits(application, target):
            return None
        try:
            component = rolled_component(component_names(application), None, rollout.spec.component_list)
        except OamRefused as refused:
            return NotLocated(problem=str(refused))
        write = bring_in(ControlledApplication(application, component, is_target=True))
        return NotLocated(writes=(write,)) if write is not None else None

    async def _under_way(
        self, rollout: AppRollout, status: AppRolloutStatus, found: AppRevision | None
    ) -> LocateResult:
        namespace = rollout.metadata.namespace or ""
        application, component, revision = await self._apps.moved_to(status, namespace)
        if not revision and found is not None:  # its workload is not there yet, or not any more
            application = found.application
            revised = found.component(next(iter((*rollout.spec.component_list, *found.names)), ""))
            component, revision = (revised.name, revised.revision) if revised is not None else ("", "")
        asked = RevisionRollout(
            namespace,
            revision,
            component=component,
            application=application,
            app_revision=found.name if found is not None else "",
            owners=found.owners if found is not None else (),
            removes_sources=True,
        )
        return told_apart(await self._revisions.locate(asked, status))

    async def _starts(
        self, rollout: AppRollout, status: AppRolloutStatus, target: AppRevision, source: AppRevision | None
    ) -> LocateResult:
        namespace, theirs = rollout.metadata.namespace or "", source.names if source is not None else None
        try:
            component = rolled_component(target.names, theirs, rollout.spec.component_list)
        except OamRefused as refused:
            return NotLocated(problem=str(refused))
        taken = await self._applications(rollout, target.application, component, target.name)
        if writes := tuple(write for one in taken if (write := bring_in(one)) is not None):
            return NotLocated(writes=writes)
        revised, before = target.component(component), source.component(component) if source is not None else None
        assert revised is not None, "it was chosen of these"
        in_place = before is not None and is_in_place(revised.component["spec"]["workload"])
        asked = RevisionRollout(
            namespace,
            revised.revision,
            last=(await self._apps.moved_to(status, namespace))[2],
            component=component,
            named=(before.revision,) if before is not None and in_place else (),
            application=target.application,
            app_revision=target.name,
            owners=target.owners,
            removes_sources=True,
            running_of=None if source is not None else (),
        )
        return told_apart(await self._revisions.locate(asked, status))

    # The Application

    async def applications(
        self,
        rollout: AppRollout,
        status: AppRolloutStatus,
        workloads: Workloads | None,  # noqa: ARG002
    ) -> tuple[ControlledApplication, ...]:
        target, namespace = status.last_target_app_revision, rollout.metadata.namespace or ""
        found = await self._apps.revision(target, namespace) if target else None
        _, component, _ = await self._apps.moved_to(status, namespace)
        if found is None or not component:
            return ()
        return await self._applications(rollout, found.application, component, target)

    async def _applications(
        self, rollout: AppRollout, name: str, component: str, target: str
    ) -> tuple[ControlledApplication, ...]:
        owner = controller_of(rollout.metadata)
        if owner is not None and owner.kind == APPLICATION.kind:
            return ()
        application = await self._apps.application(name, rollout.metadata.namespace or "")
        if application is None:
            return ()
        is_current = latest_revision(application) == target
        return (ControlledApplication(application, component, is_target=True, is_current=is_current),)


def solving_conflicts(rollout: AppRollout | ApplicationDeployment) -> RolloutPlan:
    """The plan of a rollout of Applications: it solves conflicts with autoscalers, unless it says otherwise."""
    plan = rollout.spec.rollout_plan
    return replace(
        plan,
        revert_on_delete=plan.revert_on_delete or rollout.spec.revert_on_delete,
        on_autoscaler=plan.on_autoscaler or OnAutoscaler.take_over,
    )


def told_apart(answer: LocateResult) -> LocateResult:
    """With its Services told apart."""
    return replace(answer, tells_services_apart=True) if isinstance(answer, Located) else answer


def _source(rollout: AppRollout, status: AppRolloutStatus, target: str) -> str:
    """The revision it moves from: the named one, or what it moved to last. Moving to where it is, is scaling."""
    found = rollout.spec.source_app_revision_name or status.last_target_app_revision
    return found if found != target else ""


def _revisions_of(rollout: AppRollout) -> Iterable[str]:
    return rollout.spec.target_app_revision_name, rollout.spec.source_app_revision_name


def _applications_of(rollout: AppRollout) -> Iterable[str]:
    return (application_of(rollout.spec.target_app_revision_name),)
