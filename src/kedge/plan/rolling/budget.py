"""Budget: what the strategy of a placement comes to, in integers for the kernel.

Percentages are of the number of clusters wanted, and rounded up. A budget of 0 counts as 1, so that something can move,
and a remark says so. Clusters that are wanted and could not be picked, since there are not so many, do not count as
unavailable: nobody can lose them. Clusters that are still to be removed do count. In the kubefleet dialect 0 stays 0,
and missing clusters count.

There is always room for the clusters that are bound: where fewer are bound than wanted, all of them may hold resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.dialect import Dialect
from kedge.api.numbers import IntOrPercent, resolve
from kedge.api.placement import PlacementSpec
from kedge.api.placement_kinds import Binding
from kedge.api.rollout import RollingUpdate
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.plan.moving.budget import Budget

_SEED_DEFAULT: Final = RollingUpdate(unavailable_period_seconds=10)  # seed 002, where no strategy is given at all
_FIELDS: Final = "spec.strategy.rollingUpdate"
_LONGEST: Final = 100 * 365 * 24 * 3600  # seconds: for ever


class BadStrategy(ValueError):
    """A strategy that cannot be followed; says which field, and what it takes."""


class RolloutBudget(Struct, frozen=True):
    """What a rolling update may spend at once, in integers; and what else its strategy says."""

    budget: Budget
    """Its desired number is that of the clusters of which those that are unavailable are counted."""
    target: int
    """How many clusters are wanted."""
    period: timedelta = timedelta(0)
    """How long to wait where it cannot be observed whether resources work."""
    remark: str = ""
    """What a user may not expect of these numbers; empty if nothing."""


class Clusters(Struct, frozen=True):
    """How many clusters a placement has."""

    picked: int = 0
    bound: int = 0
    """With those that are to be removed."""

    @classmethod
    def of(cls, bindings: Sequence[Binding]) -> Clusters:
        picked = {one.spec.target_cluster for one in bindings if one.spec.state != BindingState.unscheduled}
        return cls(len(picked), len({one.spec.target_cluster for one in bindings}))


def budget_of(spec: PlacementSpec, clusters: Clusters, dialect: Dialect) -> RolloutBudget:
    """What a placement's strategy allows. Raises `BadStrategy`."""
    rolling, target = _rolling(spec, dialect), _target(spec.policy, clusters.picked)
    counted = target if dialect is Dialect.kubefleet else min(target, clusters.bound)
    unavailable = _count("maxUnavailable", rolling.max_unavailable, counted)
    surge = _count("maxSurge", rolling.max_surge, target)
    least = 0 if dialect is Dialect.kubefleet else 1
    given = {"maxUnavailable": unavailable, "maxSurge": surge}
    return RolloutBudget(
        budget=Budget(counted, max(least, unavailable), max(least, surge)),
        target=target,
        period=waiting_period(rolling),
        remark="; ".join(f"{name} is 0, which counts as 1" for name, number in given.items() if target and not number)
        if least
        else "",
    )


def waiting_period(rolling: RollingUpdate) -> timedelta:
    """How long to wait where it cannot be observed whether resources work. Dates end, and a number may go beyond."""
    return timedelta(seconds=min(rolling.unavailable_period_seconds, _LONGEST))


def _target(policy: PlacementPolicy | None, picked: int) -> int:
    """How many clusters a placement wants: those picked, the number asked for, or those named."""
    if policy is not None and policy.placement_type is PlacementType.pick_fixed:
        return len(policy.cluster_names)
    number = policy.number_of_clusters if policy is not None else None
    if policy is not None and policy.placement_type is PlacementType.pick_n and number is not None:
        return number
    return picked


def _rolling(spec: PlacementSpec, dialect: Dialect) -> RollingUpdate:
    if spec.strategy is None:
        return RollingUpdate() if dialect is Dialect.kubefleet else _SEED_DEFAULT
    return spec.strategy.rolling_update or RollingUpdate()


def _count(field: str, value: IntOrPercent, target: int) -> int:
    try:
        return resolve(value, target, round_up=True)
    except ValueError as error:
        raise BadStrategy(f"{_FIELDS}.{field}: {error}") from error
