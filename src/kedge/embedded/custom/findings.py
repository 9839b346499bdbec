"""Findings: what a check found wrong, before it is known where the value stands.

A finding has the path from the value that was checked, and says its cause once it is told the field and the whole path;
so nothing is put together for values that are fine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kedge.embedded.custom import causes
from kedge.kube.errors import Cause

Said: TypeAlias = Callable[[str, str], Cause]  # of the field it is about, and of the path inside what was checked
Finding: TypeAlias = tuple[str, Said]
Check: TypeAlias = Callable[[Any, Any], Sequence[Finding]]  # of a value and what it was, or NOTHING

FINE: tuple[Finding, ...] = ()


def wrong(value: Any, why: str) -> Sequence[Finding]:
    return [("", lambda field, path: causes.invalid(field, value, f"{path} in body {why}"))]


def misfit(wanted: str, got: str) -> Sequence[Finding]:
    """A value of another type."""
    return [
        ("", lambda field, path: causes.misfit(field, got, f'{path} in body must be of type {wanted}: "{got}"')),
    ]


def none_fits(why: str) -> Finding:
    """Alternatives of which too few or too many fit."""
    return "", lambda _field, path: of_all(f"{causes.quoted(path)} {why}")


def of_all(why: str) -> Cause:
    """A cause that Kubernetes puts on the whole of what was checked; `located` says what that is."""
    return causes.invalid("", "", why)


def under(prefix: str, found: Sequence[Finding]) -> list[Finding]:
    """Findings in a member or item, as findings in what holds it."""
    return [(f"{prefix}{path}", said) for path, said in found]


def located(found: Sequence[Finding], field: str) -> list[Cause]:
    """The causes of findings in the value of a field (empty for a whole object), each once."""
    made = (said(_join(field, path), path.removeprefix(".")) for path, said in found)
    return list(dict.fromkeys(_nowhere(cause, field) for cause in made))


def _nowhere(cause: Cause, field: str) -> Cause:
    return Cause(field, cause.message, cause.reason) if field and cause.field == causes.NOWHERE else cause


def _join(field: str, path: str) -> str:
    inner = path.removeprefix(".")
    return f"{field}.{inner}" if field and inner else field or inner
