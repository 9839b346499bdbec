"""Providers: what divides traffic, by the name that a rollout gives it, and what is wrong with its reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference, Traffic, TrafficProvider
from kedge.plan.traffic.gateway_api import GatewayApi
from kedge.plan.traffic.istio import Istio
from kedge.plan.traffic.nginx import Nginx
from kedge.plan.traffic.routes import RouteKind, TrafficRoutes

PROVIDERS: Final[Mapping[TrafficProvider, TrafficRoutes]] = {
    TrafficProvider.gateway_api: GatewayApi(),
    TrafficProvider.istio: Istio(),
    TrafficProvider.nginx: Nginx(),
}


def route_ref(traffic: Traffic, namespace: str) -> ObjectReference:
    """The reference to the route, with what is left out filled in."""
    kind, given = PROVIDERS[traffic.provider].kind, traffic.route_ref
    return replace(
        given,
        api_version=given.api_version or f"{kind.group}/{kind.versions[0]}",
        kind=given.kind or kind.kind,
        namespace=given.namespace or namespace,
    )


def kind_of(ref: ObjectReference) -> RouteKind | None:
    """Which kind of route a complete reference names; None if it is none."""
    named = (ref.api_version.rpartition("/")[0], ref.kind)
    return next((one.kind for one in PROVIDERS.values() if (one.kind.group, one.kind.kind) == named), None)


def traffic_problem(traffic: Traffic, namespace: str) -> str:
    """What is wrong with what a rollout in this namespace asks for; empty if nothing is. Only an edit of it helps."""
    kind, ref = PROVIDERS[traffic.provider].kind, route_ref(traffic, namespace)
    if not ref.name:
        return "traffic.routeRef.name is empty: name the route"
    if kind_of(ref) != kind:
        return (
            f"traffic.provider {traffic.provider} is for {kind.kind} of {kind.group}, "
            f"but traffic.routeRef names {ref.kind} of {ref.api_version}"
        )
    if ref.namespace != namespace:
        return (
            f"traffic.routeRef.namespace is {ref.namespace}: only routes of the rollout's own namespace may be changed"
        )
    return _service_problem(traffic)


def _service_problem(traffic: Traffic) -> str:
    if not traffic.source_service or not traffic.target_service:
        return "traffic.sourceService and traffic.targetService must both be set"
    if traffic.source_service == traffic.target_service:
        return f"traffic.sourceService and traffic.targetService are the same, {traffic.source_service}"
    return ""
