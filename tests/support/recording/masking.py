"""What differs from one run of a server to the next, masked: two recordings of the same behaviour mask to the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from support.recording.exchange import Exchange

_OWN = frozenset(
    {"digest", "resourceVersion", "uid", "continue", "nodePort", "healthCheckNodePort", "clusterIP", "clusterIPs"}
)
"""Members whose value is the server's own choice."""

_MASKS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"(resourceVersion=|[Rr]esource ?[Vv]ersion[^:]*: \"?)\d+( \(\d+\))?", r"\1N"),
        (r"(continue=)[^& ]+", r"\1NEXT"),
        (r"\b10\.0\.\d+\.\d+\b", "ADDRESS"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b3[0-2]\d{3}\b", "PORT"),
        (r"(kube-api-access-)\w{5}", r"\1NAME"),
        (r"(hash=)[0-9A-F]{32,}", r"\1HASH"),
        (r"^\d+[smhd]$", "AGE"),
        (r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----", "CERTIFICATE"),
    )
)


def masked(exchanges: Iterable[Exchange]) -> list[str]:
    """Exchanges in the order of their text, without what no two runs have in common.

    A request that changes nothing counts once, with its last answer, if it was repeated: that is how one waits. Where
    others act, only what the test itself has changed counts, and whether that was accepted.
    """
    every = list(exchanges)
    generated = {name: prefix for one in every for name, prefix in _generated(msgspec.to_builtins(one))}
    last: dict[str, str] = {}
    lines: list[str] = []
    for one in every:
        if one.others_act:
            lines += [] if one.changes_nothing else [_text(_question(one), generated)]
        elif one.changes_nothing:
            last[_text(_question(one), generated)] = _text(one, generated)
        else:
            lines += [_text(one, generated), *last.values()]
            last.clear()
    return sorted([*lines, *last.values()])


def _question(exchange: Exchange) -> Exchange:
    return Exchange(ask=exchange.ask, accept=exchange.accept, code=exchange.code)


def _text(exchange: Exchange, generated: Mapping[str, str]) -> str:
    if exchange.lines is not None:
        lines = tuple({msgspec.json.encode(_calm(line.content, generated)) for line in exchange.lines})
        whole = _calm(msgspec.to_builtins(msgspec.structs.replace(exchange, lines=None)), generated)
        return msgspec.json.encode([whole, sorted(lines)], order="deterministic").decode()
    return msgspec.json.encode(_calm(msgspec.to_builtins(exchange), generated), order="deterministic").decode()


def _calm(value: Any, generated: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {
                _calm(key, generated): "…" if _is_own(key, part) else _calm(part, generated)
                for key, part in value.items()
            }
        case list() | tuple():
            return [_calm(part, generated) for part in value]
        case str():
            return _calm_text(value, generated)
    return value


def _is_own(key: str, part: Any) -> bool:
    return bool(key in _OWN and part) or (key == "port" and isinstance(part, int) and part > 20_000)


def _calm_text(text: str, generated: Mapping[str, str]) -> str:
    for name, prefix in generated.items():
        text = text.replace(name, f"{prefix}NAME")
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text


def _generated(value: Any) -> Iterator[tuple[str, str]]:
    """The names that the server has made up, each with what was given of it."""
    if isinstance(value, dict):
        name, prefix = value.get("name"), value.get("generateName")
        if isinstance(name, str) and isinstance(prefix, str) and name.startswith(prefix) and name != prefix:
            yield name, prefix
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _generated(part)
