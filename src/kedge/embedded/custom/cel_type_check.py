"""CEL type check: a compiled CEL expression, checked against the schema of its variables.

The compiler knows values only as JSON has them. `check_types` adds what a schema knows: a member that does not exist,
an operator between types that do not go together, and times and durations, which JSON keeps as strings: where the
expression reads one, it is rewritten to read `timestamp(text)`. Types are followed through members, indexes, macros
and bindings; what is not known (the result of a function, say) is dynamic, and checked when the rule runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kedge.api import protowire as wire
from kedge.api.patterns import BadPattern, compiled
from kedge.api.protowire import Message
from kedge.embedded.custom import formats
from kedge.embedded.custom.cel_types import DYN, CelType

_ID, _CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _FOLD = range(2, 10)
_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {2: "timestamp", 3: "duration"}
_READ_AS = {"timestamp": "string_to_timestamp", "duration": "string_to_duration"}
_NUMBERS = frozenset(("int", "uint", "double"))
_SAME = frozenset(("_==_", "_!=_"))
_ORDER = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_TEXT_METHODS = frozenset(
    (
        *("charAt", "contains", "endsWith", "find", "findAll", "lowerAscii", "matches", "replace", "split"),
        *("startsWith", "substring", "trim", "upperAscii"),
    )
)
_NULLABLE = frozenset(("object", "timestamp", "duration"))
_CONTAINERS = frozenset(("list", "map", "dyn"))


class CheckedExpression(Struct, frozen=True):
    """What is known of an expression after the check."""

    problems: tuple[tuple[int, str], ...]  # where, and what
    type: str  # of its value
    uses: frozenset[str]  # variables
    reads: tuple[tuple[str, ...], ...]  # what it looks at: a variable, and the members on the way
    rewritten: bytes | None  # to be used instead, if anything reads moments or durations


def check_types(serialized: bytes, variables: Mapping[str, CelType]) -> CheckedExpression:
    """Check an expression as it was compiled."""
    whole = wire.read(serialized)
    checked = wire.inner(whole, 2)[0]
    reader = _TypeChecker(checked)
    result = reader.type_of(reader.root, variables)
    return CheckedExpression(
        problems=tuple(reader.problems),
        type=str(result),
        uses=frozenset(wire.text(one, 1) for entry in wire.inner(checked, 2) for one in wire.inner(entry, 2)),
        reads=tuple(reader.reads),
        rewritten=wire.written(whole) if reader.rewrote else None,
    )


class _TypeChecker:
    """Walks one expression, checks its types, and rewrites it where it reads strings as times or durations."""

    def __init__(self, checked: Message) -> None:
        self.root = wire.inner(checked, 4)[0]
        self.problems: list[tuple[int, str]] = []
        self.reads: dict[tuple[str, ...], None] = {}
        self.rewrote = False
        self._checked = checked
        self._known = {wire.number(entry, 1): _compiled_type(entry) for entry in wire.inner(checked, 3)}
        source = wire.inner(checked, 5)[0]
        self._places = {wire.number(entry, 1): wire.number(entry, 2) for entry in wire.inner(source, 4)}
        self._next_id = max(self._places, default=0) + 1

    def type_of(self, node: Message, names: Mapping[str, CelType]) -> CelType:
        """The type of a part, once everything below it has been looked at."""
        if way := _field_path(node):
            self.reads[way] = None
        return self._type_of(node, names)

    def _type_of(self, node: Message, names: Mapping[str, CelType]) -> CelType:
        if _IDENT in node:
            return self._read(node, names.get(wire.text(wire.inner(node, _IDENT)[0], 1), DYN))
        if _SELECT in node:
            return self._select(node, wire.inner(node, _SELECT)[0], names)
        if _CALL in node:
            return self._call(node, wire.inner(node, _CALL)[0], names)
        if _FOLD in node:
            return self._fold(node, wire.inner(node, _FOLD)[0], names)
        types = [self.type_of(part, names) for part in _parts(node)]
        if _LIST in node:
            self._refuse_mixture(_parts(node), types)
        return self._compiled(node)

    def _compiled(self, node: Message) -> CelType:
        return self._known.get(wire.number(node, _ID), DYN)

    def _select(self, node: Message, select: Message, names: Mapping[str, CelType]) -> CelType:
        inner = wire.inner(select, 1)[0]
        holder = self._type_of(inner, names) if _field_path(inner) else self.type_of(inner, names)
        found = self._field(node, holder, wire.text(select, 2))
        return CelType("bool") if wire.number(select, 3) else self._read(node, found)

    def _field(self, node: Message, holder: CelType, name: str) -> CelType:
        if holder.name == "object":
            if name not in holder.fields:
                self._complain(node, f"undefined field '{name}'")
            return holder.fields.get(name, DYN)
        if holder.name not in ("map", "dyn"):
            self._complain(node, f"type '{holder}' does not support field selection")
        return holder.inside if holder.name == "map" else DYN

    def _call(self, node: Message, call: Message, names: Mapping[str, CelType]) -> CelType:
        function = wire.text(call, 2)
        target = [self.type_of(one, names) for one in wire.inner(call, 1)]
        arguments = wire.inner(call, 3)
        types = [self.type_of(one, names) for one in arguments]
        self._refuse_bad_literals(function, arguments)
        if not _takes(function, types):
            given = ", ".join(map(str, types))
            self._complain(node, f"found no matching overload for '{function}' applied to '({given})'")
        match function, types:
            case "_[_]", [holder, _] if holder.name in ("list", "map"):
                return self._read(node, holder.inside)
            case "_?._", [holder, _]:
                self._field(node, holder, _constant(arguments[1]))
            case "_?_:_", [_, one, other]:
                return one if str(one) == str(other) else self._compiled(node)
            case _ if target and function in _TEXT_METHODS and target[0].name not in ("string", "dyn"):
                given = ", ".join(map(str, types))
                self._complain(node, f"found no matching overload for '{function}' applied to '{target[0]}.({given})'")
        return self._compiled(node)

    def _refuse_mixture(self, items: list[Message], types: list[CelType]) -> None:
        """Lists are of one type."""
        for item, found in zip(items, types, strict=True):
            if not _alike(found, types[0]):
                self._complain(item, f"expected type '{types[0]}' but found '{found}'")

    def _refuse_bad_literals(self, function: str, arguments: list[Message]) -> None:
        """Refuse invalid literals: durations, patterns."""
        fits = _LITERALS.get(function)
        for literal in arguments[:1] if fits else ():
            if _CONST in literal and fits is not None and not fits(_constant(literal)):
                self._complain(literal, f"invalid {function} argument")

    def _fold(self, node: Message, fold: Message, names: Mapping[str, CelType]) -> CelType:
        """A macro such as `all`, or a binding: the names it brings have the types of what it goes over."""
        iter_var, result_var = wire.text(fold, 1), wire.text(fold, 3)
        source = wire.inner(fold, 2)[0]
        over = self.type_of(source, names)
        if over.name not in _CONTAINERS:
            said = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._complain(source, said)
        start = self.type_of(wire.inner(fold, 4)[0], names)
        each = over.inside if over.name == "list" else CelType("string") if over.name == "map" else DYN
        inside = {**names, iter_var: each, result_var: DYN if result_var.startswith("@") else start}
        for part in (5, 6, 7):
            last = [self.type_of(one, inside) for one in wire.inner(fold, part)]
        return last[0] if last and not result_var.startswith("@") else self._compiled(node)

    def _read(self, node: Message, found: CelType) -> CelType:
        """Rewrite a part that reads a string to read its time or duration."""
        if found.name in _READ_AS:
            inside, new_id = dict(node), self._next_id
            node.clear()
            node.update({_ID: [new_id], _CALL: [{2: [found.name.encode()], 3: [inside]}]})
            self._next_id += 1
            self._refer(new_id, found.name)
            self._places[new_id] = self._places.get(wire.number(inside, _ID), 0)
            self.rewrote = True
        return found

    def _refer(self, new_id: int, function: str) -> None:
        overload: Message = {1: [function.encode()], 3: [_READ_AS[function].encode()]}
        self._checked.setdefault(2, []).append({1: [new_id], 2: [overload]})

    def _complain(self, node: Message, why: str) -> None:
        self.problems.append((self._places.get(wire.number(node, _ID), 0), why))


def _field_path(node: Message) -> tuple[str, ...]:
    """The variable and members a part names, if that is all it does."""
    if _IDENT in node:
        return (wire.text(wire.inner(node, _IDENT)[0], 1),)
    if _SELECT not in node:
        return ()
    select = wire.inner(node, _SELECT)[0]
    start = _field_path(wire.inner(select, 1)[0])
    return (*start, wire.text(select, 2)) if start else ()


def _parts(node: Message) -> list[Message]:
    """What a literal consists of."""
    items = [item for one in wire.inner(node, _LIST) for item in wire.inner(one, 1)]
    entries = [entry for one in wire.inner(node, _STRUCT) for entry in wire.inner(one, 2)]
    return [*items, *(part for entry in entries for field in (3, 4) for part in wire.inner(entry, field))]


def _constant(node: Message) -> str:
    return next((wire.text(one, 6) for one in wire.inner(node, _CONST)), "")


def _compiled_type(entry: Message) -> CelType:
    """A type as the compiler found it."""
    for found in wire.inner(entry, 2):
        return _type(found)
    return DYN


def _type(found: Message) -> CelType:
    if 3 in found:
        return CelType(_PRIMITIVES.get(wire.number(found, 3), "dyn"))
    if 5 in found:
        return CelType(_WELL_KNOWN.get(wire.number(found, 5), "dyn"))
    if 6 in found:
        return _ContainerType("list", [_type(one) for held in wire.inner(found, 6) for one in wire.inner(held, 1)])
    if 7 in found:
        return _ContainerType("map", [_type(one) for held in wire.inner(found, 7) for one in wire.inner(held, 2)])
    return CelType("null") if 2 in found else DYN


class _ContainerType(CelType):
    """A list or map literal."""

    def __init__(self, name: str, inside: list[CelType]) -> None:
        super().__init__(name)
        self.__dict__["inside"] = inside[0] if inside else DYN


def _is_pattern(text: str) -> bool:
    try:
        compiled(text)
    except BadPattern:
        return False
    return True


_LITERALS: Mapping[str, Callable[[str], bool]] = {
    "duration": formats.TEXTS["duration"],
    "matches": _is_pattern,
    "timestamp": formats.TEXTS["datetime"],
}


def _takes(function: str, types: list[CelType]) -> bool:
    """Whether an operator can have these operands, as far as their types are known."""
    match function, types:
        case "size", [one]:
            return one.name != "object"
        case "!_", [one]:
            return one.name in ("bool", "dyn")
        case "_?_:_", [condition, _, _]:
            return condition.name in ("bool", "dyn")
        case "_&&_" | "_||_", operands:
            return all(one.name in ("bool", "dyn") for one in operands)
        case _, [one, other]:
            return _go_together(function, one, other)
    return True


def _go_together(function: str, one: CelType, other: CelType) -> bool:
    """Whether an operator can stand between two types. What is dynamic or null may be anything."""
    names: tuple[Any, Any] = (one.name, other.name)
    if "dyn" in names:
        return True
    if function in _SAME:
        return _alike(one, other)
    if "null" in names:
        return True
    if function in _ORDER:
        return one.name == other.name or set(names) <= _NUMBERS
    if function == "@in":
        inside = other.inside if other.name == "list" else CelType("string") if other.name == "map" else None
        return inside is not None and _alike(one, inside)
    if function in ("_-_", "_*_", "_/_", "_%_", "_+_"):
        return one.name == other.name or not set(names) <= _NUMBERS | {"string", "bool"}
    return True


def _alike(one: CelType, other: CelType) -> bool:
    if "dyn" in (one.name, other.name):
        return True
    if one.name != other.name:
        return "null" in (one.name, other.name) and bool({one.name, other.name} & _NULLABLE)
    return one.name not in ("list", "map") or _alike(one.inside, other.inside)
