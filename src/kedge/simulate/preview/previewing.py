"""Previewing: plays a change through on a hub of its own, by the real controllers, in virtual time.

    result = previewed(picture, Change(objects), Assumed(times=Times(measured=...)))

Runs an event loop of its own, so it is called from outside of any. The same picture, change and assumptions give the
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
from kedge.api.staged import ApprovalRequest, ClusterApprovalRequest
from kedge.api.twins import Run
from kedge.api.work import Work
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.kube.codec import Untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.plan.previewing.course import Course, Move, Stay
from kedge.plan.previewing.staged import not_brought, stages_of, turns_in
from kedge.plan.previewing.times import Times, measured
from kedge.plan.revisions import newest_resources, resource_index
from kedge.plan.staging.saying import has_ended
from kedge.plan.telling.state import State
from kedge.plan.telling.story import Story
from kedge.roles import HubOptions, add_hub
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import Loop
from kedge.simulate.preview.agents import Agents
from kedge.simulate.preview.approving import Approver
from kedge.simulate.preview.hub import VirtualHub
from kedge.simulate.preview.picture import Picture, Target
from kedge.simulate.preview.seeing import REST, Progress, Seeing

DAY: Final = 24 * 3600.0
SEED: Final = 1


class Change(Struct, frozen=True):
    """What a user is about to do: objects to apply, and the placements to look at."""

    targets: tuple[Target, ...]
    objects: tuple[Untyped, ...] = ()


class Assumed(Struct, frozen=True):
    """What a preview goes by."""

    times: Times = Times()
    within: float = DAY
    """Seconds after which what has not happened is taken not to happen."""
    approved_after: float | None = 0.0
    """Seconds until somebody approves what a run asks for; None if nobody does."""
    dialect: Dialect = Dialect.seed
    seed: int = SEED


def measured_in(picture: Picture) -> Times:
    """How long clusters took before, as the picture tells."""
    bindings = [one for target in picture.targets for one in picture.typed(target.twins.binding)]
    return Times(measured=measured(bindings, picture.typed(Work)))


def previewed(
    picture: Picture, change: Change, assumed: Assumed, progress: Progress = lambda _: None
) -> tuple[Course, ...]:
    """What becomes of the placements that are looked at. `progress` is told now and then how far it has been played."""
    definitions = crds(assumed.dialect)  # reads our sources, which must not happen while a loop runs
    with asyncio.Runner(loop_factory=Loop) as runner, _without_collecting():
        return runner.run(_played(picture, change, assumed, definitions, progress))


async def _played(
    picture: Picture, change: Change, assumed: Assumed, definitions: Sequence[Crd], progress: Progress
) -> tuple[Course, ...]:
    loop = asyncio.get_running_loop()
    # Of its own kind: uids drawn by another embedded fleet from the same number would be those of other objects here.
    clock, rng = LoopClock(loop, picture.taken), Random(f"preview {assumed.seed}")
    cluster = EmbeddedCluster("hub", clock=clock, rng=child(rng))
    hub = VirtualHub(cluster, child(rng))
    cluster.start()
    try:
        await hub.furnish(picture, definitions, picture.taken + timedelta(seconds=2 * assumed.within))
        await hub.change(change.objects)
        async with playing(cluster, clock, rng, change.targets, assumed) as seeing:
            await seeing.over(assumed.within, rest=REST + _words_after(assumed), progress=progress)
            return tuple([await _course(hub, seeing, target, picture) for target in change.targets])
    finally:
        await hub.client.close()
        cluster.stop()


@asynccontextmanager
async def playing(
    cluster: EmbeddedCluster, clock: LoopClock, rng: Random, targets: Sequence[Target], assumed: Assumed
) -> AsyncIterator[Seeing]:
    """The hub's role, modelled members, somebody who approves, and somebody who watches."""
    async with Manager(component="kedge-hub", clock=clock, rng=child(rng), grace=1.0) as manager:
        hub = await manager.connect("hub", cluster.transport(), limiter=Limiter(rate=0))
        add_hub(manager, hub, _options(assumed))
        members = await manager.connect("hub for all members", cluster.transport(), limiter=Limiter(rate=0))
        manager.add_controller(Agents(members, clock=clock, takes=assumed.times).controller)
        if assumed.approved_after is not None:
            for kind in (ClusterApprovalRequest, ApprovalRequest):
                approver = Approver(members, kind, clock=clock, after=assumed.approved_after)
                manager.add_controller(approver.controller)
        seeing = Seeing(hub, targets, clock=clock, dialect=assumed.dialect)
        running = asyncio.create_task(manager.run(signals=False), name="the hub's role")
        try:
            yield seeing
        finally:
            manager.stop()
            await running


def _options(assumed: Assumed) -> HubOptions:
    """Those of any hub; but most of what a large rollout writes is words, which nobody reads here before the end.
    What is to be said in a moment costs another look at all clusters, so that is said at once.
    """
    after = _words_after(assumed)
    return HubOptions(
        dialect=assumed.dialect,
        messages_after=assumed.within / 4,
        started_after=0.0,
        status_rest=after,
        listens=False,  # nobody sends heartbeats: who was heard when the picture was taken goes on being heard
    )


def _words_after(assumed: Assumed) -> float:
    return min(3600.0, assumed.within / 4)


async def _course(hub: VirtualHub, seeing: Seeing, target: Target, picture: Picture) -> Course:
    """What a placement came to."""
    placement = await hub.client.get(target.twins.placement, target.name, target.namespace)
    story, moves, runs = seeing.story(target, placement), seeing.moves(target), seeing.runs(target)
    played = _played_of(runs, picture, target)
    missing = not_brought(placement, story.places, played, _news(seeing, picture, target))
    is_done = seeing.is_there(target) and bool(story.places) and not story.unpicked and not missing
    return Course(
        kind=story.kind,
        namespace=target.namespace,
        name=target.name,
        revision=story.index,
        is_done=is_done,
        ends=max((move.done or move.at for move in moves), default=0.0) if is_done else None,
        moves=moves,
        stays=() if is_done else tuple(_stays(story, moves, turns_in(played))),
        unpicked=(*story.unpicked, *story.passed_over),
        stages=stages_of(runs[-1].status, picture.taken) if runs else (),
        why="" if is_done else missing or ("" if _is_queued(story) else story.why),
    )


def _played_of(runs: Sequence[Run], picture: Picture, target: Target) -> list[Run]:
    """The runs that were not over when the picture was taken."""
    over = {one.metadata.uid for one in picture.typed(target.twins.run) if has_ended(one.status)}
    return [run for run in runs if run.metadata.uid not in over]


def _news(seeing: Seeing, picture: Picture, target: Target) -> str:
    """The number of the newest revision, if it was not there when the picture was taken."""
    newest = newest_resources(seeing.snapshots(target))
    kind = target.twins.resource_snapshot.resource
    is_known = newest is None or any(one["metadata"]["name"] == newest.name for one in picture.of(kind))
    return "" if newest is None or is_known else str(resource_index(newest))


def _is_queued(story: Story) -> bool:
    """Whether clusters say what they wait for."""
    return any(place.state is State.waiting for place in story.places)


def _stays(story: Story, moves: Sequence[Move], turns: Mapping[str, str]) -> Iterator[Stay]:
    """Clusters that are not where they should be."""
    proven = {move.cluster: move.done is not None for move in moves}
    for place in story.places:
        if place.state is State.waiting:
            yield Stay(place.cluster, place.why)
        elif not proven.get(place.cluster, place.state is State.available):
            yield Stay(place.cluster, place.why, moved=place.cluster in proven)
        elif place.cluster in turns:
            yield Stay(place.cluster, turns[place.cluster])


def at_worst(assumed: Assumed) -> Assumed:
    """The same, with every cluster taking as long as its workloads allow themselves."""
    return replace(assumed, times=replace(assumed.times, longest=True))


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
