"""`kedge plan` of a staged run, from a file: what its gates make of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.test_plan import kedge, saved, told
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.kube.codec import Untyped
from kedge.simulate.loop import run
from kedge.simulate.preview.fleet_state import FleetState, to_yaml
from simulate.preview.reality import NAME, Scenario, deployment, fleet_picture

pytestmark = pytest.mark.timeout(400)
LABELS = {"cluster-1": {"env": "staging"}, "cluster-2": {"env": "canary"}, "cluster-3": {"env": "production"}}
GROUP = {"apiVersion": ClusterStagedUpdateRun.resource.api_version}


@pytest.fixture(scope="module")
def picture() -> FleetState:
    """Of a fleet on which nothing is placed yet."""
    return run(fleet_picture(Scenario(members=3, strategy={"type": "External"}, change=(), labels=LABELS)))


@pytest.fixture
def fleet(picture: FleetState, tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(to_yaml(picture))
    return file


def release(folder: Path, **spec: Any) -> Path:
    wanted = {"placementName": NAME, "stagedRolloutStrategyName": "careful", **spec}
    return saved(
        folder / "release.yaml",
        deployment("app:2"),
        {**GROUP, "kind": "ClusterStagedUpdateStrategy", "metadata": {"name": "careful"}, "spec": {"stages": STAGES}},
        {**GROUP, "kind": "ClusterStagedUpdateRun", "metadata": {"name": "run"}, "spec": wanted},
    )


def stage(name: str, *after: Mapping[str, str]) -> Untyped:
    return {"name": name, "labelSelector": {"matchLabels": {"env": name}}, "afterStageTasks": list(after)}


STAGES = [
    stage("staging", {"type": "TimedWait", "waitTime": "1h"}),
    stage("canary", {"type": "Approval"}),
    stage("production"),
]
ASSUMED = ("--ready-after", "20s", "--no-worst")


def times(course: Mapping[str, Any]) -> dict[str, float]:
    return {move["cluster"]: move["at"] for move in course["moves"]}


def test_stages_are_told_with_what_they_wait_for(fleet: Path, tmp_path: Path) -> None:
    result = kedge("plan", "-f", release(tmp_path), "--from", fleet, *ASSUMED)
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[1:5] == [
        "STAGE FROM TO CLUSTERS WAITS",
        "staging +0s +1h cluster-1 TimedWait after until +1h",
        "canary +1h +1h cluster-2 Approval after until +1h",
        "production +1h +1h 1m cluster-3",
    ]
    assert any(line.startswith("ends after 1h 1m, ") for line in lines)


def test_an_approval_that_takes_its_time_puts_off_what_comes_after(fleet: Path, tmp_path: Path) -> None:
    file = release(tmp_path)
    (course,) = told("-f", file, "--from", fleet, *ASSUMED, "--approve-after", "2h")["placements"]
    assert times(course) == pytest.approx(
        {"cluster-1": 0.0, "cluster-2": 3620.0, "cluster-3": 3 * 3600.0 + 40.0}, rel=0.01, abs=2.0
    )
    assert course["ends"] == pytest.approx(3 * 3600.0 + 60.0, rel=0.01)


def test_an_approval_that_never_comes_leaves_the_rest_where_it_is_and_says_so(fleet: Path, tmp_path: Path) -> None:
    result = kedge("plan", "-f", release(tmp_path), "--from", fleet, *ASSUMED, "--no-approval")
    assert result.exit_code == 3, result.output
    assert "2 clusters would move" in result.stdout
    assert "does not end within 1d: it stands still after 1h" in result.stdout
    assert "Approval after until somebody sees to it" in result.stdout
    assert "stage canary waits for approval: " in result.stdout
    assert "cluster-3: " in result.stdout.partition("not where they should be, in the end:")[2]


def test_a_placement_that_no_run_brings_anything_is_not_where_it_should_be(fleet: Path) -> None:
    result = kedge("plan", NAME, "--from", fleet, "--no-worst")
    assert result.exit_code == 3, result.output
    assert "where it should be\n" not in result.stdout
    assert "no staged update run brings it anything" in result.stdout
    assert "cluster-1, cluster-2 and cluster-3: a staged update run has to bring it its resources" in result.stdout


def test_a_release_that_no_run_brings_is_not_where_it_should_be(fleet: Path, tmp_path: Path) -> None:
    file = saved(tmp_path / "resources.yaml", deployment("app:2"))
    result = kedge("plan", "-f", file, "--from", fleet, "--no-worst")
    assert result.exit_code == 3, result.output


def test_who_approves_cannot_be_said_in_two_ways(fleet: Path, tmp_path: Path) -> None:
    both = ("--no-approval", "--approve-after", "1h")
    result = kedge("plan", "-f", release(tmp_path), "--from", fleet, *both)
    assert result.exit_code == 2
    assert "leave one out" in result.output


@pytest.mark.parametrize(("spec", "moved"), [({"state": "Run"}, [*LABELS]), ({}, [])])
def test_in_the_kubefleet_dialect_a_run_moves_only_if_it_says_so(
    fleet: Path, tmp_path: Path, spec: Mapping[str, str], moved: list[str]
) -> None:
    file = release(tmp_path, resourceSnapshotIndex="0", **spec)
    (course,) = told("-f", file, "--from", fleet, *ASSUMED, "--dialect", "kubefleet", "--within", "2h")["placements"]
    assert [*times(course)] == moved
