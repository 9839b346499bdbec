"""Gateway API: HTTPRoutes (gateway.networking.k8s.io).

A backend is `backendRefs[]{name, weight}`; without a weight it counts 1. A route is in effect when every gateway that
it asks for says so of its present generation: Accepted, and ResolvedRefs, since a gateway answers errors in place of a
Service that it does not find. A route that no gateway says anything of is not in effect. Gateways must report; for one
that never does, the annotation `kedge.dev/assume-accepted: "true"` on the route makes reading it back enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kedge.api.oam.keys import ASSUME_ACCEPTED
from kedge.plan.fields import Object, at, generation, name_of, text, whole
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import path_of
from kedge.plan.traffic.routes import RouteKind, TrafficCode, Weights
from kedge.plan.traffic.rules import WeightedRules
from kedge.plan.traffic.split import Pair, Splits, Unreadable

GROUP: Final = "gateway.networking.k8s.io"
_NEEDED: Final = ("Accepted", "ResolvedRefs")
_Parent: TypeAlias = tuple[str, str, str, str, str, int]


def _is_backend(backend: Object, service: str, namespace: str) -> bool:
    is_service = text(backend, "kind") in ("", "Service") and not text(backend, "group")
    return is_service and text(backend, "name") == service and text(backend, "namespace") in ("", namespace)


_RULES: Final = WeightedRules("rules", "backendRefs", "matches", default=1, is_backend=_is_backend)


class GatewayApi:
    """HTTPRoutes."""

    kind: Final = RouteKind(GROUP, "HTTPRoute", "httproutes", ("v1", "v1beta1"))

    def splits(self, route: Object, pair: Pair) -> Splits | Unreadable:
        """How the route divides the traffic of the two."""
        return _RULES.splits(route, pair)

    def patch(self, route: Object, pair: Pair, weights: Mapping[int, Weights]) -> dict[str, Any]:
        """The merge patch that sets these weights."""
        return _RULES.patch(route, pair, weights)

    def accepted(self, route: Object) -> Wait | None:
        """What gateways have not said yet, or have refused."""
        if text(route, "metadata", "annotations", ASSUME_ACCEPTED) == "true":
            return None
        blockers = tuple(_blockers(route))
        return Wait(name_of(route), TrafficCode.not_accepted, {}, blockers) if blockers else None


def _blockers(route: Object) -> Iterable[Blocker]:
    """One for each gateway that does not say that the route is in effect."""
    namespace = text(route, "metadata", "namespace")
    asked = {_parent(one, namespace): one for one in _items(route, "spec", "parentRefs")}
    if not asked:
        yield Blocker("gateway", reported="the route names no gateway in spec.parentRefs")
    for key, parent in asked.items():
        reports = [one for one in _items(route, "status", "parents") if _parent(at(one, "parentRef"), namespace) == key]
        problem = _problem(reports, generation(route) or 0)
        if problem:
            yield Blocker(f"{key[1]} {path_of(text(parent, 'namespace'), key[3])}", reported=problem)


def _problem(reports: list[Object], at_generation: int) -> str:
    """What is missing in what is said of one parent; empty if it is all there."""
    if not reports:
        return "it has not reported on the route yet"
    found = (_missing(report, needed, at_generation) for report in reports for needed in _NEEDED)
    return next((one for one in found if one), "")


def _missing(report: Object, needed: str, at_generation: int) -> str:
    said = next((one for one in _items(report, "conditions") if text(one, "type") == needed), None)
    if said is None or (whole(said, "observedGeneration") or 0) < at_generation:
        return f"it has not reported {needed} of the present weights yet"
    if text(said, "status") == "True":
        return ""
    return f"{needed} is {text(said, 'status') or 'Unknown'}: {text(said, 'reason')}: {text(said, 'message')}"


def _parent(ref: Any, namespace: str) -> _Parent:
    """What a parent is recognized by, with what is left out filled in."""
    return (
        text(ref, "group") or GROUP,
        text(ref, "kind") or "Gateway",
        text(ref, "namespace") or namespace,
        text(ref, "name"),
        text(ref, "sectionName"),
        (whole(ref, "port") or 0) if isinstance(ref, Mapping) else 0,
    )


def _items(obj: Any, *path: str) -> list[Object]:
    found = at(obj, *path)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
