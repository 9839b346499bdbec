"""Metered expressions come to what the engine says, and never take long."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cel_attacks import ATTACKS, BIG
from api.cel_corpus import DATA, EXPRESSIONS
from kedge.api import cel
from kedge.api.cel import BadExpression
from kedge.api.cel_budget import Budget, Failed, TooCostly
from kedge.api.cel_metered import metered
from kedge.api.cel_values import Uint

VARIABLES = {"self": "DYN"}
FAILS = "fails"
MOST_MEMORY = 20_000_000  # bytes


def by_the_engine(expression: str, data: Any) -> Any:
    return _came_to(cel.compiled(expression, VARIABLES), data)


def by_steps(expression: str, data: Any) -> Any:
    return _came_to(metered(expression, VARIABLES), data)


def _came_to(program: Any, data: Any) -> Any:
    try:
        found = program.value({"self": data})
    except Failed:
        return FAILS
    return _plain(found)


def _plain(value: Any) -> Any:
    """With the engine's own lists made Python's, and with the types of numbers, which Python takes for the same."""
    value = value.plain_value() if hasattr(value, "plain_value") else value
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        return [_plain(one) for one in value]
    return ("number" if isinstance(value, Uint) else type(value).__name__.replace("int", "number"), value)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_comes_to_what_the_engine_says(expression: str) -> None:
    assert by_steps(expression, DATA) == by_the_engine(expression, DATA)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("self.missing", "no such key: missing"),
        ("self.l[3]", "index out of bounds: 3"),
        ("self.n / 0", "division by zero"),
        ("self.n % 0", "modulus by zero"),
        ("self.a > 3", "no such overload"),
        ("self.a.matches('(')", "invalid regular expression: missing ): ("),
        ("self.?missing.value()", "optional.none() dereference"),
    ],
)
def test_what_cannot_be_worked_out_says_why(expression: str, words: str) -> None:
    with pytest.raises(Failed, match=f"^{words.replace('(', '[(]').replace(')', '[)]')}$"):
        metered(expression, VARIABLES).value({"self": DATA})


# Attacks


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_ends_within_its_budget(attack: str) -> None:
    program = metered(ATTACKS[attack], VARIABLES)
    tracemalloc.start()
    try:
        program.value({"self": BIG})
    except (Failed, TooCostly):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize(
    "attack", ["macros in macros", "a short text that doubles", "a list in a list in a list", "what an error hides"]
)
def test_what_costs_too_much_says_so_and_cannot_be_passed_over(attack: str) -> None:
    for expression in (ATTACKS[attack], f"({ATTACKS[attack]}) || true"):
        with pytest.raises(TooCostly):
            metered(expression, VARIABLES).value({"self": BIG})


def test_a_rule_over_a_large_object_is_within_its_budget() -> None:
    status = {"conditions": [{"type": f"type-{number}", "status": "True"} for number in range(500)]}
    rule = "self.status.conditions.all(c, c.status == 'True' || c.type == 'Degraded') && self.data.a.contains('b')"
    assert metered(rule, VARIABLES).value({"self": {"status": status, "data": {"a": "a" * 500_000 + "b"}}}) is True


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TooCostly):
        metered("self == self", VARIABLES).value({"self": deep})


def test_a_budget_is_spent_once() -> None:
    budget = Budget(10)
    budget.spend(10)
    assert budget.spent == 10
    with pytest.raises(TooCostly, match="it takes more than 10 steps"):
        budget.spend(1)


@pytest.mark.parametrize("expression", ["'%s'.format([1]) == '1'", "google.protobuf.Int64Value{value: 1} == 1"])
def test_what_is_not_known_here_is_refused_and_not_skipped(expression: str) -> None:
    with pytest.raises(BadExpression):
        metered(expression, VARIABLES)


# Any expression

LEAVES = st.sampled_from(
    [
        *(
            "self.a",
            "self.n",
            "self.f",
            "self.l",
            "self.m",
            "self.texts",
            "self.nested",
            "self.nothing",
            "self.missing",
        ),
        *("1", "-2", "3u", "1.5", "'a'", "'ell'", "true", "false", "null", "[]", "[1, 'a']", "{'a': 1}", "''"),
    ]
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", "&&", "||", "in"])
    methods = st.sampled_from(["size", "sum", "min", "max", "sort", "distinct", "flatten", "reverse", "trim", "join"])
    asks = st.sampled_from(["contains", "startsWith", "indexOf", "lastIndexOf", "split", "find", "matches"])
    macros = st.sampled_from(["all", "exists", "exists_one", "map", "filter"])
    return st.one_of(
        st.builds("(dyn({}) {} dyn({}))".format, inner, operators, inner),
        st.builds("dyn({}).{}()".format, inner, methods),
        st.builds("dyn({}).{}(dyn({}))".format, inner, asks, inner),
        st.builds("dyn({}).{}(x, {})".format, inner, macros, st.one_of(inner, st.just("x"), st.just("x == 1"))),
        st.builds("(dyn({}) ? {} : dyn({}))".format, inner, st.builds("dyn({})".format, inner), inner),
        st.builds("dyn({})[dyn({})]".format, inner, inner),
        st.builds("dyn({}).replace(dyn({}), dyn({}))".format, inner, inner, inner),
        st.builds("self.?{}.orValue(dyn({}))".format, st.sampled_from(["a", "missing", "m.y"]), inner),
        st.builds("string(dyn({}))".format, inner),
        st.builds("!dyn({})".format, inner),
    )


ANY = st.recursive(LEAVES, larger, max_leaves=6)


@given(ANY)
def test_any_expression_comes_to_what_the_engine_says(expression: str) -> None:
    try:
        wanted = by_the_engine(expression, DATA)
    except BadExpression:
        return
    assert by_steps(expression, DATA) == wanted


@given(ANY, st.integers(1, 300))
def test_any_expression_ends_within_any_budget(expression: str, steps: int) -> None:
    try:
        program = metered(expression, VARIABLES)
    except BadExpression:
        return
    with suppress(Failed, TooCostly):
        program.value({"self": DATA}, steps=steps)
