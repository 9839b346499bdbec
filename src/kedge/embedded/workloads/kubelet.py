"""The kubelet: leads every pod on a node through its life, and lets go of those that are deleted.

A stage that takes time is timed from when it was first seen to be next. That is all that is kept in memory: after a
restart it is timed anew. A change of the pod that changes neither the stage nor its duration does not.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
from collections.abc import Iterable

from msgspec import Struct

from kedge.api.pods import Node, Pod
from kedge.embedded.workloads import kubelet_plan
from kedge.embedded.workloads.kubelet_plan import Due, Stage
from kedge.embedded.workloads.view import ADDRESS, NODE, View
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change

NAME = "kubelet"
NETWORK = ipaddress.IPv4Network("10.64.0.0/10")


class _Timed(Struct, frozen=True):
    uid: str
    due: Due
    at: float


class Kubelet:
    """The kubelets of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._timed: dict[Key, _Timed] = {}

    def sources(self) -> Iterable[Source]:
        nodes = self._view.cluster.watch(self._view.nodes, to=self._pods_on, when=_is_new)
        return self._view.itself(Pod), nodes

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._view.pods.get(key.name, key.namespace)
        due = kubelet_plan.next_stage(pod) if pod is not None and self._is_on_a_node(pod) else None
        if pod is None or due is None:
            self._timed.pop(key, None)
            return Outcome.done
        wait = self._wait(key, pod, due)
        if wait > 0:
            return Outcome.again(after=wait)
        await self._carry_out(pod, due.stage)
        self._timed.pop(key, None)
        return Outcome.done

    def _is_on_a_node(self, pod: Pod) -> bool:
        """On one that is there; a pod that is deleted need not wait for its node to come back."""
        name = pod.spec.node_name
        return bool(name) and (pod.metadata.deletion_timestamp is not None or self._view.nodes.get(name) is not None)

    def _wait(self, key: Key, pod: Pod, due: Due) -> float:
        """How long it is until this is due."""
        if due.after == 0:
            return 0.0
        now = asyncio.get_running_loop().time()
        timed = self._timed.get(key)
        if timed is None or (timed.uid, timed.due) != (pod.metadata.uid, due):
            timed = _Timed(pod.metadata.uid, due, now + due.after)
            self._timed[key] = timed
        return timed.at - now

    async def _carry_out(self, pod: Pod, stage: Stage) -> None:
        meta = pod.metadata
        try:
            if stage is Stage.goes:
                await self._view.client.delete(Pod, meta.name, meta.namespace, uid=meta.uid, grace_seconds=0)
                return
            host, address = self._host(pod.spec.node_name), self._address(pod)
            status = kubelet_plan.status_after(stage, pod, self._view.now(), host=host, address=address)
            await self._view.client.amend(Pod, meta, {"status": status}, subresource="status", manager=NAME)
        except NotFound:
            return  # gone by itself

    def _host(self, name: str) -> str:
        node = self._view.nodes.get(name)
        addresses = node.status.addresses if node is not None else ()
        return next((one.address for one in addresses if one.type == "InternalIP"), "127.0.0.1")

    def _address(self, pod: Pod) -> str:
        """An address that is the pod's alone: from its uid, or the next one that is free."""
        if pod.spec.host_network:
            return self._host(pod.spec.node_name)
        digest = hashlib.blake2s(pod.metadata.uid.encode(), digest_size=4).digest()
        number = int.from_bytes(digest)
        while self._view.pods.by(ADDRESS, address := _address(number)):
            number += 1
        return address

    def _pods_on(self, seen: WatchedObject[Node]) -> Iterable[Key]:
        """A new node wakes the pods that were bound to it before it was there."""
        found = self._view.pods.by(NODE, seen.meta.name)
        return [Key(seen.cluster, pod.metadata.namespace, pod.metadata.name) for pod in found]


def _address(number: int) -> str:
    usable = NETWORK.num_addresses - 2  # not the network itself, not its broadcast
    return str(NETWORK[1 + number % usable])


def _is_new(change: Change[Node]) -> bool:
    return change.old is None
