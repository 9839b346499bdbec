"""Core cells: table cells of the core group, but for pods and workloads."""

from __future__ import annotations

from datetime import datetime

from kedge.embedded.store import part
from kedge.embedded.tables.cell_text import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    age,
    age_of,
    first_few,
    joined_or_none,
    labels_text,
    name_of,
)
from kedge.kube.codec import Untyped

_ROLE = "node-role.kubernetes.io/"
_ACCESS = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def config_map(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age_of(obj, now)]


def secret(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), obj.get("type", ""), len(part(obj, "data")), age_of(obj, now)]


def service_account(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), age_of(obj, now)]


def namespace(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), part(obj, "status").get("phase", ""), age_of(obj, now)]


def node(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    info = part(status, "nodeInfo")
    addresses = {one["type"]: one["address"] for one in reversed(status.get("addresses") or ())}
    kernel = f"{info.get('kernelVersion') or UNKNOWN}"
    if architecture := info.get("architecture"):
        kernel = f"{kernel} ({architecture})"
    wide = [
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]
    version = info.get("kubeletVersion", "")
    return [name_of(obj), _node_state(spec, status), _roles(obj), age_of(obj, now), version, *wide]


def service(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    shown = [name_of(obj), spec.get("type", ""), spec.get("clusterIP") or NONE, _external(obj), _ports(spec)]
    return [*shown, age_of(obj, now), labels_text(spec.get("selector"))]


def endpoints(obj: Untyped, now: datetime) -> Cells:
    found = [
        f"{_host(address['ip'])}:{port['port']}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ({"port": 0},)
        for address in subset.get("addresses") or ()
    ]
    return [name_of(obj), first_few(found) if found else NONE, age_of(obj, now)]


def event(obj: Untyped, now: datetime) -> Cells:
    series, about, source = part(obj, "series"), part(obj, "involvedObject"), part(obj, "source")
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    said_by = [source.get("component") or obj.get("reportingComponent", "")]
    if host := source.get("host") or obj.get("reportingInstance"):
        said_by.append(host)
    subject = f"{about.get('kind', '').lower()}/{about['name']}" if about.get("name") else about.get("kind", "").lower()
    return [
        age(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        subject,
        about.get("fieldPath", ""),
        ", ".join(said_by),
        obj.get("message", "").strip(),
        age(first, now),
        series.get("count") or obj.get("count") or 1,
        name_of(obj),
    ]


def volume(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    claim = part(spec, "claimRef")
    return [
        name_of(obj),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age_of(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def claim(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        part(status, "capacity").get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        age_of(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def quota(obj: Untyped, now: datetime) -> Cells:
    status = part(obj, "status")
    hard, used = part(status, "hard"), part(status, "used")
    told = [(name, f"{name}: {used.get(name, '0')}/{hard[name]}") for name in sorted(hard)]
    requests = ", ".join(text for name, text in told if not name.startswith("limits."))
    limits = ", ".join(text for name, text in told if name.startswith("limits."))
    return [name_of(obj), requests, limits, age_of(obj, now)]


def _node_state(spec: Untyped, status: Untyped) -> str:
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if spec.get("unschedulable") else state


def _roles(obj: Untyped) -> str:
    found = obj["metadata"].get("labels", {})
    roles = {key.removeprefix(_ROLE) for key in found if key.startswith(_ROLE)}
    if role := found.get("kubernetes.io/role"):
        roles.add(role)
    return joined_or_none(sorted(role for role in roles if role))


def _external(obj: Untyped) -> str:
    spec = part(obj, "spec")
    given = spec.get("externalIPs") or []
    match spec.get("type", ""):
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case "LoadBalancer":
            ingress = part(part(obj, "status"), "loadBalancer").get("ingress") or ()
            found = [one.get("ip") or one.get("hostname", "") for one in ingress]
            return joined_or_none([*found, *given], "<pending>")
    return joined_or_none(given)


def _ports(spec: Untyped) -> str:
    def text(port: Untyped) -> str:
        at = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{at}/{port.get('protocol', 'TCP')}"

    return joined_or_none(map(text, spec.get("ports") or ()))


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _modes(modes: list[str] | None) -> str:
    return joined_or_none((_ACCESS.get(mode, mode) for mode in modes or ()), "")


def _phase(obj: Untyped) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(part(obj, "status").get("phase", ""))
