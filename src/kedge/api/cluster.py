"""The cluster group of the fleet: which clusters belong to it, and how they are doing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.markers import AGE, Column, Definition, Rule, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

GROUP: Final = "cluster.kubernetes-fleet.io"
_VERSIONS = (Version("v1"), Version("v1beta1", storage=True))
_CATEGORIES = ("fleet", "fleet-cluster")
_ONLY_V1BETA1 = Schema(absent=True, versions=("v1",))

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN: Final = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
Amounts = Mapping[str, Annotated[int | str, Schema(pattern=QUANTITY_PATTERN)]]

_HEARTBEAT = Schema(minimum=1, maximum=600, default=60, format="int32")
_NAME_FITS_A_LABEL = Rule("size(self.metadata.name) <= 63", "metadata.name max length is 63")


class Identity(Value, frozen=True, gc=False):
    """Who a member's agent is on the hub: a user, a group or a service account."""

    kind: str
    """User, Group or ServiceAccount."""
    name: str
    """The name of the user, group or service account."""
    api_group: str | None = None
    """The API group of the kind; empty for a service account."""
    namespace: str | None = None
    """The namespace of a service account."""


class TaintEffect(StrEnum):
    """What a taint does to placements that do not tolerate it."""

    no_schedule = "NoSchedule"


class Taint(Value, frozen=True, gc=False):
    """Keeps placements off a cluster, unless they tolerate it."""

    key: str
    """What the taint is called."""
    effect: TaintEffect
    """What happens to placements that do not tolerate it."""
    value: str = ""
    """What a toleration is compared with."""


class DeletionCheck(StrEnum):
    """Whether leaving the fleet is checked first."""

    skip = "Skip"
    strict = "Strict"


class DeleteOptions(Value, frozen=True, gc=False):
    """How a cluster leaves the fleet."""

    validation_mode: Annotated[DeletionCheck, Schema(default=DeletionCheck.strict)] = DeletionCheck.strict
    """Strict refuses while others still depend on what the cluster exports; Skip does not look."""


class MemberClusterSpec(Value, frozen=True, gc=False):
    """What is wanted of a member."""

    identity: Annotated[Identity, Schema(map_type="atomic")]
    """Who the member's agent is on the hub. It may read and write its own namespace there, and nothing else."""
    heartbeat_period_seconds: Annotated[int, _HEARTBEAT] = 60
    """How often the member's agent reports, in seconds."""
    taints: Annotated[tuple[Taint, ...], Schema(max_items=100)] = ()
    """What keeps placements off this cluster."""
    delete_options: Annotated[DeleteOptions | None, _ONLY_V1BETA1] = None
    """How the cluster leaves the fleet."""


class PropertyValue(Value, frozen=True, gc=False):
    """What was seen of one property, and when."""

    value: str
    """The value, as text."""
    observation_time: datetime
    """When it was seen."""


class ResourceUsage(Value, frozen=True, gc=False):
    """What a cluster has, and what is left of it."""

    capacity: Amounts = field(default_factory=dict)
    """All there is on the nodes."""
    allocatable: Amounts = field(default_factory=dict)
    """What pods may use of it."""
    available: Amounts = field(default_factory=dict)
    """What pods have not asked for yet."""
    observation_time: datetime | None = None
    """When this was counted."""


class AgentStatus(Value, frozen=True, gc=False):
    """How one agent of a member is doing."""

    type: str
    """Which agent this is, such as MemberAgent."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """What the agent says of itself."""
    last_received_heartbeat: datetime | None = None
    """When the hub last heard from it."""


class MemberClusterStatus(Value, frozen=True, gc=False):
    """What a member has said of itself."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """What is known of the cluster as a member: whether it is ready to join, and has joined."""
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)
    """Facts that placements may select and sort clusters by, by name."""
    resource_usage: ResourceUsage | None = None
    """What the cluster has, and what is left of it."""
    namespaces: Annotated[Mapping[str, str], _ONLY_V1BETA1] = field(default_factory=dict)
    """The cluster's namespaces, and for each the work that owns it; empty if none does."""
    agent_status: tuple[AgentStatus, ...] = ()
    """How each of the member's agents is doing."""


class MemberCluster(Value, frozen=True, gc=False):
    """A cluster that belongs to the fleet."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "MemberCluster", "memberclusters", namespaced=False)
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("cluster",),
        categories=_CATEGORIES,
        status=True,
        schema=(Schema(rules=(_NAME_FITS_A_LABEL,)),),
        columns=(
            condition_column("Joined", "Joined"),
            AGE,
            Column(
                "Member-Agent-Last-Seen", '.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat', "date"
            ),
            Column("Node-Count", r".status.properties.kubernetes-fleet\.io/node-count.value"),
            Column("Available-CPU", ".status.resourceUsage.available.cpu"),
            Column("Available-Memory", ".status.resourceUsage.available.memory"),
            Column("Allocatable-CPU", ".status.resourceUsage.allocatable.cpu", wide=True),
            Column("Allocatable-Memory", ".status.resourceUsage.allocatable.memory", wide=True),
        ),
    )
    spec: MemberClusterSpec
    """What is wanted of the member."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: MemberClusterStatus = MemberClusterStatus()
    """What the member has said of itself."""


class InternalMemberClusterSpec(Value, frozen=True, gc=False):
    """What the hub asks of a member's agent."""

    state: str
    """Join or Leave."""
    heartbeat_period_seconds: Annotated[int, _HEARTBEAT] = 60
    """How often the agent reports, in seconds."""


class InternalMemberClusterStatus(MemberClusterStatus, frozen=True, gc=False):
    """What a member's agent answers."""

    conditions: tuple[Condition, ...] = ()
    """What is known of the cluster itself."""


class InternalMemberCluster(Value, frozen=True, gc=False):
    """What hub and member tell each other, in the member's own namespace on the hub."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "InternalMemberCluster", "internalmemberclusters")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("imc",), categories=_CATEGORIES, status=True, columns=(AGE,)
    )
    spec: InternalMemberClusterSpec
    """What the hub asks."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: InternalMemberClusterStatus = InternalMemberClusterStatus()
    """What the member's agent answers."""
