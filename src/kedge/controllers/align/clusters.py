"""Clusters: the hub's side of its members: a namespace for each, whether it is ready, and how it leaves.

A cluster that is deleted stays until its Works are gone, so that its replicas run elsewhere before. One that is not
heard from cannot take its Works away: they are given up, and what runs there stays. So are those of no cluster.
While it stays, its condition `Leaving` says what it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.condition import find_condition, is_true, set_condition
from kedge.api.coordination import Lease
from kedge.api.core import Namespace
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.keys import CLUSTER_FINALIZER, EXECUTION_FINALIZER, EXECUTION_PREFIX, HEARTBEAT_OF
from kedge.api.karmada.works import Work
from kedge.controllers.align.binding_kinds import BINDING_KINDS
from kedge.controllers.gather import gather
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject, generation_changed
from kedge.plan.aligning.leaving import LEAVING, LeavingReason, Remaining, leaving_condition
from kedge.plan.aligning.names import work_namespace
from kedge.plan.aligning.readiness import READY, LastHeartbeat, heard, ready_condition, seconds_left
from kedge.plan.text import listed

MANAGER: Final = "kedge-clusters"
SAY_EVERY: Final = 5.0
"""Seconds between two reports of what a cluster that leaves waits for: many bindings may move. Heartbeats wake it."""


class Clusters:
    """The controller of the members of one hub."""

    def __init__(self, hub: Cluster, *, clock: Clock) -> None:
        self._client = hub.client
        self._events = hub.events
        self._clock = clock
        self._members = hub.cache(Member)
        self._leases = hub.cache(Lease, labels=HEARTBEAT_OF)
        self._works = hub.cache(Work)
        self._bindings = {one: one.cache(hub) for one in BINDING_KINDS}
        self._says = Throttle(SAY_EVERY)
        self._heard: dict[str, LastHeartbeat] = {}
        self._absent: set[str] = set()
        """Clusters that this hub has found without a Lease."""
        sources: list[Source] = [
            hub.watch(self._members),
            hub.watch(self._leases, to=_of_namespace),
            hub.watch(self._works, to=_of_namespace),
            *(hub.watch(one, to=self._leaving_of, when=generation_changed) for one in self._bindings.values()),
        ]
        self.controller = Controller("clusters", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        member = self._members.get(key.name)
        if member is None:
            await self._clear(key.name)
            return Outcome.done
        moment = asyncio.get_running_loop().time()
        lease = self._leases.get(key.name, work_namespace(key.name))
        last = heard(self._heard.get(key.name), lease, moment, was_absent=key.name in self._absent)
        if lease is None:
            self._absent.add(key.name)
        if last is not None:
            self._heard[key.name] = last
        if member.metadata.deletion_timestamp is not None:
            await self._leave(member)
        elif CLUSTER_FINALIZER not in member.metadata.finalizers:
            await self._enter(member)
        else:
            await self._report(member, last, moment)
        left = seconds_left(last, moment)
        return Outcome.again(after=left) if left else Outcome.done

    async def _enter(self, member: Member) -> None:
        """A namespace for its Works, and that it cannot go without them."""
        with suppress(AlreadyExists):
            await self._client.create(Namespace, {"metadata": {"name": work_namespace(member.metadata.name)}})
        finalizers = [*member.metadata.finalizers, CLUSTER_FINALIZER]
        await self._client.amend(Member, member.metadata, {"metadata": {"finalizers": finalizers}}, manager=MANAGER)

    async def _report(self, member: Member, last: LastHeartbeat | None, moment: float) -> None:
        condition = ready_condition(member, last, moment, self._clock.now())
        status = replace(member.status, conditions=set_condition(member.status.conditions, condition))
        if status == member.status:
            return
        was_ready, is_ready = (is_true(one.conditions, READY) for one in (member.status, status))
        change = {"status": difference(to_builtins(member.status), to_builtins(status))}
        await self._client.amend(Member, member.metadata, change, manager=MANAGER, subresource="status")
        if is_ready and not was_ready:
            self._events.normal(member, "ClusterReady", condition.message)
        elif was_ready and not is_ready:
            self._events.warning(member, "ClusterNotReady", condition.message)

    async def _leave(self, member: Member) -> None:
        """Let it go when its Works are gone; or at once if it cannot take them away."""
        meta = member.metadata
        is_ready = is_true(member.status.conditions, READY)
        if CLUSTER_FINALIZER not in meta.finalizers:
            return
        works = self._works_of(meta.name)
        if works and is_ready:
            await self._say_why_it_stays(member, works)
            return
        if works:
            names = listed(one.metadata.name for one in works)
            self._events.warning(member, "WorksGivenUp", f"it is not heard from, so what runs there stays: {names}")
        rest = [one for one in meta.finalizers if one != CLUSTER_FINALIZER]
        await self._client.amend(Member, meta, {"metadata": {"finalizers": rest}}, manager=MANAGER)

    async def _say_why_it_stays(self, member: Member, works: Iterable[Work]) -> None:
        name = member.metadata.name
        if self._says.remaining(name):
            return
        before = find_condition(member.status.conditions, LEAVING)
        condition = leaving_condition(member, map(self._remaining, works), self._clock.now())
        conditions = set_condition(member.status.conditions, condition)
        if conditions == member.status.conditions:
            return
        change = difference(to_builtins(member.status), to_builtins(replace(member.status, conditions=conditions)))
        await self._client.amend(Member, member.metadata, {"status": change}, manager=MANAGER, subresource="status")
        self._says.restart(name)
        if condition.reason == LeavingReason.bindings_remain:
            self._events.warning(member, "ClusterStays", condition.message)
        elif before is None:
            self._events.normal(member, "ClusterLeaving", condition.message)

    def _remaining(self, work: Work) -> Remaining:
        """A Work, and its binding if that is there."""
        for kind, cache in self._bindings.items():
            if (key := kind.named_in(work.metadata.annotations, "")) is not None:
                return Remaining(work, cache.get(key.name, key.namespace))
        return Remaining(work, None)

    def _leaving_of(self, seen: WatchedObject[ResourceBinding]) -> Iterable[Key]:
        """A binding wakes those of its clusters that are being deleted."""
        for one in seen.object.spec.clusters:
            member = self._members.get(one.name)
            if member is not None and member.metadata.deletion_timestamp is not None:
                yield Key(seen.cluster, None, one.name)

    async def _clear(self, name: str) -> None:
        """A cluster that is not there any more: nobody makes Works for it, and nobody takes them away."""
        self._heard.pop(name, None)
        self._absent.discard(name)
        self._says.reset(name)
        if works := self._works_of(name):
            await gather([partial(self._give_up, one) for one in works])
        with suppress(NotFound):
            await self._client.delete(Namespace, work_namespace(name))

    async def _give_up(self, work: Work) -> None:
        rest = [one for one in work.metadata.finalizers if one != EXECUTION_FINALIZER]
        found = await self._client.amend(Work, work.metadata, {"metadata": {"finalizers": rest}}, manager=MANAGER)
        await self._client.remove(Work, found.metadata)

    def _works_of(self, name: str) -> list[Work]:
        namespace = work_namespace(name)
        return [one for one in self._works.all() if one.metadata.namespace == namespace]


def _of_namespace(seen: WatchedObject[Any]) -> Iterable[Key]:
    """What is in a member's namespace wakes the member."""
    namespace = seen.meta.namespace or ""
    if namespace.startswith(EXECUTION_PREFIX):
        yield Key(seen.cluster, None, namespace.removeprefix(EXECUTION_PREFIX))
