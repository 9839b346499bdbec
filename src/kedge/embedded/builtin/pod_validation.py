"""Pod validation: what is wrong with a pod, with a pod template, and with an update of a pod.

Of an existing pod only images and little else may change. Kubernetes adds a diff to the refusal, we do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.containers import container_problems, user_id
from kedge.embedded.builtin.pod_volumes import volume_problems
from kedge.embedded.builtin.scheduling_constraints import scheduling_problems
from kedge.embedded.causes import forbidden, invalid_value, required_value, unsupported_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_LONGEST_DEADLINE = 2**31 - 1


def pod_problems(pod: Untyped) -> Iterator[Cause]:
    """What is wrong with a pod."""
    yield from spec_problems("spec", pod["spec"])


def template_problems(at: str, template: Untyped) -> Iterable[Cause]:
    """What is wrong with a template that pods are made from.

    Most writes of a workload leave its template alone, so what was found fine is remembered by its text.
    """
    text = msgspec.json.encode(template)
    if text in _valid_templates:
        return ()
    if not (found := list(_template(at, template))):
        if len(_valid_templates) >= _REMEMBERED:
            _valid_templates.clear()
        _valid_templates.add(text)
    return found


_valid_templates: set[bytes] = set()
_REMEMBERED = 1024


def _template(at: str, template: Untyped) -> Iterator[Cause]:
    metadata = template.get("metadata") or {}
    if labels := metadata.get("labels"):
        yield from checks.labels(f"{at}.labels", labels)
    for key in metadata.get("annotations", ()):
        yield from checks.qualified_name(f"{at}.annotations", key.lower())
    yield from spec_problems(f"{at}.spec", template["spec"])
    if template["spec"].get("ephemeralContainers"):
        yield forbidden(f"{at}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def spec_problems(at: str, spec: Untyped) -> Iterator[Cause]:
    """What is wrong with a pod spec."""
    if volumes := spec.get("volumes"):
        yield from volume_problems(f"{at}.volumes", volumes)
    yield from container_problems(at, spec)
    if spec.get("hostNetwork"):
        yield from _host_network(at, spec)
    if spec["restartPolicy"] not in _RESTARTS:
        yield unsupported_value(f"{at}.restartPolicy", spec["restartPolicy"], _RESTARTS)
    yield from _dns(at, spec)
    if security := spec["securityContext"]:
        for name in ("runAsUser", "runAsGroup", "fsGroup"):
            yield from user_id(f"{at}.securityContext.{name}", security.get(name))
    for index, alias in enumerate(spec.get("hostAliases", ())):
        yield from checks.address(f"{at}.hostAliases[{index}].ip", alias.get("ip", ""))
    for index, gate in enumerate(spec.get("readinessGates", ())):
        yield from checks.qualified_name(f"{at}.readinessGates[{index}].conditionType", gate.get("conditionType", ""))
    yield from scheduling_problems(at, spec)
    yield from _names(at, spec)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        why = f"must be between 1 and {_LONGEST_DEADLINE}, inclusive"
        yield invalid_value(f"{at}.activeDeadlineSeconds", deadline, why)


def _host_network(at: str, spec: Untyped) -> Iterator[Cause]:
    """With hostNetwork, container ports are host ports."""
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            for place, port in enumerate(container.get("ports", ())):
                host = port.get("hostPort", 0)
                if host != port.get("containerPort", 0) and host:
                    where = f"{at}.{part}[{index}].ports[{place}].hostPort"
                    yield invalid_value(where, host, "must match `containerPort` when `hostNetwork` is true")


def _dns(at: str, spec: Untyped) -> Iterator[Cause]:
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        yield unsupported_value(f"{at}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES)
    for index, text in enumerate(spec.get("dnsConfig", {}).get("nameservers", ())):
        yield from checks.address(f"{at}.dnsConfig.nameservers[{index}]", text)
    if spec["dnsPolicy"] != "None":
        return
    if "dnsConfig" not in spec:
        yield required_value(f"{at}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif not spec["dnsConfig"].get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required_value(f"{at}.dnsConfig.nameservers", why)


_NAMED = (
    ("serviceAccountName", checks.subdomain),
    ("nodeName", checks.subdomain),
    ("hostname", checks.label),
    ("subdomain", checks.label),
    ("priorityClassName", checks.subdomain),
    ("runtimeClassName", checks.subdomain),
)


def _names(at: str, spec: Untyped) -> Iterable[Cause]:
    for part, check in _NAMED:
        if name := spec.get(part):
            yield from check(f"{at}.{part}", name)


_MAY_CHANGE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_FREE = ("activeDeadlineSeconds", "schedulingGates", "tolerations")


def pod_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """What is wrong with an update of a pod."""
    before, after = old["spec"], new["spec"]
    if before == after:
        return
    for part in ("containers", "initContainers"):
        if len(before.get(part) or ()) != len(after.get(part) or ()):
            yield forbidden(f"spec.{part}", "pod updates may not add or remove containers")
            return
    if problems := list(_deadline(before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds"))):
        yield from problems
        return
    yield from _tolerations(before.get("tolerations", []), after.get("tolerations", []))
    yield from _gates(before.get("schedulingGates", []), after.get("schedulingGates", []))
    yield from _rest(before, after)


def _deadline(before: int | None, after: int | None) -> Iterator[Cause]:
    at = "spec.activeDeadlineSeconds"
    if after is None:
        if before is not None:
            yield invalid_value(at, None, "must not update from a positive integer to nil value")
    elif not 0 <= after <= _LONGEST_DEADLINE:
        yield invalid_value(at, after, f"must be between 0 and {_LONGEST_DEADLINE}, inclusive")
    elif before is not None and before < after:
        yield invalid_value(at, after, "must be less than or equal to previous value")


def _tolerations(before: list[Untyped], after: list[Untyped]) -> Iterator[Cause]:
    kept = [_timeless(one) for one in after]
    if any(_timeless(one) not in kept for one in before):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _timeless(toleration: Untyped) -> Untyped:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(before: list[Untyped], after: list[Untyped]) -> Iterator[Cause]:
    known = [gate["name"] for gate in before]
    for index, gate in enumerate(after):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", why)


def _rest(before: Untyped, after: Untyped) -> Iterator[Cause]:
    gated = bool(before.get("schedulingGates"))
    if gated and not before.get("nodeSelector", {}).items() <= after.get("nodeSelector", {}).items():
        yield invalid_value(
            "spec.nodeSelector", after.get("nodeSelector"), "only additions are allowed (no mutations or deletions)"
        )
    if _fixed(before, before, gated=gated) != _fixed(before, after, gated=gated):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_MAY_CHANGE)}")


def _fixed(before: Untyped, spec: Untyped, *, gated: bool) -> Untyped:
    """The immutable part of a pod. One with scheduling gates may change scheduling fields."""
    free = (*_FREE, "nodeSelector", "affinity") if gated else _FREE
    fixed = {key: value for key, value in spec.items() if key not in free}
    if before["terminationGracePeriodSeconds"] < 0 and spec["terminationGracePeriodSeconds"] == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if gated:
        fixed["affinity"] = _beyond_nodes(spec.get("affinity", {}))
    for part in ("containers", "initContainers"):
        fixed[part] = [_imageless(container) for container in spec.get(part) or ()]
    return fixed


def _beyond_nodes(affinity: Untyped) -> Any:
    return {key: value for key, value in affinity.items() if key != "nodeAffinity"}


def _imageless(container: Untyped) -> Untyped:
    return {key: value for key, value in container.items() if key != "image"}
