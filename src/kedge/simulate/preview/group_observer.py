"""Group observer: watches the pods of a rollout group: which one goes when, and when the one after it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kedge.api.apps import StatefulSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.api.zones import ROLLOUT_GROUP
from kedge.controllers.zone.group_reader import GroupReader
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change
from kedge.plan.previewing.group_preview import (
    GroupPreview,
    PodMove,
    PodMoveKind,
    group_preview,
    is_settled,
    waits_for_time,
)
from kedge.plan.zoning.group_story import GroupStory, zones_of
from kedge.plan.zoning.pods import is_running_and_ready
from kedge.plan.zoning.zone import Zone
from kedge.simulate.preview.group_state import GroupState
from kedge.simulate.preview.rollout_observer import Progress

REST: Final = 10.0
"""Seconds without a change after which it is looked at whether there is anything left to do."""
STANDSTILL: Final = 3600.0
"""Seconds without a change after which a group that waits for nothing but others stands still."""


class GroupObserver:
    """Watches one group, from now on."""

    def __init__(self, cluster: Cluster, group: GroupState, *, clock: Clock) -> None:
        self._group = group
        self._began = asyncio.get_running_loop().time()
        self._stirred = asyncio.Event()
        self._moves: list[PodMove] = []
        self._open: dict[str, int] = {}  # the move under way of each pod, by its place in the list
        self._going: set[str] = set()  # uids
        self._gone: dict[str, float] = {}  # pods that went and are not there again, and when
        self._reader = GroupReader(cluster.client, clock.now)
        self._neighbours = frozenset(one["metadata"]["uid"] for one in group.neighbours)
        self._sets = cluster.cache(StatefulSet, group.namespace)
        self._pods = cluster.cache(Pod, group.namespace)
        self._sets.on_change(lambda _: self._stirred.set())
        self._pods.on_change(self._saw)

    async def preview(self, within: float, standstill: float, progress: Progress) -> GroupPreview:
        """What happens until nothing does any more; at most `within` seconds."""
        story = await self._until_settled(within, max(STANDSTILL, standstill), progress)
        zones = self._zones()
        missing = {name for zone in zones for name in zone.missing}
        own = {zone.name for zone in zones}  # a change may take a StatefulSet out of the group: its pods are of another
        return group_preview(story, [move for move in self._all_moves(missing) if move.zone in own])

    # Waiting

    async def _until_settled(self, within: float, standstill: float, progress: Progress) -> GroupStory:
        while within > self._elapsed:
            progress(self._elapsed)
            if not await self._nothing_within(min(REST, within - self._elapsed)):
                continue
            story = await self._story()
            rest = within if waits_for_time(story) else standstill
            if is_settled(story) or await self._nothing_within(min(rest, within - self._elapsed)):
                return story
        return await self._story()

    async def _nothing_within(self, seconds: float) -> bool:
        self._stirred.clear()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._stirred.wait()
        except TimeoutError:
            return True
        return False

    async def _story(self) -> GroupStory:
        return await self._reader.story(self._group.namespace, self._group.name, self._zones())

    def _zones(self) -> tuple[Zone, ...]:
        sets = [one for one in self._sets.all() if one.metadata.labels.get(ROLLOUT_GROUP) == self._group.name]
        return zones_of(sets, self._pods.all())

    # Watching

    def _saw(self, change: Change[Pod]) -> None:
        pod = change.object
        owner = controller_of(pod.metadata)
        if owner is None or owner.uid in self._neighbours:
            return
        self._stirred.set()
        name, uid = pod.metadata.name, pod.metadata.uid
        if change.new is None or pod.metadata.deletion_timestamp is not None:
            self._goes(pod, owner.name, is_gone=change.new is None)
        elif change.old is None and not change.initial:
            self._comes(name, owner.name)
        if change.new is not None and uid not in self._going and is_running_and_ready(pod):
            self._is_ready(change, owner.name)

    def _goes(self, pod: Pod, zone: str, *, is_gone: bool) -> None:
        name, uid = pod.metadata.name, pod.metadata.uid
        if uid not in self._going:
            self._going.add(uid)
            self._begin(PodMove(name, zone, PodMoveKind.replaced, self._elapsed))
        if is_gone:
            self._gone[name] = self._elapsed

    def _comes(self, name: str, zone: str) -> None:
        if self._gone.pop(name, None) is None:
            self._begin(PodMove(name, zone, PodMoveKind.added, self._elapsed))

    def _is_ready(self, change: Change[Pod], zone: str) -> None:
        name = change.object.metadata.name
        if name in self._open:
            number = self._open.pop(name)
            self._moves[number] = replace(self._moves[number], done=self._elapsed)
        elif change.old is not None and not is_running_and_ready(change.old):
            self._moves.append(PodMove(name, zone, PodMoveKind.starting, 0.0, self._elapsed))

    def _begin(self, move: PodMove) -> None:
        self._open[move.pod] = len(self._moves)
        self._moves.append(move)

    def _all_moves(self, missing: set[str]) -> Iterable[PodMove]:
        """Every move. A pod that went, and that nobody wants back, was removed."""
        last = {move.pod: number for number, move in enumerate(self._moves)}
        for number, move in enumerate(self._moves):
            gone = self._gone.get(move.pod)
            if gone is None or number != last[move.pod] or move.pod in missing:
                yield move
            else:
                yield replace(move, what=PodMoveKind.removed, done=gone)

    @property
    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._began
