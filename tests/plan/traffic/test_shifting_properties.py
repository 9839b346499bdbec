"""What holds of every route, however odd its weights and whatever else is in it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from kedge.plan.traffic.gateway_api import GatewayApi
from kedge.plan.traffic.istio import Istio
from kedge.plan.traffic.nginx import TOTAL, WEIGHT, Nginx
from kedge.plan.traffic.routes import TrafficRoutes
from kedge.plan.traffic.shifting import Share, WeightsBefore, read, recorded, restore, shift
from kedge.plan.traffic.split import Splits
from plan.traffic.manifests import CANARY, HTTP_ROUTE, PAIR, VIRTUAL_SERVICE, patched, route

PERCENT = st.integers(0, 100)
WEIGHTS = st.one_of(st.none(), st.integers(0, 3), st.integers(0, 1000))


def weighted(backend: dict[str, Any], weight: int | None) -> dict[str, Any]:
    return backend if weight is None else {**backend, "weight": weight}


@st.composite
def rules(draw: st.DrawFn, field: str, matches: str, form: Any, least: int) -> list[dict[str, Any]]:
    """Rules with the two, or one or none of them, and with others; the first one has both."""
    result = []
    for index in range(draw(st.integers(1, 4))):
        others = draw(st.lists(st.sampled_from(["search", "docs", "web"]), max_size=2, unique=True))
        ours = ["web-v1", "web-v2"] if index == 0 else draw(st.sampled_from([["web-v1", "web-v2"], ["web-v1"], []]))
        names = draw(st.permutations([*others, *ours]))
        small = st.one_of(st.none(), st.integers(least, 1000)) if least else WEIGHTS
        backends = [weighted({**form(name), "extra": name}, draw(small)) for name in names]
        result.append({field: backends, matches: [{"path": draw(st.sampled_from("abc"))}], "timeout": "1s"})
    return result


def http_routes(least: int = 0) -> st.SearchStrategy[tuple[TrafficRoutes, dict[str, Any]]]:
    found = rules("backendRefs", "matches", lambda name: {"name": name}, least)
    return found.map(lambda one: (GatewayApi(), route(HTTP_ROUTE, spec__rules=one)))


def virtual_services(least: int = 0) -> st.SearchStrategy[tuple[TrafficRoutes, dict[str, Any]]]:
    found = rules("route", "match", lambda name: {"destination": {"host": name}}, least)
    return found.map(lambda one: (Istio(), route(VIRTUAL_SERVICE, spec__http=one)))


@st.composite
def canaries(draw: st.DrawFn, least: int = 1) -> tuple[TrafficRoutes, dict[str, Any]]:
    total = draw(st.one_of(st.none(), st.integers(max(least, 1), 1000)))
    weight = draw(st.one_of(st.none(), st.integers(0, 100 if total is None else total)))
    numbers = {WEIGHT: weight, TOTAL: total}
    obj = route(CANARY)
    del obj["metadata"]["annotations"][WEIGHT]
    obj["metadata"]["annotations"] |= {name: str(value) for name, value in numbers.items() if value is not None}
    return Nginx(), obj


ROUTES = st.one_of(http_routes(), virtual_services(), canaries())
FINE_ROUTES = st.one_of(http_routes(100), virtual_services(100), canaries(100))
"""Whose weights add up to at least 100, so that every percentage can be expressed."""


def after(obj: dict[str, Any], patch: object) -> dict[str, Any]:
    assert patch is None or isinstance(patch, dict)
    return obj if patch is None else patched(obj, patch)


def without_weights(routes: TrafficRoutes, obj: dict[str, Any]) -> dict[str, Any]:
    """The route without the weights of the two in rules that have both."""
    found = routes.splits(obj, PAIR)
    assert isinstance(found, Splits)
    if isinstance(routes, Nginx):
        rest = {name: value for name, value in obj["metadata"]["annotations"].items() if name != WEIGHT}
        return {**obj, "metadata": {**obj["metadata"], "annotations": rest}}
    return after(obj, routes.patch(obj, PAIR, {one.rule: (None, None) for one in found.found}))


@given(FINE_ROUTES, PERCENT)
def test_what_was_shifted_is_read(given_route: tuple[TrafficRoutes, dict[str, Any]], percent: int) -> None:
    routes, obj = given_route
    # Istio counts a weight that is not set as 0, so that even these can be too small.
    found = routes.splits(obj, PAIR)
    assert isinstance(found, Splits)
    assume(all(one.total >= 100 or not one.keeps_sum for one in found.found))
    shifted = after(obj, shift(routes, obj, PAIR, percent))
    assert read(routes, shifted, PAIR) == Share(100 - percent, percent)


@given(ROUTES, PERCENT)
def test_a_second_shift_changes_nothing(given_route: tuple[TrafficRoutes, dict[str, Any]], percent: int) -> None:
    routes, obj = given_route
    assert shift(routes, after(obj, shift(routes, obj, PAIR, percent)), PAIR, percent) is None


@given(ROUTES, PERCENT)
def test_all_but_the_weights_of_the_two_is_as_before(
    given_route: tuple[TrafficRoutes, dict[str, Any]], percent: int
) -> None:
    routes, obj = given_route
    kept = copy.deepcopy(obj)
    shifted = after(obj, shift(routes, obj, PAIR, percent))
    assert without_weights(routes, shifted) == without_weights(routes, obj)
    assert obj == kept


@given(ROUTES, PERCENT)
def test_never_0_and_0_never_more_than_asked_for_and_the_sum_beside_others_stays(
    given_route: tuple[TrafficRoutes, dict[str, Any]], percent: int
) -> None:
    routes, obj = given_route
    old, new = routes.splits(obj, PAIR), routes.splits(after(obj, shift(routes, obj, PAIR, percent)), PAIR)
    assert isinstance(old, Splits)
    assert isinstance(new, Splits)
    for was, now in zip(old.found, new.found, strict=True):
        assert now.total > 0
        assert now.weights[1] * 100 <= percent * now.total
        assert now.total == was.total or not was.keeps_sum or was.total == 0


@given(ROUTES, st.lists(PERCENT, min_size=1, max_size=4))
def test_what_was_before_is_given_back(given_route: tuple[TrafficRoutes, dict[str, Any]], percents: list[int]) -> None:
    routes, obj = given_route
    before = recorded(routes, obj, PAIR)
    assume(isinstance(before, WeightsBefore))
    assert isinstance(before, WeightsBefore)
    now = obj
    for percent in percents:
        now = after(now, shift(routes, now, PAIR, percent))
    back = after(now, restore(routes, now, PAIR, before))
    splits, old = routes.splits(back, PAIR), routes.splits(obj, PAIR)
    assert isinstance(splits, Splits)
    assert isinstance(old, Splits)
    assert [one.weights for one in splits.found] == [one.weights for one in old.found]
    assert without_weights(routes, back) == without_weights(routes, obj)
    assert restore(routes, back, PAIR, before) is None
