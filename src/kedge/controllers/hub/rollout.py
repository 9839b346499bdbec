"""Rollout: moves the bindings of a placement to its resources, as many at once as its strategy allows.

A binding that moves is written twice: where it points, then, at the generation that made, that its rollout has
started. Works are made once that is decided, here or on the binding; where they are made here, the second waits until
they are on their way. Should it be lost, the next look finds it missing. Nothing is written that does not change, so a
look at a thousand clusters that wait costs no writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.twins import Binding, Placement, Twins
from kedge.controllers.gather import gather
from kedge.controllers.hub import keys
from kedge.controllers.hub.binding_wakes import matters
from kedge.controllers.hub.binding_writes import BindingWrites
from kedge.controllers.hub.followed import followed
from kedge.controllers.hub.indexes import BINDINGS, PLACEMENT, SNAPSHOTS, named
from kedge.controllers.hub.placements import asks_for_more, wanted_placements
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.rollout_delays import MESSAGES_AFTER, RolloutDelays
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.kube.store import Change
from kedge.plan.membership import silence
from kedge.plan.rolling.observing import observe
from kedge.plan.rolling.plan import Plan, is_paused, is_rolling, plan
from kedge.plan.rolling.plan import Seen as Picture
from kedge.plan.rolling.standing import Conditions, is_unspoken, standing

MANAGER: Final = "kedge-rollout"
STARTED_AFTER: Final = 0.1  # seconds until it is said that a rollout has started, where nobody waits for that word


class Rollout:
    """The rolling placements of one hub, of one of the twins."""

    def __init__(
        self,
        hub: Cluster,
        twins: Twins,
        *,
        clock: Clock,
        dialect: Dialect = Dialect.seed,
        messages_after: float = MESSAGES_AFTER,
        started_after: float = STARTED_AFTER,
        pointed: PointedBindings | None = None,
    ) -> None:
        """`pointed` is shared with the Works of this process."""
        self._pointed = pointed or PointedBindings(hub.name)
        self._writes = BindingWrites(hub.client, twins, manager=MANAGER, pointed=self._pointed)
        self._clock = clock
        self._dialect = dialect
        self._delays = RolloutDelays(messages_after)
        self._started_conditions = Throttle(started_after)
        self._placements = wanted_placements(hub, twins)
        self._bindings = followed(hub, twins.binding, indexes=BINDINGS)
        self._snapshots = followed(hub, metadata_of(twins.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._members = hub.cache(MemberCluster)
        sources: list[Source] = [
            hub.watch(self._placements, when=asks_for_more),
            hub.watch(self._bindings, to=keys.by_owner, when=matters),
            hub.watch(self._snapshots, to=keys.by_owner),
            hub.watch(self._members, to=keys.by_member(self._bindings), when=_comes_or_goes),
        ]
        self.controller = Controller(f"rollout of {twins.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        placement = self._placements.get(key.name, key.namespace)
        if placement is None or not is_rolling(placement):
            self._delays.forget(key)
            self._started_conditions.reset(key)
            return Outcome.done
        bindings = self._bindings.by(PLACEMENT, named(key.namespace, key.name))
        if rest := self._delays.before_look(key, len(bindings)):
            return Outcome.again(after=rest)
        picture = self._observe(placement, bindings)
        if self._dialect is Dialect.kubefleet and (strayed := _applied_otherwise(picture)):
            await gather(partial(self._writes.apply_with, binding, picture.apply_strategy) for binding in strayed)
            return Outcome.done  # their new generations wake us again
        planned = plan(picture, self._clock.now())
        if planned.bind or planned.repoint or planned.remove:
            self._delays.moved(key)
            await self._move(picture, planned)
        return await self._tell(key, picture, planned)

    # Observing

    def _observe(self, placement: Placement, bindings: tuple[Binding, ...]) -> Picture:
        meta = placement.metadata
        revisions = self._snapshots.by(PLACEMENT, named(meta.namespace, meta.name))
        members = {one.metadata.name: one for one in map(self._member_of, bindings) if one is not None}
        return observe(placement, bindings, [found.metadata for found in revisions], members, self._dialect)

    def _member_of(self, binding: Binding) -> MemberCluster | None:
        return self._members.get(binding.spec.target_cluster)

    # Acting

    async def _move(self, picture: Picture, planned: Plan) -> None:
        pointed = (partial(self._point, binding, picture) for binding in (*planned.bind, *planned.repoint))
        await gather([*pointed, *(partial(self._writes.remove, binding) for binding in planned.remove)])

    async def _point(self, binding: Binding, picture: Picture) -> None:
        strategy = None if picture.is_applied_so(binding) else picture.apply_strategy
        pointed = await self._writes.point(binding, picture.wanted.name, strategy)
        if not (self._started_conditions.seconds and self._pointed.may_create_works(pointed)):
            await self._writes.set_rollout_started(pointed, standing(pointed, None, self._clock.now()))

    # Telling

    async def _tell(self, key: Key, picture: Picture, planned: Plan) -> Outcome:
        """Have every binding that stays say how it stands: at once where somebody waits for that word, else once
        nothing moves and it has been true for a while, since people read it and nobody acts on it.
        """
        stayed = self._stayed(picture, planned)
        later = await self._say_of_starts(key, [one for one in stayed if is_unspoken(one)], planned)
        wait = self._delays.after_move(key)
        if not wait:
            news = self._news([one for one in stayed if not is_unspoken(one)], planned)
            wait = self._delays.before_messages(key, tuple(planned.why.get(one.metadata.name, "") for one, _ in news))
            if not wait:
                await self._say_all(news)
                self._delays.wrote_messages(key)
        waits = [after for after in (planned.look_again, later, wait) if after]
        return Outcome.again(after=min(waits)) if waits else Outcome.done

    async def _say_of_starts(self, key: Key, unspoken: Sequence[Binding], planned: Plan) -> float:
        """Say that rollouts have started; gives in how many seconds to say it of those that nobody waits for."""
        left = self._started_conditions.wait(key) if any(map(self._pointed.may_create_works, unspoken)) else 0.0
        if not left:
            self._started_conditions.reset(key)
        due = [one for one in unspoken if not (left and self._pointed.may_create_works(one))]
        await self._say_all(self._news(due, planned))
        return left

    def _stayed(self, picture: Picture, planned: Plan) -> list[Binding]:
        """The bindings there is something to say of."""
        if not picture.wanted.name and not picture.wanted.problem:
            return []
        moved = {one.metadata.name for one in (*planned.bind, *planned.repoint, *planned.remove)}
        return [one for one in picture.bindings if one.metadata.name not in moved]

    def _news(self, bindings: Iterable[Binding], planned: Plan) -> list[tuple[Binding, Conditions]]:
        """Those whose conditions change, and to what."""
        now = self._clock.now()
        told = ((one, standing(one, planned.why.get(one.metadata.name), now)) for one in bindings)
        return [(one, said) for one, said in told if said != one.status.conditions]

    async def _say_all(self, news: Iterable[tuple[Binding, Conditions]]) -> None:
        await gather(partial(self._writes.set_rollout_started, binding, conditions) for binding, conditions in news)


# How objects are applied. KubeFleet gives all clusters a new strategy at once (kubefleet.md §3.1).


def _applied_otherwise(picture: Picture) -> list[Binding]:
    live = (one for one in picture.bindings if one.metadata.deletion_timestamp is None)
    return [] if is_paused(picture.placement) else [one for one in live if not picture.is_applied_so(one)]


# What wakes


def _comes_or_goes(change: Change[MemberCluster]) -> bool:
    """Whether a member was met or lost, or began to leave."""
    return _presence(change.old) != _presence(change.new)


def _presence(member: MemberCluster | None) -> tuple[object, ...]:
    return () if member is None else (member.metadata.deletion_timestamp, silence(member))
