"""Texts: CEL's functions on texts, each of which pays for what it reads and makes before it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kedge.api.cel_budget import Budget, Failed
from kedge.api.cel_values import no_overload, text_of, type_of
from kedge.api.patterns import BadPattern, Pattern, fresh

Function: TypeAlias = Callable[..., Any]
"""Given the budget and the arguments; of a method its object is the first."""
_SLOWLY: Final = 10  # characters in a step, where each is looked at by itself
_PATTERN: Final = 200  # steps to read any pattern
_COMPARED: Final = 2_000  # characters in a step
_LARGEST_PATTERN: Final = 256 << 10  # bytes


def _read(act: Callable[[str, str], Any]) -> Function:
    """A question to a text about another."""

    def ask(budget: Budget, text: Any, other: Any) -> Any:
        budget.spend_on_text(len(text_of(text)) + len(text_of(other)))
        return act(text, other)

    return ask


def _changed(act: Callable[[str], str]) -> Function:
    """A text of the same length at most."""

    def change(budget: Budget, text: Any) -> str:
        budget.spend_on_text(len(text_of(text)))
        if text.isascii():
            return act(text)
        budget.spend(len(text) // _SLOWLY)
        return "".join([act(one) if one.isascii() else one for one in text])

    return change


def _trim(budget: Budget, text: Any) -> str:
    budget.spend_on_text(len(text_of(text)))
    return str(text).strip()


def _matches(budget: Budget, text: Any, pattern: Any) -> bool:
    return pattern_for(budget, text_of(text), text_of(pattern)).search(text) is not None


def pattern_for(budget: Budget, text: str, pattern: str) -> Pattern:
    """A pattern that a text is to be matched with, once; reading and matching it is paid for."""
    budget.spend_on_text(len(text))
    budget.spend(_PATTERN + len(pattern))
    try:
        program = fresh(pattern, most=_LARGEST_PATTERN)
    except BadPattern as error:
        raise Failed(f"invalid regular expression: {error}") from None
    budget.spend(program.programsize // _SLOWLY)
    budget.spend_on_match(len(text), program.programsize)
    return program


def _char_at(_: Budget, text: Any, at: Any) -> str:
    if not 0 <= _index(at) <= len(text_of(text)):
        raise Failed(f"index out of range: {at}")
    return str(text)[at : at + 1]


def _index(value: Any) -> int:
    if type_of(value) != "int":
        raise no_overload()
    return int(value)


def _index_of(budget: Budget, text: Any, other: Any, *at: Any) -> int:
    budget.spend_on_text(len(text_of(text)) + len(text_of(other)))
    if at and not 0 <= _index(at[0]) <= len(text):
        raise Failed(f"index out of range: {at[0]}")
    return str(text).find(other, *at)


def _last_index_of(budget: Budget, text: Any, other: Any, *at: Any) -> int:
    """Searching backwards looks at every character for each of the other's."""
    budget.spend(1 + len(text_of(text)) * (1 + len(text_of(other))) // _COMPARED)
    if at and not 0 <= _index(at[0]) <= len(text):
        raise Failed(f"index out of range: {at[0]}")
    return str(text).rfind(other, 0, at[0] + len(other)) if at else str(text).rfind(other)


def _replace(budget: Budget, text: Any, old: Any, new: Any, most: Any = -1) -> str:
    budget.spend_on_text(len(text_of(text)) + len(text_of(old)) + len(text_of(new)))
    found = text.count(old) if _index(most) < 0 else min(most, text.count(old))
    budget.spend_on_text(len(text) + found * max(0, len(new) - len(old)))
    return str(text).replace(old, new, most)


def _split(budget: Budget, text: Any, by: Any, most: Any = -1) -> list[str]:
    budget.spend_on_text(len(text_of(text)) + len(text_of(by)))
    if _index(most) == 0:
        return []
    parts = len(text) if not by else text.count(by) + 1
    budget.spend_on_items(parts if most < 0 else min(parts, most))
    if by:
        return str(text).split(by, most - 1 if most > 0 else -1)
    return list(text) or [""] if not 0 < most < len(text) else [*text[: most - 1], text[most - 1 :]]


def _substring(budget: Budget, text: Any, start: Any, *end: Any) -> str:
    stop = _index(end[0]) if end else len(text_of(text))
    if not 0 <= _index(start) <= stop <= len(text_of(text)):
        raise Failed(f"index out of range: {start}")
    budget.spend_on_text(stop - start)
    return str(text)[start:stop]


def _join(budget: Budget, values: Any, by: Any = "") -> str:
    if type_of(values) != "list":
        raise no_overload()
    budget.spend_on_items(len(values))
    length = sum(len(text_of(one)) for one in values) + len(text_of(by)) * max(0, len(values) - 1)
    budget.spend_on_text(length)
    return str(by).join(values)


def _quote(budget: Budget, text: Any) -> str:
    budget.spend_on_text(2 * len(text_of(text)) + 2)
    budget.spend(len(text) // _SLOWLY)
    named = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    return '"' + "".join({**named, "\\": "\\\\", '"': '\\"'}.get(one, one) for one in text) + '"'


TEXTS: Final[dict[str, dict[int, Function]]] = {
    "contains": {2: _read(lambda text, other: other in text)},
    "startsWith": {2: _read(str.startswith)},
    "endsWith": {2: _read(str.endswith)},
    "matches": {2: _matches},
    "charAt": {2: _char_at},
    "indexOf": {2: _index_of, 3: _index_of},
    "lastIndexOf": {2: _last_index_of, 3: _last_index_of},
    "lowerAscii": {1: _changed(str.lower)},
    "upperAscii": {1: _changed(str.upper)},
    "trim": {1: _trim},
    "replace": {3: _replace, 4: _replace},
    "split": {2: _split, 3: _split},
    "substring": {2: _substring, 3: _substring},
    "join": {1: _join, 2: _join},
    "strings.quote": {1: _quote},
}
"""By name, and by the number of arguments."""
