"""A small definition of HTTPRoutes, and routes to shift: for tests on servers."""

from __future__ import annotations

from typing import Any, Final

from kedge.api.oam.rollout_plan import ObjectReference, Traffic, TrafficProvider
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch

HTTP_ROUTES: Final = untyped(Resource("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"))
INGRESSES: Final = untyped(Resource("networking.k8s.io", "v1", "Ingress", "ingresses"))
WEIGHT: Final = "nginx.ingress.kubernetes.io/canary-weight"

_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_WEIGHT: Final = {"type": "integer", "format": "int32", "default": 1, "minimum": 0, "maximum": 1_000_000}
_BACKEND: Final = {**_ANYTHING, "required": ["name"], "properties": {"name": {"type": "string"}, "weight": _WEIGHT}}
_RULE: Final = {**_ANYTHING, "properties": {"backendRefs": {"type": "array", "items": _BACKEND, "maxItems": 16}}}
_SPEC: Final = {**_ANYTHING, "properties": {"rules": {"type": "array", "items": _RULE, "maxItems": 16}}}
_SCHEMA: Final = {"type": "object", "properties": {"spec": _SPEC, "status": _ANYTHING}}


def http_route_definition(*versions: str) -> dict[str, Any]:
    """The definition, served in these versions; the first one is stored."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "httproutes.gateway.networking.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "gateway.networking.k8s.io",
            "names": {"kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _SCHEMA},
                }
                for name in versions
            ],
        },
    }


def http_route(namespace: str) -> dict[str, Any]:
    """One rule of the two Services, one that has another backend, too, and one of somebody else."""
    return {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "parentRefs": [{"name": "front"}],
            "rules": [
                {"backendRefs": [{"name": "web-v1", "port": 80}, {"name": "web-v2", "port": 80, "weight": 0}]},
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/search"}}],
                    "backendRefs": [
                        {"name": "search", "port": 80, "weight": 100},
                        {"name": "web-v1", "port": 80, "weight": 100},
                        {"name": "web-v2", "port": 80, "weight": 0},
                    ],
                },
                {"backendRefs": [{"name": "docs", "port": 80, "weight": 7}]},
            ],
        },
    }


def canary(namespace: str) -> dict[str, Any]:
    """A canary Ingress that gets nothing yet."""
    backend = {"service": {"name": "web-v2", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    annotations = {"nginx.ingress.kubernetes.io/canary": "true", "team": "shop"}
    return {
        "metadata": {"name": "web-canary", "namespace": namespace, "annotations": annotations},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "shop.example.com", "http": {"paths": paths}}]},
    }


def traffic(provider: TrafficProvider, name: str, **ref: str) -> Traffic:
    """From web-v1 to web-v2 by this route."""
    return Traffic(
        provider=provider,
        route_ref=ObjectReference(name=name, **ref),
        source_service="web-v1",
        target_service="web-v2",
    )


async def gateway_accepts(client: Client, namespace: str, status: str = "True") -> None:
    """Play the gateway: report on the route as it is now."""
    route = await client.get(HTTP_ROUTES, "web", namespace)
    conditions = [
        {
            "type": name,
            "status": status,
            "observedGeneration": route["metadata"]["generation"],
            "lastTransitionTime": "2026-03-01T12:00:00Z",
            "reason": name,
            "message": "told by the test",
        }
        for name in ("Accepted", "ResolvedRefs")
    ]
    parents = [{"parentRef": {"name": "front"}, "controllerName": "example.com/test", "conditions": conditions}]
    await client.patch(
        HTTP_ROUTES, "web", MergePatch({"status": {"parents": parents}}), namespace, subresource="status"
    )


def weights(route: dict[str, Any]) -> list[list[int]]:
    """The weights of all backends, rule by rule."""
    return [[one["weight"] for one in rule["backendRefs"]] for rule in route["spec"]["rules"]]
