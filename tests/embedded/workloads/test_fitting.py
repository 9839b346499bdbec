"""Whether a node may have a pod."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Node, PodSpec, Taint, Toleration
from kedge.embedded.workloads.schedule_plan import is_chosen, target_node, tolerates, untolerated

NODE = Node(metadata=ObjectMeta(name="n1", labels={"zone": "east", "cpus": "8"}))


def requires(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ({}, True),
        ({"node_selector": {"zone": "east"}}, True),
        ({"node_selector": {"zone": "west"}}, False),
        ({"affinity": {}}, True),
        ({"affinity": requires()}, False),
        ({"affinity": requires({})}, False),
        ({"affinity": requires(label("zone", "In", "east", "west"))}, True),
        ({"affinity": requires(label("zone", "NotIn", "east"))}, False),
        ({"affinity": requires(label("disk", "NotIn", "slow"))}, True),
        ({"affinity": requires(label("zone", "Exists"))}, True),
        ({"affinity": requires(label("zone", "DoesNotExist"))}, False),
        ({"affinity": requires(label("cpus", "Gt", "4"))}, True),
        ({"affinity": requires(label("cpus", "Lt", "4"))}, False),
        ({"affinity": requires(label("disk", "Lt", "4"))}, False),
        ({"affinity": requires(label("zone", "In", "west"), NAMED)}, True),
        ({"affinity": requires({**NAMED, **label("zone", "In", "west")})}, False),
        ({"affinity": requires(label("zone", "Near", "east"))}, False),
    ],
)
def test_whether_a_pod_chooses_a_node(spec: dict[str, Any], chosen: bool) -> None:
    assert is_chosen(PodSpec(**spec), NODE) is chosen


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", value="other"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(value="v"), False),
    ],
)
def test_whether_a_taint_is_put_up_with(toleration: Toleration, tolerated: bool) -> None:
    assert tolerates(toleration, Taint(key="k", value="v", effect="NoSchedule")) is tolerated


def test_a_preference_keeps_nobody_off() -> None:
    soft, hard = Taint(key="a", effect="PreferNoSchedule"), Taint(key="b", effect="NoExecute")
    assert untolerated([soft], ()) is None
    assert untolerated([soft, hard], ()) == hard
    assert untolerated([hard], (), ("NoSchedule",)) is None


def test_the_node_a_pod_is_for() -> None:
    assert target_node(PodSpec(node_name="n2", affinity=requires(NAMED))) == "n2"
    assert target_node(PodSpec(affinity=requires(NAMED))) == "n1"
    assert target_node(PodSpec(affinity=requires(label("zone", "In", "east")))) == ""
