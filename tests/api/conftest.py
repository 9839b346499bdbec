"""Real API servers with the generated CRDs, for the tests of this room."""

from collections.abc import Iterator, Mapping

import pytest

from api.apiserver import ApiServer
from api.editions import install
from controlplane.plane import ControlPlane
from controlplane.pytest_plugin import run_apart
from kedge.api.dialect import Dialect


@pytest.fixture(scope="session")
def servers(shared_plane: ControlPlane) -> Iterator[Mapping[Dialect, ApiServer]]:
    """A server for each dialect, with its CRDs. Tests leave nothing behind on them."""
    clusters = run_apart(shared_plane.start_many([f"crds-{dialect}" for dialect in Dialect]))
    opened = {dialect: ApiServer(cluster) for dialect, cluster in zip(Dialect, clusters, strict=True)}
    for dialect, server in opened.items():
        install(server, dialect)
    yield opened
    for server in opened.values():
        server.close()
