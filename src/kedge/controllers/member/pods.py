"""Pods: of every pod on a member that has not ended, what it asks of its node, and what is wrong with it.

One cache for all who look at pods. A member may have very many of them, so of each it keeps a few numbers; of the few
that are not ready also what they are at, and which workload that concerns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.pods import PodStatus, Resources
from kedge.api.resource import Resource
from kedge.controllers.member.amounts import Amounts, amounts, total
from kedge.controllers.member.failed_creations import FailedCreations
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change, Index
from kedge.plan.availability import Verdict
from kedge.plan.availability.pod_trouble import SLOW_AFTER, PodTrouble, explained, trouble_of
from kedge.plan.workloads.pods import PodWorkload

NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
WORKLOAD: Final = "workload"
A_MOMENT: Final = 1.0  # times of conditions are whole seconds


class PodContainer(Value, frozen=True, gc=False):
    """What a container asks for."""

    resources: Resources = Resources()


class PodSpec(Value, frozen=True, gc=False):
    """Where a pod runs, and what it asks for."""

    containers: tuple[PodContainer, ...] | None = None
    node_name: str = ""


class Pod(Value, frozen=True, gc=False):
    """A pod, by what it asks for of its node, and what is wrong with it."""

    resource: ClassVar[Resource] = Resource("", "v1", "Pod", "pods")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec | None = None
    status: PodStatus | None = None
    asks: Amounts = Amounts()
    trouble: PodTrouble | None = None


def pods_of(member: Cluster) -> Cache[Pod]:
    """The pods of a member: one cache, however many ask for it."""
    return member.cache(Pod, fields=NOT_ENDED, transform=pod_in_short, indexes=_INDEXES)


def pod_in_short(pod: Pod) -> Pod:
    """The pod with what it asks of its node added up, and no more. One that has no node asks nothing of any."""
    spec, meta = pod.spec or PodSpec(), pod.metadata
    containers = (spec.containers or ()) if spec.node_name else ()
    return Pod(
        metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, resource_version=meta.resource_version),
        asks=total(amounts(one.resources.requests) for one in containers),
        trouble=trouble_of(meta, pod.status) if pod.status else None,
    )


class PodTroubles:
    """What is wrong with the pods of one member, by workload."""

    def __init__(self, member: Cluster, clock: Clock, changed: Callable[[PodWorkload], None]) -> None:
        """`changed` is called when there is something else to say of the pods of a workload."""
        self._clock = clock
        self._changed = changed
        self._pods = pods_of(member)
        self._creations = FailedCreations(member, clock, changed)
        self._timers: dict[PodWorkload, asyncio.TimerHandle] = {}
        self._pods.on_change(self._look)

    def explain(self, verdict: Verdict, workload: PodWorkload) -> Verdict:
        """The verdict on a workload, with what is wrong with its pods, if it is not available for that."""
        found = explained(verdict, self._of(workload), self._clock.now())
        return found if found is not verdict else self._creations.explain(verdict, workload)

    def keep_only(self, placed: Iterable[PodWorkload]) -> None:
        """No others are placed any more."""
        self._creations.keep_only(placed)

    def _of(self, workload: PodWorkload) -> list[PodTrouble]:
        return [pod.trouble for pod in self._pods.by(WORKLOAD, _key(workload)) if pod.trouble is not None]

    def close(self) -> None:
        """Say nothing more of pods that are slow."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._creations.keep_only(())

    def _look(self, change: Change[Pod]) -> None:
        old, new = (pod.trouble if pod is not None else None for pod in (change.old, change.new))
        for one in dict.fromkeys(each.workload for each in (old, new) if each is not None and each.since is None):
            if old is None or not old.is_like(new):
                self._changed(one)
        if new is not None and new.since is not None:
            self._look_later(new.workload)

    def _look_later(self, workload: PodWorkload) -> None:
        """Look at pods that are slow when one of them has been for long enough: mostly none is by then."""
        if workload in self._timers:
            return
        now = self._clock.now()
        slow = [one.since for one in self._of(workload) if one.since is not None and not one.is_shown(now)]
        if slow:
            wait = (min(slow) + SLOW_AFTER - now).total_seconds() + A_MOMENT
            self._timers[workload] = asyncio.get_running_loop().call_later(wait, self._look_at_slow, workload)

    def _look_at_slow(self, workload: PodWorkload) -> None:
        self._timers.pop(workload, None)
        self._changed(workload)
        self._look_later(workload)


def _by_workload(pod: Pod) -> Iterable[str]:
    return () if pod.trouble is None else (_key(pod.trouble.workload),)


def _key(workload: PodWorkload) -> str:
    return f"{workload.group}/{workload.kind}/{workload.namespace}/{workload.name}"


_INDEXES: Final[dict[str, Index[Pod]]] = {WORKLOAD: _by_workload}
