"""Deployments and ReplicaSets, whole enough to act for them. See `kinds` for why these are not those of `kedge.api`."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from msgspec import field

from kedge.api.apps import UpdateStrategy
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector
from kedge.embedded.workloads.kinds import Template


class ReplicaSetSpec(Value, frozen=True, gc=False):
    """What a ReplicaSet should be."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template = field(default_factory=dict)
    min_ready_seconds: int = 0


class ReplicaSetCondition(Value, frozen=True, gc=False):
    """One thing a ReplicaSet says of itself: only that it cannot make or delete pods."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ReplicaSetStatus(Value, frozen=True, gc=False):
    """What a ReplicaSet is. Its `replicas` are told even if there are none; the others are left out then."""

    replicas: int | None = None
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[ReplicaSetCondition, ...] = ()


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


class DeploymentCondition(Value, frozen=True, gc=False):
    """One thing a Deployment says of itself."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None


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
        return None if limit == _NEVER else 10 if limit is None else limit


_NEVER = 2**31 - 1  # how the API says "no limit"
