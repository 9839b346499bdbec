"""The cases for the real API server cover all that generated CRDs demand; a new demand without a case fails here."""

import re

import pytest

from api.cases import TEXTS, Node, cases, demands, found_at, placed, removed, server_path, walk
from api.editions import EDITIONS
from api.rule_cases import RULES, rule_case

RULES_WORD = "x-kubernetes-validations"
SCHEMAS = [pytest.param(edition.kind, edition.root, id=str(edition)) for edition in EDITIONS]


@pytest.mark.parametrize(("kind", "root"), SCHEMAS)
def test_every_demand_but_rules_has_a_case(kind: str, root: Node) -> None:
    demanded = {(path, word) for path, word, _ in demands(root) if word != RULES_WORD}
    assert demanded == {(case.path, case.word) for case in cases(root)}


@pytest.mark.parametrize(("kind", "root"), SCHEMAS)
def test_every_rule_has_one_case(kind: str, root: Node) -> None:
    for message in rules(root):
        case = rule_case(kind, message)
        assert case.accepted
        assert case.refused


def test_every_case_of_a_rule_is_used() -> None:
    used = {message for edition in EDITIONS for message in rules(edition.root)}
    assert {case.message for case in RULES} == used


def rules(root: Node) -> list[str]:
    return [rule["message"] for _, node in [("", root), *walk(root)] for rule in node.get(RULES_WORD, ())]


def test_what_other_versions_share_with_the_stored_one_is_tried_there() -> None:
    for edition in EDITIONS:
        assert demands(edition.root) - edition.own_demands <= demands(edition.stored.root)


@pytest.mark.parametrize(("pattern", "texts"), TEXTS.items())
def test_texts_for_patterns_are_what_they_say(pattern: str, texts: tuple[str, str]) -> None:
    good, bad = texts
    assert re.search(pattern, good)
    assert not re.search(pattern, bad)


TREE: Node = {
    "type": "object",
    "required": ["must"],
    "properties": {
        "must": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def test_placed_fills_in_one_place_of_a_minimal_object() -> None:
    assert placed(TREE, "list[].x", 5) == {"must": "x", "list": [{"x": 5}]}
    assert placed(TREE, "map{}", "y") == {"must": "x", "map": {"k": "y"}}


def test_removed_takes_one_place_out() -> None:
    assert removed(placed(TREE, "list[].x", 5), "list[].x") == {"must": "x", "list": [{}]}


def test_found_at_looks_where_placed_put_it() -> None:
    assert found_at(placed(TREE, "list[].x", 5), "list[].x") == 5
    assert found_at(placed(TREE, "map{}", "y"), "map{}") == "y"


def test_server_path_speaks_as_the_server_does() -> None:
    assert server_path("a.list[].map{}.x") == "a.list[0].map.k.x"
