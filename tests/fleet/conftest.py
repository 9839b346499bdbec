"""`backend`: every test that asks for it runs twice, on an embedded fleet and on a real one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from controlplane.cluster import Cluster, Options
from controlplane.pytest_plugin import Clusters
from fleet.bed import MEMBERS, Backend
from support.scheduling import FLEET, scope_of

KEEPS_HOUSE = (
    *("namespace-controller", "garbage-collector-controller", "serviceaccount-controller"),
    "root-ca-certificate-publisher-controller",
)
"""The controllers of a hub: what is placed from it does not run on it."""


@pytest.fixture(scope="session")
def real_fleet(clusters: Clusters) -> Mapping[str, Cluster]:
    """A real hub and four real members, by name. One test at a time has them: `support.scheduling` sees to that."""
    hub = Options(controllers=True, only=KEEPS_HOUSE)
    return clusters.many({"hub": hub, **dict.fromkeys(MEMBERS, Options(controllers=True, nodes=1))})


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if scope_of(item.nodeid) == FLEET and (nextitem is None or scope_of(nextitem.nodeid) != FLEET):
        Clusters(item.config).give_back("hub", *MEMBERS)


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)], scope="session")
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "embedded":
        return Backend("embedded")
    return Backend("real", request.getfixturevalue("real_fleet"))
