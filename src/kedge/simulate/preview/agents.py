"""Agents: the members, modelled: what they are given is applied at once, and available after the time they take.

    Agents(connection, clock=clock, takes=times).controller

A member costs a few requests for each Work that changes, and nothing while it waits: no server of its own, no pods and
no heartbeats. What a Work says in the end is made by what the real agents use (`plan.applying.work_status`).

Assumes that a Work which was not available when the fleet was read comes up in the time it takes, counted from when
it began; one that is late by as much again stays as it is, until it is given something else. So does one whose
resources are not those wanted any more: when a preview is asked for must not decide whether a cluster that is broken
comes up just before it gets the next revision.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.condition import TRUE, Condition, find_condition
from kedge.api.fleet import PARENT_NAMESPACE, PARENT_PLACEMENT, PARENT_SNAPSHOT_NAME, WORK_CLEANUP, member_of
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PLACEMENT_KINDS
from kedge.api.reasons import APPLIED, AVAILABLE
from kedge.api.work import Work, Workload, WorkStatus
from kedge.controllers.hub.caches import PLACEMENT, SNAPSHOTS, named
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.applying.manifests import ObjectKey, object_key
from kedge.plan.applying.work_status import ApplyResult, work_status
from kedge.plan.membership import unreachable_message
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.expected_objects import (
    ExpectedObject,
    available_result,
    expected_object,
    longest_deadline,
    most_rounds,
    refused_result,
    unavailable_result,
)
from kedge.plan.rolling.rollout_input import is_rolling, wanted

MANAGER: Final = "kedge-applier"
WORKERS: Final = 32
_FAILS: Final = "is taken to fail here"
_NEVER: Final = math.inf
_SOONEST: Final = 2.5  # seconds: longer than a hub collects changes before it makes a revision of them
_SOON: Final = 1e-6  # seconds: what is due in less than that is due, or a timer might never get there


class _Held(Struct, frozen=True):
    """What a member has of one Work: which version, and when each object that comes up will be there."""

    generation: int
    digests: dict[ObjectKey, str]
    due: dict[ObjectKey, float]
    working: dict[ObjectKey, str] = {}
    """What was up before what is due, and stays so until that has come."""
    refused: bool = False
    frozen: bool = False
    """Whether it stays as it was found."""
    found: bool = False
    """Whether it was on its way when the fleet was read."""


class Agents:
    """All members of one hub."""

    def __init__(self, hub: Cluster, *, clock: Clock, takes: Durations) -> None:
        self._client = hub.client
        self._clock = clock
        self._takes = takes
        self._works = hub.cache(Work, transform=_in_short)
        self._members = hub.cache(MemberCluster)
        self._placements = {kinds: hub.cache(kinds.placement) for kinds in PLACEMENT_KINDS}
        self._snapshots = {
            kinds: hub.cache(metadata_of(kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
            for kinds in PLACEMENT_KINDS
        }
        self._held: dict[Key, _Held] = {}
        sources: list[Source] = [hub.watch(self._works), hub.watch(self._members, when=lambda _: False)]
        self.controller = Controller("members, modelled", self.reconcile, sources, workers=WORKERS)

    async def reconcile(self, key: Key) -> Outcome:
        work = self._works.get(key.name, key.namespace)
        if work is None:
            self._held.pop(key, None)
            return Outcome.done
        member = self._members.get(member_of(key.namespace or "") or "")
        if member is None or unreachable_message(member):
            return Outcome.done  # nobody is there who would answer
        if work.metadata.deletion_timestamp is not None:
            return await self._withdraw(work)
        held = self._held[key] = self._now_held(key, work, member.metadata.name)
        if held.frozen or (held.found and self._is_replaced(work)):
            return Outcome.done
        return await self._report(work, held)

    def _is_replaced(self, work: Work) -> bool:
        """Whether a rollout wants other resources than this Work is made of."""
        labels = work.metadata.labels
        name, namespace = labels.get(PARENT_PLACEMENT, ""), labels.get(PARENT_NAMESPACE)
        kinds = NAMESPACED if namespace else CLUSTER
        placement = self._placements[kinds].get(name, namespace)
        if placement is None or not is_rolling(placement):
            return False
        snapshots = self._snapshots[kinds].by(PLACEMENT, named(namespace, name))
        goal = wanted(placement.metadata, [one.metadata for one in snapshots]).name
        return bool(goal) and work.metadata.annotations.get(PARENT_SNAPSHOT_NAME) != goal

    # What a member has

    def _now_held(self, key: Key, work: Work, cluster: str) -> _Held:
        held, these = self._held.get(key), _these(work)
        if held is not None and held.generation == work.metadata.generation:
            return held
        if held is None and _speaks(work, APPLIED) is not None:
            return self._found(work, these, cluster)
        before = held.digests if held is not None else {}
        return self._given(work, these, cluster, before, held)

    def _given(
        self,
        work: Work,
        these: Sequence[ExpectedObject],
        cluster: str,
        before: dict[ObjectKey, str],
        held: _Held | None,
    ) -> _Held:
        """It is given something new: what is other than before has to come up, unless it is still there."""
        now = asyncio.get_running_loop().time()
        waiting, working = (held.due, held.working) if held is not None else ({}, {})
        working = {**working, **{which: one for which, one in before.items() if waiting.get(which, now) <= now}}
        news = [one for one in these if one.takes_time and before.get(_identity(one)) != one.digest]
        new = [one for one in news if working.get(_identity(one)) != one.digest]
        first = not before and not work.status.conditions
        takes = self._takes.seconds(cluster, rounds=most_rounds(new), deadline=longest_deadline(new), first=first)
        at = now + takes
        due = {which: when for one in these if one not in news and (when := waiting.get(which := _identity(one)))}
        return _Held(
            generation=work.metadata.generation,
            digests=_digests(these),
            due={**due, **{_identity(one): at for one in new}},
            working=working,
            refused=takes == _NEVER and not any(one.takes_time for one in these),
        )

    def _found(self, work: Work, these: Sequence[ExpectedObject], cluster: str) -> _Held:
        """It has had this since before: available, or on its way, or stuck."""
        generation, digests = work.metadata.generation, _digests(these)
        said = _speaks(work, AVAILABLE)
        if said is not None and said.status == TRUE:
            return _Held(generation, digests, {}, frozen=True)
        late = [one for one in these if one.takes_time]
        takes = self._takes.seconds(cluster, rounds=most_rounds(late), deadline=longest_deadline(late), first=False)
        gone = (self._clock.now() - said.last_transition_time).total_seconds() if said is not None else _NEVER
        if gone > 2 * takes or takes == _NEVER:
            return _Held(generation, digests, {}, frozen=True)
        at = asyncio.get_running_loop().time() + max(_SOONEST, takes - gone)
        return _Held(generation, digests, {_identity(one): at for one in late}, found=True)

    # What it says

    async def _report(self, work: Work, held: _Held) -> Outcome:
        now = asyncio.get_running_loop().time()
        these = _these(work)
        results = [_result(one, held, now) for one in these]
        status = work_status(results, work.status, work.metadata.generation, self._clock.now())
        if WORK_CLEANUP not in work.metadata.finalizers:
            work = await self._set_finalizers(work, [*work.metadata.finalizers, WORK_CLEANUP])
        if status != work.status:
            await self._tell(work, status)
        waits = [at - now for at in held.due.values() if now + _SOON < at < _NEVER]
        return Outcome.again(after=min(waits)) if waits else Outcome.done

    async def _tell(self, work: Work, status: WorkStatus) -> None:
        meta = work.metadata
        await self._client.patch(
            Work,
            meta.name,
            MergePatch({"status": {"manifestConditions": None, **to_builtins(status)}}),
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            subresource="status",
            manager=MANAGER,
        )

    async def _withdraw(self, work: Work) -> Outcome:
        if WORK_CLEANUP in work.metadata.finalizers:
            with suppress(NotFound):
                await self._set_finalizers(work, [one for one in work.metadata.finalizers if one != WORK_CLEANUP])
        return Outcome.done

    async def _set_finalizers(self, work: Work, finalizers: list[str]) -> Work:
        meta = work.metadata
        return await self._client.patch(
            Work,
            meta.name,
            MergePatch({"metadata": {"finalizers": finalizers or None}}),
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            manager=MANAGER,
        )


def _result(one: ExpectedObject, held: _Held, now: float) -> ApplyResult:
    if held.refused:
        return refused_result(one, f"{one.name} {_FAILS}")
    at = held.due.get(_identity(one), 0.0)
    if at <= now + _SOON:
        return available_result(one)
    return unavailable_result(one, _FAILS if at == _NEVER else "comes up")


def _identity(one: ExpectedObject) -> ObjectKey:
    return object_key(one.identifier)


def _digests(these: Iterable[ExpectedObject]) -> dict[ObjectKey, str]:
    return {_identity(one): one.digest for one in these if one.takes_time}


def _speaks(work: Work, kind: str) -> Condition | None:
    """What was said of the Work as it is now."""
    found = find_condition(work.status.conditions, kind)
    return found if found is not None and found.observed_generation == work.metadata.generation else None


def _in_short(work: Work) -> Work:
    """A Work with what matters of its objects in their place."""
    short: tuple[Any, ...] = tuple(
        to_builtins(expected_object(number, manifest)) for number, manifest in enumerate(work.spec.workload.manifests)
    )
    return replace(work, spec=replace(work.spec, workload=Workload(manifests=short)))


def _these(work: Work) -> list[ExpectedObject]:
    return [msgspec.convert(one, ExpectedObject) for one in work.spec.workload.manifests]
