"""Cell text: how table cells write ages, labels, selectors, and values that are not set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from kedge.kube.codec import Untyped

Cells: TypeAlias = list[Any]

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def name_of(obj: Untyped) -> str:
    return str(obj["metadata"].get("name", ""))


def age_of(obj: Untyped, now: datetime) -> str:
    """How long ago an object was created."""
    return age(obj["metadata"].get("creationTimestamp"), now)


def age(timestamp: str | None, now: datetime) -> str:
    """How long ago that was, as briefly as it matters: 45s, 5m10s, 3h, 2d."""
    return duration(int((now - parse_time(timestamp)).total_seconds())) if timestamp else UNKNOWN


def parse_time(timestamp: str) -> datetime:
    return datetime.fromisoformat(timestamp)


def duration(seconds: int) -> str:
    """A duration in one or two units."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    for limit, big, small in (
        (2 * _MINUTE, (1, "s"), None),
        (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
        (3 * _HOUR, (_MINUTE, "m"), None),
        (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
        (2 * _DAY, (_HOUR, "h"), None),
        (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
        (2 * _YEAR, (_DAY, "d"), None),
        (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
    ):
        if seconds < limit:
            return _in(seconds, big, small)
    return _in(seconds, (_YEAR, "y"), None)


def _in(seconds: int, big: tuple[int, str], small: tuple[int, str] | None) -> str:
    whole, rest = divmod(seconds, big[0])
    more = rest // small[0] if small else 0
    return f"{whole}{big[1]}" + (f"{more}{small[1]}" if small and more else "")


def labels_text(found: Mapping[str, str] | None) -> str:
    """`a=1,b=2`, in the order of their keys."""
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def selector_or_none(found: Mapping[str, Any] | None) -> str:
    """A label selector as people write it."""
    if found is None:
        return NONE
    return selector_text(found) or NONE


def selector_text(found: Mapping[str, Any]) -> str:
    """The same, empty for one that selects everything."""
    parts = {key: f"{key}={value}" for key, value in (found.get("matchLabels") or {}).items()}
    parts |= {one["key"]: requirement(one) for one in found.get("matchExpressions") or ()}
    return ",".join(text for _, text in sorted(parts.items()))


def requirement(one: Mapping[str, Any]) -> str:
    """One expression of a label selector: `tier in (a,b)`, `!old`."""
    key, values = one["key"], ",".join(sorted(one.get("values") or ()))
    match one["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
    return f"!{key}"


def joined_or_none(texts: Iterable[object], otherwise: str = NONE) -> str:
    return ",".join(map(str, texts)) or otherwise


def first_few(texts: list[str], most: int = 3) -> str:
    """The first few, and how many more there are."""
    if not texts:
        return UNSET
    shown = ",".join(texts[:most])
    return shown if len(texts) <= most else f"{shown} + {len(texts) - most} more..."
