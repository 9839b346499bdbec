"""Which clusters a policy requires, and how much it likes each."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.placing.affinity import (
    RESOURCE_PREFIX,
    InvalidPolicy,
    property_amount,
    property_problem,
    read_affinity,
    reads_properties,
)
from plan.placing.members_and_bindings import having, labelled, member, policy, preferring, requiring

NODES = "kubernetes-fleet.io/node-count"
NO_MATCH = "cluster does not match with any of the required cluster affinity terms"


@pytest.mark.parametrize(
    ("labels", "terms", "fits"),
    [
        ({"env": "prod"}, [labelled(env="prod")], True),
        ({"env": "test"}, [labelled(env="prod")], False),
        ({"env": "test"}, [labelled(env="prod"), labelled(env="test")], True),
        ({"env": "prod"}, [labelled(env="prod") | having(NODES, "Ge", "3")], True),
        ({"env": "prod"}, [labelled(env="prod") | having(NODES, "Gt", "3")], False),
        ({}, [{}], True),
        ({}, [], True),
        ({}, [{"labelSelector": {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}}], True),
    ],
)
def test_a_cluster_matches_if_everything_in_one_term_holds(
    labels: dict[str, str], terms: list[Any], fits: bool
) -> None:
    found = member("c", labels, properties={NODES: "3"})
    assert read_affinity(policy(affinity=requiring(*terms))).why_not(found) == (None if fits else NO_MATCH)


@pytest.mark.parametrize(
    ("operator", "value", "fits"),
    [
        ("Gt", "2", True), ("Gt", "3", False), ("Ge", "3", True), ("Ge", "3001m", False), ("Eq", "3000m", True),
        ("Eq", "3.0000000001", False), ("Ne", "3", False), ("Ne", "4", True), ("Lt", "3.001", True), ("Lt", "3", False),
        ("Le", "3e0", True), ("Le", "2", False), ("Gt", "0.1Ki", False), ("Lt", "-1", False),
    ],
)  # fmt: skip
def test_properties_are_compared_exactly(operator: str, value: str, fits: bool) -> None:
    found = member("c", properties={NODES: "3"})
    assert (read_affinity(policy(affinity=requiring(having(NODES, operator, value)))).why_not(found) is None) == fits


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("available-cpu", 1_500_000_000),
        ("available-memory", 2**30 * 10**9),
        ("available-ephemeral-storage", 7 * 10**9),
        ("available-gpu", None),
        ("total-cpu", None),
    ],
)
def test_available_resources_are_properties_too(name: str, found: int | None) -> None:
    here = member("c", available={"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": 7})
    assert property_amount(here, RESOURCE_PREFIX + name) == found


@pytest.mark.parametrize(("usage", "found"), [("total", 4), ("allocatable", 3), ("available", 2)])
def test_a_resource_is_counted_in_three_ways(usage: str, found: int) -> None:
    cpu = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "available": {"cpu": "2"}}
    assert property_amount(member("c", status={"resourceUsage": cpu}), f"{RESOURCE_PREFIX}{usage}-cpu") == found * 10**9
    assert property_amount(member("c", status={"resourceUsage": None}), f"{RESOURCE_PREFIX}{usage}-cpu") is None


def test_a_cluster_without_the_property_does_not_match() -> None:
    assert read_affinity(policy(affinity=requiring(having(NODES, "Ne", "3")))).why_not(member("c")) == NO_MATCH


def test_a_cluster_with_an_invalid_quantity_does_not_match_and_its_reason_says_so() -> None:
    why = read_affinity(policy(affinity=requiring(having(NODES, "Ge", "1")))).why_not(
        member("c", properties={NODES: "many"})
    )
    assert why == f"{NO_MATCH}: its property {NODES} is 'many', which is not a quantity"


def sorting(order: str) -> dict[str, Any]:
    return {"propertySorter": {"name": NODES, "sortOrder": order}}


@pytest.mark.parametrize("least", [0, 7])
@pytest.mark.parametrize(
    ("weight", "order", "scores"),
    [
        (10, "Descending", [0, 3, 10, 0]),  # 2.5 rounds away from zero
        (10, "Ascending", [10, 8, 0, 0]),  # 7.5 as well
        (-10, "Descending", [0, -3, -10, 0]),
        (0, "Descending", [0, 0, 0, 0]),
    ],
)
def test_a_sorter_scales_the_weight_by_the_clusters_rank_in_the_fleet(
    weight: int, order: str, scores: list[int], least: int
) -> None:
    members = [member(f"c{n}", properties={NODES: str(least + n)}) for n in (0, 5, 20)] + [member("none")]
    wanted = read_affinity(policy(affinity=preferring((weight, sorting(order)))))
    assert [wanted.score(each, wanted.ranges(members)) for each in members] == scores


def test_a_property_with_equal_values_everywhere_prefers_no_cluster() -> None:
    members = [member(name, properties={NODES: "4"}) for name in "ab"]
    wanted = read_affinity(policy(affinity=preferring((50, sorting("Descending")))))
    assert [wanted.score(each, wanted.ranges(members)) for each in members] == [0, 0]


def test_a_property_without_a_known_range_prefers_no_cluster() -> None:
    wanted = read_affinity(policy(affinity=preferring((50, sorting("Descending")))))
    assert wanted.score(member("x", properties={NODES: "4"}), {}) == 0


@pytest.mark.parametrize("usage", ["total", "allocatable", "available"])
def test_a_resource_property_names_total_allocatable_or_available(usage: str) -> None:
    assert property_problem(f"{RESOURCE_PREFIX}{usage}-cpu") is None
    assert property_problem(f"{RESOURCE_PREFIX}{usage}_-cpu") is not None
    assert (property_problem(""), property_problem("x")) == ("a property needs a name", None)


def test_weights_of_matching_preferences_are_added_up() -> None:
    wanted = read_affinity(
        policy(affinity=preferring((20, labelled(a="1")), (-5, labelled(b="1")), (7, labelled(c="1"))))
    )
    assert wanted.score(member("x", {"a": "1", "b": "1"}), {}) == 15


def selecting(**selector: Any) -> dict[str, Any]:
    return {"labelSelector": selector}


BAD: list[tuple[Any, str]] = [
    (requiring(selecting(matchExpressions=[{"key": "a", "operator": "Is"}])), "Terms[0].labelSelector: operator 'Is'"),
    (requiring({}, selecting(matchLabels={"-": "x"})), "Terms[1].labelSelector: '-' cannot be a label's key"),
    (requiring(having(NODES, "Is", "1")), "matchExpressions[0].operator: 'Is' is none of Gt, Ge"),
    (requiring(having(NODES, "Eq", "lots")), "matchExpressions[0].values: 'lots' is not a quantity"),
    (requiring(having(NODES, "Eq")), "matchExpressions[0].values: 0 values are given: give exactly one"),
    (
        requiring(having(RESOURCE_PREFIX + "free-cpu", "Eq", "1")),
        f"[0].name: '{RESOURCE_PREFIX}free-cpu' names no property",
    ),
    (
        preferring((1, {"propertySorter": {"name": RESOURCE_PREFIX + "cpu", "sortOrder": "Ascending"}})),
        "Affinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.propertySorter.name",
    ),
]


@pytest.mark.parametrize(("affinity", "said"), BAD)
def test_an_invalid_policy_is_refused_with_the_field_and_the_fix(affinity: Any, said: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        read_affinity(policy(affinity=affinity))
    assert str(refused.value).startswith("spec.policy.affinity.clusterAffinity.")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("affinity", "reads"),
    [
        (None, False),
        (requiring(labelled(a="1")), False),
        (requiring(having(NODES, "Eq", "1")), True),
        (requiring(having(NODES, "Is", "1")), False),
        (preferring((1, sorting("Ascending"))), True),
    ],
)
def test_reads_properties_is_true_only_for_policies_that_use_them(affinity: Any, reads: bool) -> None:
    assert reads_properties(policy(affinity=affinity)) == reads
