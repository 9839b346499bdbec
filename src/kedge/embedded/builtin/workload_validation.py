"""Workload validation: what is wrong with a Deployment, StatefulSet, DaemonSet, ReplicaSet, or an update of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.label_selectors import selector_in_order, template_selector_problems
from kedge.embedded.builtin.pod_validation import template_problems
from kedge.embedded.builtin.storage import claim_spec_problems
from kedge.embedded.causes import (
    IMMUTABLE,
    NOT_NEGATIVE,
    forbidden,
    invalid_value,
    must_be_one_of,
    must_not_be_negative,
    required_value,
    sorted_by_key,
    unsupported_value,
)
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_TEMPLATE = "spec.template"
_ROLLING = "RollingUpdate"
_MAY_CHANGE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def deployment_problems(deployment: Untyped) -> Iterator[Cause]:
    spec = deployment["spec"]
    yield from _numbers(spec, "replicas")
    yield from template_selector_problems("deployment", spec)
    yield from _always_running(spec, "ReplicaSet")
    yield from _deployment_strategy("spec.strategy", spec["strategy"])
    yield from _numbers(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
        yield invalid_value(
            "spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], "must be greater than minReadySeconds"
        )


def replica_set_problems(replica_set: Untyped) -> Iterator[Cause]:
    spec = replica_set["spec"]
    yield from _numbers(spec, "replicas", "minReadySeconds")
    yield from template_selector_problems("replica set", spec)
    yield from _always_running(spec, "ReplicaSet")


def replication_controller_problems(controller: Untyped) -> Iterator[Cause]:
    spec = controller["spec"]
    yield from _numbers(spec, "minReadySeconds")
    selector, template = spec.get("selector", {}), spec.get("template")
    if not selector:
        yield required_value("spec.selector")
    yield from _numbers(spec, "replicas")
    if template is None:
        yield required_value(_TEMPLATE)
        return
    labels = template["metadata"].get("labels")
    if any((labels or {}).get(key) != value for key, value in selector.items()):
        yield invalid_value(
            "spec.template.metadata.labels", sorted_by_key(labels), "`selector` does not match template `labels`"
        )
    yield from _always_running(spec, "ReplicationController")


def stateful_set_problems(stateful_set: Untyped) -> Iterator[Cause]:
    spec = stateful_set["spec"]
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_strategy("spec.updateStrategy", spec["updateStrategy"])
    for part in ("whenDeleted", "whenScaled"):
        where = f"spec.persistentVolumeClaimRetentionPolicy.{part}"
        yield from must_be_one_of(where, spec["persistentVolumeClaimRetentionPolicy"][part], ("Retain", "Delete"))
    yield from _numbers(spec, "replicas", "minReadySeconds")
    yield from must_not_be_negative("spec.ordinals.start", spec.get("ordinals", {}).get("start"))
    yield from template_selector_problems("statefulset", spec)
    claims = spec.get("volumeClaimTemplates", [])
    for index, claim in enumerate(claims):
        yield from claim_spec_problems(f"spec.volumeClaimTemplates[{index}].spec", claim["spec"])
    yield from _always_running(_with_claims(spec, claims) if claims else spec, "StatefulSet")


def daemon_set_problems(daemon_set: Untyped) -> Iterator[Cause]:
    spec = daemon_set["spec"]
    yield from template_selector_problems("daemonset", spec, needed=False)
    yield from _always_running(spec, "DaemonSet")
    yield from _numbers(spec, "minReadySeconds")
    yield from _daemon_strategy("spec.updateStrategy", spec["updateStrategy"])
    yield from _numbers(spec, "revisionHistoryLimit")


def revision_problems(revision: Untyped) -> Iterator[Cause]:
    if revision.get("data") is None:
        yield required_value("data", "data is mandatory")
    yield from must_not_be_negative("revision", revision["revision"])


def selector_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """The selector of a workload cannot be changed."""
    before, after = old["spec"].get("selector"), new["spec"].get("selector")
    if before != after:
        yield invalid_value("spec.selector", selector_in_order(after), IMMUTABLE)


def stateful_set_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """Only a few fields of a StatefulSet can be changed."""
    fixed = [{key: value for key, value in obj["spec"].items() if key not in _MAY_CHANGE} for obj in (old, new)]
    if fixed[0] != fixed[1]:
        named = [f"'{field}'" for field in _MAY_CHANGE]
        why = f"updates to statefulset spec for fields other than {', '.join(named[:-1])} and {named[-1]} are forbidden"
        yield forbidden("spec", why)


def revision_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old.get("data") != new.get("data"):
        yield invalid_value("data", new.get("data"), IMMUTABLE)


def _with_claims(spec: Untyped, claims: list[Untyped]) -> Untyped:
    """The pods of a StatefulSet have a volume for each claim template, of the same name."""
    names = [claim["metadata"].get("name", "") for claim in claims]
    inner = spec["template"]["spec"]
    others = [volume for volume in inner.get("volumes", ()) if volume.get("name") not in names]
    volumes = [*others, *({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names)]
    return {**spec, "template": {**spec["template"], "spec": {**inner, "volumes": volumes}}}


def _always_running(spec: Untyped, what: str) -> Iterator[Cause]:
    """What is wrong with the template of a workload whose pods run forever."""
    template = spec["template"]
    yield from template_problems(_TEMPLATE, template)
    policy = template["spec"]["restartPolicy"]
    if policy != "Always":
        yield unsupported_value(f"{_TEMPLATE}.spec.restartPolicy", policy, ("Always",))
    if "activeDeadlineSeconds" in template["spec"]:
        where = f"{_TEMPLATE}.spec.activeDeadlineSeconds"
        yield forbidden(where, f"activeDeadlineSeconds in {what} is not Supported")


def _numbers(spec: Untyped, *names: str) -> Iterator[Cause]:
    for name in names:
        if spec.get(name, 0) < 0:
            yield invalid_value(f"spec.{name}", spec[name], NOT_NEGATIVE)


def _deployment_strategy(at: str, strategy: Untyped) -> Iterator[Cause]:
    if strategy["type"] == "Recreate":
        if "rollingUpdate" in strategy:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(f"{at}.rollingUpdate", why)
    elif strategy["type"] != _ROLLING:
        yield unsupported_value(at, _shown(strategy), ("Recreate", _ROLLING))
    else:
        yield from _pace(f"{at}.rollingUpdate", strategy["rollingUpdate"])


def _pace(at: str, rolling: Untyped) -> Iterator[Cause]:
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from checks.count_or_percent(f"{at}.maxUnavailable", unavailable)
    yield from checks.count_or_percent(f"{at}.maxSurge", surge)
    if not (checks.number_in(unavailable) or checks.number_in(surge)):
        yield invalid_value(f"{at}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from checks.at_most_100_percent(f"{at}.maxUnavailable", unavailable)


def _daemon_strategy(at: str, strategy: Untyped) -> Iterator[Cause]:
    if strategy["type"] not in (_ROLLING, "OnDelete"):
        yield unsupported_value(at, _shown(strategy), (_ROLLING, "OnDelete"))
    if strategy["type"] != _ROLLING:
        return
    rolling = strategy["rollingUpdate"]
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    where = f"{at}.rollingUpdate"
    yield from _shares(where, rolling)
    if checks.number_in(unavailable) and checks.number_in(surge):
        yield invalid_value(f"{where}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not checks.number_in(unavailable) and not checks.number_in(surge):
        yield required_value(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _shares(at: str, rolling: Untyped) -> Iterable[Cause]:
    for name in ("maxUnavailable", "maxSurge"):
        yield from checks.count_or_percent(f"{at}.{name}", rolling[name])
        yield from checks.at_most_100_percent(f"{at}.{name}", rolling[name])


def _stateful_strategy(at: str, strategy: Untyped) -> Iterator[Cause]:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
            yield invalid_value(f"{at}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif strategy["type"] != _ROLLING:
        yield invalid_value(at, _shown(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from must_not_be_negative(f"{at}.rollingUpdate.partition", rolling.get("partition"))


def _shown(strategy: Untyped) -> Untyped:
    """A strategy with the field names of Go, as Kubernetes shows it."""
    return {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
