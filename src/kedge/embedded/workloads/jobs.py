"""Jobs: starts their pods until enough have succeeded or too many failed, counts each once, and reports.

Decides in `job_plan`; this is what is seen, and what is done about it. A finished Job is deleted after its
`ttlSecondsAfterFinished`. Not here: indexed Jobs, which are left alone, and an event says so; and policies for failures
and for success, which are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from kedge.api.batch import Job, JobStatus
from kedge.api.condition import TRUE, find_condition
from kedge.api.meta import controller_of
from kedge.api.pods import ContainerStatus, Pod
from kedge.embedded.workloads import job_plan, job_status
from kedge.embedded.workloads.job_plan import JobPlan, JobPod, Progress
from kedge.embedded.workloads.owned import NAMESPACE, reference_to, settle
from kedge.embedded.workloads.pod_writes import PodWrites, from_template
from kedge.embedded.workloads.replica_plan import by_regret
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.workloads import pods

COMPONENT = "job-controller"
TRACKING = "batch.kubernetes.io/job-tracking"


class Jobs:
    """The Jobs of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._jobs = view.of(Job)
        self._writes = PodWrites(view, COMPONENT)
        self._events = view.events(COMPONENT)

    def sources(self) -> Iterable[Source]:
        return [self._view.itself(Job), self._view.its(Pod, Job)]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._jobs.get(key.name, key.namespace)
        if found is None:
            await self._let_go_of_orphans(key)
            return Outcome.done
        if not job_status.is_ours(found):
            return Outcome.done
        if found.spec.completion_mode != "NonIndexed":
            text = "Skipped Job sync because completion mode is unknown"
            self._events.warning(found, "UnknownCompletionMode", text)
            return Outcome.done
        claims = self._view.claims(found, Pod)
        if claims.adopt or claims.release:
            await settle(self._view.client, found, claims, manager=MANAGER)
            return Outcome.done  # what became of the pods wakes this key again
        return await self._go_on(found, claims.own)

    async def _go_on(self, found: Job, own: tuple[Pod, ...]) -> Outcome:
        now = self._view.now()
        active = [pod for pod in own if pods.is_active(pod)]
        in_order = [*by_regret(active, (), now), *(pod for pod in own if not pods.is_active(pod))]
        before = job_status.progress(found.status)
        plan = job_plan.plan(job_status.asked(found), before, map(job_pod, in_order), now)
        await self._act(found, plan, {pod.metadata.uid: pod for pod in own})
        self._tell(found, before, plan.progress)
        if plan.progress.is_finished:
            return await self._outlive(found, now)
        return Outcome.done if plan.look_again is None else Outcome.again(after=_seconds(plan.look_again, now))

    async def _act(self, found: Job, plan: JobPlan, own: dict[str, Pod]) -> None:
        if plan.progress != job_status.progress(found.status) or found.status == JobStatus():
            await self._view.write_status(found, job_status.status(plan.progress))
        for one in plan.stop:
            await self._writes.delete(found, own[one.uid])
        for one in plan.untrack:
            await self._untrack(own[one.uid], seen=one not in plan.stop)
        for one in plan.drop:
            await self._untrack(own[one.uid], seen=True)
            await self._writes.delete(found, own[one.uid])
        for _ in range(plan.create):
            await self._create(found)

    async def _create(self, found: Job) -> None:
        meta = found.metadata
        body = from_template(
            job_status.labelled(found), reference_to(found), meta.namespace, generate_name=f"{meta.name}-"
        )
        finalizers = [*body["metadata"].get("finalizers", ()), TRACKING]
        await self._writes.create(found, {**body, "metadata": {**body["metadata"], "finalizers": finalizers}})

    async def _untrack(self, pod: Pod, *, seen: bool) -> None:
        """Take our finalizer away; of the pod as it was seen, unless we have changed it just now."""
        meta = pod.metadata
        if TRACKING not in meta.finalizers:
            return
        left = [one for one in meta.finalizers if one != TRACKING]
        patch = MergePatch({"metadata": {"finalizers": left or None}})
        version = meta.resource_version if seen else None
        with suppress(NotFound):
            await self._view.client.patch(
                Pod, meta.name, patch, meta.namespace, uid=meta.uid, resource_version=version, manager=MANAGER
            )

    async def _let_go_of_orphans(self, key: Key) -> None:
        """The pods of a Job that is gone have nobody else to take the finalizer away."""
        for pod in self._view.pods.by(NAMESPACE, key.namespace or ""):
            owner = controller_of(pod.metadata)
            if owner is not None and (owner.kind, owner.name) == ("Job", key.name):
                await self._untrack(pod, seen=True)

    async def _outlive(self, found: Job, now: datetime) -> Outcome:
        """A finished Job goes after a while, if it says so."""
        ttl, ended = found.spec.ttl_seconds_after_finished, job_status.finished_at(found)
        if ttl is None or ended is None or found.metadata.deletion_timestamp is not None:
            return Outcome.done
        due, meta = ended + timedelta(seconds=ttl), found.metadata
        if due > now:
            return Outcome.again(after=_seconds(due, now))
        with suppress(NotFound):
            await self._view.client.delete(
                Job,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                propagation="Foreground",
            )
        return Outcome.done

    def _tell(self, found: Job, before: Progress, after: Progress) -> None:
        for one in after.conditions:
            if find_condition(before.conditions, one.type) == one:
                continue
            match one.type, one.status:
                case "Suspended", status:
                    word = ("Suspended", "Job suspended") if status == TRUE else ("Resumed", "Job resumed")
                    self._events.normal(found, *word)
                case "Complete", _:
                    self._events.normal(found, "Completed", "Job completed")
                case "Failed", _:
                    self._events.warning(found, one.reason, one.message)


def job_pod(pod: Pod) -> JobPod:
    """What the plan needs to know of a pod."""
    meta, phase = pod.metadata, pod.status.phase
    return JobPod(
        uid=meta.uid,
        name=meta.name,
        phase=phase or "Pending",
        ready=pods.is_ready(pod),
        terminating=meta.deletion_timestamp is not None,
        tracked=TRACKING in meta.finalizers,
        ended=_ended(pod) if pods.is_finished(pod) else None,
        restarts=sum(one.restart_count for one in _containers(pod)),
    )


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _ended(pod: Pod) -> datetime | None:
    condition = pods.ready_condition(pod)
    if condition is not None and condition.last_transition_time is not None:
        return condition.last_transition_time
    return pod.metadata.creation_timestamp


def _seconds(moment: datetime, now: datetime) -> float:
    return max(0.001, (moment - now).total_seconds())
