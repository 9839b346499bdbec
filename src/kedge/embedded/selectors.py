"""Selectors: which objects a list or a watch is about.

Promises the grammar of Kubernetes for labels (`app=web,tier in (a,b),!old,n>3`) and for fields
(`metadata.name=web,status.phase!=Failed`), and refuses with its words what it cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.naming import key_problems, value_problems
from kedge.embedded.statuses import Refused, bad_request
from kedge.embedded.store import Version

_TOKENS = re.compile(r"==|!=|[=!<>(),]|[^\s=!<>(),]+")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "<", ">", "(", ")", ","))
_COMPARE = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}
_FIELD_PARTS = re.compile(r"((?:\\.?|[^\\,])*)(?:,|$)", re.DOTALL)
_FIELD = re.compile(r"((?:(?![=!]=|=).)*)(!=|==|=)(.*)", re.DOTALL)


class Requirement(Struct, frozen=True):
    """One condition: `in`, `notin`, `exists`, `missing`, `gt` or `lt`."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, known: Mapping[str, str]) -> bool:
        """Whether it holds for these labels or fields. What is missing is `notin` everything."""
        value = known.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "missing":
                return value is None
        return value is not None and _compares(value, self.operator, next(iter(self.values)))


Selector: TypeAlias = tuple[Requirement, ...]  # all must hold


class Selection(Struct, frozen=True):
    """What a list or a watch is about: a namespace ("" for all), and what selectors say."""

    namespace: str = ""
    labels: Selector = ()
    fields: Selector = ()

    @property
    def prefix(self) -> str:
        """What the keys of all wanted objects begin with."""
        return f"{self.namespace}/" if self.namespace else ""

    @property
    def selective(self) -> bool:
        """Whether there is more to it than the namespace."""
        return bool(self.labels or self.fields)

    def matches(self, version: Version) -> bool:
        return version.key.startswith(self.prefix) and self.selects(version)

    def selects(self, version: Version) -> bool:
        """Whether the selectors want it, wherever it is."""
        if not all(requirement.holds(version.labels) for requirement in self.labels):
            return False
        return not self.fields or _all_hold(self.fields, version)


def parse_label_selector(text: str) -> Selector:
    """Read a label selector."""
    return _LabelParser(text).selector() if text else ()


def parse_field_selector(text: str, known: Mapping[str, str]) -> Selector:
    """Read a field selector; `known` are the fields it may name beside an object's name and namespace."""
    if not text:
        return ()
    parts = [part for part in (found[1] for found in _FIELD_PARTS.finditer(text)) if part]
    return tuple(_field(part, text, known) for part in parts)


def _all_hold(fields: Selector, version: Version) -> bool:
    known = {**version.fields, "metadata.name": version.name, "metadata.namespace": version.namespace}
    return all(requirement.holds(known) for requirement in fields)


class _LabelParser:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKENS.findall(text)
        self._at = 0

    def selector(self) -> Selector:
        requirements: list[Requirement] = []
        if self._peek() not in ("", "!") and self._peek() in _SYMBOLS:
            raise bad_request(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while self._peek():
            requirements.append(self._requirement())
            self._separator()
        return tuple(requirements)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _separator(self) -> None:
        found = self._next()
        if found not in (",", ""):
            raise bad_request(f"found '{found}', expected: ',' or 'end of string'")
        if found and (not self._peek() or self._peek() in _SYMBOLS - {"!"}):
            raise bad_request(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return Requirement(self._key(), "missing")
        key = self._key()
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        operator = self._next()
        if operator in ("in", "notin"):
            return Requirement(key, operator, _checked(key, self._set()))
        if operator not in _COMPARE:
            raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        return _comparison(key, _COMPARE[operator], self._value())

    def _key(self) -> str:
        key = self._next()
        if not key or key in _SYMBOLS:
            raise _unparsable(f"found '{key}', expected: identifier")
        for problem in key_problems(key):
            raise _unparsable(f"<nil>: Invalid value: {_quoted(key)}: {problem}")
        return key

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise _unparsable(f"found '{value}', expected: identifier")
        return value

    def _set(self) -> list[str]:
        if (opening := self._next()) != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        values = [""]
        while (found := self._next()) != ")":
            if found == ",":
                values.append("")
            elif not found or found in _SYMBOLS or values[-1]:
                raise _unparsable(f"found '{found}', expected: ',' or ')'")
            else:
                values[-1] = found
        return values


def _comparison(key: str, operator: str, value: str) -> Requirement:
    if operator in ("gt", "lt") and not _is_integer(value):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _unparsable(f"values[0]: Invalid value: {_quoted(value)}: {why}")
    return Requirement(key, operator, _checked(key, [value]))


def _checked(key: str, values: Sequence[str]) -> frozenset[str]:
    for index, value in enumerate(values):
        for problem in value_problems(value):
            raise _unparsable(f"values[{index}][{key}]: Invalid value: {_quoted(value)}: {problem}")
    return frozenset(values)


def _compares(value: str, operator: str, bound: str) -> bool:
    if not _is_integer(value):
        return False
    return int(value) > int(bound) if operator == "gt" else int(value) < int(bound)


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def _field(part: str, text: str, known: Mapping[str, str]) -> Requirement:
    found = _FIELD.fullmatch(part)
    if found is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    path, operator, value = found.groups()
    if path not in known and path not in ("metadata.name", "metadata.namespace"):
        raise _unknown_field(path, known)
    return Requirement(path, _COMPARE[operator], frozenset((_unescaped(value),)))


def _unknown_field(path: str, known: Mapping[str, str]) -> Refused:
    if known:
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def _unescaped(value: str) -> str:
    for found in re.finditer(r"\\(.?)|=", value, re.DOTALL):
        if found[0] == "=":
            raise bad_request("invalid field selector: unescaped character in value: 61")
        if found[1] not in ("\\", ",", "="):
            raise bad_request(f"invalid field selector: invalid escape sequence: {found[0]}")
    return re.sub(r"\\(.)", r"\1", value)


def _unparsable(why: str) -> Refused:
    return bad_request(f"unable to parse requirement: {why}")


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
