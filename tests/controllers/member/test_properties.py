"""What a member has: exact, as Kubernetes prints it, and cheap to hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Resources
from kedge.controllers.member.amounts import Amounts, amounts, less, printed, total
from kedge.controllers.member.pods import Pod, PodContainer, PodSpec, pod_in_short
from kedge.controllers.member.properties import Node, NodeStatus, node_in_short


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ([{"cpu": "1k", "memory": "1Ti"}], {"cpu": "1k", "memory": "1Ti"}),
        ([{"cpu": "1k", "memory": "1Ti"}] * 2, {"cpu": "2k", "memory": "2Ti"}),
        ([{"cpu": 4, "memory": "16393544Ki"}, {"cpu": "3920m", "memory": "1Ki"}],
         {"cpu": "7920m", "memory": "16393545Ki"}),
        ([{"cpu": "1", "memory": "1G"}], {"cpu": "1", "memory": "1G"}),
        ([{"cpu": "100n", "memory": "1500m"}], {"cpu": "100n", "memory": "2"}),
        ([{}, {"memory": "1Gi"}], {"cpu": "0", "memory": "1Gi"}),
        ([{"cpu": "many", "memory": "1Gi"}], {"cpu": "0", "memory": "1Gi"}),
        ([], {"cpu": "0", "memory": "0"}),
    ],
)  # fmt: skip
def test_amounts_are_added_up_and_printed_as_kubernetes_does(
    written: list[dict[str, int | str]], shown: dict[str, str]
) -> None:
    assert printed(total(map(amounts, written))) == shown


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_there_is_never_less_than_nothing_left(there: int, taken: int) -> None:
    left = less(Amounts(there, there), Amounts(taken, taken))
    assert left.cpu == left.memory == max(0, there - taken)


def test_of_nodes_and_pods_only_a_few_numbers_are_kept() -> None:
    meta = ObjectMeta(name="x", labels={"a": "b"}, annotations={"long": "text" * 100}, resource_version="3")
    node = node_in_short(Node(metadata=meta, status=NodeStatus(capacity={"cpu": "2"})))
    assert (node.metadata.annotations, node.metadata.labels, node.status) == ({}, {}, None)
    assert (node.metadata.name, node.metadata.resource_version) == ("x", "3")
    asks = PodContainer(resources=Resources(requests={"cpu": "1", "memory": "1Mi"}))
    pod = pod_in_short(Pod(metadata=meta, spec=PodSpec(node_name="n", containers=(asks, asks))))
    assert pod.spec is None
    assert pod.asks == Amounts(2 * 10**9, 2 << 20)


def test_a_pod_that_waits_for_a_node_takes_nothing() -> None:
    asks = PodContainer(resources=Resources(requests={"cpu": "1"}))
    assert pod_in_short(Pod(spec=PodSpec(containers=(asks,)))).asks == Amounts()
