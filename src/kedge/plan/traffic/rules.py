"""Rules: routes that are a list of rules, each with a list of backends that have weights.

Gateway API and Istio differ in names, in what a missing weight means and in how a backend names its Service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, name_of, text
from kedge.plan.text import first_few
from kedge.plan.traffic.routes import Weights
from kedge.plan.traffic.split import Pair, Split, Splits, Unreadable

_KEY_LENGTH: Final = 12


class WeightedRules(Struct, frozen=True):
    """The form of the rules of one kind of route."""

    rules: str
    """The field of the spec that has them."""
    backends: str
    """The field of a rule that has its backends."""
    matches: str
    """The field of a rule that says which requests are meant."""
    default: int
    """What a weight that is not set counts as."""
    is_backend: Callable[[Object, str, str], bool]
    """Whether a backend is this Service, in a route of this namespace."""

    def splits(self, route: Object, pair: Pair) -> Splits | Unreadable:
        """The rules that have both Services."""
        read = [self._rule(route, index, rule, pair) for index, rule in enumerate(self._rules(route))]
        odd = next((one for one in read if isinstance(one, Unreadable)), None)
        found = tuple(one for one in read if isinstance(one, Split))
        notes = tuple(one for one in read if isinstance(one, str))
        if odd is not None:
            return odd
        return Splits(found, notes) if found else Unreadable(_no_rule(route, pair, notes))

    def patch(self, route: Object, pair: Pair, weights: Mapping[int, Weights]) -> dict[str, Any]:
        """The whole list of rules: a merge patch cannot change one item of a list."""
        rules = [
            self._with_weights(route, rule, pair, weights[index]) if index in weights else rule
            for index, rule in enumerate(self._rules(route))
        ]
        return {"spec": {self.rules: rules}}

    def _rules(self, route: Object) -> list[Any]:
        found = at(route, "spec", self.rules)
        return found if isinstance(found, list) else []

    def _backends(self, rule: Any) -> list[Any]:
        found = at(rule, self.backends)
        return found if isinstance(found, list) else []

    def _rule(self, route: Object, index: int, rule: Any, pair: Pair) -> Split | Unreadable | str | None:
        """How it divides the traffic of the two; a sentence if it has only one of them, None if it has none."""
        path = f"spec.{self.rules}[{index}]"
        sources, targets = (self._positions(route, rule, name) for name in (pair.source, pair.target))
        if not sources and not targets:
            return None
        if not sources or not targets:
            there, missing = (pair.source, pair.target) if sources else (pair.target, pair.source)
            return f"{path} of {name_of(route)} is left alone: it has {there}, but not {missing}"
        problem = self._problem(rule, pair, sources, targets)
        if problem:
            return Unreadable(f"{path} of {name_of(route)} {problem}")
        return self._split(index, rule, sources[0], targets[0])

    def _problem(self, rule: Any, pair: Pair, sources: list[int], targets: list[int]) -> str:
        twice = [name for name, places in ((pair.source, sources), (pair.target, targets)) if len(places) > 1]
        if twice or sources == targets:
            return f"has {(twice or [pair.source])[0]} more than once as a backend: which one is meant is not clear"
        odd = [one for one in self._backends(rule) if not _is_weight(at(one, "weight"))]
        return f"has a weight that is not a whole number of 0 or more: {at(odd[0], 'weight')!r}" if odd else ""

    def _split(self, index: int, rule: Any, source: int, target: int) -> Split:
        weights = [at(one, "weight") for one in self._backends(rule)]
        return Split(index, self._key(rule), weights[source], weights[target], self.default, keeps_sum=len(weights) > 2)

    def _key(self, rule: Any) -> str:
        """Its name, or else which requests it is for: weights and filters may change and it is still the same rule."""
        return text(rule, "name") or digest(at(rule, self.matches) or [])[:_KEY_LENGTH]

    def _positions(self, route: Object, rule: Any, service: str) -> list[int]:
        namespace = text(route, "metadata", "namespace")
        backends = enumerate(self._backends(rule))
        return [
            index for index, one in backends if isinstance(one, Mapping) and self.is_backend(one, service, namespace)
        ]

    def _with_weights(self, route: Object, rule: Any, pair: Pair, weights: Weights) -> dict[str, Any]:
        places = [self._positions(route, rule, name)[0] for name in (pair.source, pair.target)]
        wanted = dict(zip(places, weights, strict=True))
        backends = [
            _with_weight(one, wanted[index]) if index in wanted else one
            for index, one in enumerate(self._backends(rule))
        ]
        return {**rule, self.backends: backends}


def _no_rule(route: Object, pair: Pair, notes: tuple[str, ...]) -> str:
    why = f" ({first_few(notes)})" if notes else ""
    return (
        f"no rule of {name_of(route)} has both {pair.source} and {pair.target} as backends: "
        f"add the one that is missing, {pair.target} with weight 0{why}"
    )


def _is_weight(weight: Any) -> bool:
    return weight is None or (isinstance(weight, int) and not isinstance(weight, bool) and weight >= 0)


def _with_weight(backend: Object, weight: int | None) -> dict[str, Any]:
    rest = {name: value for name, value in backend.items() if name != "weight"}
    return rest if weight is None else {**backend, "weight": weight}
