"""Jobs: defaults and validation of Jobs and CronJobs, and the labels and selector of a new Job.

A Job finds its pods by a label with its uid, so it must have a uid before it is prepared.
"""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin import checks, pod_spec
from kedge.embedded.builtin.cron_schedules import may_be_time_zone, schedule_problem
from kedge.embedded.builtin.defaulting import each, struct
from kedge.embedded.builtin.label_selectors import SELECTOR_MISMATCH, matches, selector_in_order, selector_problems
from kedge.embedded.builtin.pod_validation import template_problems
from kedge.embedded.causes import (
    IMMUTABLE,
    invalid_value,
    must_be_one_of,
    must_not_be_negative,
    required_value,
    sorted_by_key,
    unsupported_value,
)
from kedge.embedded.kind_rules import AdmissionContext
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
POD_LABELS = (
    (CONTROLLER_UID, "uid"),
    ("controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
    ("job-name", "name"),
)
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
    """A Job without labels gets those of its template."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if not labels or job["metadata"].get("labels"):
        return job
    return {**job, "metadata": {**job["metadata"], "labels": labels}}


_failure_policy = struct(rules=each(struct(onPodConditions=each(struct({"status": "True"})))))

default_job = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"template": {}, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False},
        podFailurePolicy=_failure_policy,
        template=pod_spec.default_template,
        then=_defaults,
    ),
    then=_labelled,
)
default_cron_job = struct(
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
            spec=struct({"template": {}}, podFailurePolicy=_failure_policy, template=pod_spec.default_template),
        ),
    ),
)


def prepare_new_job(job: Untyped, _context: AdmissionContext) -> Untyped:
    """A new Job gets labels for its pods and a selector, unless it has a manual selector."""
    spec = job["spec"]
    if spec.get("manualSelector"):
        return job
    template, uid = spec["template"], job["metadata"]["uid"]
    given = {key: job["metadata"].get(which, "") for key, which in POD_LABELS}
    # A label of this name that is there already stays, and is refused if it is not the Job's.
    labels = {**given, **template["metadata"].get("labels", {})}
    dressed = {**template, "metadata": {**template["metadata"], "labels": labels}}
    selector = spec.get("selector", {})
    selector = {**selector, "matchLabels": {**selector.get("matchLabels", {}), CONTROLLER_UID: uid}}
    own = job["metadata"]
    # Labels that came from the template stay those of the template.
    if own.get("labels", {}) == template["metadata"].get("labels", {}):
        own = {**own, "labels": labels}
    return {**job, "metadata": own, "spec": {**spec, "selector": selector, "template": dressed}}


_LONGEST_CRON_JOB = 52  # the time of a run comes behind it
_MANY = 100_000
_MANY_AT_ONCE = 10_000
_ENDING = ("OnFailure", "Never")
_PLACING = ("nodeSelector", "tolerations", "schedulingGates")


def job_problems(job: Untyped) -> Iterator[Cause]:
    spec = job["spec"]
    yield from _pod_names(job)
    yield from _own_selector(job)
    yield from _spec("spec", spec)
    labels = spec["template"]["metadata"].get("labels")
    if "selector" not in spec:
        yield required_value("spec.selector")
        yield invalid_value("spec.template.metadata.labels", sorted_by_key(labels), SELECTOR_MISMATCH)
    elif found := list(selector_problems("spec.selector", spec["selector"])):
        yield from found
    elif not matches(spec["selector"], labels or {}):
        yield invalid_value("spec.template.metadata.labels", sorted_by_key(labels), SELECTOR_MISMATCH)


def cron_job_problems(cron_job: Untyped) -> Iterator[Cause]:
    spec, name = cron_job["spec"], cron_job["metadata"].get("name", "")
    if len(name) > _LONGEST_CRON_JOB:
        yield invalid_value("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB} characters")
    if not spec.get("schedule"):
        yield required_value("spec.schedule")
    elif why := schedule_problem(spec["schedule"]):
        yield invalid_value("spec.schedule", spec["schedule"], why)
    yield from must_not_be_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if "timeZone" in spec:
        yield from _time_zone(spec["timeZone"])
    yield from must_be_one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    inner = spec["jobTemplate"]["spec"]
    yield from _spec("spec.jobTemplate.spec", inner)
    if inner.get("manualSelector"):
        yield unsupported_value("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from must_not_be_negative(f"spec.{name}", spec[name])


def job_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """Selector, template and completion mode of a Job cannot be changed."""
    before, after = old["spec"], new["spec"]
    yield from _completions(before, after)
    for name in (
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        if before.get(name) != after.get(name):
            value = after.get(name)
            yield invalid_value(f"spec.{name}", selector_in_order(value) if name == "selector" else value, IMMUTABLE)
    waits = bool(before.get("suspend")) and "startTime" not in old.get("status", {})
    if _fixed(before["template"], waits=waits) != _fixed(after["template"], waits=waits):
        yield invalid_value("spec.template", after["template"], IMMUTABLE)


def _completions(before: Untyped, after: Untyped) -> Iterator[Cause]:
    """An indexed Job may change completions together with parallelism."""
    wanted = after.get("completions")
    if before.get("completions") == wanted:
        return
    if after["completionMode"] != "Indexed":
        yield invalid_value("spec.completions", wanted, IMMUTABLE)
    elif wanted is not None and wanted != after["parallelism"]:
        yield invalid_value("spec.completions", wanted, "can only be modified in tandem with spec.parallelism")


def _fixed(template: Untyped, *, waits: bool) -> Untyped:
    """The immutable part of a template. A suspended Job that never started may change scheduling fields."""
    if not waits:
        return template
    spec = {key: value for key, value in template["spec"].items() if key not in _PLACING}
    beyond_nodes = {key: value for key, value in spec.pop("affinity", {}).items() if key != "nodeAffinity"}
    if beyond_nodes:
        spec["affinity"] = beyond_nodes
    spec["containers"] = [_unmeasured(one) for one in spec.get("containers") or ()]
    spec["initContainers"] = [_unmeasured(one) for one in spec.get("initContainers") or ()]
    return spec


def _unmeasured(container: Untyped) -> Untyped:
    return {key: value for key, value in container.items() if key != "resources"}


def _spec(at: str, spec: Untyped) -> Iterator[Cause]:
    """What is wrong with a Job, or the template of one."""
    for name in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        yield from must_not_be_negative(f"{at}.{name}", spec.get(name))
    if "completionMode" in spec:
        yield from must_be_one_of(f"{at}.completionMode", spec["completionMode"], ("NonIndexed", "Indexed"))
    if spec.get("completionMode") == "Indexed":
        yield from _indexed(at, spec)
    elif "backoffLimitPerIndex" in spec:
        yield invalid_value(
            f"{at}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode"
        )
    if "podReplacementPolicy" in spec:
        where = f"{at}.podReplacementPolicy"
        yield from must_be_one_of(where, spec["podReplacementPolicy"], ("Failed", "TerminatingOrFailed"))
    for index, rule in enumerate(spec.get("podFailurePolicy", {}).get("rules") or ()):
        if ("onExitCodes" in rule) == ("onPodConditions" in rule):
            why = "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
            yield Cause(f"{at}.podFailurePolicy.rules[{index}]", why, "FieldValueInvalid")
    yield from template_problems(f"{at}.template", spec["template"])
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        yield required_value(f"{at}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in _ENDING:
        yield unsupported_value(f"{at}.template.spec.restartPolicy", policy, _ENDING)


def _pod_names(job: Untyped) -> Iterator[Cause]:
    """The pods of an indexed Job are named after it, and their names must be host names."""
    last = (job["spec"].get("completions") or 0) - 1
    if job["spec"]["completionMode"] != "Indexed" or last < 0:
        return
    name = job["metadata"].get("name", "")
    if checks.label_problems(f"{name}-{last}"):
        yield invalid_value("metadata.name", name, f"will not able to create pod with invalid DNS label: {name}-{last}")


def _indexed(at: str, spec: Untyped) -> Iterator[Cause]:
    """What is wrong with an indexed Job: there must not be too many indexes."""
    if "completions" not in spec:
        yield required_value(f"{at}.completions", "when completion mode is Indexed")
        return
    wanted, at_once, per_index = spec["completions"], spec.get("parallelism", 1), "backoffLimitPerIndex" in spec
    if at_once > _MANY:
        why = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        yield invalid_value(f"{at}.parallelism", at_once, why)
    if per_index and wanted > _MANY and "maxFailedIndexes" not in spec:
        yield required_value(f"{at}.maxFailedIndexes", f"must be specified when completions is above {_MANY}")
    if per_index and wanted > _MANY and at_once > _MANY_AT_ONCE:
        why = (
            f"must be less than or equal to {_MANY_AT_ONCE} when completions are above {_MANY} "
            "and used with backoff limit per index"
        )
        yield invalid_value(f"{at}.parallelism", at_once, why)
    if "maxFailedIndexes" in spec and spec["maxFailedIndexes"] > wanted:
        yield invalid_value(
            f"{at}.maxFailedIndexes", spec["maxFailedIndexes"], "must be less than or equal to completions"
        )


def _own_selector(job: Untyped) -> Iterator[Cause]:
    """A Job without a manual selector must have the generated one, and its labels on its pods."""
    spec = job["spec"]
    if spec.get("manualSelector"):
        return
    name, uid = job["metadata"].get("name", ""), job["metadata"].get("uid", "")
    labels = spec["template"]["metadata"].get("labels", {})
    for key, of_the_job in POD_LABELS:
        wanted = uid if of_the_job == "uid" else name
        if labels.get(key) != wanted:
            yield invalid_value(f"spec.template.metadata.labels[{key}]", sorted_by_key(labels), f"must be '{wanted}'")
    if spec.get("selector") != {"matchLabels": {CONTROLLER_UID: uid}}:
        yield invalid_value("spec.selector", selector_in_order(spec.get("selector")), "`selector` not auto-generated")


def _time_zone(name: str) -> Iterator[Cause]:
    if not name:
        yield invalid_value("spec.timeZone", name, "timeZone must be nil or non-empty string")
    elif not may_be_time_zone(name):
        yield invalid_value("spec.timeZone", name, f"unknown time zone {name}")
