"""Other cells: table cells of the smaller groups."""

from __future__ import annotations

from datetime import datetime

from kedge.embedded.store import part
from kedge.embedded.tables.cell_text import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    age_of,
    duration,
    first_few,
    joined_or_none,
    name_of,
    selector_or_none,
)
from kedge.kube.codec import Untyped

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def webhooks(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), len(obj.get("webhooks") or ()), age_of(obj, now)]


def policy(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    kind = part(spec, "paramKind")
    params = f"{kind['apiVersion']}/{kind['kind']}" if kind else UNSET
    return [name_of(obj), len(spec.get("validations") or ()), params, age_of(obj, now)]


def policy_binding(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    ref = part(spec, "paramRef")
    params = f"{ref['namespace']}/{ref.get('name', '*')}" if ref.get("namespace") else ref.get("name", "*")
    return [name_of(obj), spec.get("policyName", ""), params if ref else UNSET, age_of(obj, now)]


def api_service(obj: Untyped, now: datetime) -> Cells:
    where = part(part(obj, "spec"), "service")
    found = part(obj, "status").get("conditions") or ()
    available = next((one for one in found if one["type"] == "Available"), None)
    told = "Unknown"
    if available is not None:
        told = available["status"]
        if told != "True" and available.get("reason"):
            told = f"{told} ({available['reason']})"
    return [name_of(obj), f"{where['namespace']}/{where['name']}" if where else "Local", told, age_of(obj, now)]


def autoscaler(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    target = part(spec, "scaleTargetRef")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        str(spec["minReplicas"]) if "minReplicas" in spec else UNSET,
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age_of(obj, now),
    ]


def _targets(metrics: list[Untyped], current: list[Untyped]) -> str:
    shown = [_target(metric, current[index] if index < len(current) else {}) for index, metric in enumerate(metrics)]
    if not shown:
        return NONE
    told = ", ".join(shown[:2])
    return f"{told} + {len(shown) - 2} more..." if len(shown) > 2 else told


def _target(metric: Untyped, current: Untyped) -> str:
    about = part(metric, metric.get("type", "")[:1].lower() + metric.get("type", "")[1:])
    now = part(part(current, metric.get("type", "")[:1].lower() + metric.get("type", "")[1:]), "current")
    wanted = part(about, "target")
    name = f"{about['name']}: " if about.get("name") else ""
    if "averageUtilization" in wanted:
        used = f"{now['averageUtilization']}%" if "averageUtilization" in now else UNKNOWN
        return f"{name}{used}/{wanted['averageUtilization']}%"
    field = "averageValue" if "averageValue" in wanted else "value"
    average = " (avg)" if field == "averageValue" and metric.get("type") != "Resource" else ""
    return f"{name}{now.get(field, UNKNOWN)}/{wanted.get(field, '')}{average}"


def signing_request(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    seconds = spec.get("expirationSeconds")
    types = [one["type"] for one in status.get("conditions") or ()]
    state = joined_or_none(types, "Pending") + (",Issued" if status.get("certificate") else "")
    lasts = duration(seconds) if seconds else NONE
    return [name_of(obj), age_of(obj, now), spec.get("signerName") or NONE, spec.get("username", ""), lasts, state]


def lease(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), part(obj, "spec").get("holderIdentity", ""), age_of(obj, now)]


def endpoint_slice(obj: Untyped, now: datetime) -> Cells:
    ports = [str(one.get("port", "*")) for one in obj.get("ports") or ()]
    addresses = [address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()]
    return [name_of(obj), obj.get("addressType", ""), first_few(ports), first_few(addresses), age_of(obj, now)]


def ingress(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    told = first_few(hosts) if hosts else "*"
    found = part(part(obj, "status"), "loadBalancer").get("ingress") or ()
    addresses = joined_or_none((one.get("ip") or one.get("hostname", "") for one in found), "")
    klass = spec.get("ingressClassName") or NONE
    return [name_of(obj), klass, told, addresses, "80, 443" if spec.get("tls") else "80", age_of(obj, now)]


def ingress_class(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    given = part(spec, "parameters")
    params = NONE
    if given:
        group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
        params = f"{given['kind']}{group}/{given['name']}"
    return [name_of(obj), spec.get("controller", ""), params, age_of(obj, now)]


def network_policy(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), selector_or_none(part(obj, "spec").get("podSelector")), age_of(obj, now)]


def runtime_class(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), obj.get("handler", ""), age_of(obj, now)]


def budget(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    limits = [str(spec[name]) if name in spec else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *limits, part(obj, "status").get("disruptionsAllowed", 0), age_of(obj, now)]


def role_binding(obj: Untyped, now: datetime) -> Cells:
    role = part(obj, "roleRef")
    subjects = obj.get("subjects") or ()
    users = [one["name"] for one in subjects if one["kind"] == "User"]
    groups = [one["name"] for one in subjects if one["kind"] == "Group"]
    accounts = [f"{one.get('namespace', '')}/{one['name']}" for one in subjects if one["kind"] == "ServiceAccount"]
    wide = (", ".join(found) for found in (users, groups, accounts))
    return [name_of(obj), f"{role.get('kind', '')}/{role.get('name', '')}", age_of(obj, now), *wide]


def priority_class(obj: Untyped, now: datetime) -> Cells:
    shown = [name_of(obj), obj.get("value", 0), bool(obj.get("globalDefault"))]
    return [*shown, age_of(obj, now), obj.get("preemptionPolicy", "")]


def csi_driver(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    tokens = joined_or_none((one.get("audience", "") for one in spec.get("tokenRequests") or ()), UNSET)
    flags = [
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
    ]
    modes = joined_or_none(spec.get("volumeLifecycleModes") or (), NONE)
    return [name_of(obj), *flags, tokens, bool(spec.get("requiresRepublish")), modes, age_of(obj, now)]


def csi_node(obj: Untyped, now: datetime) -> Cells:
    return [name_of(obj), len(part(obj, "spec").get("drivers") or ()), age_of(obj, now)]


def storage_class(obj: Untyped, now: datetime) -> Cells:
    default = obj["metadata"].get("annotations", {}).get(_DEFAULT_CLASS) == "true"
    name = f"{name_of(obj)} (default)" if default else name_of(obj)
    shown = [name, obj.get("provisioner", ""), obj.get("reclaimPolicy", ""), obj.get("volumeBindingMode", "")]
    return [*shown, bool(obj.get("allowVolumeExpansion")), age_of(obj, now)]


def attachment(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    source = part(spec, "source").get("persistentVolumeName", "")
    attached = bool(part(obj, "status").get("attached"))
    return [name_of(obj), spec.get("attacher", ""), source, spec.get("nodeName", ""), attached, age_of(obj, now)]


def scale(obj: Untyped, now: datetime) -> Cells:
    counts = [part(obj, "spec").get("replicas", 0), part(obj, "status").get("replicas", 0)]
    return [name_of(obj), *counts, age_of(obj, now)]
