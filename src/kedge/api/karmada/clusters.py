"""Clusters: the members of a Karmada, as far as alignment asks for them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.karmada.keys import CLUSTER_GROUP
from kedge.api.markers import AGE, Column, Definition, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource


class TaintEffect(StrEnum):
    """What a taint keeps away. What runs there stays: nothing is evicted here."""

    no_schedule = "NoSchedule"
    prefer_no_schedule = "PreferNoSchedule"
    no_execute = "NoExecute"


class Taint(Value, frozen=True, gc=False):
    """Keeps away what does not tolerate it."""

    key: str
    """Its key."""
    effect: TaintEffect
    """What it keeps away."""
    value: str = ""
    """Its value."""
    time_added: datetime | None = None
    """Since when."""


class ClusterSpec(Value, frozen=True, gc=False):
    """What is known of a cluster."""

    sync_mode: Annotated[str, Schema(enum=("Push", "Pull"), default="Pull")] = "Pull"
    """Whether an agent in the cluster fetches what is asked for (Pull)."""
    provider: str = ""
    """Who runs it."""
    region: str = ""
    """Its region."""
    zones: tuple[str, ...] = ()
    """Its zones."""
    taints: tuple[Taint, ...] = ()
    """What keeps things away."""


class ClusterStatus(Value, frozen=True, gc=False):
    """How the cluster is doing."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether it is ready."""
    kubernetes_version: str = ""
    """The version it runs."""


class Cluster(Value, frozen=True, gc=False):
    """One member."""

    resource: ClassVar[Resource] = Resource(CLUSTER_GROUP, "v1alpha1", "Cluster", "clusters", namespaced=False)
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1alpha1", storage=True),),
        categories=("karmada-io",),
        status=True,
        columns=(
            Column("Version", ".status.kubernetesVersion"),
            Column("Mode", ".spec.syncMode"),
            condition_column("Ready", "Ready"),
            AGE,
        ),
    )
    spec: Annotated[ClusterSpec, Schema(preserve_unknown_fields=True)] = ClusterSpec()
    """What is known of it."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: Annotated[ClusterStatus, Schema(preserve_unknown_fields=True)] = ClusterStatus()
    """How it is doing."""
