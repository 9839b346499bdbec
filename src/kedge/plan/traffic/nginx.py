"""nginx: canary Ingresses of ingress-nginx.

The route is the canary Ingress, the second one of its host and path: the one with the annotation `canary: "true"`,
whose backends are all the target's Service. The other Ingress, with the source's Service, is not touched and not read.
`canary-weight` is the target's part of `canary-weight-total`, 100 if that is not set; the source gets the rest.
Headers and cookies of a canary come before its weight, and stay as they are. ingress-nginx does not report on an
Ingress: the weight is in effect when it is read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kedge.plan.fields import Object, at, name_of, text
from kedge.plan.moving.wait import Wait
from kedge.plan.text import listed
from kedge.plan.traffic.routes import RouteKind, Weights
from kedge.plan.traffic.split import WHOLE, Pair, Split, Splits, Unreadable

PREFIX: Final = "nginx.ingress.kubernetes.io/"
CANARY: Final = f"{PREFIX}canary"
WEIGHT: Final = f"{PREFIX}canary-weight"
TOTAL: Final = f"{PREFIX}canary-weight-total"
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class Nginx:
    """Canary Ingresses."""

    kind: Final = RouteKind("networking.k8s.io", "Ingress", "ingresses", ("v1",))

    def splits(self, route: Object, pair: Pair) -> Splits | Unreadable:
        """The one split that the annotations make."""
        problem = _problem(route, pair)
        if problem:
            return Unreadable(f"{name_of(route)} {problem}")
        weight, total = _number(route, WEIGHT), _number(route, TOTAL) or WHOLE
        source = max(total - (weight or 0), 0)
        return Splits((Split(0, f"of {total}", source, weight, default=0, keeps_sum=True),))

    def patch(self, _route: Object, _pair: Pair, weights: Mapping[int, Weights], /) -> dict[str, Any]:
        """The annotation alone."""
        _, target = weights[0]
        return {"metadata": {"annotations": {WEIGHT: None if target is None else str(target)}}}

    def accepted(self, _route: Object, /) -> Wait | None:
        """Nothing: what was read back counts."""
        return None


def _problem(route: Object, pair: Pair) -> str:
    if text(route, "metadata", "annotations", CANARY) != "true":
        return (
            f'is not a canary: routeRef has to name the Ingress with the annotation {CANARY}: "true" '
            f"whose backend is {pair.target}"
        )
    others = sorted({name for name in _backends(route) if name != pair.target})
    if others:
        return f"leads to {listed(others)}, too: all backends of a canary Ingress have to be {pair.target}"
    if not any(_backends(route)):
        return f"has no backend: it has to lead to {pair.target}"
    return _odd_number(route)


def _odd_number(route: Object) -> str:
    for name in (WEIGHT, TOTAL):
        found = at(route, "metadata", "annotations", name)
        if found is not None and _number(route, name) is None:
            return f"has a {name} that is not a whole number of 0 or more: {found!r}"
    if _number(route, TOTAL) == 0:
        return f"has a {TOTAL} of 0"
    weight, total = _number(route, WEIGHT) or 0, _number(route, TOTAL) or WHOLE
    return f"has a {WEIGHT} of {weight}, which is more than all ({total})" if weight > total else ""


def _number(route: Object, annotation: str) -> int | None:
    found = text(route, "metadata", "annotations", annotation)
    return int(found) if _NUMBER.fullmatch(found) else None


def _backends(route: Object) -> Iterator[str]:
    """The names of all Services it leads to; what is not a Service by the name of its kind."""
    rules = at(route, "spec", "rules")
    for rule in rules if isinstance(rules, list) else ():
        paths = at(rule, "http", "paths")
        for path in paths if isinstance(paths, list) else ():
            yield _backend(at(path, "backend"))
    default = at(route, "spec", "defaultBackend")
    if default is not None:
        yield _backend(default)


def _backend(backend: Any) -> str:
    return text(backend, "service", "name") or f"a {text(backend, 'resource', 'kind') or 'backend without a Service'}"
