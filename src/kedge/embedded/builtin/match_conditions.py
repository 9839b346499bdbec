"""Match conditions: CEL expressions about a write, by which a webhook says which writes it wants to be asked about."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kedge.api import cel
from kedge.api.cel import BadExpression
from kedge.embedded.builtin import checks
from kedge.embedded.causes import duplicate_value, invalid_value, required_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_VARIABLES = {"object": "DYN", "oldObject": "DYN", "request": "DYN"}


@lru_cache(maxsize=256)
def compiled(expression: str) -> cel.Program:
    """The program of an expression. Raises `BadExpression`."""
    return cel.compiled(expression, _VARIABLES)


def condition_problems(at: str, conditions: list[Untyped]) -> Iterator[Cause]:
    """What is wrong with the conditions of a webhook."""
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        yield from _expression(f"{at}[{index}].expression", condition.get("expression", ""))
        yield from _name(f"{at}[{index}].name", condition.get("name", ""), names)


def _expression(at: str, expression: str) -> Iterator[Cause]:
    if not expression.strip():
        yield required_value(at)
        return
    try:
        found = compiled(expression).type
    except BadExpression as error:
        yield invalid_value(at, expression, f"compilation failed: {error}")
        return
    if found not in ("BOOL", "DYN"):
        yield invalid_value(at, expression, "must evaluate to bool")


def _name(at: str, name: str, names: set[str]) -> Iterator[Cause]:
    if not name:
        yield required_value(at)
        return
    yield from checks.qualified_name(at, name)
    if name in names:
        yield duplicate_value(at, name)
    names.add(name)
