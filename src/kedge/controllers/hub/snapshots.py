"""Snapshots: keeps what each placement selects, and its policy, written down under running numbers.

    resources = Resources(hub)
    Snapshots(hub, twins, resources, clock=clock, collect=0.1).controller

Changes of resources are collected for a moment, so that one `kubectl apply` of many files is one revision: a single one
for `collect` seconds, several as `plan.selecting.collecting` has it, and at least until `interval` seconds after the
revision before. What is back as it was by then is no revision. Nobody waits for the first revision, nor after the
selectors themselves changed.

What cannot be seen in full is not written down: the revision before stays the newest, and `Resources` says why.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec.structs import replace

from kedge.api.binding import ClusterResourceBinding
from kedge.api.dialect import Dialect
from kedge.api.fleet import PINNED, PLACEMENT_CLEANUP
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, ResourceSelector
from kedge.api.snapshot import ClusterSchedulingPolicySnapshot
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.api.twins import Run, Twins
from kedge.controllers.hub import keys
from kedge.controllers.hub.followed import followed
from kedge.controllers.hub.indexes import BINDINGS, PLACEMENT, RUNS, SNAPSHOTS, named
from kedge.controllers.hub.placements import asks_for_more, wanted_placements
from kedge.controllers.hub.policy_snapshots import PolicySnapshots
from kedge.controllers.hub.reading import manifests
from kedge.controllers.hub.resource_snapshots import ResourceSnapshots, masters
from kedge.controllers.hub.resources import Resources
from kedge.controllers.hub.revision_writes import MANAGER
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import ApiError, BadRequest, Invalid, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Seen, Source
from kedge.kube.store import Change
from kedge.plan.revisions import resource_index
from kedge.plan.rolling.observing import is_external
from kedge.plan.selecting.choosing import Selection
from kedge.plan.selecting.collecting import Coming
from kedge.plan.selecting.revising import Revision, newest, step, surplus
from kedge.plan.selecting.selectors import home_of, name_problem, strays
from kedge.plan.staging.initializing import Newest
from kedge.plan.staging.saying import has_ended

Typed = TypeVar("Typed", ClusterSchedulingPolicySnapshot, PartialObject)

COLLECT: Final = 0.1
_TOO_LARGE: Final = 413
_REFUSED: Final = 60.0  # seconds until what admission refused is tried again


class _Noticed:
    """What was noticed of one placement: changes of its resources that are no revision yet; its selectors before."""

    def __init__(self) -> None:
        self.coming: Coming | None = None
        self.last = ("", -math.inf)  # the digest of what it selects, and since when it is that
        self.selectors: tuple[ResourceSelector, ...] | None = None
        self.home = ""  # the namespace in which it shows its status
        self.holds: tuple[str, str] = ("", "")  # uid of the newest master, and the digest of what it holds
        self.made = ""  # the master that was made last, which the cache may not show yet
        self.highest = -1  # the number of the last one we made
        self.try_again: float | None = None  # when what admission refused is tried again
        self.unsure: dict[int, str] = {}  # numbers that were asked for without an answer, and what for
        self.turn = asyncio.Lock()  # there are two who may need a revision: a change, and a run that begins


class Snapshots:
    """The snapshots of one kind of placement."""

    def __init__(
        self,
        hub: Cluster,
        twins: Twins,
        resources: Resources,
        *,
        clock: Clock,
        dialect: Dialect = Dialect.seed,
        collect: float = COLLECT,
        interval: float = 0.0,
    ) -> None:
        self._hub = hub
        self._twins = twins
        self._resources = resources
        self._clock = clock
        self._dialect = dialect
        self._collect = collect
        self._interval = interval
        self._placements = wanted_placements(hub, twins)
        self._bindings = followed(hub, twins.binding, indexes=BINDINGS)
        self._policies = followed(hub, twins.policy_snapshot, indexes=SNAPSHOTS)
        self._snapshots = followed(hub, metadata_of(twins.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._runs = followed(hub, twins.run, indexes=RUNS)
        self._policy_snapshots = PolicySnapshots(hub.client, twins)
        self._resource_snapshots = ResourceSnapshots(hub.client, twins)
        self._noticed: dict[Key, _Noticed] = {}
        sources: list[Source] = [
            hub.watch(self._placements, when=asks_for_more),
            hub.watch(self._policies, to=keys.by_owner, when=_is_marked_otherwise),
            hub.watch(self._snapshots, to=keys.by_owner, when=_is_marked_otherwise),
            hub.watch(self._bindings, to=self._held_by, when=_lets_go),
            hub.watch(self._runs, to=self._moved_by, when=_ends),
            resources.source(twins),
        ]
        self.controller = Controller(f"snapshots of {twins.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        placement = self._placements.get(key.name, key.namespace)
        if placement is None or placement.metadata.deletion_timestamp is not None:
            self._noticed.pop(key, None)
            return Outcome.done if placement is None else await self._clean_up(placement)
        if name_problem(placement) or await self._strays(key, placement):
            return Outcome.done
        placement = await self._held(placement)
        known = self._policies.by(PLACEMENT, _named(placement))
        if not known and not self._resources.selected(placement).is_known:
            return Outcome.done  # no cluster is picked before it is known what for (kubefleet.md §16)
        policies = await self._policy_snapshots.keep(placement, known)
        outcome = await self._keep_resources(key, placement)
        await self._forget_history(placement, self._known(placement), policies)
        return outcome

    async def _strays(self, key: Key, placement: ClusterResourcePlacement) -> bool:
        """Whether it names another namespace than the one in which it shows its status: it is not followed there."""
        noticed = self._noticed.setdefault(key, _Noticed())
        home = home_of(placement)
        if home in ("", noticed.home):
            return False
        told = await self._hub.client.get(self._twins.placement, key.name, key.namespace)
        if strays(told):
            return True
        noticed.home = home_of(told)
        return False

    # The resources of a placement

    async def _keep_resources(self, key: Key, placement: ClusterResourcePlacement) -> Outcome:
        if self._dialect == Dialect.kubefleet and is_external(placement):
            return Outcome.done  # a staged run takes them when it needs them (kubefleet.md §4.3)
        selection = self._resources.selected(placement)
        noticed = self._noticed.setdefault(key, _Noticed())
        if self._resources.is_refused(placement, selection) and noticed.try_again is not None:
            wait = noticed.try_again - asyncio.get_running_loop().time()
            if wait > 0:
                return Outcome.again(after=wait)
            selection = replace(selection, problem="")
        if not selection.is_known:
            return Outcome.done
        async with noticed.turn:
            return await self._keep_selected(placement, selection, noticed)

    async def _keep_selected(
        self, placement: ClusterResourcePlacement, selection: Selection, noticed: _Noticed
    ) -> Outcome:
        if not self._shows(placement, noticed):
            return Outcome.not_yet
        known = self._known(placement)
        current = newest(masters(known))
        if current is not None and await self._holds(noticed, current) == selection.digest:
            return await self._settle(placement, noticed, known)
        wait = self._wait(placement, noticed, current, selection.digest)
        return Outcome.again(after=wait) if wait > 0 else await self._take(placement, selection, noticed, known)

    async def _settle(
        self, placement: ClusterResourcePlacement, noticed: _Noticed, known: tuple[ObjectMeta, ...]
    ) -> Outcome:
        """The newest revision is what is wanted."""
        noticed.coming = None
        noticed.selectors = placement.spec.resource_selectors
        revisions = masters(known)
        current = newest(revisions)
        await self._resource_snapshots.confirm(step(revisions, current.hash if current else ""))
        return Outcome.done

    async def _holds(self, noticed: _Noticed, current: Revision) -> str:
        """The digest of what the newest revision holds. It never changes, so that it is read once."""
        if not current.hash:
            return ""
        uid, digest = noticed.holds
        if uid != current.meta.uid:
            digest = await self._resource_snapshots.held(current.meta)
            noticed.holds = (current.meta.uid, digest)
        return digest

    def _wait(
        self, placement: ClusterResourcePlacement, noticed: _Noticed, current: Revision | None, digest: str
    ) -> float:
        """How many seconds to collect changes before the next revision; 0 if there is nothing to wait for."""
        now = asyncio.get_running_loop().time()
        if noticed.last[0] != digest or noticed.coming is None:
            coming, before = noticed.coming, noticed.last[1]
            noticed.coming = coming.next(now) if coming is not None else Coming.first(now, before)
            noticed.last = (digest, now)
        if current is None or not current.hash:
            return 0.0
        collected = self._collected(placement, noticed, noticed.coming) - now
        made = current.meta.creation_timestamp
        age = max(0.0, (self._clock.now() - made).total_seconds()) if made else self._interval
        return max(0.0, collected, self._interval - age)

    def _collected(self, placement: ClusterResourcePlacement, noticed: _Noticed, coming: Coming) -> float:
        """When what came is all there: the peer waits as long whatever comes (kubefleet.md §4.2)."""
        if self._dialect == Dialect.kubefleet:
            return coming.since + self._collect
        same_selectors = noticed.selectors in (None, placement.spec.resource_selectors)
        return coming.ends(self._collect) if same_selectors else coming.since

    async def _take(
        self,
        placement: ClusterResourcePlacement,
        selection: Selection,
        noticed: _Noticed,
        known: tuple[ObjectMeta, ...],
    ) -> Outcome:
        found = await manifests(self._hub.client, selection)
        if found is None:
            return Outcome.not_yet
        try:
            used = self._used(placement, noticed)
            made = await self._resource_snapshots.take(placement, found, known, used, noticed.unsure)
        except ApiError as error:
            if not isinstance(error, BadRequest | Invalid) and error.code != _TOO_LARGE:
                raise
            self._resources.refuse(placement, selection, f"the hub does not keep what is selected: {error.answer}")
            # A policy of admission may be changed; what is malformed or too large stays so.
            is_final = not isinstance(error, Invalid)
            noticed.try_again = None if is_final else asyncio.get_running_loop().time() + _REFUSED
            return Outcome.done if is_final else Outcome.again(after=_REFUSED)
        self._resources.accept(placement)
        if made is not None:
            noticed.holds, noticed.made = (made.uid, selection.digest), made.name
            noticed.highest = max(noticed.highest, resource_index(made) or 0)
            await self._forget_history(placement, (*known, made))
        elif (current := newest(masters(known))) is not None:
            noticed.holds = (current.meta.uid, selection.digest)
        noticed.coming, noticed.selectors = None, placement.spec.resource_selectors
        return Outcome.done

    def _used(self, placement: ClusterResourcePlacement, noticed: _Noticed) -> set[int]:
        """Numbers that clusters or runs go by, and those we made: what they mean never changes.

        Somebody may have deleted the newest revision. Were its number given again, every cluster that has it would have
        the new one at once. What is left of an earlier placement of this name does not count.
        """
        whose, name = _named(placement), placement.metadata.name
        bindings = (one for one in self._bindings.by(PLACEMENT, whose) if _is_of(placement, one.metadata))
        runs = (one for one in self._runs.by(PLACEMENT, whose) if _is_of(placement, one.metadata))
        held = {one.spec.resource_snapshot_name for one in bindings}
        moved = (run.status.resource_snapshot_index_used for run in runs)
        used = set[int]().union(*map(_numbers, moved), *(_numbers(_between(one, name)) for one in held))
        return used | {noticed.highest}

    # For a run that moves whatever is the newest

    async def fresh(self, placement: ClusterResourcePlacement) -> Newest:
        """The newest revision, which holds what the placement selects now; made at once if there is none that does."""
        selection = self._resources.selected(placement)
        if not selection.is_known:
            return Newest(pending=f"it is not known yet what is selected: {selection.problem or selection.pending}")
        key = Key(self._hub.name, placement.metadata.namespace, placement.metadata.name)
        if await self._strays(key, placement):
            return Newest(pending="the placement names another namespace than the one in which it shows its status")
        noticed = self._noticed.setdefault(key, _Noticed())
        async with noticed.turn:
            return await self._fresh(placement, selection, noticed)

    @property
    def changes(self) -> Source:
        """Wakes a placement whenever what it selects may be something else."""
        return self._resources.source(self._twins)

    async def _fresh(self, placement: ClusterResourcePlacement, selection: Selection, noticed: _Noticed) -> Newest:
        if not self._shows(placement, noticed) or await manifests(self._hub.client, selection) is None:
            return Newest(pending="what is selected is changing")
        known = self._known(placement)
        current = newest(masters(known))
        if current is None or await self._holds(noticed, current) != selection.digest:
            await self._take(placement, selection, noticed, known)
            return Newest(pending="the selected resources are being written down")
        return Newest(current.index)

    def _shows(self, placement: ClusterResourcePlacement, noticed: _Noticed) -> bool:
        """Whether the cache knows of the revision that was made last, whoever it was made for."""
        return not noticed.made or self._snapshots.caught_up(noticed.made, placement.metadata.namespace)

    # What is no longer needed

    def _held_by(self, seen: Seen[ClusterResourceBinding]) -> Iterable[Key]:
        return self._with_surplus(keys.placement_key(seen.cluster, seen.meta))

    def _moved_by(self, seen: Seen[ClusterStagedUpdateRun]) -> Iterable[Key]:
        return self._with_surplus(Key(seen.cluster, seen.meta.namespace, seen.object.spec.placement_name))

    def _with_surplus(self, key: Key) -> Iterable[Key]:
        """A placement that one revision less is needed for, if it has more than it is to keep."""
        placement = self._placements.get(key.name, key.namespace)
        if placement is None:
            return ()
        policies = self._policies.by(PLACEMENT, _named(placement))
        most = max(len(policies), len(masters(self._known(placement))))
        return (key,) if most > placement.spec.revision_history_limit else ()

    async def _forget_history(
        self, placement: ClusterResourcePlacement, known: tuple[ObjectMeta, ...], policies: tuple[Revision, ...] = ()
    ) -> None:
        """Delete the oldest revisions beyond the limit, but none that a cluster still has or is to have.

        The peer keeps no more than the limit, whoever has them.
        """
        limit = placement.spec.revision_history_limit
        revisions = masters(known)
        if max(len(policies), len(revisions)) <= limit:
            return
        bindings = () if self._dialect == Dialect.kubefleet else self._bindings.by(PLACEMENT, _named(placement))
        held = {binding.spec.resource_snapshot_name for binding in bindings}
        needed = {each.index for each in revisions if each.meta.name in held} | _pinned(placement)
        needed |= {index for run in self._runs.by(PLACEMENT, _named(placement)) for index in _moved(run)}
        old = {each.index for each in surplus(revisions, limit, needed)}
        await self._resource_snapshots.remove(meta for meta in known if resource_index(meta) in old)
        used = {binding.spec.scheduling_policy_snapshot_name for binding in bindings}
        for policy in surplus(policies, limit, {each.index for each in policies if each.meta.name in used}):
            await self._policy_snapshots.remove(policy)

    async def _clean_up(self, placement: ClusterResourcePlacement) -> Outcome:
        """The placement goes: so do its snapshots, and then our hold on it. Its bindings are the scheduler's."""
        meta = placement.metadata
        if PLACEMENT_CLEANUP not in meta.finalizers:
            return Outcome.done
        await self._resource_snapshots.remove(self._known(placement))
        for found in self._policies.by(PLACEMENT, _named(placement)):
            await self._policy_snapshots.remove(Revision(found.metadata, 0, ""))
        try:
            await self._write_finalizers(meta, [each for each in meta.finalizers if each != PLACEMENT_CLEANUP])
        except NotFound:
            return Outcome.done
        self._hub.events.normal(placement, "PlacementCleanupFinalizerRemoved", "its snapshots are deleted")
        return Outcome.done

    # Observing

    def _known(self, placement: ClusterResourcePlacement) -> tuple[ObjectMeta, ...]:
        """All parts of all revisions that are not on their way out."""
        found = self._snapshots.by(PLACEMENT, _named(placement))
        return tuple(each.metadata for each in found if each.metadata.deletion_timestamp is None)

    # Acting

    async def _held(self, placement: ClusterResourcePlacement) -> ClusterResourcePlacement:
        """The placement with our finalizer: there is something to clean up from here on."""
        meta = placement.metadata
        if PLACEMENT_CLEANUP in meta.finalizers:
            return placement
        return await self._write_finalizers(meta, [*meta.finalizers, PLACEMENT_CLEANUP])

    async def _write_finalizers(self, meta: ObjectMeta, finalizers: list[str]) -> ClusterResourcePlacement:
        return await self._hub.client.amend(
            self._twins.placement, meta, {"metadata": {"finalizers": finalizers}}, manager=MANAGER
        )


def _is_marked_otherwise(change: Change[Typed]) -> bool:
    """Whether a snapshot came, went, or carries other labels or annotations: not what became of it."""
    old, new = (each and (each.metadata.labels, each.metadata.annotations) for each in (change.old, change.new))
    return old != new


def _lets_go(change: Change[ClusterResourceBinding]) -> bool:
    """Whether a cluster goes by other revisions than before, or by none."""
    if change.old is None or change.new is None:
        return change.old is not None
    old, new = change.old.spec, change.new.spec
    return (old.resource_snapshot_name, old.scheduling_policy_snapshot_name) != (
        new.resource_snapshot_name,
        new.scheduling_policy_snapshot_name,
    )


def _ends(change: Change[ClusterStagedUpdateRun]) -> bool:
    """Whether a run needs its revision no longer."""
    ended = change.new is None or has_ended(change.new.status)
    return change.old is not None and ended and not has_ended(change.old.status)


def _named(placement: ClusterResourcePlacement) -> str:
    return named(placement.metadata.namespace, placement.metadata.name)


def _pinned(placement: ClusterResourcePlacement) -> set[int]:
    return _numbers(placement.metadata.annotations.get(PINNED))


def _moved(run: Run) -> set[int]:
    """The revision that a run moves, or is to move, if it has not ended."""
    used = run.status.resource_snapshot_index_used or run.spec.resource_snapshot_index
    return set() if has_ended(run.status) else _numbers(used)


def _is_of(placement: ClusterResourcePlacement, meta: ObjectMeta) -> bool:
    """Whether an object stays that was made for this placement, and not for an earlier one."""
    made, since = meta.creation_timestamp, placement.metadata.creation_timestamp
    return meta.deletion_timestamp is None and (made is None or since is None or made >= since)


def _between(snapshot: str, placement: str) -> str:
    """The number in the name of a snapshot of resources."""
    return snapshot.removeprefix(f"{placement}-").removesuffix("-snapshot")


def _numbers(text: str | None) -> set[int]:
    return {int(text)} if text and text.isascii() and text.isdecimal() else set()
