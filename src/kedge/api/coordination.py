"""The coordination group: leases, by which processes agree on who works."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.times import MicroTime


class LeaseSpec(Value, frozen=True, gc=False):
    """Who holds a lease, and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None


class Lease(Value, frozen=True, gc=False):
    """A claim that must be renewed."""

    resource: ClassVar[Resource] = Resource("coordination.k8s.io", "v1", "Lease", "leases")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec = LeaseSpec()
