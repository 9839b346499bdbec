"""Clusters of the tests here.

`without_nodes`: a control plane on which tests play kubelet; `without_nodes_api`: the same, live or as recorded;
`zones_cluster`: one whose Services can be reached, for operators and their webhooks.
"""

import pytest

from controlplane.cluster import Cluster, Options
from controlplane.pytest_plugin import Clusters
from real.zone_operator import zone_cluster
from support.recording.api import RealApi
from support.recording.plugin import api_of


@pytest.fixture(scope="session")
def without_nodes(clusters: Clusters) -> Cluster:
    """A shared cluster with controllers, and nobody to run pods: what is deleted is gone at once."""
    return clusters("without-nodes", Options(controllers=True))


@pytest.fixture(scope="session")
def zones_cluster(clusters: Clusters) -> Cluster:
    """A shared cluster with simulated pods, and Services on loopback. Webhooks there are for one namespace each."""
    return clusters("zones", zone_cluster())


@pytest.fixture(scope="session")
def strict_cluster(clusters: Clusters) -> Cluster:
    """A shared cluster with simulated pods, whose API server asks whether owners may be named, and may block."""
    flags = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
    return clusters("strict", Options(controllers=True, nodes=2, apiserver_flags=flags))


@pytest.fixture(scope="module")
def without_nodes_api(request: pytest.FixtureRequest) -> RealApi:
    return api_of(request, "without_nodes", others_act=True)
