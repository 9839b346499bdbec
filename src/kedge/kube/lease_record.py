"""The record of an election: a coordination.k8s.io/v1 Lease, as contenders read and write it.

Promises the protocol of client-go, so that Go programs and ours can contend for the same lease; and that each write
names the version it changes, so that of several who try one succeeds. The others get a `Conflict` (`AlreadyExists`).
Knows nothing of deadlines: those are the election's.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from kedge.api.coordination import Lease, LeaseSpec
from kedge.api.times import format_micro_time
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch

log = logging.getLogger(__name__)


class LeaseRecord:
    """One Lease, through the eyes of one contender."""

    def __init__(self, client: Client, name: str, namespace: str, identity: str, duration: int, clock: Clock) -> None:
        self.identity = identity
        self._client = client
        self._name = name
        self._namespace = namespace
        self._duration = duration
        self._clock = clock
        self._seen: LeaseSpec | None = None
        self._seen_at = -math.inf

    def __str__(self) -> str:
        return f"lease {self._namespace}/{self._name}"

    async def look(self, ticks: Callable[[], float]) -> Lease | None:
        """The lease as it is; remembers when it was first seen so."""
        try:
            lease = await self._client.get(Lease, self._name, self._namespace)
        except NotFound:
            return None
        if lease.spec != self._seen:
            if self._seen is None or lease.spec.holder_identity != self._seen.holder_identity:
                log.info("%s is held by %s", self, holder_of(lease))
            # Counted by our own time from here on: what its holder's clock shows says nothing about ours.
            self._seen, self._seen_at = lease.spec, ticks()
        return lease

    def free_at(self, lease: Lease | None) -> float:
        """From when on the lease may be taken: a full duration after it was last seen to change, unless it is free."""
        if lease is None or not lease.spec.holder_identity or self.is_ours(lease):
            return -math.inf
        return self._seen_at + (lease.spec.lease_duration_seconds or self._duration)

    def is_ours(self, lease: Lease | None) -> bool:
        return lease is not None and lease.spec.holder_identity == self.identity

    async def take(self, lease: Lease | None) -> Lease:
        """Make the lease ours, or ours for longer, if it still is what we saw."""
        now = format_micro_time(self._clock.now())
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": self._duration, "renewTime": now}
        if lease is None:
            spec |= {"acquireTime": now, "leaseTransitions": 0}
            body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": spec}
            return await self._client.create(Lease, body)
        if not self.is_ours(lease):
            spec |= {"acquireTime": now, "leaseTransitions": (lease.spec.lease_transitions or 0) + 1}
        return await self._patch(lease, spec)

    async def release(self, lease: Lease) -> None:
        """Make the lease nobody's, if it still is what we saw; as client-go does it, for a second only."""
        now = format_micro_time(self._clock.now())
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        await self._patch(lease, spec)

    async def _patch(self, lease: Lease, spec: dict[str, Any]) -> Lease:
        meta, patch = lease.metadata, MergePatch({"spec": spec})
        return await self._client.patch(
            Lease, self._name, patch, self._namespace, uid=meta.uid, resource_version=meta.resource_version
        )


def holder_of(lease: Lease | None) -> str:
    return (lease.spec.holder_identity if lease else None) or "nobody"
