"""Rollout observer: watches the bindings of placements on a hub: which cluster moves when, and when it is proven.

    observer = RolloutObserver(hub, targets, clock=clock, dialect=dialect)
    await observer.wait_until_settled(within=3600.0)
    observer.moves(target)

Works the same way on a simulated hub and on a real one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import Binding, Placement, PlacementKinds
from kedge.controllers.hub.caches import BINDINGS, PLACEMENT, SNAPSHOTS, named, trusted_cache, without_status
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.store import Change
from kedge.plan.explaining.story import Story, tell
from kedge.plan.moving.unit import Proof
from kedge.plan.placements import is_external
from kedge.plan.previewing.placement_preview import Move, MoveKind
from kedge.plan.revisions import parent, resource_index
from kedge.plan.rolling.readiness import FleetFacts, judge
from kedge.plan.rolling.rollout_input import period_of, wanted
from kedge.plan.staging.conditions import has_ended
from kedge.simulate.preview.fleet_state import Target

REST: Final = 30.0
"""Seconds without a change after which a settled placement counts as settled for good."""
_NONE: Final = timedelta(0)
_Name: TypeAlias = tuple[str | None, str]
Progress: TypeAlias = Callable[[float], None]
"""Called with the seconds that have passed."""


class _Proof(Struct, frozen=True):
    """What a binding holds, and from when on that is proven."""

    holds: str
    at: float | None


class RolloutObserver:
    """Watches placements of one hub, from now on."""

    def __init__(self, hub: Cluster, targets: Iterable[Target], *, clock: Clock, dialect: Dialect) -> None:
        self._targets = tuple(targets)
        self._clock = clock
        self._dialect = dialect
        self._began = _now()
        self._stirred = asyncio.Event()
        # By the names of snapshots, which may be seen after the bindings that are pointed at them.
        self._moves: dict[Target, list[Move]] = {target: [] for target in self._targets}
        self._revisions: dict[_Name, str] = {}
        self._open: dict[_Name, int] = {}  # the move under way of each binding, by its place in the list
        self._stands: dict[Target, dict[_Name, _Proof]] = {target: {} for target in self._targets}
        kinds = dict.fromkeys(target.kinds for target in self._targets)
        self._placements = {
            placement_kinds: hub.cache(placement_kinds.placement, transform=without_status) for placement_kinds in kinds
        }
        self._bindings = {
            placement_kinds: trusted_cache(hub, placement_kinds.binding, indexes=BINDINGS) for placement_kinds in kinds
        }
        self._snapshots = {
            placement_kinds: trusted_cache(
                hub, metadata_of(placement_kinds.resource_snapshot.resource), indexes=SNAPSHOTS
            )
            for placement_kinds in kinds
        }
        self._policies: dict[PlacementKinds, Cache[Any]] = {
            placement_kinds: hub.cache(placement_kinds.policy_snapshot, indexes=SNAPSHOTS) for placement_kinds in kinds
        }
        self._members = hub.cache(MemberCluster)
        self._runs: dict[PlacementKinds, Cache[Any]] = {
            placement_kinds: trusted_cache(hub, placement_kinds.run) for placement_kinds in kinds
        }
        for placement_kinds in kinds:
            self._bindings[placement_kinds].on_change(self._saw)
            self._snapshots[placement_kinds].on_change(self._saw_revision)
            for cache in (
                self._placements[placement_kinds],
                self._snapshots[placement_kinds],
                self._runs[placement_kinds],
            ):
                cache.on_change(self._notify)

    # What was observed

    def moves(self, target: Target) -> tuple[Move, ...]:
        """Every move so far, in the order they began."""
        return tuple(
            replace(move, revision=self._revisions.get((target.namespace, move.revision), ""))
            for move in self._moves[target]
        )

    def bindings(self, target: Target) -> tuple[Binding, ...]:
        return self._bindings[target.kinds].by(PLACEMENT, named(target.namespace, target.name))

    def snapshots(self, target: Target) -> tuple[Any, ...]:
        return tuple(one.metadata for one in self._snapshots[target.kinds].by(PLACEMENT, _whose(target)))

    def runs(self, target: Target) -> list[Any]:
        """The staged runs of a placement, oldest first."""
        found = [one for one in self._runs[target.kinds].all() if _runs_on(one, target)]
        return sorted(found, key=lambda one: (str(one.metadata.creation_timestamp), one.metadata.name))

    def placement(self, target: Target) -> Placement | None:
        return self._placements[target.kinds].get(target.name, target.namespace)

    def story(self, target: Target, placement: Placement) -> Story:
        """Where a placement stands now. Not from its status, which a simulated hub may write late."""
        members = {one.metadata.name: one for one in self._members.all()}
        return tell(
            placement,
            self.bindings(target),
            (),
            self.snapshots(target),
            policies=self._policies[target.kinds].by(PLACEMENT, _whose(target)),
            members=members,
            runs=self.runs(target),
            now=self._clock.now(),
            dialect=self._dialect,
        )

    def is_settled(self, target: Target) -> bool:
        """Whether nothing of a placement has to move any more."""
        placement = self.placement(target)
        if placement is None:
            return True
        if is_external(placement):
            return all(has_ended(run.status) for run in self.runs(target))
        goal, now = self._goal(target, placement), _now()
        stands = self._stands[target].values()
        return bool(goal) and all(one.holds == goal and one.at is not None and one.at <= now for one in stands)

    def _goal(self, target: Target, placement: Placement) -> str:
        return wanted(placement.metadata, self.snapshots(target)).name

    # Waiting

    async def wait_until_settled(self, within: float, rest: float = REST, progress: Progress = lambda _: None) -> None:
        """Wait until every placement is settled and stays so for `rest` seconds; at most `within` seconds."""
        deadline = self._began + within
        while _now() < deadline:
            progress(self.elapsed)
            self._stirred.clear()
            is_settled = all(map(self.is_settled, self._targets))
            if (
                await self._nothing_within(min(rest if is_settled else self._next_proof(), deadline - _now()))
                and is_settled
            ):
                return

    def _next_proof(self) -> float:
        """Seconds until the next binding is proven by waiting alone."""
        now = _now()
        times = [one.at for stands in self._stands.values() for one in stands.values() if one.at is not None]
        return min((at - now for at in times if at > now), default=float("inf"))

    async def _nothing_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._stirred.wait()
        except TimeoutError:
            return True
        return False

    def _notify(self, _: Change[Any]) -> None:
        self._stirred.set()

    # Watching

    def _saw(self, change: Change[Any]) -> None:
        meta = change.object.metadata
        target = Target(parent(meta), meta.namespace)
        if target not in self._moves:
            return
        name = (meta.namespace, meta.name)
        if change.new is None:
            self._gone(target, name, change.object)
        else:
            self._begins(target, name, change.old, change.new, initial=change.initial)
            self._proves(target, name, change.new)
        self._stirred.set()

    def _saw_revision(self, change: Change[Any]) -> None:
        meta = change.object.metadata
        if (index := resource_index(meta)) is not None:
            self._revisions[meta.namespace, meta.name] = str(index)

    def _begins(self, target: Target, name: _Name, old: Binding | None, new: Binding, *, initial: bool) -> None:
        if initial:
            return
        at = self.elapsed
        if new.metadata.deletion_timestamp is not None:
            if old is None or old.metadata.deletion_timestamp is None:
                self._add(target, name, Move(new.spec.target_cluster, MoveKind.removed, at))
        elif new.spec.state == BindingState.bound and _held(old) != _held(new):
            what = MoveKind.changed if old is not None and _held(old) else MoveKind.added
            self._add(target, name, Move(new.spec.target_cluster, what, at, _held(new)))

    def _add(self, target: Target, name: _Name, move: Move) -> None:
        self._open[name] = len(self._moves[target])
        self._moves[target].append(move)

    def _proves(self, target: Target, name: _Name, binding: Binding) -> None:
        before = self._stands[target].get(name)
        at = self._proven(target, binding)
        self._stands[target][name] = _Proof(_held(binding), at)
        if at is None:
            return
        if name in self._open:
            number = self._open.pop(name)
            self._moves[target][number] = replace(self._moves[target][number], done=max(0.0, at - self._began))
        elif before is not None and before.at is None and before.holds == _held(binding):
            # It was moving before we began to watch.
            move = Move(binding.spec.target_cluster, MoveKind.changed, 0.0, _held(binding))
            self._moves[target].append(replace(move, done=max(0.0, at - self._began)))

    def _proven(self, target: Target, binding: Binding) -> float | None:
        """The loop's time from which this binding is proven; None if that is unknown."""
        if binding.spec.state != BindingState.bound:
            return None
        now, placement = self._clock.now(), self.placement(target)
        unit = judge(binding, FleetFacts(now, period_of(placement, self._dialect) if placement is not None else _NONE))
        if unit.proof is Proof.proven:
            return _now()
        return None if unit.proven_at is None else _now() + (unit.proven_at - now).total_seconds()

    def _gone(self, target: Target, name: _Name, binding: Binding) -> None:
        self._stands[target].pop(name, None)
        if name not in self._open:
            self._add(target, name, Move(binding.spec.target_cluster, MoveKind.removed, self.elapsed))
        number = self._open.pop(name)
        self._moves[target][number] = replace(self._moves[target][number], done=self.elapsed)

    @property
    def elapsed(self) -> float:
        """Seconds since we began to watch."""
        return _now() - self._began


def _now() -> float:
    return asyncio.get_running_loop().time()


def _whose(target: Target) -> str:
    return named(target.namespace, target.name)


def _held(binding: Binding | None) -> str:
    """The resources a binding has, by name; empty if it has none yet."""
    bound = binding is not None and binding.spec.state != BindingState.scheduled
    return binding.spec.resource_snapshot_name if binding is not None and bound else ""


def _runs_on(run: Any, target: Target) -> bool:
    return (run.spec.placement_name, run.metadata.namespace) == (target.name, target.namespace)
