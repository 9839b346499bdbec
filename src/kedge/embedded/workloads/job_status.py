"""How a Job reads into its plan, and how what the plan makes of it is written. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from kedge.api.batch import CONTROLLER_UID, JOB_NAME, Job, JobCondition, JobStatus, UncountedPods
from kedge.api.condition import Observed
from kedge.api.pods import Template
from kedge.embedded.workloads.job_plan import Progress, WantedJob

_OURS = ("", "kubernetes.io/job-controller")


def is_ours(job: Job) -> bool:
    """Whether no other controller is to run it."""
    return job.spec.managed_by in _OURS


def asked(job: Job) -> WantedJob:
    """What the Job should do, with what Kubernetes assumes of what it leaves out."""
    spec = job.spec
    deadline = spec.active_deadline_seconds
    one = spec.completions is None and spec.parallelism is None
    return WantedJob(
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
    uncounted = status.uncounted_terminated_pods or UncountedPods()
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
        uncounted_terminated_pods=UncountedPods(succeeded=made.uncounted_succeeded, failed=made.uncounted_failed),
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
