"""Jobs: what Jobs and CronJobs have beyond their schema.

A Job finds its pods by a label that nobody else's pods have: its uid. So it must have one before it begins.
"""

from __future__ import annotations

from kedge.embedded.builtin import pod_spec
from kedge.embedded.builtin.filling import each, struct
from kedge.embedded.rules import Surroundings, Untyped

UID = "batch.kubernetes.io/controller-uid"
LABELS = ((UID, "uid"), ("controller-uid", "uid"), ("batch.kubernetes.io/job-name", "name"), ("job-name", "name"))
_NO_LIMIT = 2**31 - 1


def _defaults(spec: Untyped) -> Untyped:
    added: Untyped = {}
    if "parallelism" not in spec:
        added["parallelism"] = 1
        if "completions" not in spec:
            added["completions"] = 1
    if "backoffLimit" not in spec:
        added["backoffLimit"] = _NO_LIMIT if "backoffLimitPerIndex" in spec else 6
    if "podReplacementPolicy" not in spec:
        added["podReplacementPolicy"] = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    return {**spec, **added} if added else spec


def _labelled(job: Untyped) -> Untyped:
    """A Job without labels has those of its pods."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if not labels or job["metadata"].get("labels"):
        return job
    return {**job, "metadata": {**job["metadata"], "labels": labels}}


_failure_policy = struct(rules=each(struct(onPodConditions=each(struct({"status": "True"})))))

complete_job = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"template": {}, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False},
        podFailurePolicy=_failure_policy,
        template=pod_spec.template,
        then=_defaults,
    ),
    then=_labelled,
)
complete_cron_job = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {},
        },
        jobTemplate=struct(
            {"metadata": {}, "spec": {}},
            spec=struct({"template": {}}, podFailurePolicy=_failure_policy, template=pod_spec.template),
        ),
    ),
)


def begin_job(job: Untyped, _around: Surroundings) -> Untyped:
    """A new Job, with labels for its pods and a selector of them, unless it brings its own."""
    spec = job["spec"]
    if spec.get("manualSelector"):
        return job
    template, uid = spec["template"], job["metadata"]["uid"]
    given = {key: job["metadata"].get(which, "") for key, which in LABELS}
    # A label of this name that is there already stays, and is refused if it is not the Job's.
    labels = {**given, **template["metadata"].get("labels", {})}
    dressed = {**template, "metadata": {**template["metadata"], "labels": labels}}
    selector = spec.get("selector", {})
    selector = {**selector, "matchLabels": {**selector.get("matchLabels", {}), UID: uid}}
    own = job["metadata"]
    # Labels that came from the template stay those of the template.
    if own.get("labels", {}) == template["metadata"].get("labels", {}):
        own = {**own, "labels": labels}
    return {**job, "metadata": own, "spec": {**spec, "selector": selector, "template": dressed}}
