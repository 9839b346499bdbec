"""The apps group, as far as Kedge reads it: workloads and their revisions, with their pod templates whole.

A counter that a server leaves out when it is zero is 0 here; one that Kubernetes writes even then is made by `int`, so
that msgspec writes it too. A field that may be absent for a reason is None (`replicas: 0` is not the same as no
`replicas`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.meta import ObjectMeta, Value
from kedge.api.numbers import IntOrPercent
from kedge.api.pods import Template
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector

HISTORY_LIMIT: Final = 10
"""How many old revisions a workload keeps unless it says."""
_NEVER: Final = 2**31 - 1  # how the API says "no limit"


class Rolling(Value, frozen=True, gc=False):
    """The numbers of a rolling update; which of them a kind knows is up to the kind."""

    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None
    partition: int | None = None


class UpdateStrategy(Value, frozen=True, gc=False):
    """How pods are replaced by new ones."""

    type: str = "RollingUpdate"
    rolling_update: Rolling | None = None


class DeploymentSpec(Value, frozen=True, gc=False):
    """What a Deployment should be."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template = field(default_factory=dict)
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False


class DeploymentCondition(Observed, frozen=True, gc=False):
    """One thing a Deployment says of itself."""

    last_update_time: datetime | None = None


class DeploymentStatus(Value, frozen=True, gc=False):
    """What a Deployment is."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    collision_count: int | None = None


class Deployment(Value, frozen=True, gc=False):
    """Interchangeable pods, and their rollouts."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "Deployment", "deployments")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector

    @property
    def replicas(self) -> int:
        """How many pods it should have."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def is_rolling(self) -> bool:
        return self.spec.strategy.type == "RollingUpdate"

    @property
    def deadline(self) -> int | None:
        """How many seconds may pass without progress; None if any number may."""
        seconds = self.spec.progress_deadline_seconds
        return None if seconds == _NEVER else 600 if seconds is None else seconds

    @property
    def history_limit(self) -> int | None:
        """How many old revisions to keep; None for all of them."""
        limit = self.spec.revision_history_limit
        return None if limit == _NEVER else HISTORY_LIMIT if limit is None else limit


class ReplicaSetSpec(Value, frozen=True, gc=False):
    """What a ReplicaSet should be."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template = field(default_factory=dict)
    min_ready_seconds: int = 0


class ReplicaSetStatus(Value, frozen=True, gc=False):
    """What a ReplicaSet is. Its only condition says that it cannot make or delete pods."""

    observed_generation: int = 0
    replicas: int = field(default_factory=int)
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[Observed, ...] = ()


class ReplicaSet(Value, frozen=True, gc=False):
    """The pods of one revision of a Deployment."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "ReplicaSet", "replicasets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector

    @property
    def replicas(self) -> int:
        """How many pods it should have."""
        return 1 if self.spec.replicas is None else self.spec.replicas


class Ordinals(Value, frozen=True, gc=False):
    """Where a StatefulSet begins to count."""

    start: int = 0


class RetentionPolicy(Value, frozen=True, gc=False):
    """What becomes of the claims of a StatefulSet: Retain or Delete."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetSpec(Value, frozen=True, gc=False):
    """What a StatefulSet should be. Go writes an empty list as null."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template = field(default_factory=dict)
    volume_claim_templates: tuple[Mapping[str, Any], ...] | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0
    ordinals: Ordinals | None = None
    persistent_volume_claim_retention_policy: RetentionPolicy | None = None


class StatefulSetStatus(Value, frozen=True, gc=False):
    """What a StatefulSet is."""

    observed_generation: int = 0
    replicas: int = field(default_factory=int)
    ready_replicas: int = 0
    available_replicas: int = field(default_factory=int)
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(Value, frozen=True, gc=False):
    """Pods with names and storage of their own."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "StatefulSet", "statefulsets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector


class DaemonSetSpec(Value, frozen=True, gc=False):
    """What a DaemonSet should be."""

    selector: LabelSelector | None = None
    template: Template = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(Value, frozen=True, gc=False):
    """What a DaemonSet is."""

    observed_generation: int = 0
    desired_number_scheduled: int = field(default_factory=int)
    current_number_scheduled: int = field(default_factory=int)
    number_misscheduled: int = field(default_factory=int)
    number_ready: int = field(default_factory=int)
    number_available: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Value, frozen=True, gc=False):
    """One pod on every node."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "DaemonSet", "daemonsets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector


class ControllerRevision(Value, frozen=True, gc=False):
    """One state of a StatefulSet or DaemonSet: `data` is the patch that brings it back."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    revision: int = 0
    data: Mapping[str, Any] | None = None
