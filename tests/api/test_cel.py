"""Rules of custom kinds: Kubernetes' own functions take no longer there than elsewhere."""

from __future__ import annotations

import pytest

from api.cel_attacks import ATTACKS, BIG
from kedge.api.cel import compiled
from kedge.api.cel_budget import Failed


@pytest.mark.parametrize("attack", ["a pattern that backtracks", "a pattern that backtracks, in matches"])
def test_a_pattern_does_not_backtrack(attack: str) -> None:
    assert compiled(ATTACKS[attack], {"self": "DYN"}).value({"self": BIG}) is False


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("a million finds", "it takes more than 100000 steps"),
        ("a range", "it makes a list of more than 100000 items"),
        ("ranges", "it takes more than 100000 steps"),
        ("distinct values", "it takes more than 100000 steps"),
        ("sets", "it takes more than 100000 steps"),
        ("a quantity made by hand", "quantities must match"),
        ("thousands of large patterns", "it takes more than 100000 steps"),
    ],
)
def test_what_costs_too_much_fails(attack: str, words: str) -> None:
    with pytest.raises(Failed, match=words):
        compiled(ATTACKS[attack], {"self": "DYN"}).value({"self": BIG})


def test_every_evaluation_has_a_budget_of_its_own() -> None:
    program = compiled("lists.range(60000).size() == 60000", {"self": "DYN"})
    assert [program.value({"self": {}}) for _ in range(3)] == [True, True, True]
