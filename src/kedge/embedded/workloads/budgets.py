"""PodDisruptionBudgets: counts the pods they guard, and says how many may be taken away now.

As kube-controller-manager counts: percentages are of the replicas the owners want, not of the pods there are, and are
rounded up; a number as `minAvailable` is held against the pods there are. While a budget covers no pod, nothing may be
taken away: its first pods could appear before anyone has counted them. Of owners, Deployments, ReplicaSets and
StatefulSets are known; pods of an owner that cannot be scaled make the budget say so, and allow nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct

from kedge.api.apps import Deployment, ReplicaSet, StatefulSet
from kedge.api.condition import FALSE, TRUE, Condition, set_condition
from kedge.api.meta import OwnerReference, controller_of
from kedge.api.numbers import IntOrPercent, resolve
from kedge.api.pods import Pod
from kedge.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kedge.api.selector import selects
from kedge.embedded.workloads.owned import NAMESPACE
from kedge.embedded.workloads.view import View
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.workloads import pods

COMPONENT = "controllermanager"
ALLOWED = "DisruptionAllowed"


class NoScale(Exception):
    """The owner of a pod is none that wants so many of them."""


class Budgets:
    """The PodDisruptionBudgets of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._budgets = view.of(PodDisruptionBudget)
        self._events = view.events(COMPONENT)

    def sources(self) -> Iterable[Source]:
        view = self._view
        pods_wake = view.cluster.watch(view.pods, to=self._guarding)
        scales = (Deployment, ReplicaSet, StatefulSet)
        owners = [view.cluster.watch(view.of(kind), to=self._all_around) for kind in scales]
        return [view.itself(PodDisruptionBudget), pods_wake, *owners]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._budgets.get(key.name, key.namespace)
        if found is None:
            return Outcome.done
        guarded = self._guarded(found)
        if not guarded:
            self._events.normal(found, "NoPods", "No matching pods found")
        try:
            counted = self._count(found, guarded)
        except NoScale as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self._events.warning(found, "CalculateExpectedPodCountFailed", text)
            await self._view.write_status(found, failed(found, str(error), self._view.now()))
            return Outcome.done
        await self._view.write_status(found, status(found, counted, self._view.now()))
        return Outcome.done

    def _guarded(self, found: PodDisruptionBudget) -> list[Pod]:
        around = self._view.pods.by(NAMESPACE, found.metadata.namespace or "")
        return [pod for pod in around if selects(found.spec.selector, pod.metadata.labels)]

    def _count(self, found: PodDisruptionBudget, guarded: list[Pod]) -> Count:
        spec = found.spec
        healthy = [pod for pod in guarded if pods.is_ready(pod) and pod.metadata.deletion_timestamp is None]
        shares = needs_scale(spec.min_available, spec.max_unavailable)
        return count(
            spec.min_available,
            spec.max_unavailable,
            pods=len(guarded),
            scale=self._scale(guarded) if shares else 0,
            healthy=len(healthy),
        )

    def _scale(self, guarded: list[Pod]) -> int:
        """How many pods the owners of these want, together."""
        owners = {owner.uid: (pod, owner) for pod in guarded if (owner := controller_of(pod.metadata)) is not None}
        wanted = [self._wanted(pod, owner) for pod, owner in owners.values()]
        return sum(dict(wanted).values())

    def _wanted(self, pod: Pod, owner: OwnerReference) -> tuple[str, int]:
        """Whose scale it is, and how much: of a Deployment, whatever its ReplicaSets are at."""
        namespace = pod.metadata.namespace
        if owner.kind == "ReplicaSet":
            found: Any = self._view.of(ReplicaSet).get(owner.name, namespace)
            above = controller_of(found.metadata) if found is not None else None
            if above is not None and above.kind == "Deployment":
                found = self._view.of(Deployment).get(above.name, namespace) or found
        elif owner.kind == "StatefulSet":
            found = self._view.of(StatefulSet).get(owner.name, namespace)
        else:
            raise NoScale(f"{_plural(owner)} does not implement the scale subresource")
        if found is None:
            raise NoScale(f'found no controllers for pod "{pod.metadata.name}"')
        return found.metadata.uid, 1 if found.spec.replicas is None else found.spec.replicas

    def _guarding(self, seen: WatchedObject[Pod]) -> Iterable[Key]:
        return [
            Key(seen.cluster, seen.meta.namespace, one.metadata.name)
            for one in self._budgets.by(NAMESPACE, seen.meta.namespace or "")
            if selects(one.spec.selector, seen.meta.labels)
        ]

    def _all_around(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        """A budget may be a share of what this workload wants."""
        return [
            Key(seen.cluster, seen.meta.namespace, one.metadata.name)
            for one in self._budgets.by(NAMESPACE, seen.meta.namespace or "")
            if needs_scale(one.spec.min_available, one.spec.max_unavailable)
        ]


def status(found: PodDisruptionBudget, counted: Count, now: datetime) -> PodDisruptionBudgetStatus:
    """What the budget says of its pods."""
    enough = counted.allowed > 0
    condition = Condition(
        type=ALLOWED,
        status=TRUE if enough else FALSE,
        reason="SufficientPods" if enough else "InsufficientPods",
        message="",
        last_transition_time=now,
        observed_generation=found.metadata.generation,
    )
    return PodDisruptionBudgetStatus(
        observed_generation=found.metadata.generation,
        disruptions_allowed=counted.allowed,
        current_healthy=counted.healthy,
        desired_healthy=counted.desired_healthy,
        expected_pods=counted.expected,
        conditions=set_condition(found.status.conditions, condition),
    )


def failed(found: PodDisruptionBudget, why: str, now: datetime) -> PodDisruptionBudgetStatus:
    """What a budget says that cannot be counted: nothing may go."""
    before = found.status
    condition = Condition(
        type=ALLOWED,
        status=FALSE,
        reason="SyncFailed",
        message=why,
        last_transition_time=now,
        observed_generation=before.observed_generation or None,
    )
    return PodDisruptionBudgetStatus(
        observed_generation=before.observed_generation,
        disruptions_allowed=0,
        current_healthy=before.current_healthy,
        desired_healthy=before.desired_healthy,
        expected_pods=before.expected_pods,
        conditions=set_condition(before.conditions, condition),
    )


def _plural(owner: OwnerReference) -> str:
    group = owner.api_version.rpartition("/")[0]
    return f"{owner.kind.lower()}s.{group}" if group else f"{owner.kind.lower()}s"


class Count(Struct, frozen=True):
    """The numbers of a budget's status."""

    expected: int
    desired_healthy: int
    healthy: int

    @property
    def allowed(self) -> int:
        """How many pods may be taken away now."""
        return max(0, self.healthy - self.desired_healthy) if self.expected > 0 else 0


def needs_scale(min_available: IntOrPercent | None, max_unavailable: IntOrPercent | None) -> bool:
    """Whether the budget is a share of what the owners of its pods want."""
    return max_unavailable is not None or isinstance(min_available, str)


def count(
    min_available: IntOrPercent | None,
    max_unavailable: IntOrPercent | None,
    *,
    pods: int,
    scale: int,
    healthy: int,
) -> Count:
    """The numbers, of so many pods and of owners that want `scale` of them. `scale` counts only if it is needed."""
    if max_unavailable is not None:
        spare = resolve(max_unavailable, scale, round_up=True)
        return Count(scale, max(0, scale - spare), healthy)
    if isinstance(min_available, str):
        return Count(scale, resolve(min_available, scale, round_up=True), healthy)
    if min_available is not None:
        return Count(pods, min_available, healthy)
    return Count(0, 0, healthy)
