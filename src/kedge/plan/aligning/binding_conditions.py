"""Binding conditions: what a binding says of itself: whether it is applied, and what its clusters wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, Condition, find_condition, new_condition, set_condition
from kedge.api.karmada.bindings import AggregatedStatusItem, BindingSpec
from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.alignment import Alignment
from kedge.plan.aligning.ledger import Member
from kedge.plan.aligning.turns import TurnCode
from kedge.plan.aligning.wait_text import unfinished, wait_sentence
from kedge.plan.moving.wait import Wait
from kedge.plan.text import cut, first_few, listed

FULLY_APPLIED: Final = "FullyApplied"
ALIGNED: Final = "Aligned"
"""Kedge's own: whether all clusters are where they are to be, and if not, what each waits for."""
LONGEST: Final = 4096
_PROGRESS: Final[frozenset[str]] = frozenset(
    {AlignCode.rolling, AlignCode.creating, AlignCode.unacknowledged, AlignCode.starting, *TurnCode}
)
"""What a cluster waits for on its way: no news."""


class AlignedPlan(Protocol):
    """What was decided for a binding, whoever writes its Works."""

    @property
    def waiting(self) -> Mapping[str, Wait]: ...
    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def aim(self) -> Aim | None: ...
    @property
    def alignment(self) -> Alignment | None: ...
    @property
    def members(self) -> tuple[Member, ...]: ...


class ToldWait(Struct, frozen=True):
    """What one cluster waits for."""

    cluster: str
    code: str
    sentence: str


def waits_of(plan: AlignedPlan) -> tuple[ToldWait, ...]:
    """What the clusters of a binding wait for, by name."""
    return tuple(ToldWait(name, wait.code, wait_sentence(wait)) for name, wait in sorted(plan.waiting.items()))


def news(before: Iterable[ToldWait], waits: Iterable[ToldWait]) -> Iterator[ToldWait]:
    """Waits to tell people of: those that were not told before, and that are no part of its way."""
    told = {(one.cluster, one.code) for one in before}
    return (one for one in waits if one.code not in _PROGRESS and (one.cluster, one.code) not in told)


def says_starting(conditions: Iterable[Condition]) -> bool:
    """Whether the controller was waiting for pods that may only be starting when it last reported."""
    aligned = find_condition(conditions, ALIGNED)
    return aligned is not None and aligned.reason == AlignCode.starting


def with_conditions(
    conditions: tuple[Condition, ...],
    spec: BindingSpec,
    items: Iterable[AggregatedStatusItem],
    plan: AlignedPlan,
    *,
    generation: int | None,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions of a binding, with those that its controller decides on."""
    conditions = set_condition(conditions, _fully_applied(spec, items, generation, now))
    if plan.aim is None and not plan.problems:
        return without_aligned(conditions)
    return with_aligned(conditions, plan, generation=generation, now=now)


def with_aligned(
    conditions: tuple[Condition, ...], plan: AlignedPlan, *, generation: int | None, now: datetime
) -> tuple[Condition, ...]:
    """The conditions of a binding that others decide on, with the one on its alignment."""
    return set_condition(conditions, _aligned(plan, generation, now))


def without_aligned(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions of a binding that is not aligned."""
    return tuple(one for one in conditions if one.type != ALIGNED)


def _fully_applied(
    spec: BindingSpec, items: Iterable[AggregatedStatusItem], generation: int | None, now: datetime
) -> Condition:
    applied = {one.cluster_name for one in items if one.applied}
    missing = [one.name for one in spec.clusters if one.name not in applied]
    is_applied = bool(spec.clusters) and not missing
    message = f"Not applied yet: {listed(missing)}" if missing else "No cluster is scheduled"
    return new_condition(
        FULLY_APPLIED,
        status=TRUE if is_applied else FALSE,
        reason="FullyAppliedSuccess" if is_applied else "FullyAppliedFailed",
        message="All works have been successfully applied" if is_applied else message,
        generation=generation,
        now=now,
    )


def _aligned(plan: AlignedPlan, generation: int | None, now: datetime) -> Condition:
    waits = waits_of(plan)
    written = sorted(plan.alignment.specs) if plan.alignment is not None else []
    said = [*plan.problems, *(f"{one.cluster}: {one.sentence}" for one in waits)]
    rest = [] if said or written else _unfinished(plan)
    if plan.problems:
        reason = "NotAligned"
    elif waits:
        reason = _worst(waits)
    else:
        reason = "Rolling" if written or rest else "Aligned"
    said = said or (
        [f"written to: {listed(written)}"] if written else rest or ["All clusters are where they are to be"]
    )
    return new_condition(
        ALIGNED,
        status=TRUE if reason == "Aligned" else FALSE,
        reason=reason,
        message=cut(first_few(said, 10), LONGEST),
        generation=generation,
        now=now,
    )


def _unfinished(plan: AlignedPlan) -> list[str]:
    """What is left to be done though nobody waits: clusters that have all they need of the budget go on alone."""
    goals = plan.alignment.goals if plan.alignment is not None else {}
    found = ((one.name, unfinished(one, goals[one.name])) for one in plan.members if one.name in goals)
    return [f"{name}: {why}" for name, why in found if why]


def _worst(waits: Iterable[ToldWait]) -> str:
    """What to name of several waits: that pods are only starting, perhaps, which nothing else tells; else one that
    somebody may have to see to, rather than one on its way."""
    codes = [one.code for one in waits]
    if AlignCode.starting in codes:
        return AlignCode.starting
    return next((one for one in codes if one not in _PROGRESS), codes[0])
