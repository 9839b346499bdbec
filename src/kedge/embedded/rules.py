"""Rules: what one kind has beyond its schema, as functions of its objects.

A kind without special rules has `PLAIN`. The server calls them in this order: on create `complete`, `begin`, then
`problems`; on a change `complete` (of the new object), `carry` (what a write may not touch comes from the old one),
then `problems` and `change_problems`. Writes to /status skip all but `problems` of what they change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from kedge.api.resource import Resource
from kedge.kube.errors import Cause

Untyped: TypeAlias = dict[str, Any]


class Surroundings(Protocol):
    """What else the server holds, for kinds whose new objects depend on it (a Service's address, a pod's account)."""

    def find(self, resource: Resource, namespace: str, name: str) -> Untyped | None: ...

    def each(self, resource: Resource, namespace: str = "") -> Iterator[Untyped]: ...

    def name(self, start: str) -> str:
        """A name that begins so, ending in five random letters."""
        ...

    def now(self) -> str:
        """The time as objects carry it."""
        ...


def _as_it_is(obj: Untyped) -> Untyped:
    return obj


def _unchanged(obj: Untyped, _around: Surroundings) -> Untyped:
    return obj


def _needs_nothing(_old: Untyped, new: Untyped, _around: Surroundings) -> Untyped:
    return new


def _as_sent(_old: Untyped, new: Untyped) -> Untyped:
    return new


def _nothing_wrong(*_objects: Untyped) -> Iterable[Cause]:
    return ()


def _no_warning(_obj: Untyped) -> Iterable[str]:
    return ()


class Rules(Struct, frozen=True):
    """What is special about one kind. None of these changes its argument; what is untouched may be shared."""

    complete: Callable[[Untyped], Untyped] = _as_it_is  # fill in what was left out; idempotent
    begin: Callable[[Untyped, Surroundings], Untyped] = _unchanged  # what a new one starts with; may raise Refused
    carry: Callable[[Untyped, Untyped], Untyped] = _as_sent  # old, new -> the new one with what stays as it was
    renew: Callable[[Untyped, Untyped, Surroundings], Untyped] = (
        _needs_nothing  # after carry: what it needs now; may raise
    )
    problems: Callable[[Untyped], Iterable[Cause]] = _nothing_wrong
    change_problems: Callable[[Untyped, Untyped], Iterable[Cause]] = _nothing_wrong  # old, new
    warnings: Callable[[Untyped], Iterable[str]] = _no_warning  # for the Warning header


PLAIN = Rules()
