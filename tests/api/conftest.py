"""Real API servers with the generated CRDs, live or as recorded, for the tests of this room."""

from collections.abc import Iterator, Mapping

import pytest

from api.apiserver import ApiServer
from api.editions import install
from controlplane.cluster import Cluster, Options
from controlplane.pytest_plugin import Clusters
from kedge.api.dialect import Dialect
from support.recording.api import RealApi
from support.recording.plugin import rows_of


@pytest.fixture(scope="session")
def crd_clusters(clusters: Clusters) -> Mapping[Dialect, Cluster]:
    """A cluster for each dialect."""
    started = clusters.many({f"crds-{dialect}": Options() for dialect in Dialect})
    return {dialect: started[f"crds-{dialect}"] for dialect in Dialect}


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest) -> Iterator[Mapping[Dialect, ApiServer]]:
    """A server for each dialect, with its CRDs. Tests leave nothing behind on them."""
    rows = rows_of(request)
    clusters: Mapping[Dialect, Cluster] = request.getfixturevalue("crd_clusters") if rows.is_live else {}
    opened = {dialect: ApiServer(RealApi(clusters.get(dialect), rows), with_owners=False) for dialect in Dialect}
    for dialect in clusters:
        install(opened[dialect], dialect)
    yield opened
    for server in opened.values():
        server.close()
