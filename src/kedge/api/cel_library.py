"""Library: Kubernetes' own functions for CEL rules, beside those of the language.

Lists (isSorted, sum, min, max, indexOf, slice, …), sets, regular expressions, URLs, quantities, IP addresses and
ranges. A quantity, URL or address is a map inside an expression: rules only compare and ask them. Not here, so that
rules which use them are refused: `format`, `semver`, `authorizer`, macros with two variables, and `sortBy`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from kedge.api.patterns import compiled
from kedge.api.quantity import Quantity

_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
Row = tuple[str, bool, Sequence[str], str, Callable[..., Any]]  # name, is a method, parameters, result, what it does


def rows() -> list[Row]:
    """Every function: with its parameters and result by the names of CEL types."""
    return [*_LISTS, *_SETS, *_TEXTS, *_URLS, *_QUANTITIES, *_ADDRESSES]


def _is_sorted(values: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _least(values: Sequence[Any]) -> Any:
    return min(_some(values, "min"))


def _most(values: Sequence[Any]) -> Any:
    return max(_some(values, "max"))


def _some(values: Sequence[Any], what: str) -> Sequence[Any]:
    if not values:
        raise ValueError(f"{what} called on empty list")
    return values


def _sum(values: Sequence[Any]) -> Any:
    return sum(values[1:], start=values[0]) if values else 0


def _index(values: Sequence[Any], value: Any) -> int:
    return next((at for at, one in enumerate(values) if one == value), -1)


def _last_index(values: Sequence[Any], value: Any) -> int:
    return next((at for at in range(len(values) - 1, -1, -1) if values[at] == value), -1)


def _slice(values: Sequence[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0 or start > end or end > len(values):
        raise ValueError(f"cannot slice({start}, {end}), the list has {len(values)} items")
    return list(values[start:end])


def _flatten(values: Sequence[Any]) -> list[Any]:
    return [inner for one in values for inner in (one if isinstance(one, list) else [one])]


def _distinct(values: Sequence[Any]) -> list[Any]:
    seen: dict[bytes, Any] = {}
    for one in values:
        seen.setdefault(msgspec.json.encode(one, order="deterministic"), one)
    return list(seen.values())


def _contains(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(value in one for value in other)


def _find(text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [match.group() for match in compiled(pattern).finditer(text)]
    return found if most < 0 else found[:most]


def _url(text: str) -> dict[str, Any]:
    split = urlsplit(text)
    if " " in text or not (split.scheme or text.startswith("/")):
        raise ValueError(f'parse "{text}": invalid URI for request')
    if split.netloc and split.port is None and split.netloc.endswith(":"):
        raise ValueError(f'parse "{text}": invalid port')
    return {"url": text}


def _part(read: Callable[[Any], Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda url: read(urlsplit(url["url"]))


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
    return Decimal(value["quantity"]) if isinstance(value, Mapping) else Decimal(value)


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
    ("sort", True, ["list"], "list", sorted),
    ("reverse", True, ["list"], "list", lambda values: list(values)[::-1]),
    ("lists.range", False, ["int"], "list", lambda size: list(range(size))),
]
_SETS: list[Row] = [
    ("sets.contains", False, ["list", "list"], "bool", _contains),
    ("sets.intersects", False, ["list", "list"], "bool", lambda one, other: any(value in one for value in other)),
    ("sets.equivalent", False, ["list", "list"], "bool", lambda a, b: _contains(a, b) and _contains(b, a)),
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
