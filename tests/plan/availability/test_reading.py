"""What is read of objects that may lack anything, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.availability import judge, rule_problem
from kedge.plan.availability.verdict import because
from kedge.plan.fields import condition, first, whole
from plan.availability.objects import condition as said
from plan.availability.objects import made, service


@pytest.mark.parametrize(("found", "number"), [(3, 3), (0, 0), (True, None), ("3", None), (None, None), (3.0, None)])
def test_only_a_whole_number_is_one(found: Any, number: int | None) -> None:
    assert whole({"a": found}, "a") == number


@pytest.mark.parametrize(("found", "item"), [([1, 2], 1), ([], None), ("ab", None), ({"x": 1}, None), (None, None)])
def test_only_a_list_has_a_first_item(found: Any, item: Any) -> None:
    assert first({"a": found}, "a") == item


def test_what_is_no_condition_is_passed_over() -> None:
    ready = said("Ready", "True")
    assert condition({"status": {"conditions": ["x", None, ready]}}, "Ready") == ready
    assert condition({"status": {"conditions": "Ready"}}, "Ready") is None


@pytest.mark.parametrize("length", [499, 500, 501])
def test_of_a_long_reason_the_beginning_is_repeated(length: int) -> None:
    assert because("x" * length) == ": " + ("x" * length if length <= 500 else "x" * 500 + "…")
    assert because("") == ""


@pytest.mark.parametrize(
    ("address", "words"),
    [("None", "Service shop/web is headless"), ("10.0.0.1", "Service shop/web has the cluster IP 10.0.0.1")],
)
def test_a_service_says_which_address_it_has(address: str, words: str) -> None:
    assert judge(service("ClusterIP", clusterIP=address)).message == words


@pytest.mark.parametrize(
    ("weight", "conflict", "words"),
    [
        (None, "False", "is valid for export with weight 1"),
        ("00000005", "False", "is valid for export with weight 5"),
        ("000000005", "False", "has '000000005' as networking.fleet.azure.com/weight"),
        ("1", "True", "is not free of conflicts"),
        ("0", "True", "is valid for export with weight 0"),
    ],
)
def test_an_export_says_which_weight_it_has(weight: str | None, conflict: str, words: str) -> None:
    annotations = {} if weight is None else {"networking.fleet.azure.com/weight": weight}
    conditions = [said("Valid", "True"), said("Conflict", conflict)]
    api = "networking.fleet.azure.com/v1alpha1"
    found = judge(made(api, "ServiceExport", None, {"conditions": conditions}, annotations=annotations))
    assert words in found.message


@pytest.mark.parametrize("length", [199, 200, 201, 5000])
def test_of_a_long_rule_the_beginning_is_shown(length: int) -> None:
    rule = "true" + " " * (length - 5) + "\n"
    found = judge(made("v1", "ConfigMap", annotations={"kedge.dev/available-when": rule}))
    shown = rule if length <= 200 else f"{rule[:200]}…"
    assert found.message == f"ConfigMap shop/web meets its rule, kedge.dev/available-when: {shown}"


@pytest.mark.parametrize(("length", "fits"), [(5_000, True), (5_001, False)])
def test_a_rule_may_be_so_long_and_no_longer(length: int, fits: bool) -> None:
    assert (rule_problem("true" + " " * (length - 4)) is None) is fits


@pytest.mark.parametrize(("kind", "words"), [("Secret", "it cannot be worked out"), ("ConfigMap", "hunter2")])
def test_what_went_wrong_with_a_rule_is_told_but_not_of_a_secret(kind: str, words: str) -> None:
    rule = {"kedge.dev/available-when": "self.data[self.data.password] == 1"}
    found = judge({**made("v1", kind, annotations=rule), "data": {"password": "hunter2"}})
    assert words in found.message
    assert ("hunter2" in found.message) is (kind != "Secret")
