"""Jobs, with the template whole, and their status as the plan sees it and as the API writes it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector
from kedge.embedded.workloads.job_plan import Asked, Progress
from kedge.embedded.workloads.kinds import Template

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_OURS = ("", "kubernetes.io/job-controller")


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


class Uncounted(Value, frozen=True, gc=False):
    """Pods that are over, and not in the counts yet, by uid."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobCondition(Value, frozen=True, gc=False):
    """One thing a Job says of itself."""

    type: str
    status: str
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class JobStatus(Value, frozen=True, gc=False):
    """How far a Job has got."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    terminating: int | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    uncounted_terminated_pods: Uncounted | None = None
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

    @property
    def is_ours(self) -> bool:
        return self.spec.managed_by in _OURS


def asked(job: Job) -> Asked:
    """What the Job should do, with what Kubernetes assumes of what it leaves out."""
    spec = job.spec
    deadline = spec.active_deadline_seconds
    one = spec.completions is None and spec.parallelism is None
    return Asked(
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        completions=1 if one else spec.completions,
        backoff_limit=6 if spec.backoff_limit is None else spec.backoff_limit,
        deadline=None if deadline is None else timedelta(seconds=deadline),
        suspended=spec.suspend,
        restarts_in_place=(spec.template.get("spec") or {}).get("restartPolicy") == "OnFailure",
        replaces_only_failed=spec.pod_replacement_policy == "Failed",
        leaving=job.metadata.deletion_timestamp is not None,
    )


def progress(status: JobStatus) -> Progress:
    uncounted = status.uncounted_terminated_pods or Uncounted()
    return Progress(
        active=status.active,
        ready=status.ready or 0,
        terminating=status.terminating or 0,
        succeeded=status.succeeded,
        failed=status.failed,
        uncounted_succeeded=uncounted.succeeded,
        uncounted_failed=uncounted.failed,
        started=status.start_time,
        completed=status.completion_time,
        conditions=tuple(
            Observed(
                type=one.type,
                status=one.status,
                reason=one.reason,
                message=one.message,
                last_transition_time=one.last_transition_time,
            )
            for one in status.conditions
        ),
    )


def status(made: Progress) -> JobStatus:
    return JobStatus(
        active=made.active,
        succeeded=made.succeeded,
        failed=made.failed,
        ready=made.ready,
        terminating=made.terminating,
        start_time=made.started,
        completion_time=made.completed,
        uncounted_terminated_pods=Uncounted(succeeded=made.uncounted_succeeded, failed=made.uncounted_failed),
        conditions=tuple(
            JobCondition(
                type=one.type,
                status=one.status,
                last_probe_time=one.last_transition_time,
                last_transition_time=one.last_transition_time,
                reason=one.reason,
                message=one.message,
            )
            for one in made.conditions
        ),
    )


def finished_at(job: Job) -> datetime | None:
    """When the Job came to its end, if it has."""
    ends = [one for one in job.status.conditions if one.type in ("Complete", "Failed") and one.status == "True"]
    return ends[0].last_transition_time if ends else None


def labelled(job: Job) -> Template:
    """The template, with the labels by which a Job finds its pods, where the server has not put them there."""
    meta = job.spec.template.get("metadata") or {}
    uid, name = job.metadata.uid, job.metadata.name
    own = {CONTROLLER_UID: uid, JOB_NAME: name, "controller-uid": uid, "job-name": name}
    labels = {**(meta.get("labels") or {}), **({} if job.spec.manual_selector else own)}
    return {**job.spec.template, "metadata": {**meta, "labels": labels}}
