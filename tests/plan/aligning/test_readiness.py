"""Whether a cluster is heard from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kedge.api.coordination import Lease, LeaseSpec
from kedge.api.karmada.clusters import Cluster
from kedge.plan.aligning.readiness import GRACE, LastHeartbeat, heard, ready_condition, seconds_left

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FIRST, SECOND = "2030-01-01T00:00:00.000000Z", "2030-01-01T00:00:10.000000Z"


def lease(renewed: str | None) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=renewed))


def cluster(status: str | None) -> Cluster:
    ready = {"type": "Ready", "status": status, "reason": "x", "message": "", "lastTransitionTime": FIRST}
    body: dict[str, Any] = {"metadata": {"name": "a"}, "status": {"conditions": [ready] if status else []}}
    return msgspec.convert(body, Cluster)


@pytest.mark.parametrize(
    ("before", "there", "expected"),
    [
        (None, None, None),
        (None, lease(None), None),
        (None, lease(FIRST), LastHeartbeat(FIRST, 100.0, is_found=True)),
        (LastHeartbeat(FIRST, 5.0), lease(FIRST), LastHeartbeat(FIRST, 5.0)),
        (LastHeartbeat(FIRST, 5.0), lease(SECOND), LastHeartbeat(SECOND, 100.0)),
        (LastHeartbeat(SECOND, 5.0), lease(FIRST), LastHeartbeat(FIRST, 100.0)),
        (LastHeartbeat(FIRST, 5.0), None, LastHeartbeat(FIRST, 5.0)),
    ],
)
def test_a_heartbeat_is_a_time_that_changes_whatever_it_is(
    before: LastHeartbeat | None, there: Lease | None, expected: LastHeartbeat | None
) -> None:
    assert heard(before, there, 100.0) == expected


def test_a_lease_that_comes_while_the_hub_looks_is_a_heartbeat() -> None:
    assert heard(None, lease(FIRST), 100.0, was_absent=True) == LastHeartbeat(FIRST, 100.0)


@pytest.mark.parametrize(
    ("was", "last", "status"),
    [
        (None, None, "Unknown"),
        (None, LastHeartbeat(FIRST, 90.0), "True"),
        (None, LastHeartbeat(FIRST, 90.0, is_found=True), "Unknown"),
        ("True", LastHeartbeat(FIRST, 90.0, is_found=True), "True"),
        ("Unknown", LastHeartbeat(FIRST, 90.0, is_found=True), "Unknown"),
        ("Unknown", LastHeartbeat(FIRST, 90.0), "True"),
        ("True", LastHeartbeat(FIRST, 100.0 - GRACE), "Unknown"),
        ("True", LastHeartbeat(FIRST, 100.1 - GRACE), "True"),
        ("True", None, "Unknown"),
    ],
)
def test_a_cluster_is_ready_while_it_is_heard(was: str | None, last: LastHeartbeat | None, status: str) -> None:
    found = ready_condition(cluster(was), last, 100.0, NOW)
    assert (found.type, found.status) == ("Ready", status)
    assert found.reason == ("ClusterReady" if status == "True" else "ClusterStatusUnknown")


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (None, "Its agent was not heard yet: is it running?"),
        (LastHeartbeat(FIRST, 10.0), "Cluster stopped posting cluster status."),
        (LastHeartbeat(FIRST, 90.0), "cluster is healthy and ready to accept workloads"),
    ],
)
def test_a_cluster_says_whether_it_was_ever_heard(last: LastHeartbeat | None, message: str) -> None:
    assert ready_condition(cluster("True"), last, 100.0, NOW).message == message


def test_a_cluster_that_is_to_be_pushed_to_says_that_nobody_does() -> None:
    pushed = msgspec.convert({"metadata": {"name": "a"}, "spec": {"syncMode": "Push"}}, Cluster)
    assert "spec.syncMode is Push, but nothing is pushed" in ready_condition(pushed, None, 100.0, NOW).message
    assert ready_condition(pushed, LastHeartbeat(FIRST, 90.0), 100.0, NOW).status == "True"


def test_how_long_it_still_counts_as_heard() -> None:
    assert seconds_left(None, 100.0) == 0.0
    assert seconds_left(LastHeartbeat(FIRST, 90.0), 100.0) == GRACE - 10.0
    assert seconds_left(LastHeartbeat(FIRST, 10.0), 100.0) == 0.0
