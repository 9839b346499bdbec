"""Pod problems: what is wrong with a pod, with a template of one, and with a change of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.causes import forbidden, required, unsupported, wrong
from kedge.embedded.builtin.containers import container_problems, user_id
from kedge.embedded.builtin.placing import placing_problems
from kedge.embedded.builtin.volumes import volume_problems
from kedge.embedded.rules import Untyped
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
    if text in _fine:
        return ()
    if not (found := list(_template(at, template))):
        if len(_fine) >= _REMEMBERED:
            _fine.clear()
        _fine.add(text)
    return found


_fine: set[bytes] = set()
_REMEMBERED = 1024


def _template(at: str, template: Untyped) -> Iterator[Cause]:
    metadata = template.get("metadata") or {}
    if labels := metadata.get("labels"):
        yield from checks.labels(f"{at}.labels", labels)
    for key in metadata.get("annotations", ()):
        yield from checks.qualified(f"{at}.annotations", key.lower())
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
        yield unsupported(f"{at}.restartPolicy", spec["restartPolicy"], _RESTARTS)
    yield from _dns(at, spec)
    if security := spec["securityContext"]:
        for name in ("runAsUser", "runAsGroup", "fsGroup"):
            yield from user_id(f"{at}.securityContext.{name}", security.get(name))
    for index, alias in enumerate(spec.get("hostAliases", ())):
        yield from checks.address(f"{at}.hostAliases[{index}].ip", alias.get("ip", ""))
    for index, gate in enumerate(spec.get("readinessGates", ())):
        yield from checks.qualified(f"{at}.readinessGates[{index}].conditionType", gate.get("conditionType", ""))
    yield from placing_problems(at, spec)
    yield from _names(at, spec)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        why = f"must be between 1 and {_LONGEST_DEADLINE}, inclusive"
        yield wrong(f"{at}.activeDeadlineSeconds", deadline, why)


def _host_network(at: str, spec: Untyped) -> Iterator[Cause]:
    """On the host's own network a container's port is a port of the host."""
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            for place, port in enumerate(container.get("ports", ())):
                host = port.get("hostPort", 0)
                if host != port.get("containerPort", 0) and host:
                    where = f"{at}.{part}[{index}].ports[{place}].hostPort"
                    yield wrong(where, host, "must match `containerPort` when `hostNetwork` is true")


def _dns(at: str, spec: Untyped) -> Iterator[Cause]:
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        yield unsupported(f"{at}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES)
    for index, text in enumerate(spec.get("dnsConfig", {}).get("nameservers", ())):
        yield from checks.address(f"{at}.dnsConfig.nameservers[{index}]", text)
    if spec["dnsPolicy"] != "None":
        return
    if "dnsConfig" not in spec:
        yield required(f"{at}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif not spec["dnsConfig"].get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{at}.dnsConfig.nameservers", why)


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
