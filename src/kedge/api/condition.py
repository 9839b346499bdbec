"""Condition: one thing an object says of itself, since when, and why.

`Condition` is the form every kind of the fleet uses, all fields present. `Observed` is the looser form of built-in
kinds, where only the type and the status are certain. The functions are pure: they give a new tuple, never change one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Final, Protocol, TypeVar

from msgspec.structs import replace

from kedge.api.markers import Schema
from kedge.api.meta import Value

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

REASON_PATTERN: Final = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TYPE_PATTERN: Final = rf"^({_DNS}(\.{_DNS})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"

BY_TYPE: Final = Schema(list_type="map", list_map_keys=("type",))
"""A list of conditions holds one of each type."""


class Condition(Value, frozen=True, gc=False):
    """One thing an object says of itself: whether it holds, since when, and why."""

    type: Annotated[str, Schema(max_length=316, pattern=_TYPE_PATTERN)]
    """What the condition is about."""
    status: Annotated[str, Schema(enum=(TRUE, FALSE, UNKNOWN))]
    """Whether it holds: True, False or Unknown."""
    last_transition_time: datetime
    """When the status last changed."""
    reason: Annotated[str, Schema(min_length=1, max_length=1024, pattern=REASON_PATTERN)]
    """Why, in one word for programs."""
    message: Annotated[str, Schema(max_length=32768)]
    """Why, in words for people; may be empty."""
    observed_generation: Annotated[int | None, Schema(minimum=0, format="int64")] = None
    """The generation of the object this was said about."""


class Observed(Value, frozen=True, gc=False):
    """A condition of a built-in kind, as far as it can be relied on."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


class _Judged(_Typed, Protocol):
    @property
    def status(self) -> str: ...

    @property
    def observed_generation(self) -> int | None: ...


C = TypeVar("C", bound=_Typed)
Own = TypeVar("Own", bound=Condition)


def find_condition(conditions: Iterable[C], type: str) -> C | None:  # noqa: A002  # the field's own name
    """The condition of a type, or None."""
    for condition in conditions:  # a loop, since large fleets ask this more often than anything
        if condition.type == type:
            return condition
    return None


def condition_message(conditions: Iterable[Condition], type: str) -> str:  # noqa: A002
    """The message of the condition of a type; empty if there is none."""
    found = find_condition(conditions, type)
    return found.message if found is not None else ""


def new_condition(
    type: str,  # noqa: A002
    status: str,
    reason: str,
    message: str,
    *,
    now: datetime,
    generation: int | None,
) -> Condition:
    """A condition that changes now and is about this generation. `set_condition` keeps an older time of transition."""
    return Condition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now,
        observed_generation=generation,
    )


def is_true(conditions: Iterable[_Judged], type: str, *, generation: int | None = None) -> bool:  # noqa: A002
    """Whether a condition is there and True; with a generation, also whether it speaks of that one."""
    found = find_condition(conditions, type)
    if found is None or found.status != TRUE:
        return False
    return generation is None or found.observed_generation == generation


def set_condition(conditions: tuple[Own, ...], new: Own) -> tuple[Own, ...]:
    """The conditions with this one in place of the one of its type, or at the end.

    While the status stays the same, so does the time of its last change. Times are kept to the second, which is as
    fine as Kubernetes prints them, so that a condition read back equals the one that was written.
    """
    old = find_condition(conditions, new.type)
    if old is not None and _says_the_same(old, new):
        return conditions
    since = old.last_transition_time if old and old.status == new.status else new.last_transition_time
    new = replace(new, last_transition_time=since.replace(microsecond=0))
    if old is None:
        return (*conditions, new)
    return tuple(new if condition.type == new.type else condition for condition in conditions)


def _says_the_same(one: Condition, other: Condition) -> bool:
    """Whether they differ in nothing but the time."""
    return (
        one.status == other.status
        and one.observed_generation == other.observed_generation
        and one.reason == other.reason
        and one.message == other.message
    )
