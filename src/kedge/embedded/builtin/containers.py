"""Containers: what is wrong with the containers of a pod, or with the template of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.amounts import resource_problems
from kedge.embedded.builtin.causes import all_wrong, duplicate, forbidden, one_of, required, unknown, unsupported, wrong
from kedge.embedded.builtin.probes import handler_problems, probe_problems
from kedge.embedded.rules import Untyped
from kedge.kube.errors import Cause

_MESSAGES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_VALUE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NOT_FOR_INIT = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_SECURITY_FIELDS = {
    "Capabilities": "capabilities",
    "Privileged": "privileged",
    "SELinuxOptions": "seLinuxOptions",
    "WindowsOptions": "windowsOptions",
    "RunAsUser": "runAsUser",
    "RunAsGroup": "runAsGroup",
    "RunAsNonRoot": "runAsNonRoot",
    "ReadOnlyRootFilesystem": "readOnlyRootFilesystem",
    "AllowPrivilegeEscalation": "allowPrivilegeEscalation",
    "ProcMount": "procMount",
    "SeccompProfile": "seccompProfile",
    "AppArmorProfile": "appArmorProfile",
}


def container_problems(at: str, spec: Untyped) -> Iterator[Cause]:
    """What is wrong with all containers of a pod spec."""
    containers = spec.get("containers") or ()
    volumes = {volume.get("name"): volume for volume in spec.get("volumes", ())}
    if not containers:
        yield required(f"{at}.containers")
    names: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{at}.containers[{index}]"
        yield from _common(where, container, volumes, names)
        yield from _running(where, container, spec["terminationGracePeriodSeconds"])
        image = container.get("image", "")
        if image and image != image.strip():
            yield wrong(f"{where}.image", image, "must not have leading or trailing whitespace")
    yield from _host_ports(f"{at}.containers", containers)
    for index, container in enumerate(spec.get("initContainers") or ()):
        where = f"{at}.initContainers[{index}]"
        yield from _common(where, container, volumes, names)
        yield from _init(where, container, spec["terminationGracePeriodSeconds"])


def _init(at: str, container: Untyped, grace: int) -> Iterator[Cause]:
    """What runs first and ends has no use for probes; what keeps running beside the others has."""
    policy = container.get("restartPolicy")
    if policy is not None:
        yield from one_of(f"{at}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    if policy == "Always":
        yield from _running(at, container, grace)
        return
    for name in _NOT_FOR_INIT:
        if name in container:
            yield forbidden(f"{at}.{name}", "may not be set for init containers without restartPolicy=Always")


def _common(at: str, container: Untyped, volumes: Mapping[str, Untyped], names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{at}.name")
    elif name in names:
        yield duplicate(f"{at}.name", name)
    else:
        names.add(name)
        if checks.label_problems(name):
            yield from checks.label(f"{at}.name", name)
    if not container.get("image"):
        yield required(f"{at}.image")
    if container["terminationMessagePolicy"] not in _MESSAGES:
        yield unsupported(f"{at}.terminationMessagePolicy", container["terminationMessagePolicy"], _MESSAGES)
    if ports := container.get("ports"):
        yield from _ports(f"{at}.ports", ports)
    for index, variable in enumerate(container.get("env", ())):
        yield from _variable(f"{at}.env[{index}]", variable)
    for index, source in enumerate(container.get("envFrom", ())):
        yield from _variables_from(f"{at}.envFrom", index, source)
    for index, device in enumerate(container.get("volumeDevices", ())):
        if device.get("name") not in volumes:
            yield unknown(f"{at}.volumeDevices[{index}].name", device.get("name", ""))
    if mounts := container.get("volumeMounts"):
        yield from _mounts(f"{at}.volumeMounts", mounts, volumes)
    if container["imagePullPolicy"] not in _PULL_POLICIES:
        yield unsupported(f"{at}.imagePullPolicy", container["imagePullPolicy"], _PULL_POLICIES)
    if resources := container["resources"]:
        yield from resource_problems(f"{at}.resources", resources)
    if security := container.get("securityContext"):
        yield from _security(f"{at}.securityContext", security)


def _running(at: str, container: Untyped, grace: int) -> Iterator[Cause]:
    """What is wrong with how a container that keeps running is watched over."""
    for part, handler in container.get("lifecycle", {}).items():
        if part in ("postStart", "preStop"):
            yield from handler_problems(f"{at}.lifecycle.{part}", handler, grace)
    for part in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(part):
            yield from probe_problems(f"{at}.{part}", probe, once=part != "readinessProbe")


def _ports(at: str, ports: Iterable[Untyped]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{at}[{index}]"
        if name := port.get("name"):
            if problems := checks.port_name_problems(name):
                yield from all_wrong(f"{where}.name", name, problems)
            elif name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required(f"{where}.containerPort")
        else:
            yield from checks.port(f"{where}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            yield from checks.port(f"{where}.hostPort", port["hostPort"])
        if port["protocol"] not in _PROTOCOLS:
            yield unsupported(f"{where}.protocol", port["protocol"], _PROTOCOLS)


def _host_ports(at: str, containers: Iterable[Untyped]) -> Iterator[Cause]:
    """No two containers of a pod can have one port of the host."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            key = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                yield duplicate(f"{at}[{index}].ports[{place}].hostPort", key)
            taken.add(key)


def _variable(at: str, variable: Untyped) -> Iterator[Cause]:
    if not variable.get("name"):
        yield required(f"{at}.name")
    else:
        yield from checks.env_name(f"{at}.name", variable["name"])
    source = variable.get("valueFrom")
    if source is None:
        return
    where = f"{at}.valueFrom"
    named = [name for name in _VALUE_SOURCES if name in source]
    if not named:
        known = ", ".join(f"`{name}`" for name in _VALUE_SOURCES[:-1])
        yield wrong(where, "", f"must specify one of: {known} or `{_VALUE_SOURCES[-1]}`")
    elif variable.get("value"):
        yield wrong(where, "", "may not be specified when `value` is not empty")
    elif len(named) > 1:
        yield wrong(where, "", "may not have more than one field specified at a time")
    for name in named:
        yield from _value_source(f"{where}.{name}", name, source[name])


def _value_source(at: str, name: str, source: Untyped) -> Iterator[Cause]:
    if name == "fieldRef":
        path = source.get("fieldPath", "")
        if not path:
            yield required(f"{at}.fieldPath")
        elif path not in _FIELD_PATHS and not path.startswith(("metadata.labels['", "metadata.annotations['")):
            yield wrong(f"{at}.fieldPath", path, f"error converting fieldPath: field label not supported: {path}")
    elif name == "resourceFieldRef":
        if not source.get("resource"):
            yield required(f"{at}.resource")
    elif name in ("configMapKeyRef", "secretKeyRef"):
        if not source.get("key"):
            yield required(f"{at}.key")
        else:
            yield from all_wrong(f"{at}.key", source["key"], checks.config_key_problems(source["key"]))


def _variables_from(at: str, index: int, source: Untyped) -> Iterator[Cause]:
    if source.get("prefix"):
        yield from checks.env_name(f"{at}[{index}].prefix", source["prefix"])
    named = [name for name in ("configMapRef", "secretRef") if name in source]
    if not named:
        yield wrong(at, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(named) > 1:
        yield wrong(at, "", "may not have more than one field specified at a time")
    for name in named:
        if not source[name].get("name"):
            yield required(f"{at}[{index}].{name}.name")


def _mounts(at: str, mounts: Iterable[Untyped], volumes: Mapping[str, Untyped]) -> Iterator[Cause]:
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{at}[{index}]"
        if not mount.get("name"):
            yield required(f"{where}.name")
        if mount.get("name") not in volumes:
            yield unknown(f"{where}.name", mount.get("name", ""))
        path = mount.get("mountPath", "")
        if not path:
            yield required(f"{where}.mountPath")
        if path in paths:
            yield wrong(f"{where}.mountPath", path, "must be unique")
        paths.add(path)
        if mount.get("subPath"):
            # Kubernetes leaves out which mount it is.
            yield from checks.below(f"{at}.subPath", mount["subPath"])


def _security(at: str, security: Untyped) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from user_id(f"{at}.{name}", security.get(name))
    if security.get("allowPrivilegeEscalation") is False and security.get("privileged"):
        shown = {name: security.get(field) for name, field in _SECURITY_FIELDS.items()}
        yield wrong(at, shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")


def user_id(at: str, number: Any) -> Iterable[Cause]:
    if number is None or 0 <= number < 2**31:
        return ()
    return (wrong(at, number, "must be between 0 and 2147483647, inclusive"),)
