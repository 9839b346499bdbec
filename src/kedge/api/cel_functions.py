"""Functions: the operators and functions of CEL itself, each of which pays for what it does.

Those that Kubernetes adds are in `cel_library`. Not here, so that expressions which use it are refused: `format`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from kedge.api.cel_budget import Budget, Failed
from kedge.api.cel_conversions import CONVERSIONS
from kedge.api.cel_texts import TEXTS, Function
from kedge.api.cel_values import (
    DURATION,
    NUMBERS,
    TIMESTAMP,
    Duration,
    Optional,
    TypeName,
    before,
    equal,
    moment,
    no_overload,
    truncated,
    type_of,
    unsigned,
    whole,
)

# Arithmetic


def _add(budget: Budget, one: Any, other: Any) -> Any:
    match type_of(one), type_of(other):
        case ("string", "string") | ("bytes", "bytes"):
            budget.spend_on_text(len(one) + len(other))
            return one + other
        case "list", "list":
            budget.spend_on_items(len(one) + len(other))
            return [*one, *other]
    budget.spend(1)
    match _kinds_of_time(one, other):
        case ("timestamp", "duration") | ("duration", "timestamp"):
            return moment(one.nanoseconds + other.nanoseconds)
        case "duration", "duration":
            return Duration(whole(one.nanoseconds + other.nanoseconds))
    return _calculated(operator.add, one, other)


def _subtract(budget: Budget, one: Any, other: Any) -> Any:
    budget.spend(1)
    match _kinds_of_time(one, other):
        case ("timestamp", "timestamp") | ("duration", "duration"):
            return Duration(whole(one.nanoseconds - other.nanoseconds))
        case "timestamp", "duration":
            return moment(one.nanoseconds - other.nanoseconds)
    return _calculated(operator.sub, one, other)


def _kinds_of_time(one: Any, other: Any) -> tuple[str, str]:
    names = {TIMESTAMP: "timestamp", DURATION: "duration"}
    return names.get(type_of(one), ""), names.get(type_of(other), "")


def _multiply(budget: Budget, one: Any, other: Any) -> Any:
    budget.spend(1)
    return _calculated(operator.mul, one, other)


def _divide(budget: Budget, one: Any, other: Any) -> Any:
    budget.spend(1)
    if type_of(one) == type_of(other) == "double":
        return one / other if other else math.nan if not one or math.isnan(one) else math.copysign(math.inf, one)
    if type_of(other) in ("int", "uint") and not other:
        raise Failed("division by zero")
    return _calculated(truncated, one, other, floats=False)


def _modulo(budget: Budget, one: Any, other: Any) -> Any:
    budget.spend(1)
    if type_of(other) in ("int", "uint") and not other:
        raise Failed("modulus by zero")
    return _calculated(lambda a, b: a - b * truncated(a, b), one, other, floats=False)


def _calculated(act: Callable[[Any, Any], Any], one: Any, other: Any, *, floats: bool = True) -> Any:
    """The result for two numbers of one type."""
    match type_of(one), type_of(other):
        case "int", "int":
            return whole(act(one, other))
        case "uint", "uint":
            return unsigned(act(int(one), int(other)))
        case "double", "double" if floats:
            return act(one, other)
    raise no_overload()


def _negate(_: Budget, value: Any) -> Any:
    match type_of(value):
        case "int":
            return whole(-value)
        case "double":
            return -value
    raise no_overload()


def _not(_: Budget, value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_overload()
    return not value


# Containers


def _size(_: Budget, value: Any) -> int:
    if not isinstance(value, str | bytes | list | dict):
        raise no_overload()
    return len(value)


def _in(budget: Budget, value: Any, container: Any) -> bool:
    match type_of(container):
        case "list":
            return any(equal(budget, value, one) for one in container)
        case "map" if type_of(value) in NUMBERS | {"bool", "string"}:
            return is_key(value) and value in container
    raise no_overload()


def is_key(value: Any) -> bool:
    """Whether a value can be the key of a map."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def item(_: Budget, container: Any, which: Any) -> Any:
    """What is at an index, or under a key."""
    match type_of(container):
        case "list":
            if type_of(which) not in NUMBERS or not math.isfinite(which) or which != int(which):
                raise no_overload()
            if not 0 <= which < len(container):
                raise Failed(f"index out of bounds: {int(which)}")
            return container[int(which)]
        case "map":
            if not is_key(which) or which not in container:
                raise Failed(f"no such key: {str(which)[:200]}")
            return container[which]
        case "optional_type":
            return _optional_item(_, container, which)
    raise no_overload()


def _optional_item(budget: Budget, container: Any, which: Any) -> Optional:
    """What is there if it is there."""
    if isinstance(container, Optional):
        return _optional_item(budget, container.value, which) if container.held else container
    if type_of(container) not in ("list", "map") or (type_of(container) == "list" and type_of(which) != "int"):
        raise no_overload()
    try:
        return Optional((item(budget, container, which),))
    except Failed:
        return Optional()


# Optional values


def _of_non_zero(_: Budget, value: Any) -> Optional:
    return Optional((value,)) if value not in (None, False, 0, "", b"", [], {}) else Optional()


def held(value: Any) -> Optional:
    """A value that has to be an optional one."""
    if not isinstance(value, Optional):
        raise no_overload()
    return value


def _ordered(holds: Callable[[Any, Any], Any]) -> Function:
    return lambda budget, one, other: before(budget, one, other, holds)


FUNCTIONS: Final[dict[str, dict[int, Function]]] = {
    "_+_": {2: _add},
    "_-_": {2: _subtract},
    "_*_": {2: _multiply},
    "_/_": {2: _divide},
    "_%_": {2: _modulo},
    "-_": {1: _negate},
    "!_": {1: _not},
    "_==_": {2: equal},
    "_!=_": {2: lambda budget, one, other: not equal(budget, one, other)},
    "_<_": {2: _ordered(operator.lt)},
    "_<=_": {2: _ordered(operator.le)},
    "_>_": {2: _ordered(operator.gt)},
    "_>=_": {2: _ordered(operator.ge)},
    "_[_]": {2: item},
    "_[?_]": {2: _optional_item},
    "_?._": {2: _optional_item},
    "@in": {2: _in},
    "size": {1: _size},
    "type": {1: lambda _, value: TypeName(type_of(value))},
    "dyn": {1: lambda _, value: value},
    "optional.of": {1: lambda _, value: Optional((value,))},
    "optional.none": {0: lambda _: Optional()},
    "optional.ofNonZeroValue": {1: _of_non_zero},
    "hasValue": {1: lambda _, value: bool(held(value).held)},
    "value": {1: lambda _, value: held(value).value},
    **TEXTS,
    **CONVERSIONS,
}
"""By name, and by the number of arguments."""
