"""References to routes: what is filled in, and what is refused."""

from __future__ import annotations

import pytest

from kedge.api.oam.rollout_plan import ObjectReference, Traffic, TrafficProvider
from kedge.plan.traffic.providers import PROVIDERS, kind_of, route_ref, traffic_problem

GATEWAY, ISTIO, NGINX = TrafficProvider.gateway_api, TrafficProvider.istio, TrafficProvider.nginx


def traffic(provider: TrafficProvider, ref: ObjectReference, source: str = "v1", target: str = "v2") -> Traffic:
    return Traffic(provider=provider, route_ref=ref, source_service=source, target_service=target)


@pytest.mark.parametrize(
    ("provider", "api_version", "kind", "plural"),
    [
        (GATEWAY, "gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
        (ISTIO, "networking.istio.io/v1", "VirtualService", "virtualservices"),
        (NGINX, "networking.k8s.io/v1", "Ingress", "ingresses"),
    ],
)
def test_a_name_is_enough(provider: TrafficProvider, api_version: str, kind: str, plural: str) -> None:
    given = traffic(provider, ObjectReference(name="web"))
    ref = route_ref(given, "shop")
    assert ref == ObjectReference(api_version=api_version, kind=kind, name="web", namespace="shop")
    assert traffic_problem(given, "shop") == ""
    found = kind_of(ref)
    assert found == PROVIDERS[provider].kind
    assert found.plural == plural


def test_what_is_given_stays() -> None:
    ref = ObjectReference(
        api_version="gateway.networking.k8s.io/v1beta1", kind="HTTPRoute", name="web", namespace="shop", uid="u"
    )
    assert route_ref(traffic(GATEWAY, ref), "other") == ref


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (traffic(GATEWAY, ObjectReference()), "traffic.routeRef.name is empty: name the route"),
        (
            traffic(GATEWAY, ObjectReference(kind="Ingress", name="web")),
            (
                "traffic.provider gateway-api is for HTTPRoute of gateway.networking.k8s.io, but "
                "traffic.routeRef names Ingress of gateway.networking.k8s.io/v1"
            ),
        ),
        (
            traffic(NGINX, ObjectReference(api_version="networking.istio.io/v1", kind="VirtualService", name="web")),
            (
                "traffic.provider nginx is for Ingress of networking.k8s.io, but "
                "traffic.routeRef names VirtualService of networking.istio.io/v1"
            ),
        ),
        (
            traffic(ISTIO, ObjectReference(api_version="v1", name="web")),
            (
                "traffic.provider istio is for VirtualService of networking.istio.io, but "
                "traffic.routeRef names VirtualService of v1"
            ),
        ),
        (
            traffic(GATEWAY, ObjectReference(name="web", namespace="infra")),
            "traffic.routeRef.namespace is infra: only routes of the rollout's own namespace may be changed",
        ),
        (
            traffic(GATEWAY, ObjectReference(name="web"), "", "v2"),
            "traffic.sourceService and traffic.targetService must both be set",
        ),
        (
            traffic(GATEWAY, ObjectReference(name="web"), "v1", ""),
            "traffic.sourceService and traffic.targetService must both be set",
        ),
        (
            traffic(GATEWAY, ObjectReference(name="web"), "v1", "v1"),
            "traffic.sourceService and traffic.targetService are the same, v1",
        ),
    ],
)
def test_what_only_an_edit_of_the_rollout_can_mend(given: Traffic, problem: str) -> None:
    assert traffic_problem(given, "shop") == problem


def test_other_kinds_are_no_routes() -> None:
    assert kind_of(ObjectReference(api_version="v1", kind="Service", name="web")) is None
