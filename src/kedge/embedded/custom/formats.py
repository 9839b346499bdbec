"""Formats: which texts fit the `format` of a schema, for those formats kube-apiserver checks.

A format it does not know says nothing about a value, as there. Not checked here, though Kubernetes does: ISBN, credit
card and colour formats, and the like, which no CRD we know of uses; they let everything pass.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE
)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}([.,]\d+)?([Zz]|[+-]\d{2}:\d{2})")
_DURATION = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))*")
_LONG_DURATION = re.compile(
    r"\s*((\d+)\s*(nanos?|ns|micros?|us|µs|μs|millis?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w)\s*)+"
)
_HOST = re.compile(r"([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*")
_EMAIL = re.compile(r"[^@\s<>]+@[^@\s<>]+|.*<[^@\s<>]+@[^@\s<>]+>")
_MAC = re.compile(r"([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5,7}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,3})")
_SHORT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONG_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_PASSED = (
    *("bsonobjectid", "creditcard", "hexcolor", "isbn", "isbn10", "isbn13", "password", "rgbcolor", "ssn"),
)  # known to Kubernetes, not checked here


def checked_format(schema: Mapping[str, Any]) -> str:
    """The format of a schema, if it applies to its type; else empty."""
    name, kind = (
        str(schema.get("format", "")),
        "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", ""),
    )
    if kind in ("", "string"):
        return name if _plain(name) in TEXTS or _plain(name) in _PASSED else ""
    return name if name in _NUMBERS.get(kind, ()) else ""


def unknown_formats(schema: Mapping[str, Any]) -> Iterator[str]:
    """The formats in a schema that do not apply to their types."""
    name = schema.get("format", "")
    if name and not checked_format(schema):
        yield name
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for word in ("allOf", "anyOf", "oneOf"):
        below += schema.get(word, ())
    for one in (*below, schema.get("not")):
        if isinstance(one, Mapping):
            yield from unknown_formats(one)


def matches_format(name: str, text: str) -> bool:
    """Whether a string has a format."""
    check = TEXTS.get(_plain(name))
    return check is None or check(text)


def _plain(name: str) -> str:
    return name.replace("-", "")


def _tried(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _uuid(version: str = "", variant: str = "") -> Callable[[str], bool]:
    def check(text: str) -> bool:
        found = _UUID.fullmatch(text)
        return bool(found and found[1] in (version or found[1]) and (not variant or found[2].lower() in variant))

    return check


def _moment(text: str) -> None:
    if not _MOMENT.fullmatch(text):
        raise ValueError(text)
    datetime.fromisoformat(text[:19].upper())


def _date(text: str) -> None:
    if len(text) != 10:
        raise ValueError(text)
    date.fromisoformat(text)


def _address(text: str) -> None:
    split = urlsplit(text)
    if not (split.scheme or text.startswith("/")) or " " in text:
        raise ValueError(text)


def _whole(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _duration(text: str) -> bool:
    return text == "0" or bool(_DURATION.fullmatch(text) or _LONG_DURATION.fullmatch(text))


TEXTS: Mapping[str, Callable[[str], bool]] = {
    "byte": _tried(lambda text: base64.b64decode(text, validate=True)),
    "cidr": lambda text: "/" in text and _tried(ipaddress.ip_interface)(text),
    "date": _tried(_date),
    "datetime": _tried(_moment),
    "duration": _duration,
    "email": _whole(_EMAIL),
    "hostname": lambda text: len(text) <= 255 and _HOST.fullmatch(text) is not None,
    "ipv4": _tried(ipaddress.IPv4Address),
    "ipv6": _tried(ipaddress.IPv6Address),
    "k8sshortname": lambda text: len(text) <= 63 and _SHORT_NAME.fullmatch(text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and _LONG_NAME.fullmatch(text) is not None,
    "mac": _whole(_MAC),
    "uri": _tried(_address),
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "89ab"),
    "uuid5": _uuid("5", "89ab"),
}
