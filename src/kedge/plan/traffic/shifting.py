"""Shifting: read the share of two Services, change it, and give back the weights of before.

    read(ISTIO, route, pair)             # Share(source=80, target=20)
    shift(ISTIO, route, pair, 50)        # the merge patch, or None if it is so already
    before = recorded(ISTIO, route, pair)
    restore(ISTIO, route, pair, before)  # the merge patch that gives `before` back, or None

A patch is only for the version of the route that it was made from: it carries its uid and resourceVersion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.fields import Object, name_of, text
from kedge.plan.traffic.routes import TrafficRoutes, Weights
from kedge.plan.traffic.split import WHOLE, Pair, Split, Splits, Unreadable


class Share(Struct, frozen=True):
    """In percent. If rules differ, of the one that gives the target the most."""

    source: int
    target: int


class RuleWeights(Struct, frozen=True):
    """The weights of one rule, as they were written."""

    key: str
    source: int | None
    target: int | None
    keeps_sum: bool = False


class WeightsBefore(Struct, frozen=True):
    """The weights of a route before the first change."""

    rules: tuple[RuleWeights, ...]
    percent: int
    """The target's share in the first rule: for rules that are not known."""


def read(routes: TrafficRoutes, route: Object, pair: Pair) -> Share | Unreadable:
    """The share of each of the two."""
    splits = routes.splits(route, pair)
    if isinstance(splits, Unreadable):
        return splits
    target = max(one.percent for one in splits.found)
    return Share(WHOLE - target, target)


def shift(routes: TrafficRoutes, route: Object, pair: Pair, percent: int) -> dict[str, Any] | Unreadable | None:
    """The write that gives the target so many percent in every rule that has both; None if it has that already."""
    splits = routes.splits(route, pair)
    if isinstance(splits, Unreadable):
        return splits
    weights = {one.rule: one.shares(percent) for one in splits.found if not one.gives(percent)}
    return _patch(routes, route, pair, weights)


def recorded(routes: TrafficRoutes, route: Object, pair: Pair) -> WeightsBefore | Unreadable:
    """What is to be given back later. A rule that gives both nothing is refused: that cannot be given back."""
    splits = routes.splits(route, pair)
    if isinstance(splits, Unreadable):
        return splits
    if not all(one.total for one in splits.found):
        return Unreadable(f"{name_of(route)} gives neither {pair.source} nor {pair.target} any traffic: weights are 0")
    rules = tuple(RuleWeights(one.key, one.source, one.target, one.keeps_sum) for one in splits.found)
    return WeightsBefore(rules, splits.found[0].percent)


def restore(
    routes: TrafficRoutes, route: Object, pair: Pair, before: WeightsBefore
) -> dict[str, Any] | Unreadable | None:
    """The write that gives back what was before; None if it is so already.

    Rules are recognized by their keys. One that was added since gets the share that the first rule had.
    """
    splits = routes.splits(route, pair)
    if isinstance(splits, Unreadable):
        return splits
    return _patch(routes, route, pair, _weights_before(splits, before))


def _weights_before(splits: Splits, before: WeightsBefore) -> dict[int, Weights]:
    """What to write into which rule."""
    left = list(before.rules)
    result: dict[int, Weights] = {}
    for one in splits.found:
        known = next((rule for rule in left if rule.key == one.key), None)
        if known is not None:
            left.remove(known)
        weights = _changed(one, known, before.percent)
        if weights is not None:
            result[one.rule] = weights
    return result


def _changed(one: Split, known: RuleWeights | None, percent: int) -> Weights | None:
    """The weights of before, or of a rule that was added since the share in percent; None if it has them."""
    if known is None:
        return None if one.gives(percent) else one.shares(percent)
    old = replace(one, source=known.source, target=known.target)
    if known.keeps_sum != one.keeps_sum:
        # Backends of others were added or removed since: the numbers of before would mean another share to them.
        return None if one.gives(old.percent) else one.shares(old.percent)
    return None if old.weights == one.weights else (known.source, known.target)


def _patch(routes: TrafficRoutes, route: Object, pair: Pair, weights: Mapping[int, Weights]) -> dict[str, Any] | None:
    if not weights:
        return None
    change = routes.patch(route, pair, weights)
    seen = {name: text(route, "metadata", name) for name in ("uid", "resourceVersion")}
    only_if = {name: value for name, value in seen.items() if value}
    return {**change, "metadata": {**change.get("metadata", {}), **only_if}}
