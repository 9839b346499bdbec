"""Where a pod may run. The messages are those kube-scheduler v1.36 gave for the same pods and nodes."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.workloads.making import node, pod
from kedge.api.pods import Node, Pod
from kedge.embedded.workloads.schedule_plan import NO_NODES, choose, obstacle, refusal

TAINT = {"key": "x", "value": "y", "effect": "NoSchedule"}
TAINTED = node("node-1", taints=[TAINT])
TAINTS, CORDON = "node(s) had untolerated taint(s)", "node(s) were unschedulable"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
TAIL = "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


def waiting(**spec: Any) -> Pod:
    return pod(node="", phase="Pending", spec=spec)


def affine(**term: Any) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def on(name: str) -> dict[str, Any]:
    return affine(matchFields=[{"key": "metadata.name", "operator": "In", "values": [name]}])


def where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return affine(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])


@pytest.mark.parametrize(
    ("spec", "there", "expected"),
    [
        pytest.param({}, node("a"), None, id="nothing is asked"),
        pytest.param({}, TAINTED, TAINTS, id="a taint"),
        pytest.param({}, node("a", taints=[{**TAINT, "effect": "PreferNoSchedule"}]), None, id="a wish is no taint"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, TAINTED, None, id="everything is tolerated"),
        pytest.param({"tolerations": [{"key": "x", "value": "y"}]}, TAINTED, None, id="this taint is tolerated"),
        pytest.param({"tolerations": [{"key": "x", "value": "z"}]}, TAINTED, TAINTS, id="another value is not"),
        pytest.param(
            {"tolerations": [{"key": "x", "operator": "Exists", "effect": "NoExecute"}]}, TAINTED, TAINTS, id="effect"
        ),
        pytest.param({}, node("a", unschedulable=True), CORDON, id="a cordon"),
        pytest.param({}, node("a", ready=False), TAINTS, id="not ready"),
        pytest.param(
            {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
            node("a", unschedulable=True),
            None,
            id="a cordon is tolerated",
        ),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node("a", labels={"disk": "ssd"}), None, id="selected"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node("a"), SELECTOR, id="not selected"),
        pytest.param(on("a"), node("a"), None, id="named"),
        pytest.param(on("b"), node("a"), NAMED, id="another is named"),
        pytest.param(where("disk", "NotIn", "hdd"), node("a"), None, id="NotIn holds without the label"),
        pytest.param(where("cores", "Gt", "4"), node("a", labels={"cores": "8"}), None, id="greater"),
        pytest.param(where("cores", "Lt", "4"), node("a", labels={"cores": "8"}), SELECTOR, id="less"),
        pytest.param(where("cores", "Gt", "4"), node("a", labels={"cores": "many"}), SELECTOR, id="no number"),
        pytest.param(where("disk", "Exists"), node("a"), SELECTOR, id="exists"),
        pytest.param(affine(), node("a"), SELECTOR, id="an empty term selects nothing"),
    ],
)
def test_what_keeps_a_pod_off_a_node(spec: dict[str, Any], there: Node, expected: str | None) -> None:
    assert obstacle(waiting(**spec), there) == expected


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        ({}, [], NO_NODES),
        ({}, [TAINTED, node("node-2", unschedulable=True)], f"1 {TAINTS}, 1 {CORDON}"),
        (on("node-1"), [TAINTED, node("node-2")], f"1 {NAMED}, 1 {TAINTS}"),
        (on("nope"), [TAINTED, node("node-2")], f"2 {NAMED}"),
        ({"nodeSelector": {"a": "b"}}, [TAINTED, node("node-2")], f"1 {SELECTOR}, 1 {TAINTS}"),
    ],
)
def test_a_refusal_counts_the_nodes_by_reason(spec: dict[str, Any], nodes: list[Node], expected: str) -> None:
    said = expected if expected == NO_NODES else f"0/2 nodes are available: {expected}. {TAIL}"
    assert refusal(waiting(**spec), nodes) == said


def test_the_node_with_the_fewest_pods_is_chosen_and_of_equals_the_first_by_name() -> None:
    load = {"a": 3, "b": 1, "c": 1}
    assert choose(waiting(), [node("c"), node("b"), node("a")], load.__getitem__) == "b"
    assert choose(waiting(), [TAINTED], load.__getitem__) is None
