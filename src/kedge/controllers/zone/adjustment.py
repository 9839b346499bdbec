"""Adjustment: one look at the replicas of a rollout group, and what is done about it.

Looks at what the caches show first. If that calls for a change, everything is read again from the server, pods are
called where a delay asks for it, and at most one StatefulSet is patched. A StatefulSet that is refused waits for its
next attempt while the others go on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.controllers.gather import gather
from kedge.controllers.zone.attempts import NO_TIME, Attempts
from kedge.controllers.zone.cancellations import Cancellations
from kedge.controllers.zone.pod_calls import PodCalls
from kedge.controllers.zone.reference import References
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import ApiError, KubeError, Unreachable
from kedge.kube.limits import BackoffSteps
from kedge.kube.patches import StrategicPatch
from kedge.plan.moving.wait import Wait
from kedge.plan.zoning import downscale_delay, mirror, replicas
from kedge.plan.zoning.downscale_delay import Delay, delay_of
from kedge.plan.zoning.pod_hosts import pod_name
from kedge.plan.zoning.pods import is_running_and_ready
from kedge.plan.zoning.replicas import ScalingPlan
from kedge.plan.zoning.scaling import (
    PodAnswer,
    ScaleCode,
    ScaleStep,
    Scaling,
    ScalingVerdict,
    replicas_of,
    wait_for,
)

RETRY: Final = BackoffSteps(first=5.0, longest=60.0)
"""After a refusal, and after pods that could not be prepared."""
ASK_AGAIN: Final = 60.0
"""Seconds before pods that prepare are asked again: one that was restarted may have forgotten it."""
WRITE_AGAIN: Final = 60.0
"""Seconds before the same number is written again into the status of a reference."""
MOST_CALLING: Final = 40.0
"""Seconds of one adjustment after which no more pods are called. What is left comes next time."""
_SOON: Final = timedelta(seconds=1)


class ScalingGroup(Struct, frozen=True):
    """A rollout group as the caches show it. Pods are by the names of their StatefulSets."""

    namespace: str
    name: str
    sets: tuple[StatefulSet, ...]
    pods: Mapping[str, tuple[Pod, ...]] = {}


class ScalingTools(Struct, frozen=True):
    """What an adjustment works with."""

    client: Client
    references: References
    calls: PodCalls
    cancellations: Cancellations
    clock: Clock
    rng: random.Random


class Adjusted(Struct, frozen=True):
    """What came of it. `in_doubt` if nobody knows whether the step was done."""

    step: ScaleStep | None = None
    in_doubt: bool = False
    waits: tuple[Wait, ...] = ()
    look_again: float | None = None


class GroupUnread(Exception):
    """The StatefulSets of the group could not be read."""


class Adjustment:
    """One look at one group."""

    def __init__(self, group: ScalingGroup, tools: ScalingTools, attempts: Attempts) -> None:
        self._group = group
        self._tools = tools
        self._attempts = attempts
        self._calling_until = asyncio.get_running_loop().time() + MOST_CALLING

    async def run(self) -> Adjusted:
        """Look, and act. Raises `KubeError` or `GroupUnread` if the group cannot be read."""
        known = await self._observe(self._group.sets)
        plan, end = replicas.plan(known), Adjusted()
        if plan.step is not None or plan.ask is not None:
            known = await self._observe(await self._read_sets(), fresh=True)
            known, plan, end = await self._act(known)
        unwritten = await self._write_back(known, end.step)
        resting = await self._cancel_at_rest(known) if end.step is None and not end.in_doubt else None
        look_again = RETRY.first if end.in_doubt else self._seconds(plan, resting)
        return replace(end, waits=(*plan.waits, *unwritten), look_again=look_again)

    # Looking

    async def _observe(self, sets: tuple[StatefulSet, ...], *, fresh: bool = False) -> Scaling:
        known = Scaling(sets, self._tools.clock.now(), ready_pods=self._ready_pods())
        wanted = mirror.references(known)
        read = partial(self._tools.references.read, self._group.namespace, fresh=fresh)
        scales = await gather([partial(read, one) for one in wanted])
        known = replace(known, scales=dict(zip(wanted, scales, strict=True)))
        return replace(known, postponed=self._postponed(known))

    def _ready_pods(self) -> dict[str, int]:
        if not any(zones.UPSCALE_WHEN_LEADER_READY in one.metadata.annotations for one in self._group.sets):
            return {}
        return {name: sum(map(is_running_and_ready, pods)) for name, pods in self._group.pods.items()}

    async def _read_sets(self) -> tuple[StatefulSet, ...]:
        """The group as the server has it now: what other zones did last decides on this one."""
        labels = {zones.ROLLOUT_GROUP: self._group.name}
        page = await self._tools.client.list(StatefulSet, self._group.namespace, labels=labels)
        if page.unreadable:
            odd = page.unreadable[0]
            raise GroupUnread(f"{odd.metadata.name} is not understood: {odd.problem}")
        return page.items

    def _postponed(self, known: Scaling) -> dict[str, ScalingVerdict]:
        return {one.metadata.name: found for one in known.sets if (found := self._postponed_one(one, known))}

    def _postponed_one(self, one: StatefulSet, known: Scaling) -> ScalingVerdict | None:
        """What was found for it lately, if it is too soon to find out again."""
        tries = (
            (("refused", one.metadata.uid), _fingerprint(known), RETRY.first),
            (("delay", one.metadata.uid), self._asked_about(one, known), 0.0),
        )
        for key, value, changed in tries:
            last, left = self._attempts.last(key), self._attempts.remaining(key, value, changed=changed)
            if last is not None and left:
                return ScalingVerdict(waits=last.waits, until=known.now + timedelta(seconds=left))
        return None

    def _asked_about(self, one: StatefulSet, known: Scaling) -> tuple[object, ...]:
        """What pods are asked for: if any of it changes, they are asked again."""
        step, delay = mirror.mirror(one, known).step, delay_of(one)
        if step is None or not isinstance(delay, Delay):
            return ()
        going = {pod_name(one, ordinal) for ordinal in downscale_delay.to_prepare(step)}
        pods = self._group.pods.get(one.metadata.name, ())
        uids = frozenset(pod.metadata.uid for pod in pods if pod.metadata.name in going)
        return (step, delay.length, delay.url, uids)

    # Acting

    async def _act(self, known: Scaling) -> tuple[Scaling, ScalingPlan, Adjusted]:
        """Ask, and patch the first StatefulSet that may be patched and is not refused."""
        while True:
            plan = replicas.plan(known)
            if plan.ask is not None and asyncio.get_running_loop().time() < self._calling_until:
                known = await self._ask(known, plan.ask)
            elif plan.step is None:
                return known, plan, Adjusted()
            else:
                end = await self._patch(known, plan.step)
                if isinstance(end, Adjusted):
                    return known, plan, end
                known = replace(known, postponed={**known.postponed, plan.step.name: end})

    async def _ask(self, known: Scaling, step: ScaleStep) -> Scaling:
        """Tell the pods that stay to cancel, and those that would go to prepare; then look again at what is wanted."""
        one, delay = _named(known, step.name), delay_of(_named(known, step.name))
        assert isinstance(delay, Delay), "only a delay makes a plan ask"
        about = self._asked_about(one, known)
        await self._cancel(one, delay, len(downscale_delay.to_cancel(step)))
        answers = await self._tools.calls.prepare(one, delay.url, downscale_delay.to_prepare(step))
        if step.is_down:
            self._remember(one, step, delay, about, answers)
        again = await self._observe(known.sets, fresh=True)
        return replace(again, answers={**known.answers, step.name: answers})

    def _remember(
        self, one: StatefulSet, step: ScaleStep, delay: Delay, about: object, answers: tuple[PodAnswer, ...]
    ) -> None:
        """If pods are not prepared for long enough, they are not asked again at once. That they are is not kept."""
        now = self._tools.clock.now()
        found = downscale_delay.delayed(step, delay, answers, now)
        if not found.waits:
            self._attempts.forget(("delay", one.metadata.uid))
            return
        failed = found.waits[0].code == ScaleCode.pods_not_prepared
        until = (found.until - now).total_seconds() + NO_TIME if found.until is not None else ASK_AGAIN
        retry = partial(RETRY.after, rng=self._tools.rng) if failed else lambda _: min(ASK_AGAIN, until)
        self._attempts.note(("delay", one.metadata.uid), about, retry, failed=failed, waits=found.waits)

    async def _patch(self, known: Scaling, step: ScaleStep) -> Adjusted | ScalingVerdict:
        """Set the replicas; or what keeps them from being set."""
        one, client = _named(known, step.name), self._tools.client
        try:
            if not _is_same(one, await client.get(StatefulSet, step.name, self._group.namespace)):
                return ScalingVerdict(until=known.now + _SOON)
            # The uid alone is the precondition. The webhook that prepares a downscale annotates the StatefulSet while
            # this patch is admitted. With a resourceVersion every such patch would end in a conflict.
            patch = StrategicPatch({"spec": {"replicas": step.replicas}})
            await client.patch(StatefulSet, step.name, patch, self._group.namespace, uid=one.metadata.uid)
        except KubeError as error:
            refused = self._refused(known, one, error)
            in_doubt = isinstance(error, Unreachable) and error.maybe_done
            return Adjusted(in_doubt=True) if in_doubt else refused
        self._attempts.forget(("refused", one.metadata.uid))
        return Adjusted(step)

    def _refused(self, known: Scaling, one: StatefulSet, error: KubeError) -> ScalingVerdict:
        text = error.message if isinstance(error, ApiError) else str(error)
        key, waits = ("refused", one.metadata.uid), (wait_for(one.metadata.name, ScaleCode.refused, reported=text),)
        retry = partial(RETRY.after, rng=self._tools.rng)
        self._attempts.note(key, _fingerprint(known), retry, failed=True, waits=waits)
        left = self._attempts.remaining(key, _fingerprint(known))
        return ScalingVerdict(waits=waits, until=known.now + timedelta(seconds=left))

    # After it

    async def _write_back(self, known: Scaling, step: ScaleStep | None) -> tuple[Wait, ...]:
        """Tell the references how many replicas there are, and say where that failed."""
        patched = {step.name: step.replicas} if step is not None else {}
        ends = [await self._write_one(one) for one in mirror.write_backs(known, patched)]
        return tuple(wait for waits in ends for wait in waits)

    async def _write_one(self, wanted: mirror.WriteBack) -> tuple[Wait, ...]:
        key = ("write-back", wanted.reference)
        last = self._attempts.last(key)
        if last is not None and self._attempts.remaining(key, wanted.replicas):
            return last.waits
        waits: tuple[Wait, ...] = ()
        try:
            await self._tools.references.write_back(self._group.namespace, wanted.reference, wanted.replicas)
        except KubeError as error:
            text, about = error.message if isinstance(error, ApiError) else str(error), str(wanted.reference)
            waits = tuple(wait_for(name, ScaleCode.write_back_failed, about, text) for name in wanted.names)
        self._attempts.note(key, wanted.replicas, lambda _: WRITE_AGAIN, failed=bool(waits), waits=waits)
        return waits

    async def _cancel_at_rest(self, known: Scaling) -> float | None:
        """Let the pods of those at rest forget old preparations. Seconds until that is due again, if it will be."""
        left: list[float] = []
        for one in mirror.at_rest(known):
            delay = delay_of(one)
            if isinstance(delay, Delay) and asyncio.get_running_loop().time() < self._calling_until:
                await self._cancel(one, delay, replicas_of(one))
            left.append(max(self._tools.cancellations.remaining(one), _SOON.total_seconds()))
        return min(left, default=None)

    async def _cancel(self, one: StatefulSet, delay: Delay, count: int) -> None:
        pods = self._group.pods.get(one.metadata.name, ())
        await self._tools.cancellations.cancel(one, delay.url, count, pods)

    def _seconds(self, plan: ScalingPlan, resting: float | None) -> float | None:
        """Until the first moment at which something may change by itself."""
        until = (plan.look_again - self._tools.clock.now()).total_seconds() if plan.look_again is not None else None
        asking = _SOON.total_seconds() if plan.ask is not None else None
        times = [max(each, NO_TIME) for each in (until, resting, asking) if each is not None]
        return min(times, default=None)


def _named(known: Scaling, name: str) -> StatefulSet:
    return next(one for one in known.sets if one.metadata.name == name)


def _is_same(decided_on: StatefulSet, there: StatefulSet) -> bool:
    """Whether what was decided on still holds."""
    one, other = decided_on.metadata, there.metadata
    if other.deletion_timestamp is not None or replicas_of(decided_on) != replicas_of(there):
        return False
    return (one.uid, one.labels, one.annotations) == (other.uid, other.labels, other.annotations)


def _fingerprint(known: Scaling) -> tuple[object, ...]:
    """What a refusal may depend on: if any of it changes, it is worth another attempt.

    Not the time of the last downscale: a webhook that prepares one writes it even if another webhook then refuses.
    """
    return tuple((one.metadata.name, replicas_of(one), one.status) for one in known.in_order) + tuple(
        known.scales.items()
    )
