"""Staged runs: moves placements through stages of clusters, as their runs say.

    StagedRuns(hub, kinds, snapshots, clock=clock, dialect=dialect).controller

All runs of a placement are looked at together, since only one of them moves it at a time. What a run is about to do is
written on the run first, as the run was seen: if a user has stopped it meanwhile, the server refuses, and nothing
moves. Only then bindings are pointed, requests made, clusters cleared; what of that a crash loses, the next look finds.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, Protocol

from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.fleet import RUN_FINALIZER
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import PlacementKinds, Run, Strategy
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.api.staged_status import RunStatus
from kedge.controllers.gather import gather
from kedge.controllers.hub import wakes
from kedge.controllers.hub.caches import (
    APPROVALS,
    BINDINGS,
    PLACEMENT,
    RUN,
    RUNS,
    SNAPSHOTS,
    named,
    placements_without_status,
    spec_changed,
    trusted_cache,
)
from kedge.controllers.hub.metrics import RunMetrics
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.run_events import RunEvents
from kedge.controllers.hub.run_writes import RunWrites
from kedge.controllers.metric_queries import Measures, NoMeasures
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal, Source
from kedge.plan.measuring.query import MetricSubject
from kedge.plan.staging.conditions import at_generation, has_ended, is_initialized
from kedge.plan.staging.initializing import (
    InitializationInput,
    Newest,
    initialize,
    lacks_resources,
)
from kedge.plan.staging.progress import creation_order
from kedge.plan.staging.rollbacks import (
    as_not_rolled_back,
    as_rolled_back,
    begun_clusters,
    is_rollback,
    retried,
    rollback_run_of,
    rolled_back_run,
    wants_rollback,
    without_gates,
)
from kedge.plan.staging.run_input import RunInput, RunStep
from kedge.plan.staging.run_observation import RunObjects, approval_names, observe_run, resources_of
from kedge.plan.staging.stage_metrics import with_measurement
from kedge.plan.staging.step import step

_MEASURED_AT_ONCE: Final = 20
SETTLED_AFTER: Final = 0.2  # seconds until all that was made before a run has been seen, also what is of other kinds


class NewestSnapshots(Protocol):
    """Knows the newest resources of placements."""

    async def fresh(self, placement: ClusterResourcePlacement) -> Newest: ...

    @property
    def changes(self) -> Source: ...


class StagedRuns:
    """The runs of one kind of placement."""

    def __init__(
        self,
        hub: Cluster,
        kinds: PlacementKinds,
        snapshots: NewestSnapshots,
        *,
        clock: Clock,
        dialect: Dialect = Dialect.seed,
        metrics: RunMetrics | None = None,
        pointed: PointedBindings | None = None,
        measures: Measures | None = None,
    ) -> None:
        """`metrics` are shared between the kinds: a process shows each name once. `pointed` is shared with the
        Works of this process. `measures` measures the metrics of stages; without it, none passes.
        """
        self._client = hub.client
        self._kinds = kinds
        self._newest = snapshots
        self._clock = clock
        self._dialect = dialect
        self._metrics = metrics
        self._runs = trusted_cache(hub, kinds.run, indexes=RUNS)
        self._approvals = trusted_cache(hub, kinds.approval, indexes=APPROVALS)
        self._placements = placements_without_status(hub, kinds)
        self._policies = trusted_cache(hub, kinds.policy_snapshot, indexes=SNAPSHOTS)
        self._snapshots = trusted_cache(hub, metadata_of(kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
        self._members = hub.cache(MemberCluster)
        self._writes = RunWrites(hub.client, kinds, clock, pointed or PointedBindings(hub.name))
        self._measures = measures or NoMeasures()
        self._measured = Signal(hub.name)
        self._first_seen: dict[str, float] = {}  # runs that have not begun, and when they were first seen
        self._run_events = RunEvents(hub.events.signed("staged-update-run-controller"))
        run_wakes = wakes.RunWakes(self._runs)
        sources: list[Source] = [
            hub.watch(self._runs, to=wakes.by_run, when=wakes.run_changed),
            hub.watch(trusted_cache(hub, kinds.strategy), to=run_wakes.by_strategy),
            hub.watch(self._approvals, to=run_wakes.by_approval),
            hub.watch(self._placements, when=spec_changed),
            hub.watch(self._policies, to=wakes.by_owner),
            hub.watch(self._snapshots, to=wakes.by_owner),
            hub.watch(self._bindings, to=wakes.by_owner, when=wakes.binding_changed),
            hub.watch(self._members, to=wakes.by_member(self._bindings), when=wakes.member_changed),
            snapshots.changes,
            self._measured,
        ]
        self.controller = Controller(f"staged runs of {kinds.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        runs = {run.metadata.uid: run for run in sorted(self._of(key), key=creation_order)}
        waits: list[float] = []
        problem: Exception | None = None
        for run in list(runs.values()):
            try:
                waits += await self._reconcile_run(key, run, runs)
            except Exception as error:  # noqa: BLE001  # one run does not hold up the others; it is raised in the end
                problem = error if problem is None or isinstance(problem, Conflict) else problem
        if problem is not None:
            raise problem
        return Outcome.again(after=min(waits)) if waits else Outcome.done

    def _of(self, key: Key) -> tuple[ClusterStagedUpdateRun, ...]:
        return self._runs.by(PLACEMENT, named(key.namespace, key.name))

    async def _reconcile_run(self, key: Key, run: Run, runs: dict[str, ClusterStagedUpdateRun]) -> list[float]:
        """Do what one run asks for; gives in how many seconds to look again, if so."""
        if run.metadata.deletion_timestamp is not None:
            await self._release(run)
            return []
        if (by := rollback_run_of(run, runs.values())) is not None:
            run = await self._say(run, as_rolled_back(run, by, self._clock.now()), runs)
        run = await self._say(run, retried(run), runs)
        if has_ended(run.status):
            await self._ended(run, runs)
            return []
        run = await self._writes.hold(run)
        if (wait := self._wait_until_settled(key, run)) > 0:
            return [wait]
        if not is_initialized(run.status):
            run = await self._say(run, initialize(await self._beginning(key, run), self._clock.now()), runs)
        if is_initialized(run.status):
            return await self._act(key, run, runs)
        return []

    # Beginning

    def _wait_until_settled(self, key: Key, run: Run) -> float:
        """How many seconds a run waits before it begins, so that all that was changed before it has been seen.

        They count from when its placement is there, which may be made after it.
        """
        uid, now = run.metadata.uid, asyncio.get_running_loop().time()
        if is_initialized(run.status) or self._placements.get(key.name, key.namespace) is None:
            self._first_seen.pop(uid, None)
            return 0.0
        return max(0.0, self._first_seen.setdefault(uid, now) + SETTLED_AFTER - now)

    def _revisions(self, key: Key) -> list[ObjectMeta]:
        return [one.metadata for one in self._snapshots.by(PLACEMENT, named(key.namespace, key.name))]

    async def _beginning(self, key: Key, run: Run) -> InitializationInput:
        """What a run begins from. The newest resources are written down only if it can begin once they are."""
        placement, whose = await self._placement(key), named(key.namespace, key.name)
        policies = self._policies.by(PLACEMENT, whose)
        strategy, only = await self._strategy_of(run) if placement is not None else (None, None)
        seen = InitializationInput(
            run=run,
            placement=placement,
            strategy=strategy,
            only=only,
            policies=policies,
            snapshots=self._revisions(key),
            bindings=self._bindings.by(PLACEMENT, whose),
            labels={one.metadata.name: one.metadata.labels for one in self._members.all()},
            dialect=self._dialect,
        )
        if placement is None or not lacks_resources(seen):
            return seen
        return replace(seen, newest=await self._newest.fresh(placement))

    async def _placement(self, key: Key) -> ClusterResourcePlacement | None:
        """That it is not there may be the end of a run: so the server is asked, should the cache not know it yet."""
        found = self._placements.get(key.name, key.namespace)
        if found is not None or not key.name:
            return found
        try:
            return await self._client.get(self._kinds.placement, key.name, key.namespace)
        except NotFound:
            return None

    async def _strategy(self, run: Run) -> Strategy | None:
        """As the server has it: of an older one, a gate that was added a moment ago would be missing."""
        name, namespace = run.spec.staged_rollout_strategy_name, run.metadata.namespace
        if not name:
            return None
        try:
            return await self._client.get(self._kinds.strategy, name, namespace)
        except NotFound:
            return None

    async def _strategy_of(self, run: Run) -> tuple[Strategy | None, frozenset[str] | None]:
        """The stages to move through, and the clusters a run is confined to: a rollback has both from its run."""
        if not is_rollback(run):
            return await self._strategy(run), None
        undone = self._runs.get(rolled_back_run(run), run.metadata.namespace)
        strategy = undone.status.staged_update_strategy_snapshot if undone is not None else None
        if undone is None or strategy is None:
            return None, None
        return self._kinds.strategy(spec=without_gates(strategy)), begun_clusters(undone)

    async def _ended(self, run: Run, runs: dict[str, ClusterStagedUpdateRun]) -> None:
        """Make the rollback of a run that failed, once, if it is to have one."""
        status = at_generation(run.status, run.metadata.generation)
        if wants_rollback(run) and status.previous_resource_snapshot_index is None:
            status = as_not_rolled_back(run, self._clock.now())
        elif wants_rollback(run):
            await self._writes.roll_back(run)  # which is said of this one when the other is seen
        await self._say(run, status, runs)

    # Going on

    async def _act(self, key: Key, run: Run, runs: dict[str, ClusterStagedUpdateRun]) -> list[float]:
        planned = step(await self._seen(key, run, runs), self._clock.now())
        if planned.accept:
            await gather(partial(self._writes.accept, request) for request in planned.accept)
            planned = step(await self._seen(key, run, runs), self._clock.now())  # that may have taken a while
        if planned.measure:
            planned = await self._measure(key, run, runs, planned)
        run = await self._say(run, planned.status, runs)
        await self._move(run, planned)
        return [planned.look_again] if planned.look_again is not None else []

    async def _measure(self, key: Key, run: Run, runs: dict[str, ClusterStagedUpdateRun], planned: RunStep) -> RunStep:
        """The step after the measurements that are due; the same one while an answer is awaited."""
        measured, meta = run, run.metadata
        subject = MetricSubject(meta.name, meta.namespace or "", run.spec.placement_name)
        for _ in range(_MEASURED_AT_ONCE):
            if not planned.measure:
                return planned
            asked = planned.measure[0]
            found = await self._measures.measure(
                asked.metric, subject, partial(self._measured.wake, key), key=(meta.uid, asked.stage, asked.since)
            )
            if found is None:
                return planned
            now = self._clock.now()
            measured = replace(measured, status=with_measurement(measured.status, asked, found, now))
            planned = step(await self._seen(key, measured, runs), now)
        return replace(planned, look_again=SETTLED_AFTER)

    async def _move(self, run: Run, planned: RunStep) -> None:
        resources = resources_of(run)
        await gather(
            [
                *(partial(self._writes.point, run, binding, resources) for binding in planned.point),
                *(partial(self._writes.remove, binding) for binding in planned.remove),
                *(partial(self._writes.request_approval, run, asked) for asked in planned.request),
                *(partial(self._writes.withdraw, request) for request in planned.withdraw),
            ]
        )

    async def _seen(self, key: Key, run: Run, runs: dict[str, ClusterStagedUpdateRun]) -> RunInput:
        placement, whose = await self._placement(key), named(key.namespace, key.name)
        bindings, namespace = self._bindings.by(PLACEMENT, whose), run.metadata.namespace
        snapshot = self._snapshots.get(resources_of(run), namespace)
        requests = (self._approvals.get(name, namespace) for name in approval_names(run, self._dialect))
        members = (self._members.get(one.spec.target_cluster) for one in bindings)
        objects = RunObjects(
            placement=placement,
            bindings=bindings,
            policies=self._policies.by(PLACEMENT, whose),
            snapshot=None if snapshot is None else snapshot.metadata,
            approvals=tuple(one for one in requests if one is not None),
            members={one.metadata.name: one for one in members if one is not None},
            runs=tuple(runs.values()),
        )
        return observe_run(run, objects, self._dialect)

    # Saying

    async def _say(self, run: Run, status: RunStatus, runs: dict[str, ClusterStagedUpdateRun]) -> Run:
        if status == run.status:
            return run
        said = await self._writes.say(run, status)
        self._run_events.record(run, said)
        if self._metrics is not None:
            self._metrics.said(run, said, self._clock.now().timestamp())
        runs[run.metadata.uid] = said
        return said

    # Ending

    async def _release(self, run: Run) -> None:
        """The run goes, and its requests; what it moved stays where it is."""
        self._first_seen.pop(run.metadata.uid, None)
        if self._metrics is not None:
            self._metrics.forget(run)
        if RUN_FINALIZER in run.metadata.finalizers:
            meta = run.metadata
            for request in self._approvals.by(RUN, named(meta.namespace, meta.name)):
                await self._writes.withdraw(request)
            await self._writes.release(run)
