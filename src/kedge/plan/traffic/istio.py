"""Istio: VirtualServices (networking.istio.io), their HTTP routes.

A destination is `http[].route[]{destination{host, subset}, weight}`; without a weight it counts 0 beside others. Two
Services are two hosts. Two subsets of one host (a DestinationRule) are written `HOST/SUBSET` in place of a Service.
Istio need not report on a VirtualService: the weights are in effect when they are read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kedge.plan.fields import Object, text
from kedge.plan.moving.wait import Wait
from kedge.plan.traffic.routes import RouteKind, Weights
from kedge.plan.traffic.rules import WeightedRules
from kedge.plan.traffic.split import Pair, Splits, Unreadable


def _is_destination(route: Object, service: str, namespace: str) -> bool:
    name, slash, subset = service.partition("/")
    if slash and text(route, "destination", "subset") != subset:
        return False
    return _is_host(text(route, "destination", "host"), name, namespace)


def _is_host(host: str, service: str, namespace: str) -> bool:
    """Whether a host is a Service, by its short name, or by a longer one in the namespace of the route."""
    full = f"{service}.{namespace}"
    return host in (service, full, f"{full}.svc") or host.startswith(f"{full}.svc.")


_RULES: Final = WeightedRules("http", "route", "match", default=0, is_backend=_is_destination)


class Istio:
    """VirtualServices."""

    kind: Final = RouteKind("networking.istio.io", "VirtualService", "virtualservices", ("v1", "v1beta1", "v1alpha3"))

    def splits(self, route: Object, pair: Pair) -> Splits | Unreadable:
        """How the route divides the traffic of the two."""
        return _RULES.splits(route, pair)

    def patch(self, route: Object, pair: Pair, weights: Mapping[int, Weights]) -> dict[str, Any]:
        """The merge patch that sets these weights."""
        return _RULES.patch(route, pair, weights)

    def accepted(self, _route: Object, /) -> Wait | None:
        """Nothing: what was read back counts."""
        return None
