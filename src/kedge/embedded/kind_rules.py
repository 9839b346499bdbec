"""Kind rules: what one kind has beyond its schema, as functions of its objects.

A kind without rules has `NO_RULES`. The server calls them in this order: on create `with_defaults`, `prepare_new`, then
`problems`; on an update `with_defaults` (of the new object), `prepare_changed`, `allocate_changed`, then `problems` and
`update_problems`. Writes to /status skip all but `problems` of what they change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from kedge.api.resource import Resource
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause


class AdmissionContext(Protocol):
    """Other objects of the server, for kinds that depend on them (a Service's address, a pod's account)."""

    def find(self, resource: Resource, namespace: str, name: str) -> Untyped | None: ...

    def each(self, resource: Resource, namespace: str = "") -> Iterator[Untyped]: ...

    def name(self, prefix: str) -> str:
        """A generated name: the prefix and five random characters."""
        ...

    def now(self) -> str:
        """The time as a timestamp of Kubernetes."""
        ...


def _without_defaults(obj: Untyped) -> Untyped:
    return obj


def _unchanged(obj: Untyped, _context: AdmissionContext) -> Untyped:
    return obj


def _nothing_to_allocate(_old: Untyped, new: Untyped, _context: AdmissionContext) -> Untyped:
    return new


def _as_sent(_old: Untyped, new: Untyped) -> Untyped:
    return new


def _no_problems(*_objects: Untyped) -> Iterable[Cause]:
    return ()


def _no_warnings(_obj: Untyped) -> Iterable[str]:
    return ()


class KindRules(Struct, frozen=True):
    """The rules of one kind. None of these changes its argument; what is untouched may be shared."""

    # Fills in what was left out; idempotent.
    with_defaults: Callable[[Untyped], Untyped] = _without_defaults
    # What the server adds to a new object; may raise Refused.
    prepare_new: Callable[[Untyped, AdmissionContext], Untyped] = _unchanged
    # From old and new: the new object with what a write may not change.
    prepare_changed: Callable[[Untyped, Untyped], Untyped] = _as_sent
    # After prepare_changed: what the changed object needs from the server; may raise Refused.
    allocate_changed: Callable[[Untyped, Untyped, AdmissionContext], Untyped] = _nothing_to_allocate
    problems: Callable[[Untyped], Iterable[Cause]] = _no_problems
    update_problems: Callable[[Untyped, Untyped], Iterable[Cause]] = _no_problems  # of old and new
    warnings: Callable[[Untyped], Iterable[str]] = _no_warnings  # for the Warning header


NO_RULES = KindRules()
