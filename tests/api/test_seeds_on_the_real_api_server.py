"""What the seeds' users write and read, on a real kube-apiserver in both dialects."""

from collections.abc import Mapping
from typing import Any

import pytest

from api.apiserver import ApiServer
from api.editions import EDITIONS, Edition, edition_of, kept, offered, reported, updated
from api.manifests import APPROVAL, MANIFESTS, RUN, STATUS
from kedge.api.dialect import Dialect

Servers = Mapping[Dialect, ApiServer]
Object = dict[str, Any]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
every_dialect = pytest.mark.parametrize("dialect", Dialect)


@every_dialect
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["metadata"]["name"])
def test_a_manifest_of_the_seeds_is_accepted_unchanged(servers: Servers, dialect: Dialect, manifest: Object) -> None:
    answer = offered(servers[dialect], edition_of(dialect, manifest), manifest)
    assert answer.accepted, answer.said
    assert answer.warnings == []


@every_dialect
def test_the_status_of_the_seed_is_accepted_unchanged(servers: Servers, dialect: Dialect) -> None:
    server, edition = servers[dialect], edition_of(dialect, RUN)
    with kept(server, edition, RUN):
        answer = reported(server, edition, RUN["metadata"]["name"], STATUS["status"])
    assert answer.accepted, answer.said
    assert answer.body["status"] == with_defaults(STATUS["status"])


def with_defaults(status: Object) -> Object:
    """The status as a server gives it back: stages update one cluster at a time unless they say otherwise."""
    stages = [{"maxConcurrency": 1, **stage} for stage in status["stagedUpdateStrategySnapshot"]["stages"]]
    return {**status, "stagedUpdateStrategySnapshot": {"stages": stages}}


@pytest.mark.parametrize(("dialect", "state"), [(Dialect.seed, "Run"), (Dialect.kubefleet, "Initialize")])
def test_a_run_without_a_state_runs_in_the_seed_and_waits_in_kubefleet(
    servers: Servers, dialect: Dialect, state: str
) -> None:
    assert offered(servers[dialect], edition_of(dialect, RUN), RUN).body["spec"]["state"] == state


@pytest.mark.parametrize(
    ("dialect", "to", "accepted"),
    [
        (Dialect.seed, "Stop", True),
        (Dialect.seed, "Initialize", False),
        (Dialect.seed, "Run", True),
        (Dialect.kubefleet, "Stop", False),
        (Dialect.kubefleet, "Initialize", True),
        (Dialect.kubefleet, "Run", True),
    ],
)
def test_a_run_without_a_state_may_go_where_its_default_may(
    servers: Servers, dialect: Dialect, to: str, accepted: bool
) -> None:
    moved = {**RUN, "spec": {**RUN["spec"], "state": to}}
    assert updated(servers[dialect], edition_of(dialect, RUN), RUN, moved).accepted is accepted


def test_a_stopped_run_goes_on_when_its_state_is_taken_away_in_the_seed_dialect(servers: Servers) -> None:
    stopped = {**RUN, "spec": {**RUN["spec"], "state": "Stop"}}
    answer = updated(servers[Dialect.seed], edition_of(Dialect.seed, RUN), stopped, RUN)
    assert answer.accepted, answer.said
    assert answer.body["spec"]["state"] == "Run"


@pytest.mark.parametrize(("dialect", "state"), [(Dialect.seed, "Run"), (Dialect.kubefleet, "Initialize")])
def test_a_run_written_in_v1alpha1_has_the_default_state_in_the_stored_version(
    servers: Servers, dialect: Dialect, state: str
) -> None:
    server, stored = servers[dialect], edition_of(dialect, RUN)
    old = {**RUN, "apiVersion": "placement.kubernetes-fleet.io/v1alpha1"}
    with kept(server, edition_of(dialect, old), old) as there:
        read = server.ask("GET", f"{stored.path}/{RUN['metadata']['name']}").body
        again = {**RUN, "metadata": there["metadata"], "spec": {**RUN["spec"], "state": "Run"}}
        moved = server.ask("PUT", f"{stored.path}/{RUN['metadata']['name']}?dryRun=All", again)
    assert read["spec"]["state"] == state
    assert moved.accepted, moved.said


@every_dialect
@pytest.mark.parametrize("kind", ["ClusterApprovalRequest", "ApprovalRequest"])
def test_an_approval_in_plain_words_is_accepted_in_the_seed_dialect_only(
    servers: Servers, dialect: Dialect, kind: str
) -> None:
    for edition in (edition for edition in EDITIONS if (edition.dialect, edition.kind) == (dialect, kind)):
        with kept(servers[dialect], edition, edition.minimal("example-staged-update-run-canary")):
            answer = reported(servers[dialect], edition, "example-staged-update-run-canary", APPROVAL)
        assert answer.accepted is (dialect is Dialect.seed), answer.said
        assert answer.accepted or answer.causes[0][0] == "status.conditions[0].reason"


@every_dialect
def test_elsewhere_a_reason_is_one_word(servers: Servers, dialect: Dialect) -> None:
    edition = edition_of(dialect, RUN)
    with kept(servers[dialect], edition, RUN):
        answer = reported(servers[dialect], edition, RUN["metadata"]["name"], APPROVAL)
    assert [field for field, _ in answer.causes] == ["status.conditions[0].reason"]


SEED_RUN = "Name Placement Resource-Snapshot Policy-Snapshot Initialized Succeeded Age Strategy"
FLEET_RUN = (
    "Name Placement Resource-Snapshot-Index Policy-Snapshot-Index Initialized Progressing Succeeded Age Strategy"
)
SEED_APPROVAL = "Name Update-Run Stage Approved ApprovalAccepted Age"
FLEET_APPROVAL = "Name Update-Run Stage Approved Age"


@pytest.mark.parametrize(
    ("dialect", "kind", "columns"),
    [
        (Dialect.seed, "ClusterStagedUpdateRun", SEED_RUN),
        (Dialect.seed, "StagedUpdateRun", SEED_RUN),
        (Dialect.seed, "ClusterApprovalRequest", SEED_APPROVAL),
        (Dialect.seed, "ApprovalRequest", SEED_APPROVAL),
        (Dialect.kubefleet, "ClusterStagedUpdateRun", FLEET_RUN),
        (Dialect.kubefleet, "StagedUpdateRun", FLEET_RUN),
        (Dialect.kubefleet, "ClusterApprovalRequest", FLEET_APPROVAL),
        (Dialect.kubefleet, "ApprovalRequest", FLEET_APPROVAL),
    ],
)
def test_a_table_has_the_columns_its_dialect_shows(servers: Servers, dialect: Dialect, kind: str, columns: str) -> None:
    shown = [column["name"] for column in table(servers[dialect], storage_edition(dialect, kind))["columnDefinitions"]]
    assert shown == columns.split()


def test_the_table_of_a_run_reads_as_in_the_seed(servers: Servers) -> None:
    server, edition = servers[Dialect.seed], edition_of(Dialect.seed, RUN)
    with kept(server, edition, RUN):
        path = f"{edition.path}/{RUN['metadata']['name']}/status"
        server.ask("PATCH", path, {"status": STATUS["status"]}, "application/merge-patch+json")
        [row] = table(server, edition)["rows"]
    *cells, age, strategy = row["cells"]
    assert cells == ["example-staged-update-run", "crp-staged-update-sample", "1", "0", "True", None]
    assert age.endswith("s")
    assert strategy == "example-staged-strategy"


def table(server: ApiServer, edition: Edition) -> Object:
    return server.ask("GET", edition.path, accept=TABLE).body


def storage_edition(dialect: Dialect, kind: str) -> Edition:
    return next(e for e in EDITIONS if e.dialect is dialect and e.kind == kind and e.version["storage"])
