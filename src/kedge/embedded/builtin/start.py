"""Start: what is there before anybody made anything.

`from_the_start` is what an API server makes by itself; `of_a_namespace` what each namespace gets as soon as it is
there, from whoever looks after namespaces. Not here: the roles that RBAC begins with.
"""

from __future__ import annotations

from kedge.embedded.builtin.addresses import FIRST_SERVICE
from kedge.embedded.builtin.scheduling import OF_THE_SYSTEM
from kedge.embedded.rules import Untyped

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


def from_the_start(port: int = 6443) -> list[Untyped]:
    """The objects a server has when it starts, to be created as any client would; it listens at this port."""
    return [*map(_priority, OF_THE_SYSTEM), _own_service(port)]


def of_a_namespace(name: str, ca: str) -> list[Untyped]:
    """The objects that a namespace gets; `ca` is the certificate (PEM) that the server's own one is signed with."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    about = {"name": ROOT_CA, "namespace": name, "annotations": {"kubernetes.io/description": _CA_FOR}}
    return [account, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"ca.crt": ca}}]


def _priority(name: str) -> Untyped:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": OF_THE_SYSTEM[name],
        "description": _WHY[name],
    }


def _own_service(port: int) -> Untyped:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": FIRST_SERVICE, "ports": ports},
    }
