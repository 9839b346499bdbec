"""Pods: what a pod is given before it runs anywhere: an account and its token, a priority, tolerations, a first status.

As Kubernetes does with its default admission plug-ins, less limit ranges, quotas and pod security.
"""

from __future__ import annotations

from kedge.api.resource import Resource
from kedge.embedded.builtin import pod_spec
from kedge.embedded.builtin.filling import one_after_another, remembered, struct
from kedge.embedded.builtin.pod_spec import containers_of
from kedge.embedded.builtin.qos import qos_class
from kedge.embedded.builtin.runtimes import NotToRun, with_runtime
from kedge.embedded.rules import Surroundings, Untyped
from kedge.embedded.statuses import Refused, forbidden, invalid, not_permitted

PODS = Resource("", "v1", "Pod", "pods")
_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
_PRIORITIES = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a folder
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - a prefix
_PATIENCE = 300
_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _requests(container: Untyped) -> Untyped:
    """Who sets a limit asks for as much, unless it says otherwise."""
    limits = container["resources"].get("limits")
    requests = container["resources"].get("requests", {})
    if not limits or limits.keys() <= requests.keys():
        return container
    return {**container, "resources": {**container["resources"], "requests": {**limits, **requests}}}


def _host_ports(container: Untyped) -> Untyped:
    ports = container.get("ports", [])
    if all(port.get("hostPort") for port in ports):
        return container
    return {
        **container,
        "ports": [{**port, "hostPort": port.get("hostPort") or port.get("containerPort", 0)} for port in ports],
    }


def _of_a_pod(spec: Untyped) -> Untyped:
    """What pods are given and templates are not."""
    changed: Untyped = {}
    for name in ("containers", "initContainers"):
        if held := spec.get(name):
            filled = [_requests(one) for one in held]
            filled = [_host_ports(one) for one in filled] if spec.get("hostNetwork") else filled
            if any(new is not old for new, old in zip(filled, held, strict=True)):
                changed[name] = filled
    if "enableServiceLinks" not in spec:
        changed["enableServiceLinks"] = True
    return _whole_requests({**spec, **changed}) if changed else _whole_requests(spec)


def _whole_requests(spec: Untyped) -> Untyped:
    # Sums over containers that set requests of their own are not worked out.
    whole = spec.get("resources", {})
    limits, requests = whole.get("limits", {}), whole.get("requests", {})
    if not limits or limits.keys() <= requests.keys():
        return spec
    return {**spec, "resources": {**whole, "requests": {**limits, **requests}}}


complete = struct(
    {"spec": {}, "status": {}},
    spec=remembered(one_after_another(pod_spec.spec, _of_a_pod)),  # the pods of one template are alike
    status=struct({"phase": "Pending"}),
)


def begin(pod: Untyped, around: Surroundings) -> Untyped:
    """A new pod, ready to be scheduled."""
    if pod["spec"].get("ephemeralContainers"):
        cause = not_permitted("spec.ephemeralContainers", "cannot be set on create")
        raise invalid(PODS, pod["metadata"].get("name", ""), [cause])
    spec = _prioritised(pod, around)
    spec = _accounted(pod, spec, around)
    spec = {**spec, "tolerations": _tolerant(spec)}
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("runtimeClassName") or spec.get("overhead"):
        spec = _with_runtime(pod, spec, around)
    return {**pod, "spec": spec, "status": _first_status(spec, around)}


def carry(_old: Untyped, new: Untyped) -> Untyped:
    """A changed pod tolerates what every pod does for a while."""
    tolerations = _tolerant(new["spec"])
    if tolerations == new["spec"].get("tolerations", []):
        return new
    return {**new, "spec": {**new["spec"], "tolerations": tolerations}}


def _with_runtime(pod: Untyped, spec: Untyped, around: Surroundings) -> Untyped:
    try:
        return with_runtime(spec, around)
    except NotToRun as error:
        raise _refused(pod, str(error)) from None


def _prioritised(pod: Untyped, around: Surroundings) -> Untyped:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    chosen = around.find(_PRIORITIES, "", name) if name else _default_priority(around)
    if name and chosen is None:
        raise _refused(pod, f"no PriorityClass with name {name} was found")
    found = chosen or {}
    number, policy = found.get("value", 0), found.get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority", number) != number:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {number} from the given PriorityClass name"
        )
        raise _refused(pod, why)
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise _refused(pod, why)
    named = {"priorityClassName": found["metadata"]["name"]} if found else {}
    return {**spec, **named, "priority": number, "preemptionPolicy": policy}


def _default_priority(around: Surroundings) -> Untyped | None:
    defaults = [one for one in around.each(_PRIORITIES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def _accounted(pod: Untyped, spec: Untyped, around: Surroundings) -> Untyped:
    """The pod of an account that is there, with a token of it to speak to the API server with."""
    name = spec.get("serviceAccountName") or "default"
    namespace = pod["metadata"].get("namespace", "")
    account = around.find(_ACCOUNTS, namespace, name)
    if account is None:
        raise _refused(pod, f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found')
    spec = {**spec, "serviceAccountName": name, "serviceAccount": name}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
    return _with_token(spec, around) if wanted else spec


def _with_token(spec: Untyped, around: Surroundings) -> Untyped:
    if all(_has_token(container) for container in containers_of(spec)):
        return spec
    names = [volume.get("name", "") for volume in spec.get("volumes", ())]
    there = [name for name in names if name.startswith(_TOKEN_VOLUME)]
    name = there[-1] if there else around.name(_TOKEN_VOLUME)
    mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
    mounted = {
        part: [_mounting(container, mount) for container in spec[part]]
        for part in ("initContainers", "containers")
        if spec.get(part)
    }
    volumes = spec.get("volumes", []) if there else [*spec.get("volumes", []), {"name": name, "projected": _TOKEN}]
    return {**spec, **mounted, "volumes": volumes}


def _has_token(container: Untyped) -> bool:
    return any(mount.get("mountPath") == _TOKEN_PATH for mount in container.get("volumeMounts", ()))


def _mounting(container: Untyped, mount: Untyped) -> Untyped:
    if _has_token(container):
        return container
    return {**container, "volumeMounts": [*container.get("volumeMounts", ()), mount]}


_TOKEN = {
    "defaultMode": pod_spec.READABLE,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ],
}


def _tolerant(spec: Untyped) -> list[Untyped]:
    """The pod's tolerations, and some minutes of patience with a node in trouble, unless it says how much it has."""
    own = spec.get("tolerations", [])
    return [*own, *(_waits_out(trouble) for trouble in _TROUBLES if not any(_covers(one, trouble) for one in own))]


def _covers(toleration: Untyped, trouble: str) -> bool:
    return toleration.get("key", "") in (trouble, "") and toleration.get("effect", "") in ("NoExecute", "")


def _waits_out(trouble: str) -> Untyped:
    return {"key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _PATIENCE}


def _first_status(spec: Untyped, around: Surroundings) -> Untyped:
    status: Untyped = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        held = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": None,
            "lastTransitionTime": around.now(),
        }
        status["conditions"] = [held]
    return status


def _refused(pod: Untyped, why: str) -> Refused:
    return forbidden(PODS, pod["metadata"].get("name", ""), why)
