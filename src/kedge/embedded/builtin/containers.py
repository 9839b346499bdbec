"""Containers: validation of the containers of a pod, and of their probes and lifecycle handlers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.quantities import resource_problems
from kedge.embedded.causes import (
    NOT_NEGATIVE,
    duplicate_value,
    forbidden,
    invalid_value,
    invalid_values,
    must_be_one_of,
    required_value,
    unsupported_value,
    value_not_found,
)
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_MESSAGES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
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
        yield required_value(f"{at}.containers")
    names: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{at}.containers[{index}]"
        yield from _common(where, container, volumes, names)
        yield from _running(where, container, spec["terminationGracePeriodSeconds"])
        image = container.get("image", "")
        if image and image != image.strip():
            yield invalid_value(f"{where}.image", image, "must not have leading or trailing whitespace")
    yield from _host_ports(f"{at}.containers", containers)
    for index, container in enumerate(spec.get("initContainers") or ()):
        where = f"{at}.initContainers[{index}]"
        yield from _common(where, container, volumes, names)
        yield from _init(where, container, spec["terminationGracePeriodSeconds"])


def _init(at: str, container: Untyped, grace: int) -> Iterator[Cause]:
    """Init containers may not have probes, unless they are sidecars (restartPolicy Always)."""
    policy = container.get("restartPolicy")
    if policy is not None:
        yield from must_be_one_of(f"{at}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    if policy == "Always":
        yield from _running(at, container, grace)
        return
    for name in _NOT_FOR_INIT:
        if name in container:
            yield forbidden(f"{at}.{name}", "may not be set for init containers without restartPolicy=Always")


def _common(at: str, container: Untyped, volumes: Mapping[str, Untyped], names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required_value(f"{at}.name")
    elif name in names:
        yield duplicate_value(f"{at}.name", name)
    else:
        names.add(name)
        if checks.label_problems(name):
            yield from checks.label(f"{at}.name", name)
    if not container.get("image"):
        yield required_value(f"{at}.image")
    if container["terminationMessagePolicy"] not in _MESSAGES:
        yield unsupported_value(f"{at}.terminationMessagePolicy", container["terminationMessagePolicy"], _MESSAGES)
    if ports := container.get("ports"):
        yield from _ports(f"{at}.ports", ports)
    for index, variable in enumerate(container.get("env", ())):
        yield from _variable(f"{at}.env[{index}]", variable)
    for index, source in enumerate(container.get("envFrom", ())):
        yield from _variables_from(f"{at}.envFrom", index, source)
    for index, device in enumerate(container.get("volumeDevices", ())):
        if device.get("name") not in volumes:
            yield value_not_found(f"{at}.volumeDevices[{index}].name", device.get("name", ""))
    if mounts := container.get("volumeMounts"):
        yield from _mounts(f"{at}.volumeMounts", mounts, volumes)
    if container["imagePullPolicy"] not in _PULL_POLICIES:
        yield unsupported_value(f"{at}.imagePullPolicy", container["imagePullPolicy"], _PULL_POLICIES)
    if resources := container["resources"]:
        yield from resource_problems(f"{at}.resources", resources)
    if security := container.get("securityContext"):
        yield from _security(f"{at}.securityContext", security)


def _running(at: str, container: Untyped, grace: int) -> Iterator[Cause]:
    """What is wrong with the probes and lifecycle handlers of a container."""
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
                yield from invalid_values(f"{where}.name", name, problems)
            elif name in names:
                yield duplicate_value(f"{where}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required_value(f"{where}.containerPort")
        else:
            yield from checks.port(f"{where}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            yield from checks.port(f"{where}.hostPort", port["hostPort"])
        if port["protocol"] not in checks.PROTOCOLS:
            yield unsupported_value(f"{where}.protocol", port["protocol"], checks.PROTOCOLS)


def _host_ports(at: str, containers: Iterable[Untyped]) -> Iterator[Cause]:
    """Host ports must be unique in a pod."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            key = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                yield duplicate_value(f"{at}[{index}].ports[{place}].hostPort", key)
            taken.add(key)


def _variable(at: str, variable: Untyped) -> Iterator[Cause]:
    if not variable.get("name"):
        yield required_value(f"{at}.name")
    else:
        yield from checks.env_name(f"{at}.name", variable["name"])
    source = variable.get("valueFrom")
    if source is None:
        return
    where = f"{at}.valueFrom"
    named = [name for name in _VALUE_SOURCES if name in source]
    if not named:
        known = ", ".join(f"`{name}`" for name in _VALUE_SOURCES[:-1])
        yield invalid_value(where, "", f"must specify one of: {known} or `{_VALUE_SOURCES[-1]}`")
    elif variable.get("value"):
        yield invalid_value(where, "", "may not be specified when `value` is not empty")
    elif len(named) > 1:
        yield invalid_value(where, "", "may not have more than one field specified at a time")
    for name in named:
        yield from _value_source(f"{where}.{name}", name, source[name])


def _value_source(at: str, name: str, source: Untyped) -> Iterator[Cause]:
    if name == "fieldRef":
        path = source.get("fieldPath", "")
        if not path:
            yield required_value(f"{at}.fieldPath")
        elif path not in _FIELD_PATHS and not path.startswith(("metadata.labels['", "metadata.annotations['")):
            yield invalid_value(
                f"{at}.fieldPath", path, f"error converting fieldPath: field label not supported: {path}"
            )
    elif name == "resourceFieldRef":
        if not source.get("resource"):
            yield required_value(f"{at}.resource")
    elif name in ("configMapKeyRef", "secretKeyRef"):
        if not source.get("key"):
            yield required_value(f"{at}.key")
        else:
            yield from invalid_values(f"{at}.key", source["key"], checks.config_key_problems(source["key"]))


def _variables_from(at: str, index: int, source: Untyped) -> Iterator[Cause]:
    if source.get("prefix"):
        yield from checks.env_name(f"{at}[{index}].prefix", source["prefix"])
    named = [name for name in ("configMapRef", "secretRef") if name in source]
    if not named:
        yield invalid_value(at, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(named) > 1:
        yield invalid_value(at, "", "may not have more than one field specified at a time")
    for name in named:
        if not source[name].get("name"):
            yield required_value(f"{at}[{index}].{name}.name")


def _mounts(at: str, mounts: Iterable[Untyped], volumes: Mapping[str, Untyped]) -> Iterator[Cause]:
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{at}[{index}]"
        if not mount.get("name"):
            yield required_value(f"{where}.name")
        if mount.get("name") not in volumes:
            yield value_not_found(f"{where}.name", mount.get("name", ""))
        path = mount.get("mountPath", "")
        if not path:
            yield required_value(f"{where}.mountPath")
        if path in paths:
            yield invalid_value(f"{where}.mountPath", path, "must be unique")
        paths.add(path)
        if mount.get("subPath"):
            # Kubernetes leaves out which mount it is.
            yield from checks.relative_path(f"{at}.subPath", mount["subPath"])


def _security(at: str, security: Untyped) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from user_id(f"{at}.{name}", security.get(name))
    if security.get("allowPrivilegeEscalation") is False and security.get("privileged"):
        shown = {name: security.get(field) for name, field in _SECURITY_FIELDS.items()}
        yield invalid_value(at, shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")


def user_id(at: str, number: Any) -> Iterable[Cause]:
    if number is None or 0 <= number < 2**31:
        return ()
    return (invalid_value(at, number, "must be between 0 and 2147483647, inclusive"),)


_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probe_problems(at: str, probe: Untyped, *, once: bool) -> Iterator[Cause]:
    """What is wrong with a probe. `once`: one success must be enough for it."""
    yield from handler_problems(at, probe)
    for name in _NUMBERS:
        if probe.get(name, 0) < 0:
            yield invalid_value(f"{at}.{name}", probe[name], NOT_NEGATIVE)
    if probe.get("terminationGracePeriodSeconds", 1) < 1:
        where = f"{at}.terminationGracePeriodSeconds"
        yield invalid_value(where, probe["terminationGracePeriodSeconds"], "must be greater than 0")
    if once and probe["successThreshold"] != 1:
        yield invalid_value(f"{at}.successThreshold", probe["successThreshold"], "must be 1")


def handler_problems(at: str, handler: Untyped, grace: int = 0) -> Iterator[Cause]:
    """What is wrong with a handler: it must have exactly one action."""
    named = [name for name in _HANDLERS if name in handler]
    if not named:
        yield required_value(at, "must specify a handler type")
    for name in named[1:]:
        yield forbidden(f"{at}.{name}", "may not specify more than 1 handler type")
    for name in named[:1]:
        yield from _action(f"{at}.{name}", name, handler[name], grace)


def _action(at: str, name: str, action: Untyped, grace: int) -> Iterator[Cause]:
    if name == "exec" and not action.get("command"):
        yield required_value(f"{at}.command")
    if name == "httpGet":
        if not action.get("path"):
            yield required_value(f"{at}.path")
        yield from checks.port_or_name(f"{at}.port", action.get("port", 0))
        yield from must_be_one_of(f"{at}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
    if name == "tcpSocket":
        yield from checks.port_or_name(f"{at}.port", action.get("port", 0))
    if name == "sleep" and not 0 <= action.get("seconds", 0) <= grace:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid_value(at, action["seconds"], why)
    if name == "grpc":
        yield from checks.port(f"{at}.port", action.get("port", 0))
