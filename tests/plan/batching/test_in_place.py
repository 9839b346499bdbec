"""How pods of a workload that is changed in place are counted, and what each partition comes to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.condition import TRUE
from kedge.api.pods import Pod, PodCondition
from kedge.plan.batching.in_place import (
    InPlace,
    count_pods,
    is_pod_available,
    not_available,
    numbered_pods,
    numbers_pods,
    old_revision,
)
from kedge.plan.batching.moves import Workload, WorkloadRef
from kedge.plan.moving.wait import Blocker
from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.stateful_sets import StatefulSets
from plan.batching.in_place_worlds import pod

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
REF = WorkloadRef("apps/v1", "StatefulSet", "shop", "web")


def counting(replicas: int, partition: int, updated: int = 0, **more: Any) -> InPlace:
    return InPlace(replicas, partition, updated=updated, **more)


def numbered(replicas: int, partition: int, *updated_at: int, **more: Any) -> InPlace:
    places = frozenset(updated_at)
    return InPlace(replicas, partition, updated=len(places), updated_at=places, **more)


@pytest.mark.parametrize(
    ("found", "asked", "hold", "is_updated"),
    [
        (counting(5, 5), 0, 5, False),
        (counting(5, 3), 2, 5, False),
        (counting(5, 3, 2), 2, 3, False),
        (counting(5, 5, 3), 3, 2, False),  # pods that never left
        (counting(5, 0, 5), 5, 0, True),
        (counting(5, 0, 6), 6, 0, True),  # with a surge
        (counting(0, 0), 0, 0, True),
        (numbered(5, 5), 0, 5, False),
        (numbered(5, 3), 2, 5, False),
        (numbered(5, 3, 3, 4), 2, 3, False),
        (numbered(5, 5, 0, 1, 2), 3, 5, False),  # pods that never left
        (numbered(5, 4, 0, 1, 2, 4), 4, 4, False),
        (numbered(5, 2, 0), 4, 5, False),
        (numbered(2, 0, 0, 1), 2, 0, True),
        (numbered(2, 2, 0, 1), 2, 0, True),
        (numbered(0, 0), 0, 0, True),
        (InPlace(2, 0, updated=1, updated_at=frozenset({0, 1})), 2, 0, True),  # one is being created
    ],
)
def test_what_is_asked_for_and_what_holds_it_there(found: InPlace, asked: int, hold: int, is_updated: bool) -> None:
    assert found.asked == asked
    assert found.hold == hold
    assert found.is_updated == is_updated


@pytest.mark.parametrize(
    ("found", "partitions"),
    [
        (counting(4, 4), [4, 3, 2, 1, 0]),
        (counting(4, 4, 2), [4, 3, 2, 1, 0]),
        (numbered(4, 4), [4, 3, 2, 1, 0]),
        (numbered(4, 4, 0, 1), [4, 4, 4, 3, 2]),
        (numbered(4, 2, 2, 3), [4, 4, 4, 1, 0]),
        (numbered(4, 4, 1), [4, 4, 3, 2, 0]),
    ],
)
def test_the_partition_of_each_goal(found: InPlace, partitions: list[int]) -> None:
    assert [found.partition_for(goal) for goal in range(5)] == partitions
    assert found.partition_for(9) == partitions[-1]


@pytest.mark.parametrize(
    ("found", "moves"),
    [
        (counting(3, 3), False),
        (counting(3, 2), True),
        (counting(3, 2, 1), False),
        (counting(3, 0, paused=True), False),
        (numbered(3, 3), False),
        (numbered(3, 2), True),
        (numbered(3, 2, 2), False),
        (numbered(3, 2, 1), True),
        (numbered(3, 0, 0, 1, 2), False),
    ],
)
def test_whether_it_moves_by_itself(found: InPlace, moves: bool) -> None:
    assert found.moves_by_itself == moves


@pytest.mark.parametrize(
    ("found", "free"),
    [
        (counting(5, 5, all_available=5), 0),
        (counting(5, 5, all_available=3), 2),
        (counting(5, 3, 2, available=2, all_available=4), 1),
        (counting(5, 3, 2, available=2, all_available=5), 0),
        (counting(5, 3, 2, available=0, all_available=3), 0),
        (counting(5, 0, 5, available=5, all_available=5), 0),
        (numbered(4, 4, unavailable_at=frozenset({3, 2, 0})), 2),
        (numbered(4, 4, unavailable_at=frozenset({2})), 0),
        (numbered(4, 3, 3, unavailable_at=frozenset({3, 2})), 1),
        (numbered(4, 4, 3, unavailable_at=frozenset({2})), 1),
        (numbered(4, 4), 0),
        (numbered(4, 2, 3, unavailable_at=frozenset({2, 1})), 1),  # what is asked for already is not asked for again
    ],
)
def test_how_many_pods_can_be_asked_for_at_no_cost(found: InPlace, free: int) -> None:
    assert found.free == free


# From objects


def clone_set(status: dict[str, Any], **strategy: Any) -> Workload:
    spec = {"replicas": 5, "updateStrategy": strategy}
    obj = {"metadata": {"generation": 1}, "spec": spec, "status": {"observedGeneration": 1, "replicas": 5, **status}}
    return Workload(REF, obj)


@pytest.mark.parametrize(
    ("status", "ready", "available"),
    [
        ({"updatedReplicas": 3, "updatedReadyReplicas": 2, "updatedAvailableReplicas": 1}, 2, 1),
        ({"updatedReplicas": 3, "updatedReadyReplicas": 0, "updatedAvailableReplicas": 0}, 0, 0),
        # if it does not say, only what cannot be an old pod counts
        ({"updatedReplicas": 3, "readyReplicas": 5, "availableReplicas": 4}, 3, 2),
        ({"updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 1}, 0, 0),
        ({"updatedReplicas": 6, "readyReplicas": 2, "availableReplicas": 2}, 2, 2),
        ({}, 0, 0),
    ],
)
def test_only_updated_pods_count(status: dict[str, Any], ready: int, available: int) -> None:
    found = count_pods(CloneSets(), clone_set(status, partition=2), NOW)
    assert (found.ready, found.available) == (ready, available)
    assert (found.replicas, found.partition, found.updated) == (5, 2, status.get("updatedReplicas", 0))
    assert found.all_available == status.get("availableReplicas", 0)


@pytest.mark.parametrize(
    ("strategy", "partition", "paused"),
    [
        ({}, 0, False),
        ({"partition": 9}, 5, False),
        ({"partition": "40%"}, 2, False),
        ({"type": "OnDelete"}, 5, False),
        ({"paused": True, "partition": 1}, 1, True),
    ],
)
def test_the_partition_is_what_is_kept_back(strategy: dict[str, Any], partition: int, paused: bool) -> None:
    found = count_pods(CloneSets(), clone_set({}, **strategy), NOW)
    assert (found.partition, found.paused) == (partition, paused)


def stateful_set(*pods: Pod, partition: int = 0, current: str = "old", start: int = 0, **spec: Any) -> Workload:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    obj = {
        "metadata": {"generation": 1, "uid": "u"},
        "spec": {"replicas": 4, "updateStrategy": strategy, "ordinals": {"start": start}, **spec},
        "status": {"observedGeneration": 1, "updateRevision": "new", "currentRevision": current},
    }
    return Workload(REF, obj, pods=pods)


def test_numbered_pods_are_counted_by_their_labels() -> None:
    pods = (
        pod("web-0", "old"),
        pod("web-1", "old", ready=False),
        pod("web-2", "new", ready=False),
        pod("web-3", "new"),
        pod("web-7", "new"),
        pod("db-1", "new"),
    )
    found = count_pods(StatefulSets(), stateful_set(*pods, partition=2), NOW)
    assert found == InPlace(4, 2, False, 2, 1, 1, 2, updated_at=frozenset({2, 3}), unavailable_at=frozenset({1, 2}))


@pytest.mark.parametrize(
    ("partition", "current", "updated_at"),
    [(2, "old", {3}), (2, "new", {0, 3}), (0, "old", {0, 3}), (4, "old", set())],
)
def test_a_pod_that_is_missing_comes_back_as_the_partition_says(
    partition: int, current: str, updated_at: set[int]
) -> None:
    pods = (pod("web-1", "old"), pod("web-2", "old"))
    found = count_pods(StatefulSets(), stateful_set(*pods, partition=partition, current=current), NOW)
    assert found.updated_at == frozenset(updated_at)
    assert found.updated == 0


def test_a_terminating_pod_is_not_available() -> None:
    found = count_pods(StatefulSets(), stateful_set(pod("web-3", "new", terminating=True)), NOW)
    assert (found.updated, found.ready, found.available, found.all_available) == (1, 0, 0, 0)


def test_pods_are_numbered_from_the_first_number() -> None:
    pods = tuple(pod(f"web-{at}", "new") for at in (9, 10, 13, 14))
    assert sorted(numbered_pods(stateful_set(*pods, start=10), 4)) == [0, 3]


def aged(seconds: float) -> Pod:
    since = NOW - timedelta(seconds=seconds)
    made = pod("web-0", "new")
    ready = PodCondition(type="Ready", status=TRUE, last_transition_time=since)
    return replace(made, status=replace(made.status, conditions=(ready,)))


def test_a_pod_is_available_after_as_long_as_its_workload_asks_for() -> None:
    slow = {"spec": {"minReadySeconds": 10}}
    assert is_pod_available(aged(10), slow, NOW)
    assert not is_pod_available(aged(9), slow, NOW)
    assert not is_pod_available(aged(99), slow, None)
    assert is_pod_available(aged(0), {}, None)
    assert is_pod_available(aged(0), {}, NOW)
    assert not is_pod_available(pod("a", "new", ready=False), {}, None)
    assert not is_pod_available(pod("a", "new", terminating=True), {}, NOW)
    assert not_available((aged(9),), slow, NOW) == (Blocker("web-0", until=NOW + timedelta(seconds=1)),)


def test_pods_that_are_not_available_are_named_in_the_order_of_their_numbers() -> None:
    pods = tuple(pod(f"web-{at}", "new", ready=False) for at in (10, 2, 1))
    found = not_available((*pods, pod("web-3", "new")), {}, NOW)
    assert [one.key for one in found] == ["web-1", "web-2", "web-10"]
    assert {one.reported for one in found} == {"NotReady"}


def test_only_stateful_sets_of_kubernetes_number_their_pods() -> None:
    assert numbers_pods(StatefulSets())
    assert not numbers_pods(Deployments())
    assert not numbers_pods(StatefulSets(group="apps.kruise.io"))


def test_the_old_revision_is_the_one_that_most_pods_are_of() -> None:
    def found(*revisions: str, **status: str) -> str:
        pods = tuple(pod(f"web-{at}", revision) for at, revision in enumerate(revisions))
        obj = {"metadata": {"uid": "u"}, "status": status}
        return old_revision(Workload(WorkloadRef("apps/v1", "DaemonSet", "shop", "web"), obj, pods=pods))

    assert found("a", "b", "b", "c", "c", "c", updateRevision="c") == "b"
    assert found("a", "a", "b", "c", updateRevision="c") == "a"
    assert found("c", "", "", updateRevision="c") == "c"
    assert found("a", "b", "b", updateRevision="c", currentRevision="a") == "a"
    assert found() == ""
