"""Metered: CEL expressions that anybody may write, worked out within a budget.

    program = metered("self.status.ready == self.spec.wanted", {"self": "DYN"})
    program.value({"self": {...}})

They are compiled, and refused if they do not compile, by the same engine as all others (`cel`), which bounds how deep
and how large an expression may be. They are worked out here, step by step: every step, and every part of a text or a
list that is read or made, is paid for before it is done (`cel_budget`). So an evaluation ends in a bounded time and
takes a bounded amount of memory, whatever the expression and the values are; one that would need more raises
`TooCostly`. What cannot be worked out raises `Failed`, in the words kube-apiserver uses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from kedge.api import cel_library
from kedge.api import protowire as wire
from kedge.api.cel import BadExpression, compile_in, environment
from kedge.api.cel_budget import STEPS, Budget, Failed, TooCostly
from kedge.api.cel_functions import FUNCTIONS, is_key, item
from kedge.api.cel_lazy import LAZY, Part, Scope
from kedge.api.cel_texts import Function
from kedge.api.cel_values import NO_OVERLOAD, TIMESTAMP, Optional, TypeName, Uint, no_overload, type_of
from kedge.api.protowire import Message

_CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _FOLD = range(3, 10)
_TYPE_NAMES: Final = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type")
_LARGEST: Final = 70_000  # bytes of a compiled expression: reading it takes time, too


class MeteredProgram:
    """One expression, ready to be worked out."""

    def __init__(self, root: Part, found: str) -> None:
        self._root = root
        self.type = found
        """What it comes to, by the name of the CEL type: BOOL, or DYN if that is not known before."""

    def value(self, data: Mapping[str, Any], steps: int = STEPS) -> Any:
        """What it comes to."""
        try:
            return self._root(Scope(Budget(steps), {**_TYPES, **data}))
        except RecursionError:
            raise TooCostly("it looks into something that is nested too deeply") from None


def metered(source: str, variables: Mapping[str, str]) -> MeteredProgram:
    """The program of an expression over variables, each with the name of its CEL type."""
    expression = compile_in(environment(tuple(variables.items())), source)
    serialized = expression.serialize()
    if len(serialized) > _LARGEST:
        raise BadExpression("ERROR: <input>:1:1: the expression is too large once its macros are expanded")
    checked = wire.inner(wire.read(serialized), 2)[0]
    return MeteredProgram(_part(wire.inner(checked, 4)[0]), str(expression.return_type().name()))


# Parts of an expression


def _part(node: Message) -> Part:
    """What works out a part of an expression."""
    for field, made in _KINDS.items():
        if field in node:
            return _step(made(wire.inner(node, field)[0]))
    raise BadExpression("ERROR: <input>:1:1: the expression has a part that is not known here")


def _step(part: Part) -> Part:
    def work(scope: Scope) -> Any:
        scope.budget.spend(1)
        return part(scope)

    return work


def _constant(node: Message) -> Part:
    value = _constant_value(node)
    return lambda _: value


def _constant_value(node: Message) -> Any:
    for field, values in node.items():
        found = values[-1]
        match field, found:
            case 1, _:
                return None
            case 2, int():
                return bool(found)
            case 3, int():
                return found - 2**64 if found >= 2**63 else found
            case 4, int():
                return Uint(found)
            case 5, bytes():
                return struct.unpack("<d", found)[0]
            case 6, bytes():
                return found.decode()
            case 7, bytes():
                return found
    return None


def _ident(node: Message) -> Part:
    name = wire.text(node, 1)

    def read(scope: Scope) -> Any:
        found = scope.names.get(name, _UNKNOWN)
        if found is _UNKNOWN:
            raise Failed(f"undeclared reference to '{name}'")
        if isinstance(found, Failed):
            raise found
        return found

    return read


def _select(node: Message) -> Part:
    operand, field, only_asks = _part(wire.inner(node, 1)[0]), wire.text(node, 2), wire.number(node, 3)

    def read(scope: Scope) -> Any:
        holder = operand(scope)
        if isinstance(holder, Optional):
            there = holder.held and isinstance(holder.value, dict) and field in holder.value
            return bool(there) if only_asks else Optional((holder.value[field],)) if there else Optional()
        if not isinstance(holder, dict):
            raise no_overload()
        return field in holder if only_asks else item(scope.budget, holder, field)

    return read


def _list(node: Message) -> Part:
    parts = [_part(one) for one in wire.inner(node, 1)]
    optional = frozenset(_numbers(node, 2))

    def make(scope: Scope) -> list[Any]:
        found: list[Any] = []
        for index, part in enumerate(parts):
            found += _kept(part(scope), index in optional)
        return found

    return make


def _kept(value: Any, optional: bool) -> tuple[Any, ...]:
    if not optional:
        return (value,)
    if not isinstance(value, Optional):
        raise no_overload()
    return value.held


def _map(node: Message) -> Part:
    if wire.text(node, 1):
        raise BadExpression(f"ERROR: <input>:1:1: {wire.text(node, 1)} cannot be made here")
    entries = [
        (_part(wire.inner(one, 3)[0]), _part(wire.inner(one, 4)[0]), bool(wire.number(one, 5)))
        for one in wire.inner(node, 2)
    ]

    def make(scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for name, part, optional in entries:
            key = name(scope)
            if not is_key(key) or isinstance(key, float):
                raise no_overload()
            if key in found:
                raise Failed("Failed with repeated key")
            for value in _kept(part(scope), optional):
                found[key] = value
        return found

    return make


def _numbers(node: Message, field: int) -> list[int]:
    """The numbers at a field, one by one or packed."""
    found: list[int] = []
    for value in node.get(field, []):
        found += [value] if isinstance(value, int) else wire.packed(value) if isinstance(value, bytes) else []
    return found


# Calls


def _call(node: Message) -> Part:
    name, targets, arguments = wire.text(node, 2), wire.inner(node, 1), wire.inner(node, 3)
    if name in LAZY:
        return LAZY[name]([_part(one) for one in (*targets, *arguments)])
    if name == "_+_" and (accumulator := _accumulator(arguments[0])):
        return _appending(accumulator, _part(arguments[1]))
    parts = [_part(one) for one in (*targets, *arguments)]
    act = _function(name, len(parts), is_method=bool(targets))
    return lambda scope: act(scope.budget, *[part(scope) for part in parts])


def _function(name: str, count: int, *, is_method: bool) -> Function:
    """The function of a name: Kubernetes' own if the arguments are what it takes, else the language's."""
    own = FUNCTIONS.get(name, {}).get(count)
    added = _ADDED.get((name, is_method, count), ())
    if own is None and not added:
        raise BadExpression(f"ERROR: <input>:1:1: {name} is not known here")

    def choose(budget: Budget, *arguments: Any) -> Any:
        for parameters, act in added:
            if all(map(_fits, parameters, arguments)):
                return _worded(act, budget, arguments)
        if own is None:
            raise no_overload()
        return own(budget, *arguments)

    return choose


def _fits(parameter: str, value: Any) -> bool:
    return (
        parameter == "dyn" or parameter == type_of(value) or (parameter == "timestamp" and type_of(value) == TIMESTAMP)
    )


def _worded(act: Function, budget: Budget, arguments: tuple[Any, ...]) -> Any:
    try:
        return act(budget, *arguments)
    except (TypeError, KeyError, ArithmeticError):
        raise Failed(NO_OVERLOAD) from None
    except ValueError as error:
        raise Failed(str(error)) from None


def _accumulator(node: Message) -> str:
    """The name of the list that a macro adds to, if this is one. No expression can name it itself."""
    name = wire.text(wire.inner(node, _IDENT)[0], 1) if _IDENT in node else ""
    return name if name.startswith("@") else ""


def _appending(accumulator: str, more: Part) -> Part:
    """Add to a macro's list in place: nobody else sees it before the macro ends."""

    def add(scope: Scope) -> Any:
        found, added = scope.names[accumulator], more(scope)
        if isinstance(found, Failed):
            raise found
        if not isinstance(found, list):
            return FUNCTIONS["_+_"][2](scope.budget, found, added)
        scope.budget.spend_on_items(len(added))
        found.extend(added)
        return found

    return add


# Macros


def _fold(node: Message) -> Part:
    """A macro: goes over the items of a list, or the keys of a map."""
    if wire.text(node, 8):
        raise BadExpression("ERROR: <input>:1:1: macros with two variables are not known here")
    each, total = wire.text(node, 1), wire.text(node, 3)
    over, start, goes_on, step, result = (_part(wire.inner(node, field)[0]) for field in (2, 4, 5, 6, 7))

    def work(scope: Scope) -> Any:
        found = over(scope)
        if not isinstance(found, list | dict):
            raise no_overload()
        inside = Scope(scope.budget, dict(scope.names))
        inside.names[total] = start(scope)
        for one in found:
            inside.names[each] = one
            if goes_on(inside) is not True:
                break
            inside.names[total] = _attempt(step, inside)
        inside.names.pop(each, None)
        return result(inside)

    return work


def _attempt(step: Part, scope: Scope) -> Any:
    """What a step comes to; an error is a value that a later step may make up for."""
    try:
        return step(scope)
    except Failed as error:
        return Failed(*error.args)  # without the frames that it came through


_UNKNOWN: Final = object()
_TYPES: Final[Mapping[str, Any]] = {name: TypeName(name) for name in _TYPE_NAMES}
_KINDS: Final[Mapping[int, Callable[[Message], Part]]] = {
    _CONST: _constant,
    _IDENT: _ident,
    _SELECT: _select,
    _CALL: _call,
    _LIST: _list,
    _STRUCT: _map,
    _FOLD: _fold,
}


def _added() -> dict[tuple[str, bool, int], list[tuple[tuple[str, ...], Function]]]:
    found: dict[tuple[str, bool, int], list[tuple[tuple[str, ...], Function]]] = {}
    for name, is_method, parameters, _, act in cel_library.rows():
        found.setdefault((name, is_method, len(parameters)), []).append((tuple(parameters), act))
    return found


_ADDED: Final = _added()
