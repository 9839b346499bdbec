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
from kedge.plan.aligning.bounds import Bounds, bounds, extra_kept
from kedge.plan.aligning.checks import Exposure, SpecChange, change_of, is_lasting, refused, spares_what_works
from kedge.plan.aligning.goals import goals, is_new, is_there
from kedge.plan.aligning.headroom import Headroom
from kedge.plan.aligning.ledger import Member, Spec
from kedge.plan.aligning.offers import Offers, offers, own_offers
from kedge.plan.moving.division import divide
from kedge.plan.moving.wait import Blocker, Wait

UNDIVIDED: Final = 4
"""A budget of fewer pods is not divided over clusters."""
_OF_BUDGET: Final = (AlignCode.budget_spent, AlignCode.no_room, AlignCode.too_few)
"""What is only said if no other check refuses the best that could be asked for."""


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
    if aim.is_paused:
        for member in members:
            round_.keep_pods(member)
    for member in sorted(members, key=round_.rank):
        round_.ask(member)
    if not round_.specs:
        for member in sorted(members, key=_how_broken):
            if round_.gives_up(member):
                break
    return Alignment(round_.specs, round_.waiting, round_.total, round_.goals)


class _Round:
    """One pass over the clusters. What is granted is taken from what is left."""

    def __init__(self, aim: Aim, members: Sequence[Member]) -> None:
        self._aim = aim
        self._held = {member.name: bounds(member) for member in members}
        self.total = sum(self._held.values(), Bounds())
        self.goals = goals(aim, members)
        numbers = ((member.report.seq, *(spec.seq for spec in member.specs)) for member in members)
        self._seq = max([0, *(seq for each in numbers for seq in each)])
        is_by_partition = aim.is_partitioned and not any(member.is_ordered for member in members)
        self._exposure = Exposure(is_by_partition, sum(one.proven for one in members) if is_by_partition else 0)
        self._holders = {name: None for name, held in self._held.items() if held.unavailable or held.surge}
        self._is_acknowledged = all(one.is_acknowledged for one in members)
        self._starting = [one.name for one in members if one.may_be_starting]
        self._parts = self._divided([member for member in members if self._may_move(member)])
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

    def keep_pods(self, member: Member) -> None:
        """Let a Deployment that is paused keep the pods that it has."""
        last, extra = member.last, extra_kept(member)
        if last is not None and extra and member.is_acknowledged and not member.superseded:
            self._write(self._change(member, replace(last, surge=last.surge + extra)))

    def ask(self, member: Member) -> None:
        """Write to a cluster that is not where it is to be, if it may move."""
        goal = self.goals[member.name]
        if member.name in self.specs or is_there(self._aim, member, goal):
            return
        if (code := self._closed(member)) is not None:
            self._wait(member, code)
            return
        headroom = self._headroom(member, is_idle=self._is_idle and not self._starting)
        offered = own_offers(headroom, goal) if member.own is not None else offers(headroom, goal)
        refusals = []
        for spec in (*offered.usual, *offered.gentle):
            change = self._change(member, spec)
            refusal = _refusal(change)
            if refusal is None:
                self._write(self._sparing(change, offered))
                return
            refusals.append(refusal)
        self._wait(member, self._said(member, offered.otherwise, refusals))

    def _sparing(self, change: SpecChange, offered: Offers) -> SpecChange:
        """The same by surge alone, or more pods of the template before at first, if pods that work may be needed while
        those of others do not."""
        if spares_what_works(change):
            return change
        member, spec = change.member, change.spec
        asked = spec.template, spec.replicas
        others = [one for one in offered.gentle if (one.template, one.replicas) == asked and not one.unavailable]
        if spec.replicas > member.replicas and member.report.available >= member.report.pods:
            others += [one for one in offered.usual if one.replicas == spec.replicas]
        changes = (self._change(member, one) for one in others)
        return next((one for one in changes if spares_what_works(one) and _refusal(one) is None), change)

    def _said(self, member: Member, otherwise: AlignCode, refusals: Sequence[AlignCode]) -> AlignCode:
        """Why the best that it could be asked for is refused, unless it is that others hold the budget."""
        if otherwise not in _OF_BUDGET or not refusals:
            return otherwise
        others_hold = any(name != member.name for name in self._holders)
        is_theirs = others_hold and refusals[0] is not AlignCode.unproven
        return otherwise if is_theirs or refusals[0] is AlignCode.budget_spent else refusals[0]

    def gives_up(self, member: Member) -> bool:
        """Replace or remove pods that do not work, though they may work again, if nobody gives anything back. Not as
        long as any may only be starting: that is what the cluster waits for then."""
        if member.name not in self.waiting or self._closed(member) is not None or not self._is_idle:
            return False
        if member.own is not None:
            return False
        offered = offers(self._headroom(member, is_idle=True), self.goals[member.name])
        changes = (self._change(member, spec) for spec in offered.usual)
        change = next((one for one in changes if refused(one) is None), None)
        if change is not None and self._starting:
            self._wait(member, AlignCode.starting)
        elif change is not None:
            self._write(change)
            del self.waiting[member.name]
        return change is not None

    def _closed(self, member: Member) -> AlignCode | None:
        if not member.is_reachable:
            return AlignCode.unreachable
        if member.is_suspended:
            return AlignCode.suspended
        if not member.is_acknowledged:
            return AlignCode.unacknowledged
        return AlignCode.overridden if member.own is not None and member.own.is_held else None

    @property
    def _is_idle(self) -> bool:
        """Whether no cluster holds any of the budget or has anything yet to acknowledge."""
        return self._is_acknowledged and not (self.total.unavailable or self.total.surge)

    def _headroom(self, member: Member, *, is_idle: bool) -> Headroom:
        return Headroom(
            aim=self._aim,
            member=member,
            held=self._held[member.name],
            total=self.total,
            fair=self._fair(member),
            is_idle=is_idle,
        )

    def _fair(self, member: Member) -> Bounds:
        """How much of the budget one cluster may hold: its part if that is divided, and one pod in any case."""
        if self._parts is None or self._aim.recreates:
            return Bounds(self._aim.unavailable, self._aim.surge)
        part = self._parts[member.name]
        return Bounds(max(1, part.unavailable), max(1, part.surge))

    def _change(self, member: Member, spec: Spec) -> SpecChange:
        numbered = replace(spec, seq=self._seq + 1)
        return change_of(self._aim, member, numbered, self._held[member.name], self.total, self._exposure)

    def _write(self, change: SpecChange) -> None:
        name = change.member.name
        self._seq = change.spec.seq
        self.total, self._held[name] = change.total, change.held
        if change.held.unavailable or change.held.surge:
            self._holders[name] = None
        self.specs[name] = change.spec

    def _wait(self, member: Member, code: AlignCode) -> None:
        if code is AlignCode.starting:
            names = self._starting
        elif code is AlignCode.unproven:
            names = [name for name, held in self._held.items() if held.unproven]
        else:
            names = [name for name in self._holders if name != member.name]
        self.waiting[member.name] = Wait(member.name, code, self._numbers(member), tuple(map(Blocker, names)))

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
            "unproven": self._exposure.of(total),
            "updated": member.updated,
            "goal": self.goals[member.name],
        }


def _refusal(change: SpecChange) -> AlignCode | None:
    return refused(change) or (None if is_lasting(change) else AlignCode.broken)


def _how_broken(member: Member) -> tuple[bool, int, int, str]:
    """Where no pod works first, then where most do not: elsewhere they are likelier to be only starting."""
    report = member.report
    return report.available > 0, report.available - report.pods, -member.wanted, member.name
