"""Pods: what a new pod gets: account and token, priority, runtime class, tolerations, QoS class and first status.

As in Kubernetes with its default admission plug-ins, without limit ranges, quotas and pod security.
"""

from __future__ import annotations

from kedge.api.resource import Resource
from kedge.embedded import causes
from kedge.embedded.builtin import pod_spec
from kedge.embedded.builtin.defaulting import cached, in_sequence, struct
from kedge.embedded.builtin.pod_classes import RuntimeClassRefused, with_runtime_class
from kedge.embedded.builtin.pod_spec import all_containers
from kedge.embedded.builtin.quantities import parse_quantity
from kedge.embedded.kind import PODS
from kedge.embedded.kind_rules import AdmissionContext
from kedge.embedded.statuses import Refused, forbidden, invalid
from kedge.kube.codec import Untyped

_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
_PRIORITIES = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a folder
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - a prefix
_TOLERATION_SECONDS = 300
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _requests(container: Untyped) -> Untyped:
    """A limit without a request is the request."""
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
    """Defaults of pods that templates do not have."""
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


default_pod = struct(
    {"spec": {}, "status": {}},
    spec=cached(in_sequence(pod_spec.default_spec, _of_a_pod)),  # the pods of one template are alike
    status=struct({"phase": "Pending"}),
)


def prepare_new_pod(pod: Untyped, context: AdmissionContext) -> Untyped:
    """A new pod, ready to be scheduled."""
    if pod["spec"].get("ephemeralContainers"):
        cause = causes.forbidden("spec.ephemeralContainers", "cannot be set on create")
        raise invalid(PODS, pod["metadata"].get("name", ""), [cause])
    spec = _with_priority(pod, context)
    spec = _with_account(pod, spec, context)
    spec = {**spec, "tolerations": _with_tolerations(spec)}
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("runtimeClassName") or spec.get("overhead"):
        spec = _with_runtime(pod, spec, context)
    return {**pod, "spec": spec, "status": _first_status(spec, context)}


def prepare_changed_pod(_old: Untyped, new: Untyped) -> Untyped:
    """A changed pod keeps the default tolerations."""
    tolerations = _with_tolerations(new["spec"])
    if tolerations == new["spec"].get("tolerations", []):
        return new
    return {**new, "spec": {**new["spec"], "tolerations": tolerations}}


def _with_runtime(pod: Untyped, spec: Untyped, context: AdmissionContext) -> Untyped:
    try:
        return with_runtime_class(spec, context)
    except RuntimeClassRefused as error:
        raise _refused(pod, str(error)) from None


def _with_priority(pod: Untyped, context: AdmissionContext) -> Untyped:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    chosen = context.find(_PRIORITIES, "", name) if name else _default_priority(context)
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


def _default_priority(context: AdmissionContext) -> Untyped | None:
    defaults = [one for one in context.each(_PRIORITIES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def _with_account(pod: Untyped, spec: Untyped, context: AdmissionContext) -> Untyped:
    """The pod with its service account, which must exist, and a token volume."""
    name = spec.get("serviceAccountName") or "default"
    namespace = pod["metadata"].get("namespace", "")
    account = context.find(_ACCOUNTS, namespace, name)
    if account is None:
        raise _refused(pod, f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found')
    spec = {**spec, "serviceAccountName": name, "serviceAccount": name}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
    return _with_token(spec, context) if wanted else spec


def _with_token(spec: Untyped, context: AdmissionContext) -> Untyped:
    if all(_has_token(container) for container in all_containers(spec)):
        return spec
    names = [volume.get("name", "") for volume in spec.get("volumes", ())]
    there = [name for name in names if name.startswith(_TOKEN_VOLUME)]
    name = there[-1] if there else context.name(_TOKEN_VOLUME)
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


def _with_tolerations(spec: Untyped) -> list[Untyped]:
    """The pod's tolerations, with the default ones for nodes that are not ready or unreachable."""
    own = spec.get("tolerations", [])
    return [*own, *(_waits_out(trouble) for trouble in _NODE_TAINTS if not any(_covers(one, trouble) for one in own))]


def _covers(toleration: Untyped, trouble: str) -> bool:
    return toleration.get("key", "") in (trouble, "") and toleration.get("effect", "") in ("NoExecute", "")


def _waits_out(trouble: str) -> Untyped:
    return {"key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}


def _first_status(spec: Untyped, context: AdmissionContext) -> Untyped:
    status: Untyped = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        held = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": None,
            "lastTransitionTime": context.now(),
        }
        status["conditions"] = [held]
    return status


def _refused(pod: Untyped, why: str) -> Refused:
    return forbidden(PODS, pod["metadata"].get("name", ""), why)


_PROMISED = ("cpu", "memory")


def qos_class(spec: Untyped) -> str:
    holders = (
        [whole] if _amounts(whole := spec.get("resources", {})) else [c["resources"] for c in all_containers(spec)]
    )
    if not any(_amounts(one) for one in holders):
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(one) for one in holders) else "Burstable"


def _amounts(resources: Untyped) -> list[str]:
    named = [*resources.get("requests", {}).items(), *resources.get("limits", {}).items()]
    return [name for name, amount in named if name in _PROMISED and parse_quantity(amount).amount]


def _is_guaranteed(resources: Untyped) -> bool:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if any(name not in limits or not parse_quantity(limits[name]).amount for name in _PROMISED):
        return False
    return all(parse_quantity(requests.get(name, limits[name])) == parse_quantity(limits[name]) for name in _PROMISED)
