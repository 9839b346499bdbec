"""The apps group, as far as Kedge reads it: workloads and their revisions.

A counter that a server leaves out when it is zero is 0 here; a field that may be absent for a reason is None
(`replicas: 0` is not the same as no `replicas`).
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.core import PodTemplate
from kedge.api.meta import ObjectMeta, Value
from kedge.api.numbers import IntOrPercent
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector


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
    template: PodTemplate = PodTemplate()
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False


class DeploymentStatus(Value, frozen=True, gc=False):
    """What a Deployment is."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[Observed, ...] = ()


class Deployment(Value, frozen=True, gc=False):
    """Interchangeable pods, and their rollouts."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "Deployment", "deployments")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Value, frozen=True, gc=False):
    """What a ReplicaSet should be."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    min_ready_seconds: int = 0


class ReplicaSetStatus(Value, frozen=True, gc=False):
    """What a ReplicaSet is."""

    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Observed, ...] = ()


class ReplicaSet(Value, frozen=True, gc=False):
    """The pods of one revision of a Deployment."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "ReplicaSet", "replicasets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class Ordinals(Value, frozen=True, gc=False):
    """Where a StatefulSet begins to count."""

    start: int = 0


class StatefulSetSpec(Value, frozen=True, gc=False):
    """What a StatefulSet should be."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0
    ordinals: Ordinals | None = None


class StatefulSetStatus(Value, frozen=True, gc=False):
    """What a StatefulSet is."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Observed, ...] = ()


class StatefulSet(Value, frozen=True, gc=False):
    """Pods with names and storage of their own."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "StatefulSet", "statefulsets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Value, frozen=True, gc=False):
    """What a DaemonSet should be."""

    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(Value, frozen=True, gc=False):
    """What a DaemonSet is."""

    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0
    conditions: tuple[Observed, ...] = ()


class DaemonSet(Value, frozen=True, gc=False):
    """One pod on every node."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "DaemonSet", "daemonsets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Value, frozen=True, gc=False):
    """That a revision of a workload exists, and which one it is; not what is in it."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    revision: int = 0
