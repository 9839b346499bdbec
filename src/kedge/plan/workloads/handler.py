"""WorkloadHandler: how one kind counts its pods, how it rolls, and which patches freeze, partition and scale it.

A handler reads plain objects and answers with frozen values and JSON merge patches (null removes a field). It never
changes what it is given, and reads an object that lacks anything. To add a kind, write a handler in a module of its
own and name it in `registry`; from another distribution, name it as an entry point.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from kedge.api.numbers import IntOrPercent, resolve
from kedge.plan.fields import Object, at, count, is_observed, text, whole

Patch: TypeAlias = dict[str, Any]
ROLLING, ON_DELETE, RECREATE = "RollingUpdate", "OnDelete", "Recreate"


class Replicas(Struct, frozen=True):
    """The pods of a workload, counted. A status of another generation counts none: it proves nothing."""

    desired: int
    observed: bool = False
    """Whether the status is of the object's present generation."""
    updated: int = 0
    ready: int = 0
    available: int = 0


class Strategy(Struct, frozen=True):
    """How a workload replaces its pods, as its spec says it. None: it does not say, or its kind has no such field."""

    type: str = ROLLING
    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None
    partition: int | None = None
    paused: bool = False

    def updates(self, desired: int) -> int:
        """How many of its pods the workload would update by itself."""
        return 0 if self.type == ON_DELETE else max(0, desired - (self.partition or 0))


class Limits(Struct, frozen=True):
    """What the strategy comes to in pods, rounded as the kind's own controller does."""

    max_unavailable: int
    max_surge: int = 0


class WorkloadHandler(Protocol):
    """One kind that runs pods."""

    @property
    def group(self) -> str: ...

    @property
    def kind(self) -> str: ...

    def replicas(self, obj: Object) -> Replicas:
        """Its pods, counted at the observed generation."""
        ...

    def template(self, obj: Object) -> Object:
        """Its pod template, whole; `template_hash` tells one from another."""
        ...

    def strategy(self, obj: Object) -> Strategy:
        """How it replaces its pods."""
        ...

    def limits(self, obj: Object) -> Limits:
        """How many pods it may have too few and too many while it does."""
        ...

    def with_strategy(self, strategy: Strategy) -> Patch | None:
        """The patch that gives it this strategy, and none of another; None if the kind has none to set."""
        ...

    def freeze(self, obj: Object) -> Patch:
        """The patch after which a new template replaces no pods. To undo it, write back the strategy read before."""
        ...

    def with_partition(self, partition: int) -> Patch | None:
        """The patch that keeps so many pods back from an update; None if the kind has no partition."""
        ...

    def scale(self, replicas: int) -> Patch | None:
        """The patch for so many pods; None if the kind cannot be scaled."""
        ...


def counted(obj: Object, desired: int, *, updated: int, ready: int, available: int) -> Replicas:
    """The counts of a status, if it is of the object's present generation."""
    if not is_observed(obj):
        return Replicas(desired)
    return Replicas(desired, observed=True, updated=updated, ready=ready, available=available)


def counted_replicas(obj: Object, *, updated: str = "updatedReplicas") -> Replicas:
    """The counts of a kind with `spec.replicas`; `updated` is the field of its status with those of the template."""
    return counted(
        obj,
        desired_replicas(obj),
        updated=count(obj, "status", updated),
        ready=count(obj, "status", "readyReplicas"),
        available=count(obj, "status", "availableReplicas"),
    )


def desired_replicas(obj: Object) -> int:
    """How many pods it asks for: 1 unless it says."""
    found = whole(obj, "spec", "replicas")
    return 1 if found is None else found


def is_paused(obj: Object) -> bool:
    """Whether its own controller makes no pods of a new template: of Deployments, and of what has the same field."""
    return at(obj, "spec", "paused") is True


def held_replicas(obj: Object, desired: int) -> int:
    """How many of the pods that it asks for it keeps: while it is paused, those that are there already."""
    return min(desired, count(obj, "status", "replicas")) if is_paused(obj) else desired


def pod_template(obj: Object) -> Object:
    """What is at spec.template, where nearly every kind has it."""
    found = at(obj, "spec", "template")
    return found if isinstance(found, dict) else {}


def strategy_at(obj: Object, field: str) -> Strategy:
    """The strategy at `spec.strategy` or `spec.updateStrategy`."""
    rolling = at(obj, "spec", field, "rollingUpdate")
    return Strategy(
        type=text(obj, "spec", field, "type") or ROLLING,
        max_unavailable=number_or_percent(rolling, "maxUnavailable"),
        max_surge=number_or_percent(rolling, "maxSurge"),
        partition=whole(rolling or {}, "partition"),
        paused=is_paused(obj),
    )


def rolling_patch(strategy: Strategy, **numbers: IntOrPercent | None) -> Patch:
    """The patch of a strategy with these numbers, which only a rolling update may have."""
    given = strategy.type == ROLLING and any(number is not None for number in numbers.values())
    return {"type": strategy.type, "rollingUpdate": numbers if given else None}


def number_or_percent(obj: Any, name: str) -> IntOrPercent | None:
    """The number or text of a member; None if it has neither."""
    number = whole(obj or {}, name)
    return number if number is not None else text(obj, name) or None


def resolved(value: IntOrPercent | None, total: int, *, default: IntOrPercent, round_up: bool) -> int:
    """What a number or percentage comes to; the default's if there is none, or none that can be read."""
    try:
        return resolve(default if value is None else value, total, round_up=round_up)
    except ValueError:
        return resolve(default, total, round_up=round_up)
