"""Lazy: the operators of CEL that do not need all of their operands, and what any part of an expression is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kedge.api.cel_budget import Budget, Failed
from kedge.api.cel_functions import held
from kedge.api.cel_values import Optional, no_overload


class Scope:
    """The values that names have, and what is left to spend."""

    __slots__ = ("budget", "names")

    def __init__(self, budget: Budget, names: dict[str, Any]) -> None:
        self.budget = budget
        self.names = names


Part: TypeAlias = Callable[[Scope], Any]


def _and(operands: list[Part]) -> Part:
    return _logical(operands, decides=False)


def _or(operands: list[Part]) -> Part:
    return _logical(operands, decides=True)


def _logical(operands: list[Part], *, decides: bool) -> Part:
    """True or false as soon as one operand decides, in whatever order; errors count only if none does."""

    def work(scope: Scope) -> bool:
        wrong: Failed | None = None
        for operand in operands:
            try:
                found = operand(scope)
            except Failed as error:
                wrong = wrong or error
                continue
            if isinstance(found, bool):
                if found is decides:
                    return decides
            else:
                wrong = wrong or no_overload()
        if wrong is not None:
            raise wrong
        return not decides

    return work


def _conditional(operands: list[Part]) -> Part:
    condition, one, other = operands

    def work(scope: Scope) -> Any:
        found = condition(scope)
        if not isinstance(found, bool):
            raise no_overload()
        return one(scope) if found else other(scope)

    return work


def _not_strictly_false(operands: list[Part]) -> Part:
    def work(scope: Scope) -> bool:
        try:
            return operands[0](scope) is not False
        except Failed:
            return True

    return work


def _or_other(operands: list[Part]) -> Part:
    """An optional value, or another."""

    def work(scope: Scope) -> Optional:
        found = held(operands[0](scope))
        return found if found.held else held(operands[1](scope))

    return work


def _or_value(operands: list[Part]) -> Part:
    """What an optional value holds, or another value."""

    def work(scope: Scope) -> Any:
        found = held(operands[0](scope))
        return found.value if found.held else operands[1](scope)

    return work


LAZY: Final[Mapping[str, Callable[[list[Part]], Part]]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "@not_strictly_false": _not_strictly_false,
    "or": _or_other,
    "orValue": _or_value,
}
