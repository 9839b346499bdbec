"""Runner: simulates a change on a hub of its own, with the real controllers, in virtual time.

    courses = run_preview(fleet, PreviewChange(targets, objects), Assumptions(times=measured_times(fleet)))

Runs an event loop of its own, so it is called from outside of any. The same fleet, change and assumptions give the
same result. Nothing reaches beyond this process: there is no socket on the loop it runs on.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.crd import Crd
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import Run
from kedge.api.staged import ApprovalRequest, ClusterApprovalRequest
from kedge.api.work import Work
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.kube.codec import Untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.plan.explaining.story import Story
from kedge.plan.previewing.durations import Durations, measured_durations
from kedge.plan.previewing.placement_preview import (
    Move,
    PlacementPreview,
    StuckCluster,
    run_turns,
    stage_previews,
    why_not_updated,
)
from kedge.plan.revisions import newest_resources, resource_index
from kedge.plan.staging.conditions import has_ended
from kedge.plan.state import State
from kedge.roles import HubOptions, add_hub
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import Loop
from kedge.simulate.preview.agents import Agents
from kedge.simulate.preview.approver import Approver
from kedge.simulate.preview.assumed_metrics import AssumedMetrics
from kedge.simulate.preview.fleet_state import FleetState, Target
from kedge.simulate.preview.rollout_observer import REST, Progress, RolloutObserver
from kedge.simulate.preview.virtual_hub import VirtualHub

DAY: Final = 24 * 3600.0
SEED: Final = 1


class PreviewChange(Struct, frozen=True):
    """What a user is about to do: objects to apply, and the placements to look at."""

    targets: tuple[Target, ...]
    objects: tuple[Untyped, ...] = ()


class Assumptions(Struct, frozen=True):
    """What a preview assumes."""

    times: Durations = Durations()
    within: float = DAY
    """Seconds after which what has not happened is taken not to happen."""
    approved_after: float | None = 0.0
    """Seconds until somebody approves what a run asks for; None if nobody does."""
    dialect: Dialect = Dialect.seed
    seed: int = SEED


def measured_times(fleet: FleetState) -> Durations:
    """How long clusters took before, as the fleet's objects show."""
    bindings = [one for target in fleet.targets for one in fleet.typed(target.kinds.binding)]
    return Durations(measured=measured_durations(bindings, fleet.typed(Work)))


def run_preview(
    fleet: FleetState, change: PreviewChange, assumptions: Assumptions, progress: Progress = lambda _: None
) -> tuple[PlacementPreview, ...]:
    """What happens to the placements. `progress` is called now and then with the seconds simulated so far."""
    definitions = crds(assumptions.dialect)  # reads our sources, which must not happen while a loop runs
    with asyncio.Runner(loop_factory=Loop) as runner, _without_collecting():
        return runner.run(_simulate(fleet, change, assumptions, definitions, progress))


async def _simulate(
    fleet: FleetState, change: PreviewChange, assumptions: Assumptions, definitions: Sequence[Crd], progress: Progress
) -> tuple[PlacementPreview, ...]:
    loop = asyncio.get_running_loop()
    # Of its own kind: uids drawn by another embedded fleet from the same number would be those of other objects here.
    clock, rng = LoopClock(loop, fleet.taken), Random(f"preview {assumptions.seed}")
    cluster = EmbeddedCluster("hub", clock=clock, rng=child(rng))
    hub = VirtualHub(cluster, child(rng))
    cluster.start()
    try:
        await hub.load(fleet, definitions, fleet.taken + timedelta(seconds=2 * assumptions.within))
        await hub.change(change.objects)
        async with running_hub(cluster, clock, rng, change.targets, assumptions) as observer:
            await observer.wait_until_settled(
                assumptions.within, rest=REST + _words_after(assumptions), progress=progress
            )
            return tuple([await _course(hub, observer, target, fleet) for target in change.targets])
    finally:
        await hub.client.close()
        cluster.stop()


@asynccontextmanager
async def running_hub(
    cluster: EmbeddedCluster, clock: LoopClock, rng: Random, targets: Sequence[Target], assumptions: Assumptions
) -> AsyncIterator[RolloutObserver]:
    """Runs the hub's role, modelled members and an approver; yields the observer."""
    async with Manager(component="kedge-hub", clock=clock, rng=child(rng), grace=1.0) as manager:
        hub = await manager.connect("hub", cluster.transport(), limiter=Limiter(rate=0))
        add_hub(manager, hub, _options(assumptions), AssumedMetrics())
        members = await manager.connect("hub for all members", cluster.transport(), limiter=Limiter(rate=0))
        manager.add_controller(Agents(members, clock=clock, takes=assumptions.times).controller)
        if assumptions.approved_after is not None:
            for kind in (ClusterApprovalRequest, ApprovalRequest):
                approver = Approver(members, kind, clock=clock, after=assumptions.approved_after)
                manager.add_controller(approver.controller)
        observer = RolloutObserver(hub, targets, clock=clock, dialect=assumptions.dialect)
        running = asyncio.create_task(manager.run(signals=False), name="the hub's role")
        try:
            yield observer
        finally:
            manager.stop()
            await running


def _options(assumptions: Assumptions) -> HubOptions:
    """Those of any hub; but most of what a large rollout writes is words, which nobody reads here before the end.
    What is to be said in a moment costs another look at all clusters, so that is said at once.
    """
    after = _words_after(assumptions)
    return HubOptions(
        dialect=assumptions.dialect,
        messages_after=assumptions.within / 4,
        started_after=0.0,
        status_rest=after,
        listens=False,  # nobody sends heartbeats: who was heard when the fleet was read goes on being heard
    )


def _words_after(assumptions: Assumptions) -> float:
    return min(3600.0, assumptions.within / 4)


async def _course(hub: VirtualHub, observer: RolloutObserver, target: Target, fleet: FleetState) -> PlacementPreview:
    """What a placement came to."""
    placement = await hub.client.get(target.kinds.placement, target.name, target.namespace)
    story, moves, runs = observer.story(target, placement), observer.moves(target), observer.runs(target)
    played = _open_runs(runs, fleet, target)
    missing = why_not_updated(placement, story.places, played, _news(observer, fleet, target))
    is_done = observer.is_settled(target) and bool(story.places) and not story.unpicked and not missing
    return PlacementPreview(
        kind=story.kind,
        namespace=target.namespace,
        name=target.name,
        revision=story.index,
        is_done=is_done,
        ends=max((move.done or move.at for move in moves), default=0.0) if is_done else None,
        moves=moves,
        stays=() if is_done else tuple(_stays(story, moves, run_turns(played))),
        unpicked=(*story.unpicked, *story.passed_over),
        stages=stage_previews(runs[-1].status, fleet.taken) if runs else (),
        why="" if is_done else missing or ("" if _is_queued(story) else story.why),
    )


def _open_runs(runs: Sequence[Run], fleet: FleetState, target: Target) -> list[Run]:
    """The runs that were not over when the fleet was read."""
    over = {one.metadata.uid for one in fleet.typed(target.kinds.run) if has_ended(one.status)}
    return [run for run in runs if run.metadata.uid not in over]


def _news(observer: RolloutObserver, fleet: FleetState, target: Target) -> str:
    """The number of the newest revision, if it was not there when the fleet was read."""
    newest = newest_resources(observer.snapshots(target))
    kind = target.kinds.resource_snapshot.resource
    is_known = newest is None or any(one["metadata"]["name"] == newest.name for one in fleet.of(kind))
    return "" if newest is None or is_known else str(resource_index(newest))


def _is_queued(story: Story) -> bool:
    """Whether clusters say what they wait for."""
    return any(place.state is State.waiting for place in story.places)


def _stays(story: Story, moves: Sequence[Move], turns: Mapping[str, str]) -> Iterator[StuckCluster]:
    """Clusters that are not where they should be."""
    proven = {move.cluster: move.done is not None for move in moves}
    for place in story.places:
        if place.state is State.waiting:
            yield StuckCluster(place.cluster, place.why)
        elif not proven.get(place.cluster, place.state is State.available):
            yield StuckCluster(place.cluster, place.why, moved=place.cluster in proven)
        elif place.cluster in turns:
            yield StuckCluster(place.cluster, turns[place.cluster])


def worst_case(assumptions: Assumptions) -> Assumptions:
    """The same, with every cluster taking as long as its workloads allow themselves."""
    return replace(assumptions, times=replace(assumptions.times, longest=True))


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Nothing here makes much garbage in circles, and looking for it takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
