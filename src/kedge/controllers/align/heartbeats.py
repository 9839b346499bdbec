"""Heartbeats: the agent's part: it renews a Lease on the hub as long as it reaches its cluster."""

from __future__ import annotations

from typing import Final

from kedge.api.coordination import Lease
from kedge.api.karmada.keys import HEARTBEAT_OF
from kedge.api.times import format_micro_time
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal
from kedge.plan.aligning.names import work_namespace
from kedge.plan.aligning.readiness import GRACE, HEARTBEAT

MANAGER: Final = "karmada-agent"
LOOK_AGAIN: Final = 1.0
"""Seconds after which it is tried again when the cluster is not reached, or the hub has no place for it."""


class Heartbeats:
    """The heartbeats of one member."""

    def __init__(self, hub: Cluster, member: Cluster, name: str, *, clock: Clock) -> None:
        self._client = hub.client
        self._member = member
        self._name = name
        self._clock = clock
        itself = Key(hub.name, None, name)
        self.controller = Controller("heartbeats", self.reconcile, [Signal(hub.name, at_start=[itself])])

    async def reconcile(self, _: Key) -> Outcome:
        if self._member.state.phase != "connected":
            return Outcome.again(after=LOOK_AGAIN)
        try:
            await self._renew()
        except NotFound:
            return Outcome.again(after=LOOK_AGAIN)  # the hub has not made its namespace yet
        return Outcome.again(after=HEARTBEAT)

    async def _renew(self) -> None:
        body = {
            "metadata": {
                "name": self._name,
                "namespace": work_namespace(self._name),
                "labels": {HEARTBEAT_OF: self._name},
            },
            "spec": {
                "holderIdentity": self._name,
                "leaseDurationSeconds": int(GRACE),
                "renewTime": format_micro_time(self._clock.now()),
            },
        }
        await self._client.apply(Lease, body, manager=MANAGER, force=True)
