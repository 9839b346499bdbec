"""Several rollouts in one route: each touches its own two backends, in whichever order they act."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.traffic.gateway_api import GatewayApi
from kedge.plan.traffic.shifting import Share, WeightsBefore, read, recorded, restore, shift
from kedge.plan.traffic.split import Pair
from plan.traffic.manifests import HTTP_ROUTE, patched, route

ROUTES = GatewayApi()
WEB, SEARCH = Pair("web-v1", "web-v2"), Pair("search-v1", "search-v2")


def shared() -> dict[str, Any]:
    """One rule that both share, and one for each."""

    def backends(*pairs: Pair) -> list[dict[str, Any]]:
        return [one for pair in pairs for one in ({"name": pair.source, "weight": 300}, {"name": pair.target})]

    rules = [
        {"name": f"rule-{index}", "backendRefs": backends(*pairs)}
        for index, pairs in enumerate([(WEB, SEARCH), (SEARCH,), (WEB,)])
    ]
    return route(HTTP_ROUTE, spec__rules=rules)


def written(obj: dict[str, Any], patch: object) -> dict[str, Any]:
    assert isinstance(patch, dict)
    return patched(obj, patch)


@pytest.mark.parametrize(("first", "second"), [(WEB, SEARCH), (SEARCH, WEB)])
def test_a_rollout_keeps_what_the_other_one_wrote(first: Pair, second: Pair) -> None:
    obj = shared()
    before = recorded(ROUTES, obj, first)
    assert isinstance(before, WeightsBefore)
    both = written(obj, shift(ROUTES, obj, first, 50))
    both = written(both, shift(ROUTES, both, second, 20))
    assert (read(ROUTES, both, first), read(ROUTES, both, second)) == (Share(50, 50), Share(80, 20))
    back = written(both, restore(ROUTES, both, first, before))
    assert back == written(obj, shift(ROUTES, obj, second, 20))
