"""The batch group, as far as Kedge reads it."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.core import PodTemplate
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector


class JobSpec(Value, frozen=True, gc=False):
    """What a Job should do."""

    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    suspend: bool | None = None


class JobStatus(Value, frozen=True, gc=False):
    """How far a Job has got."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    terminating: int | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Observed, ...] = ()


class Job(Value, frozen=True, gc=False):
    """Pods that end."""

    resource: ClassVar[Resource] = Resource("batch", "v1", "Job", "jobs")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
