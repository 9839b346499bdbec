"""`backend`: every test that asks for it runs twice, on an embedded fleet and on a real one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from controlplane.binaries import Binaries
from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from controlplane.pytest_plugin import run_apart
from fleet.bed import MEMBERS, Backend

KEEPS_HOUSE = (
    *("namespace-controller", "garbage-collector-controller", "serviceaccount-controller"),
    "root-ca-certificate-publisher-controller",
)
"""The controllers of a hub: what is placed from it does not run on it."""


@pytest.fixture(scope="session")
def real_fleet(binaries: Binaries) -> Iterator[Mapping[str, Cluster]]:
    """A real hub and four real members, by name."""
    plane = ControlPlane(binaries)
    run_apart(plane.open())
    try:
        run_apart(_start(plane))
        yield dict(plane.clusters)
    finally:
        plane.close()


async def _start(plane: ControlPlane) -> None:
    await plane.start("hub", only=KEEPS_HOUSE)
    await plane.start_many(MEMBERS, controllers=True, nodes=1)


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)], scope="session")
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "embedded":
        return Backend("embedded")
    return Backend("real", request.getfixturevalue("real_fleet"))
