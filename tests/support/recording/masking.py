"""What differs from one run of a server to the next, masked: two recordings of the same behaviour mask to the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from support.recording.exchange import Exchange

_OWN = frozenset(
    {"resourceVersion", "uid", "continue", "nodeName", "nodePort", "healthCheckNodePort", "clusterIP", "clusterIPs"}
)
"""Members whose value is the server's own choice, or of others on the same server."""

_UNORDERED = frozenset({"causes", "conditions", "managedFields"})
"""Lists whose order is chance."""

_OF_ALL = re.compile(r"GET (/openapi/v3|/apis?|/apis/[^/ ?]+(/[^/ ?]+)?|/(api/v1|apis/[^/ ?]+/[^/ ?]+)/[a-z]+)(\?.*)?")
"""Requests whose answer tells of what other tests have made, too: discovery, and lists of the whole cluster."""

_CUT = 58  # characters of a prefix that are left in a name

_MASKS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"([Rr]esource ?[Vv]ersion[^:=\d]*[:=][\\\" ]*)\d+( \(\d+\))?", r"\1N"),
        (r"(in the precondition|in record) \(\d+\)", r"\1 (N)"),
        (r"(, current: )\d+", r"\1N"),
        (r"(X509SHA256=)[0-9a-f]+", r"\1HASH"),
        (r"(selfType)\d+", r"\1N"),
        (r"(continue=)[^& ]+", r"\1NEXT"),
        (r"\b10\.0\.\d+\.\d+\b", "ADDRESS"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b3[0-2]\d{3}\b", "PORT"),
        (r"(kube-api-access-)\w{5}", r"\1NAME"),
        (r"(hash=)[0-9A-F]{32,}", r"\1HASH"),
        (r"^\d+[smhd]$", "AGE"),
        (r"\(\d+[smhdy](\d+[smhdy])? ago\)", "(AGE ago)"),
        (r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----", "CERTIFICATE"),
    )
)


def masked(exchanges: Iterable[Exchange]) -> list[str]:
    """Exchanges in the order of their text, without what no two runs have in common.

    A request that changes nothing counts once, with its last answer, if it was repeated: that is how one waits. Where
    others act, only what the test itself has changed counts, and whether that was accepted.
    """
    every = list(_without_waiting(exchanges))
    generated = {name: prefix for one in every for name, prefix in _generated(_whole(one))}
    last: dict[str, str] = {}
    lines: list[str] = []
    for one in (replace(exchange, sent={}) for exchange in every):  # what it sends is the test's own
        if one.others_act:
            is_change = not one.changes_nothing and "dryRun=All" not in one.ask
            lines += [_text(_question(one), generated)] if is_change else []
        elif _OF_ALL.fullmatch(one.ask):
            continue
        elif one.changes_nothing:
            last[_text(replace(_question(one), code=0), generated)] = _text(one, generated)
        else:
            lines += [_text(one, generated), *last.values()]
            last.clear()
    return sorted([*lines, *last.values()])


def _without_waiting(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Of dry runs that were repeated until they were answered otherwise, only the last."""
    before: Exchange | None = None
    for one in exchanges:
        if before is not None and not ("dryRun=All" in before.ask and before.request == one.request):
            yield before
        before = one
    if before is not None:
        yield before


def _question(exchange: Exchange) -> Exchange:
    return Exchange(ask=exchange.ask, accept=exchange.accept, code=exchange.code)


def _text(exchange: Exchange, generated: Mapping[str, str]) -> str:
    if exchange.lines is not None:
        lines = tuple({msgspec.json.encode(_calm(line.content, generated)) for line in exchange.lines})
        whole = _calm(msgspec.to_builtins(replace(exchange, lines=None)), generated)
        return msgspec.json.encode([whole, sorted(lines)], order="deterministic").decode()
    return msgspec.json.encode(_calm(msgspec.to_builtins(exchange), generated), order="deterministic").decode()


def _calm(value: Any, generated: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {
                _calm(key, generated): "…" if _is_own(key, part) else _sorted(key, _calm(part, generated))
                for key, part in _without_list_of_causes(value).items()
            }
        case list() | tuple():
            return [_calm(part, generated) for part in value]
        case str():
            return _calm_text(value, generated)
    return value


def _is_own(key: str, part: Any) -> bool:
    return bool(key in _OWN and part) or (key in ("port", "targetPort") and isinstance(part, int) and part > 12_000)


def _sorted(key: str, part: Any) -> Any:
    return sorted(part, key=msgspec.json.encode) if key in _UNORDERED and isinstance(part, list) else part


def _without_list_of_causes(value: dict[str, Any]) -> dict[str, Any]:
    """A refusal without its message, if that lists causes, in an order of its own."""
    match value:
        case {"kind": "Status", "details": {"causes": [_, _, *_]}}:
            return {**value, "message": ""}
    return value


def _whole(exchange: Exchange) -> Any:
    """What was sent and answered, as one: the prefix of a generated name is in the one, the name in the other."""
    match exchange:
        case Exchange(
            sent={"json": {"metadata": {"generateName": prefix}}}, answer={"changes": {"metadata": {"name": name}}}
        ):
            return {"name": name, "generateName": prefix}
    return msgspec.to_builtins(exchange)


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
        if isinstance(name, str) and isinstance(prefix, str) and name.startswith(prefix[:_CUT]) and name != prefix:
            yield name, prefix
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _generated(part)
