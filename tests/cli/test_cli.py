"""The `kedge` command."""

import pytest
import yaml
from click.testing import CliRunner

from kedge.cli import main


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("dialect", ["seed", "kubefleet"])
def test_crds_are_printed_for_kubectl(dialect: str) -> None:
    printed = list(yaml.safe_load_all(run("crds", "--dialect", dialect)))
    assert {document["kind"] for document in printed} == {"CustomResourceDefinition"}
    assert "clusterresourceplacements.placement.kubernetes-fleet.io" in {item["metadata"]["name"] for item in printed}


def test_the_seed_dialect_is_the_default() -> None:
    assert run("crds") == run("crds", "--dialect", "seed") != run("crds", "--dialect", "kubefleet")


def test_the_kinds_of_rollout_groups_are_asked_for_by_name() -> None:
    printed = list(yaml.safe_load_all(run("crds", "--zones")))
    assert [item["spec"]["names"]["kind"] for item in printed] == ["ReplicaTemplate", "ZoneAwarePodDisruptionBudget"]


def test_the_kinds_of_rollouts_in_batches_are_asked_for_by_name() -> None:
    printed = list(yaml.safe_load_all(run("crds", "--batches")))
    kinds = [item["spec"]["names"]["kind"] for item in printed]
    assert kinds[:4] == ["Application", "ApplicationRevision", "Component", "ApplicationConfiguration"]
    assert kinds[4:] == ["RolloutTrait", "Rollout", "AppRollout", "ApplicationDeployment"]


def test_the_kinds_of_karmada_are_printed_for_kubectl() -> None:
    printed = list(yaml.safe_load_all(run("crds", "--karmada")))
    groups = {one["spec"]["group"] for one in printed}
    assert groups == {"cluster.karmada.io", "policy.karmada.io", "work.karmada.io", "karmada.io"}


def test_the_kind_of_openkruise_is_printed_for_clusters_without_it() -> None:
    (printed,) = yaml.safe_load_all(run("crds", "--kruise"))
    assert printed["metadata"]["name"] == "clonesets.apps.kruise.io"


def test_two_sets_of_kinds_at_once_are_refused() -> None:
    result = CliRunner().invoke(main, ["crds", "--batches", "--zones"])
    assert result.exit_code == 2
    assert "use one of them" in result.output


def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(main, ["crds", "--dialect", "klingon"])
    assert result.exit_code == 2
    assert "seed" in result.output
