"""Ready times: the annotation that says since when a pod of a disruption budget is ready.

    ReadyTimes(cluster, [pods], budgets, clock=clock).controller

A budget may ask that a pod has been ready for some time before one of its partition in another zone may go. The pod's
condition Ready says since when it is. For pods without one, and for older versions of Grafana's rollout-operator, a pod
that becomes ready gets the annotation `grafana.com/ready-time`, and one that is not ready loses it. Whoever may not
patch pods does without: that is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from kedge.api.pods import Pod
from kedge.api.zones import READY_TIME
from kedge.controllers.zone.disruption_budgets import DisruptionBudgets
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.kube.store import Change
from kedge.plan.zoning.disruption import ready_time
from kedge.plan.zoning.pods import is_running_and_ready

MANAGER: Final = "kedge-ready-time"
PATCH_TIMEOUT: Final = 5.0
log = logging.getLogger(__name__)


class ReadyTimes:
    """Keeps the annotation of every pod that a budget selects."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Sequence[Cache[Pod]],
        budgets: DisruptionBudgets,
        *,
        clock: Clock,
        patch_timeout: float = PATCH_TIMEOUT,
    ) -> None:
        """`pods`: one cache for all namespaces, or one for each.

        `patch_timeout`: how many seconds a patch may take before it counts as failed, and is tried again.
        """
        self._cluster = cluster
        self._pods = pods
        self._budgets = budgets
        self._clock = clock
        self._is_forbidden = False
        watches = (cluster.watch(cache, when=_readiness_changed) for cache in pods)
        sources: list[Source] = [*watches, budgets.changes(self._pods_in)]
        self.controller = Controller("ready-time", self.reconcile, sources, timeout=patch_timeout)

    async def reconcile(self, key: Key) -> Outcome:
        pod = next((pod for cache in self._pods if (pod := cache.get(key.name, key.namespace))), None)
        if pod is None or not _is_outdated(pod) or not self._is_in_scope(pod):
            return Outcome.done
        body = {"metadata": {"annotations": {READY_TIME: _annotation(pod, self._clock.now())}}}
        try:
            await self._cluster.client.amend(Pod, pod.metadata, body, manager=MANAGER)
        except NotFound:
            return Outcome.done
        except Forbidden as error:
            self._report_once(error)
        return Outcome.done

    def _is_in_scope(self, pod: Pod) -> bool:
        budgets = self._budgets.in_namespace(pod.metadata.namespace or "")
        return any(budget.selects(pod.metadata.labels) for budget in budgets)

    def _pods_in(self, namespace: str) -> Iterable[Key]:
        metas = (pod.metadata for cache in self._pods for pod in cache.all())
        return [Key(self._cluster.name, namespace, meta.name) for meta in metas if meta.namespace == namespace]

    def _report_once(self, error: Forbidden) -> None:
        if not self._is_forbidden:
            log.warning(
                "cannot write %s on pods: until the role may patch them, pods whose condition Ready has no time do not "
                "count as ready for long enough where a budget has a crossZoneEvictionDelay: %s",
                READY_TIME,
                error.message,
            )
        self._is_forbidden = True


def _readiness_changed(change: Change[Pod]) -> bool:
    """Whether there may be something to write: most changes of a pod are about something else."""
    return change.new is not None and _is_outdated(change.new)


def _is_outdated(pod: Pod) -> bool:
    """Whether the annotation has to change. A time that cannot be read counts as none."""
    if is_running_and_ready(pod):
        return ready_time(pod) is None
    return READY_TIME in pod.metadata.annotations


def _annotation(pod: Pod, now: datetime) -> str | None:
    """The value that a pod is to have; None removes it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if is_running_and_ready(pod) else None
