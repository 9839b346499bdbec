"""Mutants are generated from the syntax, named by what they change, and take the place of the code that runs."""

from __future__ import annotations

import ast
import sys
from textwrap import dedent
from types import ModuleType

import pytest

from mutations import mutants, swapping
from mutations.listed import EQUIVALENT, UNNOTICED, with_reasons
from mutations.mutants import Mutant, modules_in, mutants_of, source_of
from mutations.swapping import swap_in

ENOUGH = 0.95
"""How many of the mutants of `plan`, the equivalent ones apart, tests must notice."""


def changes(source: str) -> list[str]:
    """What is changed in a function with this body."""
    body = f"def f(a: int, b: str | None) -> bool:\n    {source}\n"
    return [each.change for each in mutants_of("m", body.encode())]


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("b = a < 1", ["a < 1 -> a <= 1", "a < 1 -> a < 2", "a < 1 -> a < 0"]),
        ("b = a is None", ["a is None -> a is not None"]),
        ("b = a in c not in d", ["a in c not in d -> a not in c not in d", "a in c not in d -> a in c in d"]),
        ("b = a and c", ["a and c -> (a or c)"]),
        ("b = not a", ["not a -> (a)"]),
        ("b = -a", ["-a -> (a)"]),
        ("b = a + c", ["a + c -> (a - c)"]),
        ("b = max(a)", ["max(a) -> min(a)"]),
        ("b = any(a)", ["any(a) -> all(a)"]),
        ("b = sorted(a, key=c)", ["sorted(a, key=c) -> sorted(a, key=c)[::-1]"]),
        ("b = 0", ["b = 0 -> b = 1"]),
        ("b = g(c=True)", ["c=True -> c=False"]),
        ("b = 'Code'", ["'Code' -> 'Code_'"]),
        ("a.append(b)", ["a.append(b) -> pass"]),
        ("a.b = c", ["a.b = c -> pass"]),
        ("a += b", ["a += b -> pass", "a += b -> a -= b"]),
        ("raise a", ["raise a -> pass"]),
        ("return a", ["a -> True", "a -> False"]),
        ("b = [c for c in a if c]", ["c -> True"]),
        ("b = c if a else d", ["a -> True", "a -> False"]),
    ],
)
def test_every_small_change_is_made(source: str, changed: list[str]) -> None:
    assert changes(source) == changed


@pytest.mark.parametrize(
    "source",
    [
        "assert a < 1",
        "b: Literal['Code']",
        "b = 'words for people'",
        "b = f'{a + 1}'",
        "b = cast('Code', a)",
        "b = zip(a, a, strict=True)",
        "'''A docstring.'''",
    ],
)
def test_what_only_people_or_the_type_checker_read_stays(source: str) -> None:
    assert changes(source) == []


def test_a_name_survives_what_is_written_around_it() -> None:
    before = mutants_of("m", b"def f(a):\n    return a < 1\n")
    after = mutants_of("m", b"import re\n\ndef g():\n    pass\n\ndef f(a):\n    b = 2\n    return a < 1\n")
    assert {each.name for each in before} <= {each.name for each in after}


def test_the_same_change_twice_in_a_function_has_two_names() -> None:
    found = [each.name for each in mutants_of("m", b"def f(a):\n    g(a < b)\n    h(a < b)\n") if "<=" in each.name]
    assert found == ["m:f: a < b -> a <= b", "m:f: a < b -> a <= b (2)"]


SOMETHING = "TABLE = [held.TWICE]"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    source = dedent(
        """
        from functools import cache

        LIMIT = 2
        TWICE = LIMIT * 2

        def above(a, more=1):
            return a > LIMIT + more

        @cache
        def kept():
            return TWICE + 1

        class Thing:
            @property
            def answer(self):
                return 42

            @classmethod
            def make(cls, number=7):
                return number
        """
    )
    made = ModuleType("mutated_for_a_test")
    made.__file__ = "mutated_for_a_test.py"
    exec(compile(source, made.__file__, "exec"), vars(made))
    monkeypatch.setitem(sys.modules, made.__name__, made)
    known = {made.__name__: source, "kedge.that_makes_something_of_it": SOMETHING}
    for place in (mutants, swapping):
        monkeypatch.setattr(place, "source_of", lambda name: known.get(name, "").encode())
    return made


def one(module: ModuleType, change: str) -> Mutant:
    return next(each for each in mutants_of(module.__name__) if change in each.name)


def test_a_mutant_takes_the_place_of_the_code_that_everybody_holds(module: ModuleType) -> None:
    above, thing, kept = module.above, module.Thing(), module.kept
    assert (above(3), thing.answer, thing.make(), kept()) == (False, 42, 7, 5)
    for change in ("a > LIMIT + more -> a >= LIMIT + more", "42 -> 43", "7 -> 8", "TWICE + 1 -> TWICE + 2"):
        swap_in(one(module, change))
    assert (above(3), thing.answer, thing.make(), kept()) == (True, 43, 8, 6)


def test_a_constant_is_exchanged_with_all_that_is_made_of_it_wherever_it_is_held(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ModuleType("that_imports_it")
    other.TWICE = module.TWICE  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, other.__name__, other)
    user = ModuleType("kedge.that_makes_something_of_it")
    user.__file__ = "x.py"
    vars(user).update(held=module)
    exec(SOMETHING, vars(user))
    monkeypatch.setitem(sys.modules, user.__name__, user)
    swap_in(one(module, "LIMIT = 2 -> LIMIT = 3"))
    assert user.TABLE == [6]
    assert (module.LIMIT, module.TWICE, other.TWICE) == (3, 6, 6)
    assert not module.above(4)


@pytest.fixture(scope="module")
def of_plan() -> dict[str, Mutant]:
    return {mutant.name: mutant for module in modules_in("kedge.plan") for mutant in mutants_of(module)}


def test_every_mutant_is_python_and_has_a_name_of_its_own(of_plan: dict[str, Mutant]) -> None:
    assert len(of_plan) == sum(len(mutants_of(module)) for module in modules_in("kedge.plan"))
    for mutant in [*of_plan.values()][::50]:
        assert ast.parse(mutant.applied_to(source_of(mutant.module))).body


def test_of_the_decisions_nearly_all_are_held_by_tests(of_plan: dict[str, Mutant]) -> None:
    assert sorted(EQUIVALENT.keys() & UNNOTICED) == []
    counting = of_plan.keys() - EQUIVALENT.keys()
    assert 1 - len(counting & UNNOTICED) / len(counting) >= ENOUGH


def test_each_that_is_listed_as_equivalent_has_a_reason() -> None:
    assert with_reasons("# why\n\na\nb\n# because\nc\n") == {"a": "why", "b": "why", "c": "because"}
    for wrong in ("a\n", "# why\na\na\n"):
        with pytest.raises(ValueError, match="has no reason, or is there twice"):
            with_reasons(wrong)
