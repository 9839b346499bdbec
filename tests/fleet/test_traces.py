"""The recorded fleets, reproduced on both backends in the kubefleet dialect, object by object."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet import kinds
from fleet.bed import SECONDS, Backend
from fleet.comparing import compare, report
from fleet.differences import KNOWN, outdated, unknown
from fleet.story import STEPS, Story
from fleet.traces import load, names

DOCS = Path(__file__).parents[2] / "docs" / "kubefleet.md"
TRACES = [name[:2] for name in names()]
WAITS = {"16": 41.0, "18": 41.0}
"""What the strategy itself waits for in these steps."""

pytestmark = pytest.mark.timeout(SECONDS)


@pytest.fixture(scope="session")
def story(backend: Backend) -> Story:
    """The whole story, told once on this backend."""
    told = Story()
    backend.play(told.tell)
    return told


def test_every_trace_is_part_of_the_story() -> None:
    assert set(TRACES) <= set(STEPS)


@pytest.mark.parametrize("trace", TRACES)
def test_a_recorded_fleet_is_reproduced(story: Story, trace: str) -> None:
    differences = unknown(trace, compare(load(trace), story.at(trace)))
    assert not differences, f"{len(differences)} differences:\n{report(differences)}"


@pytest.mark.parametrize("trace", TRACES)
def test_every_known_difference_still_occurs(story: Story, backend: Backend, trace: str) -> None:
    assert outdated(trace, backend.name, compare(load(trace), story.at(trace))) == []


def test_no_reconcile_fails_on_the_way(story: Story) -> None:
    assert story.failures == []


def test_every_change_is_worked_off_within_ten_seconds(backend: Backend, story: Story) -> None:
    """In virtual time: on real clusters it is their namespaces that take their time to go, and the machine."""
    if backend.real is None:
        took = {step: seconds - WAITS.get(step, 0.0) for step, seconds in story.seconds.items()}
        assert {step: seconds for step, seconds in took.items() if seconds > 10.0} == {}
    assert set(story.seconds) == set(STEPS)


def test_a_cluster_that_was_held_up_gets_its_resources_in_the_end(story: Story) -> None:
    (placement,) = story.at("08-rest").of("ClusterResourcePlacement")
    available = [
        entry["clusterName"]
        for entry in placement["status"]["placementStatuses"]
        for condition in entry["conditions"]
        if condition["type"] == "Available" and condition["status"] == "True"
    ]
    assert sorted(available) == ["cluster-3", "cluster-4"]


def test_a_member_that_leaves_keeps_what_was_placed_on_it(story: Story) -> None:
    left = story.at("19")
    assert [obj["metadata"]["name"] for obj in left.of("Deployment", "cluster-4")] == ["web"]
    assert "cluster-4" not in [obj["metadata"]["name"] for obj in left.of("MemberCluster")]
    assert "fleet-member-cluster-4" not in [obj["metadata"]["name"] for obj in left.of(kinds.NAMESPACES.resource.kind)]


def test_a_cluster_that_is_no_longer_picked_is_cleared_by_the_next_run(story: Story) -> None:
    rest = story.at("18-rest")
    (second,) = (obj for obj in rest.of("ClusterStagedUpdateRun") if obj["metadata"]["name"] == "second")
    (cluster,) = second["status"]["deletionStageStatus"]["clusters"]
    assert (cluster["clusterName"], cluster["conditions"][1]["reason"]) == ("cluster-4", "ClusterUpdatingSucceeded")
    assert "fleet-member-cluster-4" not in [obj["metadata"]["namespace"] for obj in rest.of("Work")]
    assert "test-namespace" not in [obj["metadata"]["name"] for obj in rest.of("Namespace", "cluster-4")]


@pytest.mark.parametrize("heading", sorted({known.heading for known in KNOWN}))
def test_every_known_difference_is_told_of_in_the_docs(heading: str) -> None:
    assert f"### {heading}\n" in DOCS.read_text()


def test_the_docs_tell_of_no_difference_that_is_not_known() -> None:
    section = DOCS.read_text().partition("## In the recorded fleets\n")[2].partition("\n## ")[0]
    headings = [line.removeprefix("### ") for line in section.splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted({known.heading for known in KNOWN})
