"""Generated CRDs against the contract: every row of kubefleet-fields.tsv for the kinds built so far, and no other."""

import re
from collections.abc import Iterator

from api.rows import FieldRow, KindRow, Node, constraints, contract, field_rows, kind_rows, nodes, type_of
from kedge.api.condition import REASON_PATTERN
from kedge.api.crds import KINDS, crds
from kedge.api.dialect import Dialect

BUILT = {kind.resource.kind for kind in KINDS}
KIND_ROWS, FIELD_ROWS = contract()
RUNS = {"ClusterStagedUpdateRun", "StagedUpdateRun"}
STRATEGIES = {"ClusterStagedUpdateStrategy", "StagedUpdateStrategy"}
PLACEMENTS = {"ClusterResourcePlacement", "ResourcePlacement"}
APPROVALS = {"ClusterApprovalRequest", "ApprovalRequest"}


def test_every_kind_of_the_contract_that_is_built_is_as_it_says() -> None:
    expected = {row for row in KIND_ROWS if row.kind in BUILT}
    assert {row for crd in crds(Dialect.kubefleet) for row in kind_rows(crd)} == expected


def test_every_field_of_the_contract_is_there_and_no_other() -> None:
    expected = {row for row in FIELD_ROWS if row.kind in BUILT}
    assert {row for crd in crds(Dialect.kubefleet) for row in field_rows(crd)} == expected


def test_the_contract_is_not_empty_for_any_kind() -> None:
    assert {row.kind for row in FIELD_ROWS} >= BUILT
    assert {row.kind for row in KIND_ROWS} >= BUILT


def seed_kind(row: KindRow) -> KindRow:
    """A row of the contract as the seed wants it."""
    if row.kind in RUNS:
        # Seed 002, "Check the status of a staged rollout": the table has the columns
        # NAME PLACEMENT RESOURCE-SNAPSHOT POLICY-SNAPSHOT INITIALIZED SUCCEEDED AGE.
        columns = row.columns.replace("-Snapshot-Index=", "-Snapshot=")
        progressing = 'Progressing=.status.conditions[?(@.type=="Progressing")].status; '
        return row._replace(columns=columns.replace(progressing, ""))
    if row.kind in APPROVALS:
        # Seed 002, "Submit approvals for staged updates": the table has the columns
        # NAME UPDATE-RUN STAGE APPROVED APPROVALACCEPTED AGE.
        accepted = 'ApprovalAccepted=.status.conditions[?(@.type=="ApprovalAccepted")].status; Age='
        return row._replace(columns=row.columns.replace("Age=", accepted))
    return row


def seed_field(row: FieldRow) -> FieldRow:
    """A row of the contract as the seed wants it."""
    if row.kind in RUNS and row.path == "spec.state":
        # Seed 002, "Using a staged update strategy": the manifest has no `state`, and after step 4 the run "has been
        # initialized and has been running for 44 seconds".
        return row._replace(constraints=row.constraints.replace("default='Initialize'", "default='Run'"))
    if row.kind in RUNS and row.path.endswith(".beforeStageTaskStatus"):
        # The stage that clears clusters may be guarded by an approval and a wait at once.
        return row._replace(constraints=row.constraints.replace("maxItems=1", "maxItems=2"))
    return row


OWN = re.compile(
    r"status\.previousResourceSnapshotIndex|status\.(stagesStatus\[\]|deletionStageStatus)\.metrics.*"
    r"|(spec|status\.stagedUpdateStrategySnapshot)\.(stages\[\]\.(maxFailures|metrics.*)|deleteStageTasks.*"
    r"|unmatchedClusters|unreachableClusters|rollbackOnFailure)"
    r"|spec\.strategy\.rollingUpdate\.podBudget"
)
"""What a strategy can say here alone: docs/kubefleet.md tells of it."""


_REPORTED = "status.manifestConditions[].backReportedStatus"
OF_V1_TOO = ("spec.strategy.deleteStrategy", "spec.strategy.reportBackStrategy", "spec.reportBackStrategy", _REPORTED)
"""What KubeFleet has in v1beta1 alone, where it does nothing. Here it does, so a write of v1 must not take it away."""


def seed_fields() -> set[FieldRow]:
    """The rows of the contract as the seed wants them, for the kinds built so far."""
    found = {row for row in FIELD_ROWS if row.kind in BUILT}
    versions = {(row.kind, row.version) for row in found}
    more = {row._replace(version="v1") for row in found if row.version == "v1beta1" and row.path.startswith(OF_V1_TOO)}
    return {seed_field(row) for row in found | {row for row in more if (row.kind, "v1") in versions}}


def test_the_seed_dialect_differs_in_the_listed_kinds_only() -> None:
    expected = {seed_kind(row) for row in KIND_ROWS if row.kind in BUILT}
    assert {row for crd in crds(Dialect.seed) for row in kind_rows(crd)} == expected


def test_the_seed_dialect_differs_in_the_listed_fields_only() -> None:
    expected = seed_fields()
    found = {row for crd in crds(Dialect.seed) for row in field_rows(crd)}
    own = {row for row in found if OWN.fullmatch(row.path)}
    assert found - own == expected
    assert {row.kind for row in own} == {*RUNS, *STRATEGIES, *PLACEMENTS}


def condition_lists(dialect: Dialect) -> Iterator[tuple[str, set[tuple[str, ...]]]]:
    """What each list of conditions holds, by kind and path."""
    for crd in crds(dialect):
        for version in crd["spec"]["versions"]:
            for path, node, _ in nodes(version["schema"]["openAPIV3Schema"]):
                if path.endswith("conditions[]"):
                    yield f"{crd['spec']['names']['kind']} {path}", spelt_out(node)


def spelt_out(node: Node) -> set[tuple[str, ...]]:
    return {
        (path, ("*" if required else "") + type_of(child), constraints(child)) for path, child, required in nodes(node)
    }


CONDITION = {
    (path.rpartition(".")[2], type_, rest)
    for kind, version, path, type_, rest in FIELD_ROWS
    if (kind, version) == ("ClusterResourcePlacement", "v1beta1") and ".failedPlacements[].condition." in path
}
"""The one condition that the contract spells out; elsewhere it says `conditions[]` alone."""


def test_lists_of_conditions_hold_what_the_contract_spells_out_for_one() -> None:
    assert len(CONDITION) == 6
    assert [path for path, held in condition_lists(Dialect.kubefleet) if held != CONDITION] == []


def test_in_the_seed_dialect_only_an_approval_may_give_its_reason_in_plain_words() -> None:
    # Seed 002, "Submit a patch request to approve": `"reason":"tested as OK"`.
    differing = {path: CONDITION ^ held for path, held in condition_lists(Dialect.seed) if held != CONDITION}
    lengths = "minLength=1 maxLength=1024"
    plain = {("reason", "*string", lengths), ("reason", "*string", rf"{lengths} pattern={REASON_PATTERN!r}")}
    assert differing == {f"{kind} status.conditions[]": plain for kind in APPROVALS}
