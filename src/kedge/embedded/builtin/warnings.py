"""Warnings: what the server says in the Warning header about an object that it accepts.

Deprecated fields, fields that hide others, fields that are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin.checks import label_problems
from kedge.embedded.builtin.ingress import CLASS_ANNOTATION
from kedge.embedded.builtin.quantities import parse_quantity
from kedge.kube.codec import Untyped

_OLD_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}
_OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_HINTS = "service.kubernetes.io/topology-aware-hints"
_RECYCLE = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
    "is to use dynamic provisioning."
)


def pod_warnings(pod: Untyped) -> Iterator[str]:
    yield from _spec("spec", pod["spec"])
    yield from _name(pod, "the Pod's hostname")


def workload_warnings(workload: Untyped) -> Iterator[str]:
    """Of a workload with a pod template."""
    yield from _spec("spec.template.spec", workload["spec"].get("template", {}).get("spec", {}))


def named_workload_warnings(workload: Untyped) -> Iterator[str]:
    """Of a workload whose name is part of its pods' names."""
    yield from _name(workload, "Pod names and hostnames")
    yield from workload_warnings(workload)


def stateful_set_warnings(stateful_set: Untyped) -> Iterator[str]:
    yield from workload_warnings(stateful_set)
    if stateful_set["spec"]["revisionHistoryLimit"] < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


def pod_template_warnings(template: Untyped) -> Iterator[str]:
    yield from _spec("template.spec", template["template"]["spec"])


def cron_job_warnings(cron_job: Untyped) -> Iterator[str]:
    yield from _name(cron_job, "Pod names and hostnames")
    yield from _spec("spec.jobTemplate.spec.template.spec", cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def service_warnings(service: Untyped) -> Iterator[str]:
    spec = service["spec"]
    if _OLD_HINTS in service["metadata"].get("annotations", {}):
        yield f"annotation {_OLD_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
    if spec.get("clusterIP") == "None" and spec["sessionAffinity"] != "None":
        yield "spec.SessionAffinity is ignored for headless services"
    if spec.get("externalIPs"):
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("externalName") and spec["type"] != "ExternalName":
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'


def endpoints_warnings(_endpoints: Untyped) -> Iterator[str]:
    yield "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def ingress_warnings(ingress: Untyped) -> Iterator[str]:
    if CLASS_ANNOTATION in ingress["metadata"].get("annotations", {}):
        yield f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"


def claim_warnings(claim: Untyped) -> Iterator[str]:
    yield from _storage_class(claim)
    yield from _fractions("spec.resources", claim["spec"]["resources"])


def volume_warnings(volume: Untyped) -> Iterator[str]:
    yield from _storage_class(volume)
    if volume["spec"]["persistentVolumeReclaimPolicy"] == "Recycle":
        yield _RECYCLE


def _storage_class(obj: Untyped) -> Iterator[str]:
    if _OLD_STORAGE_CLASS in obj["metadata"].get("annotations", {}):
        where = f"metadata.annotations[{_OLD_STORAGE_CLASS}]"
        yield f'{where}: deprecated since v1.8; use "storageClassName" attribute instead'


def _name(obj: Untyped, use: str) -> Iterator[str]:
    if problems := label_problems(obj["metadata"].get("name", "")):
        yield (
            f"metadata.name: this is used in {use}, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )


def _spec(at: str, spec: Untyped) -> Iterator[str]:
    for key in spec.get("nodeSelector", ()):
        if key in _OLD_LABELS:
            since, instead = _OLD_LABELS[key]
            yield f'{at}.nodeSelector[{key}]: deprecated since {since}; use "{instead}" instead'
    for index, secret in enumerate(spec.get("imagePullSecrets", ())):
        if not secret.get("name"):
            yield f'{at}.imagePullSecrets[{index}].name: invalid empty name ""'
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            yield from _container(f"{at}.{part}[{index}]", container)


def _container(at: str, container: Untyped) -> Iterator[str]:
    if resources := container["resources"]:
        yield from _fractions(f"{at}.resources", resources)
    names: set[str] = set()
    for index, variable in enumerate(container.get("env", ())):
        name = variable.get("name", "")
        if name in names:
            yield f'{at}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        names.add(name)
    seen: dict[tuple[object, ...], int] = {}
    for index, port in enumerate(container.get("ports", ())):
        key = (port.get("containerPort"), port["protocol"], port.get("hostPort"), port.get("hostIP"))
        if key in seen:
            yield f"{at}.ports[{index}]: duplicate port definition with {at}.ports[{seen[key]}]"
        seen.setdefault(key, index)


def _fractions(at: str, resources: Untyped) -> Iterator[str]:
    """A fraction of a byte is rounded."""
    for part in ("limits", "requests"):
        for name, text in resources.get(part, {}).items():
            if name in ("memory", "storage", "ephemeral-storage") and parse_quantity(text).amount % 1:
                yield f'{at}.{part}[{name}]: fractional byte value "{text}" is invalid, must be an integer'
