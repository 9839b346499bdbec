"""Nodes: makes simulated ones, taints those that take no pods, and has them report if that is wanted.

A node stays ready without reporting: nobody here doubts it. So an idle cluster is idle.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from kedge import __version__
from kedge.api.condition import is_true
from kedge.api.pods import Node, NodeCondition, Taint
from kedge.embedded.workloads.schedule_plan import NOT_READY, UNSCHEDULABLE
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import AlreadyExists
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Source

CAPACITY = {"cpu": "1k", "memory": "1Ti", "pods": "100k"}
NEVER = datetime.min.replace(tzinfo=UTC)
_SAYS = (
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
)


async def make_nodes(client: Client, count: int, clock: Clock) -> None:
    """Have `node-1`, `node-2`, … ready to take pods. Those that are there already stay as they are."""
    for number in range(1, count + 1):
        node = _node(f"node-{number}")
        try:
            await client.create(Node, node, manager="kubelet")
        except AlreadyExists:
            continue
        status = MergePatch({"status": _status(number, clock.now())})
        await client.patch(Node, f"node-{number}", status, subresource="status", manager="kubelet")


def _node(name: str) -> dict[str, Any]:
    machine = {"arch": "amd64", "os": "linux"}
    labels = {f"{prefix}kubernetes.io/{key}": value for prefix in ("", "beta.") for key, value in machine.items()}
    annotations = {"node.alpha.kubernetes.io/ttl": "0"}
    return {
        "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}, "annotations": annotations}
    }


def _status(number: int, now: datetime) -> dict[str, Any]:
    at = now.replace(microsecond=0)
    address = f"172.{16 + (number >> 16) % 16}.{number >> 8 & 255}.{number & 255}"
    return {
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": f"node-{number}"},
        ],
        "capacity": CAPACITY,
        "allocatable": CAPACITY,
        "conditions": [to_builtins(_condition(*said, at)) for said in _SAYS],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": _info(),
        "phase": "Running",
    }


def _condition(type: str, status: str, reason: str, message: str, at: datetime) -> NodeCondition:  # noqa: A002
    said = NodeCondition(type=type, status=status, reason=reason, message=message)
    return replace(said, last_heartbeat_time=at, last_transition_time=at)


def _info() -> dict[str, str]:
    unknown = ("bootID", "kernelVersion", "machineID", "osImage", "systemUUID")
    ours = ("containerRuntimeVersion", "kubeProxyVersion", "kubeletVersion")
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        **dict.fromkeys(ours, f"kedge-{__version__}"),
        **dict.fromkeys(unknown, ""),
    }


class Nodes:
    """The nodes of one cluster: one that is cordoned or not ready is tainted so.

    With `report_every` (seconds), each says now and then that it lives.
    """

    def __init__(self, view: View, *, report_every: float | None = None) -> None:
        self._view = view
        self._report_every = report_every

    def sources(self) -> Iterable[Source]:
        return (self._view.itself(Node),)

    async def reconcile(self, key: Key) -> Outcome:
        node = self._view.nodes.get(key.name)
        if node is None:
            return Outcome.done
        taints = tainted(node, self._view.now())
        if taints != node.spec.taints:
            await self._patch(node, {"spec": {"taints": to_builtins(taints) or None}}, None)
            return Outcome.done
        return await self._report(node, self._report_every) if self._report_every else Outcome.done

    async def _report(self, node: Node, every: float) -> Outcome:
        now = self._view.exact_now()
        last = max((one.last_heartbeat_time or NEVER for one in node.status.conditions), default=now)
        wait = (last + timedelta(seconds=every) - now).total_seconds()
        if wait > 0:
            return Outcome.again(after=wait)
        conditions = [replace(one, last_heartbeat_time=self._view.now()) for one in node.status.conditions]
        await self._patch(node, {"status": {"conditions": to_builtins(conditions)}}, "status")
        return Outcome.done

    async def _patch(self, node: Node, body: dict[str, Any], subresource: str | None) -> None:
        meta = node.metadata
        await self._view.client.amend(
            Node, meta, body, subresource=subresource, manager=MANAGER if subresource is None else "kubelet"
        )


def tainted(node: Node, now: datetime) -> tuple[Taint, ...]:
    """The taints a node is to have: those that say it is cordoned or not ready if, and only if, it is."""
    holds = {UNSCHEDULABLE.key: node.spec.unschedulable, NOT_READY.key: not is_true(node.status.conditions, "Ready")}
    kept = tuple(taint for taint in node.spec.taints if taint.effect != "NoSchedule" or holds.get(taint.key, True))
    there = {taint.key for taint in kept if taint.effect == "NoSchedule"}
    lacking = (taint for taint in (UNSCHEDULABLE, NOT_READY) if holds[taint.key] and taint.key not in there)
    return (*kept, *(replace(taint, time_added=now) for taint in lacking))
