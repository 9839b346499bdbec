"""Library: Kubernetes' own functions for CEL rules, beside those of the language.

Lists (isSorted, sum, min, max, indexOf, slice, …), sets, regular expressions, URLs, quantities, IP addresses and
ranges. A quantity, URL or address is a map inside an expression: rules only compare and ask them. Each pays for what it
does from the budget of the evaluation. Not here, so that rules which use them are refused: `semver`, `authorizer`,
macros with two variables, and `sortBy`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from kedge.api.cel_budget import CHARACTERS_PER_STEP, Budget
from kedge.api.cel_texts import pattern_for
from kedge.api.cel_values import DURATION, NUMBERS, ORDERED, equal, no_overload, type_of
from kedge.api.numbers import Quantity

_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_STEPS_PER_MATCH = 20
_SLOWLY = 5  # characters in a step
_LONGEST_URL = 10_000
_LONGEST_NUMBER = 100
Function = Callable[..., Any]  # given the budget and the arguments
Row = tuple[str, bool, Sequence[str], str, Function]  # name, is a method, parameters, result, what it does


def rows() -> list[Row]:
    """Every function: with its parameters and result by the names of CEL types."""
    simple = ((*row[:4], _paid(row[4])) for row in (*_URLS, *_QUANTITIES, *_ADDRESSES))
    return [*_LISTS, *_SETS, *_TEXTS, *simple]


def _paid(act: Callable[..., Any]) -> Function:
    """A function that reads its arguments, and in maps their texts, once, and slowly."""

    def pay(budget: Budget, *arguments: Any) -> Any:
        for one in arguments:
            inside = one.values() if isinstance(one, dict) else ()
            budget.spend(1 + sum(len(text) // _SLOWLY for text in (one, *inside) if isinstance(text, str)))
        return act(*arguments)

    return pay


def _sorted(budget: Budget, values: Sequence[Any]) -> list[Any]:
    _spend_on_sorting(budget, values)
    return sorted(values)


def _is_sorted(budget: Budget, values: Sequence[Any]) -> bool:
    _spend_on_sorting(budget, values)
    return all(one <= other for one, other in pairwise(values))


def _least(budget: Budget, values: Sequence[Any]) -> Any:
    _spend_on_sorting(budget, _some(values, "min"))
    return min(values)


def _most(budget: Budget, values: Sequence[Any]) -> Any:
    _spend_on_sorting(budget, _some(values, "max"))
    return max(values)


def _spend_on_sorting(budget: Budget, values: Sequence[Any]) -> None:
    """What has an order is compared with others of its type; each value some twenty times at most."""
    budget.spend_on_items(len(values))
    kinds = {"number" if (kind := type_of(one)) in NUMBERS else kind for one in values}
    if len(kinds) > 1 or not kinds <= ORDERED | {"number"}:
        raise no_overload()
    budget.spend(20 * sum(len(one) // CHARACTERS_PER_STEP for one in values if isinstance(one, str | bytes)))


def _some(values: Sequence[Any], what: str) -> Sequence[Any]:
    if not values:
        raise ValueError(f"{what} called on empty list")
    return values


def _sum(budget: Budget, values: Sequence[Any]) -> Any:
    budget.spend_on_items(len(values))
    if not all(type_of(one) in NUMBERS | {DURATION} for one in values):
        raise no_overload()
    return sum(values[1:], start=values[0]) if values else 0


def _index(budget: Budget, values: Sequence[Any], value: Any) -> int:
    return next((at for at, one in enumerate(values) if equal(budget, one, value)), -1)


def _last_index(budget: Budget, values: Sequence[Any], value: Any) -> int:
    return next((at for at in range(len(values) - 1, -1, -1) if equal(budget, values[at], value)), -1)


def _reversed(budget: Budget, values: Sequence[Any]) -> list[Any]:
    budget.spend_on_items(len(values))
    return list(values)[::-1]


def _slice(budget: Budget, values: Sequence[Any], start: int, end: int) -> list[Any]:
    budget.spend_on_items(len(values))
    if start < 0 or end < 0 or start > end or end > len(values):
        raise ValueError(f"cannot slice({start}, {end}), the list has {len(values)} items")
    return list(values[start:end])


def _flatten(budget: Budget, values: Sequence[Any]) -> list[Any]:
    budget.spend_on_items(sum(len(one) if isinstance(one, list) else 1 for one in values))
    return [inner for one in values for inner in (one if isinstance(one, list) else [one])]


def _distinct(budget: Budget, values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for one in values:
        if not _holds_value(budget, found, one):
            found.append(one)
    return found


def _holds_value(budget: Budget, values: Sequence[Any], value: Any) -> bool:
    budget.spend(1)
    return any(equal(budget, one, value) for one in values)


def _range(budget: Budget, size: int) -> list[int]:
    budget.spend_on_items(max(0, size))
    return list(range(size))


def _contains(budget: Budget, one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(_holds_value(budget, one, value) for value in other)


def _intersects(budget: Budget, one: Sequence[Any], other: Sequence[Any]) -> bool:
    return any(_holds_value(budget, one, value) for value in other)


def _equivalent(budget: Budget, one: Sequence[Any], other: Sequence[Any]) -> bool:
    return _contains(budget, one, other) and _contains(budget, other, one)


def _find(budget: Budget, text: str, pattern: str) -> str:
    found = pattern_for(budget, text, pattern).search(text)
    return found.group() if found else ""


def _find_all(budget: Budget, text: str, pattern: str, most: int = -1) -> list[str]:
    program = pattern_for(budget, text, pattern)
    found: list[str] = []
    for match in program.finditer(text):
        if len(found) == most:
            break
        found.append(match.group())
        budget.spend(_STEPS_PER_MATCH)
        budget.spend_on_text(len(found[-1]))
    return found


def _url(text: str) -> dict[str, Any]:
    split = _split(text)
    if " " in text or not (split.scheme or text.startswith("/")):
        raise ValueError(f'parse "{text}": invalid URI for request')
    if split.netloc and split.port is None and split.netloc.endswith(":"):
        raise ValueError(f'parse "{text}": invalid port')
    return {"url": text}


def _part(read: Callable[[Any], Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda url: read(_split(url["url"]))


def _split(text: str) -> SplitResult:
    if len(text) > _LONGEST_URL:
        raise ValueError(f"a URL has {_LONGEST_URL} characters at most")
    return urlsplit(text)


def _is(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _quantity(text: str) -> dict[str, Any]:
    try:
        return {"quantity": str(_plain(Quantity.parse(text).amount))}
    except ValueError:
        raise ValueError(_NO_QUANTITY) from None


def _plain(amount: Any) -> Decimal:
    return Decimal(amount).normalize()


def _amount(value: Any) -> Decimal:
    """The number a quantity is. Its digits can be counted: what is made of it takes no longer than reading it."""
    text = value["quantity"] if isinstance(value, Mapping) else value
    amount = Decimal(text if isinstance(text, int | float) else text[:_LONGEST_NUMBER])
    if not amount.is_finite() or abs(amount.adjusted()) > _LONGEST_NUMBER:
        raise ValueError(_NO_QUANTITY)
    return amount


def _of(amount: Decimal) -> dict[str, Any]:
    return {"quantity": str(_plain(amount))}


def _whole(value: Mapping[str, Any]) -> int:
    amount = _amount(value)
    if not _is_whole(value):
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _is_whole(value: Mapping[str, Any]) -> bool:
    amount = _amount(value)
    return amount == int(amount) and abs(amount) < 2**63


def _sign(value: Mapping[str, Any]) -> int:
    amount = _amount(value)
    return (amount > 0) - (amount < 0)


def _ip(text: str) -> dict[str, Any]:
    return {"ip": str(ipaddress.ip_address(text))}


def _cidr(text: str) -> dict[str, Any]:
    return {"cidr": str(ipaddress.ip_interface(text))}


def _address(value: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(value["ip"] if isinstance(value, Mapping) else value)


def _network(value: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_interface(value["cidr"] if isinstance(value, Mapping) else value).network


def _holds(network: Any, other: Any) -> bool:
    wide, narrow = _network(network), _network(other)
    return wide.version == narrow.version and narrow.subnet_of(wide)  # type: ignore[arg-type]


_LISTS: list[Row] = [
    ("isSorted", True, ["list"], "bool", _is_sorted),
    ("sum", True, ["list"], "dyn", _sum),
    ("min", True, ["list"], "dyn", _least),
    ("max", True, ["list"], "dyn", _most),
    ("indexOf", True, ["list", "dyn"], "int", _index),
    ("lastIndexOf", True, ["list", "dyn"], "int", _last_index),
    ("slice", True, ["list", "int", "int"], "list", _slice),
    ("flatten", True, ["list"], "list", _flatten),
    ("distinct", True, ["list"], "list", _distinct),
    ("sort", True, ["list"], "list", _sorted),
    ("reverse", True, ["list"], "list", _reversed),
    ("lists.range", False, ["int"], "list", _range),
]
_SETS: list[Row] = [
    ("sets.contains", False, ["list", "list"], "bool", _contains),
    ("sets.intersects", False, ["list", "list"], "bool", _intersects),
    ("sets.equivalent", False, ["list", "list"], "bool", _equivalent),
]
_TEXTS: list[Row] = [
    ("find", True, ["string", "string"], "string", _find),
    ("findAll", True, ["string", "string"], "list", _find_all),
    ("findAll", True, ["string", "string", "int"], "list", _find_all),
]
_URLS: list[Row] = [
    ("url", False, ["string"], "map", _url),
    ("isURL", False, ["string"], "bool", _is(_url)),
    ("getScheme", True, ["map"], "string", _part(lambda url: url.scheme)),
    ("getHost", True, ["map"], "string", _part(lambda url: url.netloc.rpartition("@")[2])),
    ("getHostname", True, ["map"], "string", _part(lambda url: url.hostname or "")),
    ("getPort", True, ["map"], "string", _part(lambda url: "" if url.port is None else str(url.port))),
    ("getEscapedPath", True, ["map"], "string", _part(lambda url: url.path)),
    ("getQuery", True, ["map"], "map", _part(lambda url: parse_qs(url.query, keep_blank_values=True))),
]
_QUANTITIES: list[Row] = [
    ("quantity", False, ["string"], "map", _quantity),
    ("isQuantity", False, ["string"], "bool", _is(_quantity)),
    ("isInteger", True, ["map"], "bool", _is_whole),
    ("asInteger", True, ["map"], "int", _whole),
    ("asApproximateFloat", True, ["map"], "double", lambda value: float(_amount(value))),
    ("sign", True, ["map"], "int", _sign),
    ("isLessThan", True, ["map", "map"], "bool", lambda one, other: _amount(one) < _amount(other)),
    ("isGreaterThan", True, ["map", "map"], "bool", lambda one, other: _amount(one) > _amount(other)),
    ("compareTo", True, ["map", "map"], "int", lambda one, other: _sign(_of(_amount(one) - _amount(other)))),
    ("add", True, ["map", "dyn"], "map", lambda one, other: _of(_amount(one) + _amount(other))),
    ("sub", True, ["map", "dyn"], "map", lambda one, other: _of(_amount(one) - _amount(other))),
]
_ADDRESSES: list[Row] = [
    ("ip", False, ["string"], "map", _ip),
    ("isIP", False, ["string"], "bool", _is(_ip)),
    ("ip.isCanonical", False, ["string"], "bool", lambda text: _ip(text)["ip"] == text),
    ("family", True, ["map"], "int", lambda value: _address(value).version),
    ("isLoopback", True, ["map"], "bool", lambda value: _address(value).is_loopback),
    ("isUnspecified", True, ["map"], "bool", lambda value: _address(value).is_unspecified),
    ("isLinkLocalMulticast", True, ["map"], "bool", lambda value: _address(value).is_multicast),
    ("isLinkLocalUnicast", True, ["map"], "bool", lambda value: _address(value).is_link_local),
    ("isGlobalUnicast", True, ["map"], "bool", lambda value: not _address(value).is_multicast),
    ("cidr", False, ["string"], "map", _cidr),
    ("isCIDR", False, ["string"], "bool", lambda text: "/" in text and _is(_cidr)(text)),
    ("ip", True, ["map"], "map", lambda value: {"ip": str(ipaddress.ip_interface(value["cidr"]).ip)}),
    ("prefixLength", True, ["map"], "int", lambda value: _network(value).prefixlen),
    ("masked", True, ["map"], "map", lambda value: {"cidr": str(_network(value))}),
    ("containsIP", True, ["map", "dyn"], "bool", lambda value, ip: _address(ip) in _network(value)),
    ("containsCIDR", True, ["map", "dyn"], "bool", _holds),
]
