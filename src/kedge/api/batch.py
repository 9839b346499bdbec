"""The batch group, as far as Kedge reads it."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.meta import ObjectMeta, Value
from kedge.api.pods import Template
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"


class JobSpec(Value, frozen=True, gc=False):
    """What a Job should do."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    manual_selector: bool = False
    pod_replacement_policy: str = ""
    managed_by: str = ""
    selector: LabelSelector | None = None
    template: Template = field(default_factory=dict)


class UncountedPods(Value, frozen=True, gc=False):
    """Pods that ended and are not in the counts yet, by uid."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobCondition(Observed, frozen=True, gc=False):
    """One thing a Job says of itself."""

    last_probe_time: datetime | None = None


class JobStatus(Value, frozen=True, gc=False):
    """How far a Job has got."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    terminating: int | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    uncounted_terminated_pods: UncountedPods | None = None
    conditions: tuple[JobCondition, ...] = ()


class Job(Value, frozen=True, gc=False):
    """Pods that end."""

    resource: ClassVar[Resource] = Resource("batch", "v1", "Job", "jobs")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def selector(self) -> LabelSelector:
        """Its own pods, by its uid, unless it says otherwise: as the server would have filled in."""
        return self.spec.selector or LabelSelector(match_labels={CONTROLLER_UID: self.metadata.uid})
