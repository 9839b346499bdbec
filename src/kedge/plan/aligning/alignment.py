"""Alignment: what each cluster is asked for next, so that all of them together keep one budget.

    alignment = align(aim, members)

Promises, whatever the clusters have not reported yet:

* at most `aim.unavailable` available pods are taken away, and never so many that fewer than `replicas - unavailable`
  are left; pods that broke by themselves count;
* there are at most `replicas + surge` pods, and at most `replicas - partition` of the wanted template;
* a cluster that has not acknowledged what was written last is not written to, and keeps what it holds;
* replicas that move from one cluster to another are added first and taken away when others are available;
* with nothing to do nothing is written; every cluster that is not where it is to be has a spec to write or a wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.bounds import Bounds, bounds, bounds_with, fewest_in_effect, steady_now
from kedge.plan.aligning.goals import goals, is_new, is_there
from kedge.plan.aligning.headroom import Headroom
from kedge.plan.aligning.ledger import Member, Spec
from kedge.plan.aligning.offers import offers
from kedge.plan.moving.division import divide
from kedge.plan.moving.wait import Blocker, Wait

UNDIVIDED: Final = 4
"""A budget of fewer pods is not divided over clusters."""


class Alignment(Struct, frozen=True):
    """What to write, by cluster; and what others wait for."""

    specs: Mapping[str, Spec] = {}
    waiting: Mapping[str, Wait] = {}
    held: Bounds = Bounds()
    """What all clusters may come to, with what is written now."""
    goals: Mapping[str, int] = {}
    """How many pods of the wanted template each cluster is to have in the end."""


def align(aim: Aim, members: Sequence[Member]) -> Alignment:
    """What to write now. Pure: same members, same alignment."""
    if all(map(is_new, members)):
        aim = replace(aim, partition=0)  # no pod has another template: there are none to keep back
    round_ = _Round(aim, members)
    for member in sorted(members, key=round_.rank):
        round_.ask(member)
    if not round_.specs:
        for member in sorted(members, key=_how_broken):
            round_.give_up(member)
    return Alignment(round_.specs, round_.waiting, round_.total, round_.goals)


class _Grant(Struct, frozen=True):
    """What one cluster is asked for, and what it and all of them may come to then."""

    spec: Spec
    held: Bounds
    total: Bounds


class _Round:
    """One pass over the clusters. What is granted is taken from what is left."""

    def __init__(self, aim: Aim, members: Sequence[Member]) -> None:
        self._aim = aim
        self._held = {member.name: bounds(member) for member in members}
        self.total = sum(self._held.values(), Bounds())
        self.goals = goals(aim, members)
        numbers = ((member.report.seq, *(spec.seq for spec in member.specs)) for member in members)
        self._seq = max([0, *(seq for each in numbers for seq in each)])
        self._goes_by_partition = aim.is_partitioned and not any(member.is_ordered for member in members)
        self._proven = sum(member.proven for member in members) if self._goes_by_partition else 0
        self._holders = {name: None for name, held in self._held.items() if held.unavailable or held.surge}
        self._all_acknowledged = all(member.is_acknowledged for member in members)
        self._moving = [member for member in members if self._may_move(member)]
        self._parts = self._divided(self._moving)
        self.specs: dict[str, Spec] = {}
        self.waiting: dict[str, Wait] = {}

    def _may_move(self, member: Member) -> bool:
        return not is_there(self._aim, member, self.goals[member.name]) and self._closed(member) is None

    def _divided(self, moving: Sequence[Member]) -> dict[str, Bounds] | None:
        """The part of the budget that each of them has; None if it is too small to be divided.

        Divided, no cluster loses all its pods at once, and none waits for another. A small budget goes to one after the
        other: fewer of them begin with what may be bad.
        """
        held = [self._held[one.name] for one in moving]
        elsewhere = self.total.unavailable - sum(one.unavailable for one in held)
        unavailable = max(0, self._aim.unavailable - elsewhere)
        surge = max(0, self._aim.surge - (self.total.surge - sum(one.surge for one in held)))
        if unavailable + surge < max(UNDIVIDED, len(moving)):
            return None
        needs = {one.name: max(1, self.goals[one.name] - one.updated) for one in moving}
        parts, more = divide(unavailable, needs), divide(surge, needs)
        return {name: Bounds(parts[name], more[name]) for name in needs}

    def rank(self, member: Member) -> tuple[bool, bool, bool, int, str]:
        """Replicas are added first; then those that have begun go on; then the largest."""
        held, last = self._held[member.name], member.last
        grows = member.wanted > member.replicas
        is_on = last is not None and last.template == member.template
        return not grows, not is_on, not (held.unavailable or held.surge), -member.wanted, member.name

    def ask(self, member: Member) -> None:
        """Write to a cluster that is not where it is to be, if it may move."""
        goal = self.goals[member.name]
        if is_there(self._aim, member, goal):
            return
        if (code := self._closed(member)) is not None:
            self._wait(member, code)
            return
        offered = offers(self._headroom(member), goal)
        for spec in (*offered.usual, *offered.gentle):
            if (grant := self._safe(member, spec)) is not None and self._lasts(member, grant):
                self._write(member, grant)
                return
        self._wait(member, offered.otherwise)

    def give_up(self, member: Member) -> None:
        """Replace or remove pods that do not work, though they may work again, if nobody gives anything back."""
        if self.specs or member.name not in self.waiting or self._closed(member) is not None:
            return
        headroom = self._headroom(member)
        if not headroom.is_idle:
            return
        for spec in offers(headroom, self.goals[member.name]).usual:
            if (grant := self._safe(member, spec)) is not None:
                self._write(member, grant)
                del self.waiting[member.name]
                return

    def _closed(self, member: Member) -> AlignCode | None:
        if not member.is_reachable:
            return AlignCode.unreachable
        if member.is_suspended:
            return AlignCode.suspended
        if not member.is_acknowledged:
            return AlignCode.unacknowledged
        return AlignCode.overridden if member.is_fixed else None

    def _headroom(self, member: Member) -> Headroom:
        holds = self.total.unavailable or self.total.surge
        return Headroom(
            aim=self._aim,
            member=member,
            held=self._held[member.name],
            total=self.total,
            fair=self._fair(member),
            is_idle=not holds and self._all_acknowledged,
            others_wait=any(one.name != member.name for one in self._moving),
        )

    def _fair(self, member: Member) -> Bounds:
        """How much of the budget one cluster may hold: its part if that is divided, and one pod in any case."""
        if self._parts is None or self._aim.recreates:
            return Bounds(self._aim.unavailable, self._aim.surge)
        part = self._parts[member.name]
        return Bounds(max(1, part.unavailable), max(1, part.surge))

    def _safe(self, member: Member, spec: Spec) -> _Grant | None:
        """This spec, if all promises hold with it as well; those that do not hold already must not get worse."""
        numbered = replace(spec, seq=self._seq + 1)
        before = self._held[member.name]
        held = bounds_with(before, member, numbered)
        after = self.total - before + held
        is_safe = self._is_safe(after) and self._is_steady(member, after)
        is_safe = is_safe and self._takes_no_others(member, numbered, after)
        is_safe = is_safe and (_has_no_others(member) or self._is_proven_enough(after))
        return _Grant(numbered, held, after) if is_safe else None

    def _is_steady(self, member: Member, after: Bounds) -> bool:
        """Whether enough pods are left if those that do not work now work again, all that the cluster reports among
        them, also if it may yet take some away by what it was asked for before."""
        before = self._held[member.name].steady
        there = self.total.steady - before + max(before, steady_now(member))
        return after.steady >= min(self._aim.fewest, there)

    def _takes_no_others(self, member: Member, spec: Spec, after: Bounds) -> bool:
        """Pods that may be on their way out by an earlier spec are no reason to take others away as well."""
        if after.fewest >= self._aim.fewest or not member.lingering:
            return True
        return fewest_in_effect(member, (spec,)) >= fewest_in_effect(member)

    def _is_safe(self, after: Bounds) -> bool:
        now, aim = self.total, self._aim
        return (
            after.unavailable <= max(aim.unavailable, now.unavailable)
            and after.fewest >= min(aim.fewest, now.fewest)
            and after.most <= max(aim.most, now.most)
            and (not aim.is_partitioned or after.updated <= max(aim.most_updated, now.updated))
        )

    def _is_proven_enough(self, after: Bounds) -> bool:
        """Whether no more pods may have the wanted template unproven than the budget allows. A cluster that has no
        others takes none of them away."""
        budget = self._aim.unavailable + self._aim.surge
        return self._exposed(after) <= max(budget, self._exposed(self.total))

    def _exposed(self, total: Bounds) -> int:
        """How many pods may have the wanted template and not work. A kind with a partition replaces all pods that do
        not work, as far as that goes, unless it goes by their order."""
        if self._aim.recreates:
            return 0
        return total.updated - self._proven if self._goes_by_partition else total.unproven

    def _lasts(self, member: Member, grant: _Grant) -> bool:
        """Whether enough pods stay available also when those that do not work there are replaced, and those of others
        still do not work: by what is granted now, as many may be taken away then."""
        others = self.total.fewest - self._held[member.name].fewest
        now, proven = self._held[member.name].steady, _steady_when_proven(member, grant.spec)
        if others + proven >= self._aim.fewest:  # else there are too few in any case, and the fix is to go on
            now = max(now, proven)
        return others + grant.held.steady >= min(self._aim.fewest, others + now)

    def _write(self, member: Member, grant: _Grant) -> None:
        self._seq = grant.spec.seq
        self.total, self._held[member.name] = grant.total, grant.held
        if grant.held.unavailable or grant.held.surge:
            self._holders[member.name] = None
        self.specs[member.name] = grant.spec

    def _wait(self, member: Member, code: AlignCode) -> None:
        blockers = tuple(Blocker(name) for name in self._holders if name != member.name)
        self.waiting[member.name] = Wait(member.name, code, self._numbers(member), blockers)

    def _numbers(self, member: Member) -> Mapping[str, int]:
        aim, total = self._aim, self.total
        return {
            "replicas": aim.replicas,
            "maxUnavailable": aim.unavailable,
            "maxSurge": aim.surge,
            "unavailable": total.unavailable,
            "surge": total.surge,
            "fewest": total.fewest,
            "most": total.most,
            "updated": member.updated,
            "goal": self.goals[member.name],
        }


def _how_broken(member: Member) -> tuple[bool, int, int, str]:
    """Where no pod works first, then where most do not: elsewhere they are likelier to be only starting."""
    report = member.report
    return report.available > 0, report.available - report.pods, -member.wanted, member.name


def _steady_when_proven(member: Member, spec: Spec) -> int:
    """How few pods work when those that were replaced do, if a spec only goes on with others then; 0 if it does
    something else."""
    last, report = member.last, member.report
    if last is None or not member.is_ordered or last.template != spec.template or spec.moved <= last.moved:
        return 0
    updated, proven = (report.updated, report.proven) if member.reported_template == last.template else (0, 0)
    working = min(report.pods, last.replicas, report.available + max(0, updated - proven))
    return working - max(0, min(last.unavailable, last.moved - updated))


def _has_no_others(member: Member) -> bool:
    """Whether none of its pods can have another template than the wanted one, as in a cluster that has none: what could
    never be written created none."""
    return is_new(member) or (member.is_unasked and member.report.pods == 0)
