"""Initial objects: what exists before anybody created anything.

`initial_objects` are created by the API server itself, `namespace_objects` in each namespace by a background
controller. Not here: the default roles of RBAC.
"""

from __future__ import annotations

from kedge.embedded.builtin.pod_classes import SYSTEM_PRIORITIES
from kedge.embedded.builtin.service_allocation import FIRST_ADDRESS
from kedge.kube.codec import Untyped

ROOT_CA = "kube-root-ca.crt"
_WHY = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to "
    "another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}
_CA_FOR = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def initial_objects(port: int = 6443) -> list[Untyped]:
    """The objects of a new server that listens at this port."""
    return [*map(_priority, SYSTEM_PRIORITIES), _own_service(port)]


def namespace_objects(name: str, ca: str) -> list[Untyped]:
    """The objects of a new namespace; `ca` is the CA certificate (PEM) of the server."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    about = {"name": ROOT_CA, "namespace": name, "annotations": {"kubernetes.io/description": _CA_FOR}}
    return [account, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"ca.crt": ca}}]


def _priority(name: str) -> Untyped:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": SYSTEM_PRIORITIES[name],
        "description": _WHY[name],
    }


def _own_service(port: int) -> Untyped:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": FIRST_ADDRESS, "ports": ports},
    }
