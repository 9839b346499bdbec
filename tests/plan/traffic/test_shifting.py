"""Whole routes before and after."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.traffic.gateway_api import GatewayApi
from kedge.plan.traffic.istio import Istio
from kedge.plan.traffic.nginx import CANARY as CANARY_ANNOTATION
from kedge.plan.traffic.nginx import TOTAL, WEIGHT, Nginx
from kedge.plan.traffic.routes import TrafficRoutes
from kedge.plan.traffic.shifting import Share, WeightsBefore, read, recorded, restore, shift
from kedge.plan.traffic.split import Pair, Splits, Unreadable
from plan.traffic.manifests import CANARY, HTTP_ROUTE, PAIR, VIRTUAL_SERVICE, patched, route

GATEWAY, ISTIO, NGINX = GatewayApi(), Istio(), Nginx()
BACKENDS = "spec__rules__{}__backendRefs__{}__weight"


def shifted(routes: TrafficRoutes, obj: dict[str, Any], percent: int, pair: Pair = PAIR) -> dict[str, Any]:
    patch = shift(routes, obj, pair, percent)
    assert isinstance(patch, dict), patch
    assert patch["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
    assert patch["metadata"]["uid"] == obj["metadata"]["uid"]
    return patched(obj, patch)


def before(routes: TrafficRoutes, obj: dict[str, Any], pair: Pair = PAIR) -> WeightsBefore:
    found = recorded(routes, obj, pair)
    assert isinstance(found, WeightsBefore), found
    return found


def reason(found: object) -> str:
    assert isinstance(found, Unreadable), found
    return found.reason


@pytest.mark.parametrize(
    ("routes", "text", "percent", "changes"),
    [
        # Alone in a rule the two get percentages; beside others they keep their sum (200).
        (
            GATEWAY,
            HTTP_ROUTE,
            25,
            {
                "spec__rules__0__backendRefs__0__weight": 75,
                "spec__rules__0__backendRefs__1__weight": 25,
                "spec__rules__1__backendRefs__1__weight": 150,
                "spec__rules__1__backendRefs__2__weight": 50,
            },
        ),
        (
            GATEWAY,
            HTTP_ROUTE,
            100,
            {
                "spec__rules__0__backendRefs__0__weight": 0,
                "spec__rules__0__backendRefs__1__weight": 100,
                "spec__rules__1__backendRefs__1__weight": 0,
                "spec__rules__1__backendRefs__2__weight": 200,
            },
        ),
        (
            ISTIO,
            VIRTUAL_SERVICE,
            33,
            {
                "spec__http__0__route__0__weight": 67,
                "spec__http__0__route__1__weight": 33,
                "spec__http__1__route__1__weight": 34,
                "spec__http__1__route__2__weight": 16,
            },
        ),
        (NGINX, CANARY, 33, {f"metadata__annotations__{WEIGHT}": "33"}),
    ],
)
def test_only_the_weights_of_the_two_change(
    routes: TrafficRoutes, text: str, percent: int, changes: dict[str, Any]
) -> None:
    assert shifted(routes, route(text), percent) == route(text, **changes)


@pytest.mark.parametrize(
    ("routes", "text", "changes", "percent"),
    [
        (GATEWAY, HTTP_ROUTE, {}, 0),
        (GATEWAY, HTTP_ROUTE, {BACKENDS.format(0, 0): 4, BACKENDS.format(1, 1): 200}, 0),
        (ISTIO, VIRTUAL_SERVICE, {}, 0),
        (NGINX, CANARY, {}, 0),
        (NGINX, CANARY, {f"metadata__annotations__{WEIGHT}": None}, 0),
        (NGINX, CANARY, {f"metadata__annotations__{WEIGHT}": "100"}, 100),
        (NGINX, CANARY, {f"metadata__annotations__{WEIGHT}": "50", f"metadata__annotations__{TOTAL}": "1000"}, 5),
    ],
)
def test_nothing_is_written_if_it_is_so_already(
    routes: TrafficRoutes, text: str, changes: dict[str, Any], percent: int
) -> None:
    assert shift(routes, route(text, **changes), PAIR, percent) is None


def test_equal_shares_need_no_write_whatever_the_numbers() -> None:
    obj = route(HTTP_ROUTE, spec__rules__1=None, spec__rules__0__backendRefs__1__weight=3)
    assert read(GATEWAY, obj, PAIR) == Share(25, 75)
    assert shift(GATEWAY, obj, PAIR, 75) is None
    assert shifted(GATEWAY, obj, 74)["spec"]["rules"][0]["backendRefs"] == [
        {"name": "web-v1", "port": 80, "weight": 26},
        {"name": "web-v2", "port": 80, "weight": 74},
    ]


@pytest.mark.parametrize(
    ("routes", "text", "changes", "share"),
    [
        (GATEWAY, HTTP_ROUTE, {}, Share(100, 0)),
        # The largest share of all rules: 50 of 200 there, 1 of 2 here (a weight that is not set is 1).
        (GATEWAY, HTTP_ROUTE, {BACKENDS.format(1, 1): 150, BACKENDS.format(1, 2): 50}, Share(75, 25)),
        (GATEWAY, HTTP_ROUTE, {BACKENDS.format(0, 1): None, BACKENDS.format(1, 2): 50}, Share(50, 50)),
        (ISTIO, VIRTUAL_SERVICE, {}, Share(100, 0)),
        (ISTIO, VIRTUAL_SERVICE, {"spec__http__1__route__2__weight": 25}, Share(66, 34)),
        (NGINX, CANARY, {}, Share(100, 0)),
        (NGINX, CANARY, {f"metadata__annotations__{WEIGHT}": "7"}, Share(93, 7)),
    ],
)
def test_the_share_is_read(routes: TrafficRoutes, text: str, changes: dict[str, Any], share: Share) -> None:
    assert read(routes, route(text, **changes), PAIR) == share


def test_a_rule_with_only_one_of_the_two_is_left_alone_and_named() -> None:
    found = GATEWAY.splits(route(HTTP_ROUTE), PAIR)
    assert isinstance(found, Splits)
    assert found.notes == ("spec.rules[2] of HTTPRoute shop/web is left alone: it has web-v1, but not web-v2",)
    assert [one.rule for one in found.found] == [0, 1]


@pytest.mark.parametrize(
    ("routes", "text", "changes", "problem"),
    [
        (
            GATEWAY,
            HTTP_ROUTE,
            {"spec__rules__1": None, "spec__rules__0__backendRefs__1": None},
            (
                "no rule of HTTPRoute shop/web has both web-v1 and web-v2 as backends: add the one that is missing, "
                "web-v2 with weight 0 (spec.rules[0] of HTTPRoute shop/web is left alone: it has web-v1, "
                "but not web-v2; "
                "spec.rules[1] of HTTPRoute shop/web is left alone: it has web-v1, but not web-v2)"
            ),
        ),
        (
            GATEWAY,
            HTTP_ROUTE,
            {"spec__rules": None},
            (
                "no rule of HTTPRoute shop/web has both web-v1 and web-v2 as backends: add the one that is missing, "
                "web-v2 with weight 0"
            ),
        ),
        (
            GATEWAY,
            HTTP_ROUTE,
            {"spec__rules__1__backendRefs__0__name": "web-v2"},
            (
                "spec.rules[1] of HTTPRoute shop/web has web-v2 more than once as a backend: which one is meant is not "
                "clear"
            ),
        ),
        (
            GATEWAY,
            HTTP_ROUTE,
            {"spec__rules__1__backendRefs__0__weight": "all"},
            "spec.rules[1] of HTTPRoute shop/web has a weight that is not a whole number of 0 or more: 'all'",
        ),
        (
            ISTIO,
            VIRTUAL_SERVICE,
            {"spec__http__1__route__2__weight": -1},
            "spec.http[1] of VirtualService shop/web has a weight that is not a whole number of 0 or more: -1",
        ),
        (
            ISTIO,
            VIRTUAL_SERVICE,
            {"spec__http__1__route__2__weight": True},
            "spec.http[1] of VirtualService shop/web has a weight that is not a whole number of 0 or more: True",
        ),
        (
            NGINX,
            CANARY,
            {f"metadata__annotations__{CANARY_ANNOTATION}": None},
            (
                "Ingress shop/web-canary is not a canary: routeRef has to name the Ingress with the annotation "
                'nginx.ingress.kubernetes.io/canary: "true" whose backend is web-v2'
            ),
        ),
        (
            NGINX,
            CANARY,
            {"spec__rules__0__http__paths__0__backend__service__name": "web-v1"},
            "Ingress shop/web-canary leads to web-v1, too: all backends of a canary Ingress have to be web-v2",
        ),
        (
            NGINX,
            CANARY,
            {"spec__defaultBackend": {"resource": {"kind": "Bucket", "name": "x"}}},
            "Ingress shop/web-canary leads to a Bucket, too: all backends of a canary Ingress have to be web-v2",
        ),
        (NGINX, CANARY, {"spec__rules": None}, "Ingress shop/web-canary has no backend: it has to lead to web-v2"),
        (
            NGINX,
            CANARY,
            {"spec__rules__0__http__paths": [{"path": "/"}]},
            (
                "Ingress shop/web-canary leads to a backend without a Service, too: all backends of a "
                "canary Ingress have "
                "to be web-v2"
            ),
        ),
        (
            NGINX,
            CANARY,
            {f"metadata__annotations__{WEIGHT}": "many"},
            (
                "Ingress shop/web-canary has a nginx.ingress.kubernetes.io/canary-weight that is not a "
                "whole number of 0 "
                "or more: 'many'"
            ),
        ),
        (
            NGINX,
            CANARY,
            {f"metadata__annotations__{WEIGHT}": "-1"},
            (
                "Ingress shop/web-canary has a nginx.ingress.kubernetes.io/canary-weight that is not a "
                "whole number of 0 "
                "or more: '-1'"
            ),
        ),
        (
            NGINX,
            CANARY,
            {f"metadata__annotations__{TOTAL}": "0"},
            "Ingress shop/web-canary has a nginx.ingress.kubernetes.io/canary-weight-total of 0",
        ),
        (
            NGINX,
            CANARY,
            {f"metadata__annotations__{WEIGHT}": "101"},
            (
                "Ingress shop/web-canary has a nginx.ingress.kubernetes.io/canary-weight of 101, which is "
                "more than all "
                "(100)"
            ),
        ),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_written(
    routes: TrafficRoutes, text: str, changes: dict[str, Any], problem: str
) -> None:
    obj = route(text, **changes)
    assert reason(read(routes, obj, PAIR)) == problem
    assert reason(shift(routes, obj, PAIR, 50)) == problem
    assert reason(recorded(routes, obj, PAIR)) == problem
    assert reason(restore(routes, obj, PAIR, WeightsBefore((), 0))) == problem


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"spec": None},
        {"spec": {"rules": {}, "http": "x"}},
        {"spec": {"rules": [None, 1, {"backendRefs": [None, "web-v1", {"name": 7}], "http": {"paths": [3]}}]}},
        {"spec": {"http": [None, {"route": [None, {"destination": "web-v1"}]}]}, "metadata": {"annotations": []}},
        {"metadata": {"annotations": {CANARY_ANNOTATION: "true", WEIGHT: 5}}, "spec": {"rules": [{"http": 1}]}},
    ],
)
@pytest.mark.parametrize("routes", [GATEWAY, ISTIO, NGINX])
def test_odd_objects_are_unreadable(routes: TrafficRoutes, odd: dict[str, Any]) -> None:
    assert isinstance(read(routes, odd, PAIR), Unreadable)


@pytest.mark.parametrize(
    ("ref", "is_ours"),
    [
        ({"name": "web-v1"}, True),
        ({"name": "web-v1", "kind": "Service", "group": "", "namespace": "shop"}, True),
        ({"name": "web-v1", "namespace": "other"}, False),
        ({"name": "web-v1", "kind": "ServiceImport", "group": "multicluster.x-k8s.io"}, False),
        ({"name": "web-v1", "group": "example.com"}, False),
        ({"name": "web-v10"}, False),
    ],
)
def test_which_backends_are_a_service_of_ours(ref: dict[str, Any], is_ours: bool) -> None:
    obj = route(HTTP_ROUTE, spec__rules=[{"backendRefs": [{**ref, "weight": 1}, {"name": "web-v2", "weight": 0}]}])
    assert isinstance(read(GATEWAY, obj, PAIR), Share) == is_ours


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("web-v1", True),
        ("web-v1.shop", True),
        ("web-v1.shop.svc", True),
        ("web-v1.shop.svc.cluster.local", True),
        ("web-v1.other", False),
        ("web-v1.shop.example.com", False),
        ("web-v10", False),
        ("", False),
    ],
)
def test_which_hosts_are_a_service_of_ours(host: str, is_ours: bool) -> None:
    rule = [{"destination": {"host": host}, "weight": 100}, {"destination": {"host": "web-v2"}, "weight": 0}]
    obj = route(VIRTUAL_SERVICE, spec__http=[{"route": rule}])
    assert isinstance(read(ISTIO, obj, PAIR), Share) == is_ours


def test_subsets_of_one_host() -> None:
    rule = [
        {"destination": {"host": "web", "subset": "v1"}, "weight": 100},
        {"destination": {"host": "web", "subset": "v2"}},
    ]
    obj = route(VIRTUAL_SERVICE, spec__http=[{"route": rule}])
    subsets = Pair("web/v1", "web/v2")
    assert read(ISTIO, obj, subsets) == Share(100, 0)
    assert [one["weight"] for one in shifted(ISTIO, obj, 40, subsets)["spec"]["http"][0]["route"]] == [60, 40]
    assert reason(read(ISTIO, obj, Pair("web", "web/v2"))).endswith(
        "has web more than once as a backend: which one is meant is not clear"
    )


def test_one_backend_that_both_names_fit_is_not_two() -> None:
    rule = [{"destination": {"host": "web"}, "weight": 50}, {"destination": {"host": "other"}, "weight": 50}]
    obj = route(VIRTUAL_SERVICE, spec__http=[{"route": rule}])
    assert "web more than once" in reason(read(ISTIO, obj, Pair("web", "web")))


@pytest.mark.parametrize("percent", [0, 1, 30, 99, 100])
@pytest.mark.parametrize(("routes", "text"), [(GATEWAY, HTTP_ROUTE), (ISTIO, VIRTUAL_SERVICE), (NGINX, CANARY)])
def test_what_was_before_is_given_back_exactly(routes: TrafficRoutes, text: str, percent: int) -> None:
    obj = route(text)
    old = before(routes, obj)
    changed = obj if percent == 0 else shifted(routes, obj, percent)
    patch = restore(routes, changed, PAIR, old)
    if percent == 0:
        assert patch is None
        return
    assert isinstance(patch, dict)
    assert patched(changed, patch) == obj


@pytest.mark.parametrize(
    ("routes", "text", "path"),
    [
        (GATEWAY, HTTP_ROUTE, "spec__rules__0__backendRefs__0__weight"),
        (ISTIO, VIRTUAL_SERVICE, "spec__http__1__route__2__weight"),
        (NGINX, CANARY, f"metadata__annotations__{WEIGHT}"),
    ],
)
def test_a_weight_that_was_not_set_is_not_set_again(routes: TrafficRoutes, text: str, path: str) -> None:
    obj = route(text, **{path: None})
    changed = shifted(routes, obj, 60)
    patch = restore(routes, changed, PAIR, before(routes, obj))
    assert isinstance(patch, dict)
    assert patched(changed, patch) == obj


def test_a_weight_that_the_server_filled_in_is_as_before() -> None:
    obj = route(HTTP_ROUTE, spec__rules__0__backendRefs__0__weight=None)
    assert restore(GATEWAY, route(HTTP_ROUTE), PAIR, before(GATEWAY, obj)) is None


def test_restoring_keeps_what_others_changed_meanwhile() -> None:
    old = before(GATEWAY, route(HTTP_ROUTE))
    changed = shifted(GATEWAY, route(HTTP_ROUTE), 50)
    first, second, *rest = changed["spec"]["rules"]
    added = {
        "matches": [{"path": {"value": "/new"}}],
        "backendRefs": [{"name": "web-v1", "weight": 50}, {"name": "web-v2", "weight": 50}],
    }
    edited = {**first, "filters": [], "timeouts": {"request": "3s"}}
    changed["spec"]["rules"] = [added, second, edited, *rest]
    patch = restore(GATEWAY, changed, PAIR, old)
    assert isinstance(patch, dict)
    rules = patched(changed, patch)["spec"]["rules"]
    assert [one["weight"] for one in rules[0]["backendRefs"]] == [100, 0]  # a new rule: the share of before
    assert rules[1] == route(HTTP_ROUTE)["spec"]["rules"][1]
    assert rules[2] == {**route(HTTP_ROUTE)["spec"]["rules"][0], "filters": [], "timeouts": {"request": "3s"}}
    assert rules[3:] == rest


def test_a_new_rule_that_has_the_share_of_before_is_not_written() -> None:
    old = before(GATEWAY, route(HTTP_ROUTE, spec__rules__1=None))
    obj = route(HTTP_ROUTE, spec__rules__1__backendRefs__0=None)
    assert restore(GATEWAY, obj, PAIR, old) is None


def test_the_numbers_of_before_are_not_given_back_beside_a_backend_that_others_added() -> None:
    old = before(GATEWAY, route(HTTP_ROUTE))
    changed = shifted(GATEWAY, route(HTTP_ROUTE), 50)
    changed["spec"]["rules"][0]["backendRefs"].append({"name": "new", "weight": 10})
    patch = restore(GATEWAY, changed, PAIR, old)
    assert isinstance(patch, dict)
    weights = [one["weight"] for one in patched(changed, patch)["spec"]["rules"][0]["backendRefs"]]
    assert weights == [100, 0, 10]
    again = patched(changed, patch)
    assert restore(GATEWAY, again, PAIR, old) is None


def test_rules_for_the_same_requests_are_given_back_in_their_order() -> None:
    def rules(*weights: tuple[int, int]) -> list[dict[str, Any]]:
        names = ("web-v1", "web-v2")
        return [
            {"backendRefs": [{"name": name, "weight": weight} for name, weight in zip(names, pair, strict=True)]}
            for pair in weights
        ]

    obj = route(HTTP_ROUTE, spec__rules=rules((9, 1), (8, 2)))
    changed = shifted(GATEWAY, obj, 50)
    patch = restore(GATEWAY, changed, PAIR, before(GATEWAY, obj))
    assert isinstance(patch, dict)
    assert patched(changed, patch) == obj


def test_a_named_rule_is_the_same_for_other_requests() -> None:
    old = before(ISTIO, route(VIRTUAL_SERVICE, spec__http__0__route__0__weight=90, spec__http__0__route__1__weight=10))
    obj = route(VIRTUAL_SERVICE, spec__http__0__match=[{"uri": {"prefix": "/x"}}])
    obj["spec"]["http"].reverse()
    patch = restore(ISTIO, obj, PAIR, old)
    assert isinstance(patch, dict)
    assert [one["weight"] for one in patch["spec"]["http"][-1]["route"]] == [90, 10]


def test_a_canary_of_another_total_gets_the_share_of_before() -> None:
    weight, total = f"metadata__annotations__{WEIGHT}", f"metadata__annotations__{TOTAL}"
    old = before(NGINX, route(CANARY, **{weight: "20"}))
    patch = restore(NGINX, route(CANARY, **{weight: "500", total: "1000"}), PAIR, old)
    assert isinstance(patch, dict)
    assert patch["metadata"]["annotations"] == {WEIGHT: "200"}


def test_weights_of_0_and_0_are_not_recorded_and_are_replaced() -> None:
    obj = route(HTTP_ROUTE, spec__rules__0__backendRefs__0__weight=0)
    assert reason(recorded(GATEWAY, obj, PAIR)) == (
        "HTTPRoute shop/web gives neither web-v1 nor web-v2 any traffic: weights are 0"
    )
    assert read(GATEWAY, obj, PAIR) == Share(100, 0)
    weights = [one["weight"] for one in shifted(GATEWAY, obj, 0)["spec"]["rules"][0]["backendRefs"]]
    assert weights == [100, 0]


def test_small_sums_beside_other_backends_are_rounded_down() -> None:
    obj = route(HTTP_ROUTE, spec__rules__0=None, spec__rules__0__backendRefs__1__weight=3)
    weights = [shifted(GATEWAY, obj, percent) for percent in (34, 66, 67, 99, 100)]
    assert [one["spec"]["rules"][0]["backendRefs"][2]["weight"] for one in weights] == [1, 1, 2, 2, 3]
    assert shift(GATEWAY, obj, PAIR, 33) is None
