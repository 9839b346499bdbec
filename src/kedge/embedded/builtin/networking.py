"""Networking: what ingresses, their classes and network policies have beyond their schema."""

from __future__ import annotations

from kedge.api.resource import Resource
from kedge.embedded.builtin.filling import each, struct
from kedge.embedded.builtin.storage import default_of
from kedge.embedded.rules import Surroundings, Untyped

_CLASSES = Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
_IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
OLD_CLASS = "kubernetes.io/ingress.class"


def _policy_types(spec: Untyped) -> Untyped:
    """A policy that does not say which way it looks is about what comes in, and what goes out if it speaks of that."""
    if spec.get("policyTypes"):
        return spec
    return {**spec, "policyTypes": ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]}


_ports = struct(ports=each(struct({"protocol": "TCP"})))

complete_ingress = struct({"spec": {}, "status": {}}, status=struct({"loadBalancer": {}}))
complete_ingress_class = struct({"spec": {}}, spec=struct(parameters=struct({"scope": "Cluster"})))
complete_policy = struct(
    {"spec": {}},
    spec=struct({"podSelector": {}}, ingress=each(_ports), egress=each(_ports), then=_policy_types),
)
complete_slice = struct(
    null=("endpoints", "ports"),
    endpoints=each(struct({"conditions": {}})),
    ports=each(struct({"name": "", "protocol": "TCP"})),
)
complete_endpoints = struct(subsets=each(_ports))


def begin_ingress(ingress: Untyped, around: Surroundings) -> Untyped:
    """A new ingress is of the default class, unless it names one in the new way or the old."""
    if "ingressClassName" in ingress["spec"] or OLD_CLASS in ingress["metadata"].get("annotations", {}):
        return ingress
    name = default_of(around, _CLASSES, _IS_DEFAULT)
    return {**ingress, "spec": {**ingress["spec"], "ingressClassName": name}} if name else ingress
