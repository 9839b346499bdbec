"""Checks: whether a spec may be written to one cluster, by what all of them may come to then.

    code = refused(change_of(aim, member, spec, before, now, exposure))

Promises:

* all promises to all clusters together hold with the spec as well; those that do not hold already do not get worse;
* what the first check that fails is about is what the cluster waits for;
* to give up pods that do not work is another question than to be sure that none is missed: `is_lasting`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.bounds import Bounds, bounds, bounds_with, fewest_in_effect, steady_by, steady_now
from kedge.plan.aligning.goals import is_empty, is_new
from kedge.plan.aligning.ledger import Member, Spec


class SpecChange(Struct, frozen=True, gc=False):
    """A spec for one cluster, and what it and all of them may come to with it."""

    aim: Aim
    member: Member
    spec: Spec
    before: Bounds
    """What the cluster may come to now."""
    now: Bounds
    """What all of them may come to now."""
    held: Bounds
    """What the cluster may come to then."""
    total: Bounds
    """What all of them may come to then."""
    exposure: Exposure

    @property
    def others(self) -> int:
        """How few pods may be available in all other clusters."""
        return self.now.fewest - self.before.fewest


class Exposure(Struct, frozen=True, gc=False):
    """How pods are counted that have the wanted template and may not work."""

    by_updated: bool = False
    """Whether all that have it count. A kind with a partition replaces all pods that do not work, as far as that goes,
    unless it goes by their order."""
    proven: int = 0
    """How many of these are proven, in all clusters."""

    def of(self, total: Bounds) -> int:
        return total.updated - self.proven if self.by_updated else total.unproven


def change_of(aim: Aim, member: Member, spec: Spec, before: Bounds, now: Bounds, exposure: Exposure) -> SpecChange:
    """What becomes of a cluster that is asked for this."""
    held = bounds_with(before, member, spec)
    return SpecChange(aim, member, spec, before, now, held, now - before + held, exposure)


def refused(change: SpecChange) -> AlignCode | None:
    """What the cluster waits for if this spec is not to be written; None if it may."""
    return next((code for is_right, code in _CHECKS if not is_right(change)), None)


def is_lasting(change: SpecChange) -> bool:
    """Whether enough pods stay available also when those that do not work there are replaced, and those of others still
    do not work: by what is granted now, as many may be taken away then."""
    now, proven, fewest = change.before.steady, _steady_when_proven(change.member, change.spec), change.aim.fewest
    if change.others + proven >= fewest:  # else there are too few in any case, and the fix is to go on
        now = max(now, proven)
    if change.others + change.held.steady < min(fewest, change.others + now):
        return False
    before, then = _steady_when_whole(change.member, change.spec)
    return change.others + then >= min(fewest, change.others + before)


def _steady_when_whole(member: Member, spec: Spec) -> tuple[int, int]:
    """How few pods work when those that a cluster was asked to create do: by what it has, and with a spec as well."""
    report, last = member.report, member.last_written
    if last is None or last.replicas <= report.pods:
        return 0, 0
    missing = last.replicas - report.pods
    updated = report.updated + (missing if report.updated == report.pods else 0)
    whole = replace(member, report=replace(report, pods=last.replicas, updated=updated))
    before = bounds(whole)
    return before.steady, bounds_with(before, whole, spec).steady


def spares_what_works(change: SpecChange) -> bool:
    """Whether the spec alone leaves enough pods, if all of the cluster's work by then and those of others still do not:
    what it was asked for before may allow more, and is over then."""
    enough = min(change.aim.fewest, change.others + change.spec.replicas)
    return change.others + steady_by(change.member, change.spec) >= enough


def _is_within(change: SpecChange) -> bool:
    """Whether all clusters together keep to the budget."""
    now, total, aim = change.now, change.total, change.aim
    return (
        total.unavailable <= max(aim.unavailable, now.unavailable)
        and total.fewest >= min(aim.fewest, now.fewest)
        and total.most <= max(aim.most, now.most)
    )


def _keeps_others_back(change: SpecChange) -> bool:
    """Whether no more pods have the wanted template than the partition lets through."""
    now, total, aim = change.now, change.total, change.aim
    return not aim.is_partitioned or total.updated <= max(aim.most_updated, now.updated)


def _is_steady(change: SpecChange) -> bool:
    """Whether enough pods are left if those that do not work now work again, all that the cluster reports among them,
    also if it may yet take some away by what it was asked for before. To tell it what it has changes nothing of that.
    """
    if _is_told_again(change.member, change.spec):
        return True
    before = change.before.steady
    there = change.now.steady - before + max(before, steady_now(change.member))
    return change.total.steady >= min(change.aim.fewest, there)


def _is_told_again(member: Member, spec: Spec) -> bool:
    """Whether a spec is what the cluster has, but for its number, and ends what was granted since and never written."""
    last = member.last_written
    if last is None or not member.superseded or last not in member.in_effect:
        return False
    return replace(spec, seq=last.seq) == last


def _takes_no_others(change: SpecChange) -> bool:
    """Pods that may be on their way out by an earlier spec are no reason to take others away as well."""
    if change.total.fewest >= change.aim.fewest or not change.member.lingering:
        return True
    return fewest_in_effect(change.member, (change.spec,)) >= fewest_in_effect(change.member)


def _is_proven_enough(change: SpecChange) -> bool:
    """Whether no more pods may have the wanted template unproven than the budget allows. A cluster that has no others
    takes none of them away."""
    aim, exposed = change.aim, change.exposure.of
    if aim.recreates or is_new(change.member) or is_empty(change.member):
        return True
    return exposed(change.total) <= max(aim.unavailable + aim.surge, exposed(change.now))


_CHECKS: Final[tuple[tuple[Callable[[SpecChange], bool], AlignCode], ...]] = (
    (_is_within, AlignCode.budget_spent),
    (_keeps_others_back, AlignCode.kept_back),
    (_is_steady, AlignCode.broken),
    (_takes_no_others, AlignCode.budget_spent),
    (_is_proven_enough, AlignCode.unproven),
)


def _steady_when_proven(member: Member, spec: Spec) -> int:
    """How few pods work when those that were replaced do, if a spec only goes on with others then; 0 if it does
    something else."""
    last, report = member.last, member.report
    if last is None or not member.is_ordered or last.template != spec.template or spec.moved <= last.moved:
        return 0
    updated, proven = (report.updated, report.proven) if member.reported_template == last.template else (0, 0)
    working = min(report.pods, last.replicas, report.available + max(0, updated - proven))
    return working - max(0, min(last.unavailable, last.moved - updated))
