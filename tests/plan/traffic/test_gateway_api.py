"""When an HTTPRoute is in effect."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.traffic.gateway_api import GatewayApi
from kedge.plan.traffic.istio import Istio
from kedge.plan.traffic.nginx import Nginx
from kedge.plan.traffic.wait_text import wait_text
from plan.traffic.manifests import CANARY, HTTP_ROUTE, VIRTUAL_SERVICE, route

CONDITIONS = "status__parents__0__conditions__{}"
NOT_YET = "HTTPRoute shop/web is not in effect yet: "


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        ({"metadata__generation": 2}, None),  # said of a later generation
        (
            {"metadata__generation": 4},
            f"{NOT_YET}Gateway front: it has not reported Accepted of the present weights yet",
        ),
        (
            {CONDITIONS.format("1__observedGeneration"): 2},
            f"{NOT_YET}Gateway front: it has not reported ResolvedRefs of the present weights yet",
        ),
        (
            {CONDITIONS.format("0__observedGeneration"): None},
            f"{NOT_YET}Gateway front: it has not reported Accepted of the present weights yet",
        ),
        (
            {CONDITIONS.format("1"): None},
            f"{NOT_YET}Gateway front: it has not reported ResolvedRefs of the present weights yet",
        ),
        (
            {
                CONDITIONS.format("1"): {
                    "type": "ResolvedRefs",
                    "status": "False",
                    "observedGeneration": 3,
                    "reason": "BackendNotFound",
                    "message": "no Service web-v2",
                }
            },
            f"{NOT_YET}Gateway front: ResolvedRefs is False: BackendNotFound: no Service web-v2",
        ),
        (
            {CONDITIONS.format("0__status"): None},
            f"{NOT_YET}Gateway front: Accepted is Unknown: Accepted: ",
        ),
        ({"status": None}, f"{NOT_YET}Gateway front: it has not reported on the route yet"),
        ({"status": None, "metadata__annotations": {"kedge.dev/assume-accepted": "true"}}, None),
        (
            {"status": None, "metadata__annotations": {"kedge.dev/assume-accepted": "yes"}},
            f"{NOT_YET}Gateway front: it has not reported on the route yet",
        ),
        ({"spec__parentRefs": None}, f"{NOT_YET}gateway: the route names no gateway in spec.parentRefs"),
        ({"spec__parentRefs": ["x"]}, f"{NOT_YET}gateway: the route names no gateway in spec.parentRefs"),
        ({"spec__parentRefs__0": {"name": "front", "namespace": "shop"}}, None),
        (
            {"spec__parentRefs__0": {"name": "front", "namespace": "infra"}},
            f"{NOT_YET}Gateway infra/front: it has not reported on the route yet",
        ),
        (
            {"spec__parentRefs__0": {"name": "front", "sectionName": "https"}},
            f"{NOT_YET}Gateway front: it has not reported on the route yet",
        ),
        (
            {"spec__parentRefs__0": {"name": "front", "port": 8080}},
            f"{NOT_YET}Gateway front: it has not reported on the route yet",
        ),
        (
            {"spec__parentRefs__0": {"name": "front", "kind": "Service", "group": ""}},
            f"{NOT_YET}Service front: it has not reported on the route yet",
        ),
        (
            {"spec__parentRefs__0": {"name": "front", "group": "example.com"}},
            f"{NOT_YET}Gateway front: it has not reported on the route yet",
        ),
        (
            {"spec__parentRefs": [{"name": "front"}, {"name": "inner"}]},
            f"{NOT_YET}Gateway inner: it has not reported on the route yet",
        ),
        # What is still said of a gateway that is not asked for any more does not count.
        ({"status__parents__0__extra": 1, "metadata__labels": {}}, None),
        ({"status__parents": [None, 3]}, f"{NOT_YET}Gateway front: it has not reported on the route yet"),
        ({"status__parents": [{"parentRef": 1}]}, f"{NOT_YET}Gateway front: it has not reported on the route yet"),
    ],
)
def test_a_route_is_in_effect_when_every_gateway_says_so_of_its_generation(
    changes: dict[str, Any], text: str | None
) -> None:
    wait = GatewayApi().accepted(route(HTTP_ROUTE, **changes))
    assert (wait_text(wait) if wait is not None else None) == text


def test_every_report_on_a_gateway_counts_and_none_on_others() -> None:
    obj = route(HTTP_ROUTE)
    refused = [{"type": "Accepted", "status": "False", "observedGeneration": 3, "reason": "No", "message": "no"}]
    elsewhere = {"parentRef": {"name": "gone"}, "conditions": refused}
    obj["status"]["parents"].append(elsewhere)
    assert GatewayApi().accepted(obj) is None
    obj["status"]["parents"].append({"parentRef": {"name": "front"}, "conditions": refused})
    wait = GatewayApi().accepted(obj)
    assert wait is not None
    assert wait_text(wait) == f"{NOT_YET}Gateway front: Accepted is False: No: no"


def test_istio_and_nginx_need_not_report() -> None:
    assert Istio().accepted(route(VIRTUAL_SERVICE)) is None
    assert Nginx().accepted(route(CANARY)) is None
