"""Which pods a ReplicaSet makes and deletes, and what it says of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from embedded.workloads.making import NOW, pod, replica_set
from kedge.api.pods import Pod
from kedge.embedded.workloads.replica_plan import AT_ONCE, COST, FAILURE, Failure, by_regret, plan, status
from kedge.plan.workloads import pods


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        pytest.param(pod("b", node=""), pod("a", phase="Pending"), id="on no node before on one"),
        pytest.param(pod("b", phase="Pending"), pod("a"), id="pending before running"),
        pytest.param(pod("b"), pod("a", ready=9), id="not ready before ready"),
        pytest.param(
            pod("b", ready=9, annotations={COST: "-1"}), pod("a", ready=9), id="the cheaper to delete before others"
        ),
        pytest.param(
            pod("b", ready=9, annotations={COST: "no number"}),
            pod("a", ready=9, annotations={COST: "1"}),
            id="a cost that is no number counts as none",
        ),
        pytest.param(pod("b", ready=9), pod("a", ready=900), id="ready for less long first"),
        pytest.param(pod("b", ready=9, restarts=2), pod("a", ready=9), id="the more often restarted first"),
        pytest.param(pod("b", ready=9, age=10), pod("a", ready=9, age=1000), id="the younger first"),
        pytest.param(pod("a", ready=9, age=10), pod("b", ready=9, age=11), id="of about one age: by uid"),
    ],
)
def test_the_pod_that_is_missed_least_goes_first(goes: Pod, stays: Pod) -> None:
    assert by_regret([stays, goes], [stays, goes], NOW) == [goes, stays]


def test_of_two_nodes_the_one_with_more_pods_of_the_same_owner_gives_one_up() -> None:
    lonely, crowded, neighbour = pod("a", node="node-1"), pod("b", node="node-2"), pod("c", node="node-2")
    assert by_regret([lonely, crowded], [lonely, crowded, neighbour], NOW)[0] == crowded


def test_pods_are_made_and_deleted_in_portions() -> None:
    assert plan(2 * AT_ONCE, [], [], NOW).create == AT_ONCE
    assert len(plan(0, [pod(str(n)) for n in range(AT_ONCE + 9)], [], NOW).delete) == AT_ONCE


def test_the_counts_are_of_pods_that_are_active() -> None:
    seen = replica_set(4, minReadySeconds=60)
    found = [
        pod("available", ready=90, labels={"app": "web"}),
        pod("ready", ready=30, labels={"app": "web", "more": "yes"}),
        pod("not ready", labels={}),
    ]
    said = status(seen, found, 2, NOW)
    counts = (said.replicas, said.ready_replicas, said.available_replicas, said.fully_labeled_replicas)
    assert counts == (3, 2, 1, 2)
    assert (said.terminating_replicas, said.observed_generation) == (2, 2)


def test_a_failure_is_told_until_nothing_fails_any_more() -> None:
    seen = replica_set()
    failed = status(seen, [], 0, NOW, Failure("FailedCreate", "exceeded quota"))
    assert [(one.type, one.reason) for one in failed.conditions] == [(FAILURE, "FailedCreate")]
    still = status(replace(seen, status=failed), [], 0, NOW, Failure("FailedCreate", "in other words"))
    assert still.conditions == failed.conditions
    assert status(replace(seen, status=failed), [], 0, NOW).conditions == ()


@st.composite
def some_pods(draw: st.DrawFn) -> list[Pod]:
    readiness = draw(st.lists(st.one_of(st.none(), st.integers(0, 5000)), max_size=12))
    phases = st.sampled_from(["Pending", "Running"])
    nodes = st.sampled_from(["", "node-1", "node-2"])
    return [
        pod(f"pod-{number}", ready=ready, phase=draw(phases), node=draw(nodes), age=draw(st.integers(0, 5000)))
        for number, ready in enumerate(readiness)
    ]


@given(some_pods(), st.integers(0, 12))
def test_a_plan_leads_to_the_wanted_number_and_keeps_the_pods_of_use(found: list[Pod], wanted: int) -> None:
    planned = plan(wanted, found, found, NOW)
    assert len(found) + planned.create - len(planned.delete) == wanted
    assert not (planned.create and planned.delete)
    kept = [one for one in found if one not in planned.delete]
    running = [one for one in planned.delete if one.spec.node_name and one.status.phase == "Running"]
    if any(pods.is_ready(one) for one in running):
        assert all(pods.is_ready(one) or one in planned.delete for one in kept if one.status.phase == "Running")
