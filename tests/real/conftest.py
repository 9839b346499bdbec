"""`without_nodes`: a control plane on which the tests play kubelet."""

import pytest

from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from controlplane.pytest_plugin import run_apart


@pytest.fixture(scope="session")
def without_nodes(shared_plane: ControlPlane) -> Cluster:
    """A shared cluster with controllers, and nobody to run pods: what is deleted is gone at once."""
    return run_apart(shared_plane.start("without-nodes", controllers=True, nodes=0))
