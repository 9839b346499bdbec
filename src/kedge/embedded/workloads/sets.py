"""Sets: StatefulSets, DaemonSets and their revisions, with the templates whole.

`kedge.api` keeps of them what a rollout decides on; whoever makes their pods needs the rest. A count that Kubernetes
writes even when it is zero is None here while there is no status yet, so that zero is written too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import field

from kedge.api.apps import Ordinals, UpdateStrategy
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector
from kedge.embedded.workloads.kinds import Template

HISTORY_LIMIT = 10


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
    replicas: int | None = None
    ready_replicas: int = 0
    available_replicas: int | None = None
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
    desired_number_scheduled: int | None = None
    current_number_scheduled: int | None = None
    number_misscheduled: int | None = None
    number_ready: int | None = None
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
    """One state of a set: `data` is the patch that brings it back."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    revision: int = 0
    data: Mapping[str, Any] | None = None


class VolumeClaim(Value, frozen=True, gc=False):
    """A PersistentVolumeClaim: that there is one, and whose it is."""

    resource: ClassVar[Resource] = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
