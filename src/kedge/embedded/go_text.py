"""Go text: values as Go writes them, since clients and their tests compare the messages of kube-apiserver."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

_HTML = re.compile("[<>&\u2028\u2029]")
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class GoStruct(dict[str, Any]):
    """A value that is a struct in Go: its keys keep their order."""


def go_json(value: Any) -> str:
    """JSON as Go writes it: keys sorted, except in a struct, and characters of HTML escaped."""
    encode = msgspec.json.encode if _has_struct(value) else _encode_sorted
    return _HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", encode(value).decode())


def go_value(value: Any) -> str:
    """A value in an error about a field."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, float):
        return go_number(value)
    return go_json(value)


def go_quoted(text: str) -> str:
    """A string in Go's quotes (`%q`)."""
    return '"' + "".join(map(_escaped, text)) + '"'


def go_number(value: float) -> str:
    """A number as `%v` prints it: no exponent before twenty-one digits."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value) and value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def go_print(value: Any) -> str:
    """A JSON value as `%v` prints it: `{"spec": {"foo": [1, None]}}` is `map[spec:map[foo:[1 <nil>]]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_print(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_print, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _has_struct(value: Any) -> bool:
    return isinstance(value, GoStruct) or (isinstance(value, list) and any(isinstance(one, GoStruct) for one in value))


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\x{ord(char):02x}" if ord(char) < 0x80 else f"\\u{ord(char):04x}"
