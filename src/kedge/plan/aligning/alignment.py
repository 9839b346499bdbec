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
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.aligning.bounds import Bounds, bounds, bounds_with
from kedge.plan.aligning.ledger import UNKNOWN, Member, Spec
from kedge.plan.moving.division import divide
from kedge.plan.moving.wait import Blocker, Wait

UNDIVIDED: Final = 4
"""A budget of fewer pods is not divided over clusters."""


class Aim(Struct, frozen=True):
    """The budget of the whole workload, in pods."""

    replicas: int
    unavailable: int
    surge: int = 0
    partition: int = 0
    is_partitioned: bool = False
    """Whether the kind has a partition, which says pod by pod how far it goes."""
    recreates: bool = False
    """Whether the kind takes all its pods away before it creates new ones."""
    is_paused: bool = False

    @property
    def fewest(self) -> int:
        return max(0, self.replicas - self.unavailable)

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def moved(self) -> int:
        """How many pods are to have the wanted template in the end."""
        return max(0, self.replicas - self.partition)

    @property
    def most_updated(self) -> int:
        """How many pods of the wanted template there may be: all, if none are to be kept back."""
        return self.moved if self.partition else self.most


class AlignCode(StrEnum):
    """What a cluster waits for."""

    unacknowledged = "Unacknowledged"
    """It has not reported yet that it acts on what was written last."""
    unreachable = "Unreachable"
    """It is not heard from."""
    suspended = "Suspended"
    """Nothing is written to it for now, as somebody said."""
    overridden = "Overridden"
    """Its strategy is decided on by somebody else."""
    paused = "Paused"
    """The template is paused."""
    rolling = "Rolling"
    """It replaces its pods, with what it holds of the budget."""
    budget_spent = "BudgetSpent"
    """As many pods as may be unavailable are, or may yet be; and as many as there may be too many are."""
    no_room = "NoRoom"
    """As many pods as there may be are there, or may yet be."""
    too_few = "TooFew"
    """Its pods are needed until others are available."""
    kept_back = "Partition"
    """As many pods as the partition lets through have the template, or may yet have it."""
    recreates = "Recreates"
    """It would take all its pods away at once, and that is more than may be unavailable."""


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
        self._members = members
        self._held = {member.name: bounds(member) for member in members}
        self.total = sum(self._held.values(), Bounds())
        self.goals = _goals(aim, members)
        numbers = ((member.report.seq, *(spec.seq for spec in member.specs)) for member in members)
        self._seq = max([0, *(seq for each in numbers for seq in each)])
        self._holders = {name: None for name, held in self._held.items() if held.unavailable or held.surge}
        self._parts = self._divided([one for one in members if self._may_move(one)])
        self.specs: dict[str, Spec] = {}
        self.waiting: dict[str, Wait] = {}

    def _may_move(self, member: Member) -> bool:
        return not _is_there(self._aim, member, self.goals[member.name]) and self._closed(member) is None

    def _divided(self, moving: Sequence[Member]) -> dict[str, Bounds] | None:
        """The part of the budget that each of them has; None if it is too small to be divided.

        Divided, no cluster loses all its pods at once, and none waits for another. A small budget goes to one after the
        other: fewer of them begin with what may be bad.
        """
        elsewhere = self.total - sum((self._held[one.name] for one in moving), Bounds())
        unavailable = max(0, self._aim.unavailable - elsewhere.unavailable)
        surge = max(0, self._aim.surge - elsewhere.surge)
        if unavailable + surge < max(UNDIVIDED, len(moving)):
            return None
        needs = {one.name: max(1, self.goals[one.name] - one.updated) for one in moving}
        parts, more = divide(unavailable, needs), divide(surge, needs)
        return {name: Bounds(parts[name], more[name]) for name in needs}

    def rank(self, member: Member) -> tuple[bool, bool, bool, int, str]:
        """Replicas are added first; then those that have begun go on; then the largest."""
        held, last = self._held[member.name], member.last
        grows = member.wanted > (last.replicas if last else 0)
        is_on = last is not None and last.template == member.template
        return not grows, not is_on, not (held.unavailable or held.surge), -member.wanted, member.name

    def ask(self, member: Member) -> None:
        """Write to a cluster that is not where it is to be, if it may move."""
        goal = self.goals[member.name]
        if _is_there(self._aim, member, goal):
            return
        if (code := self._closed(member)) is not None:
            self._wait(member, code)
            return
        found = self._granted(member, goal)
        if isinstance(found, _Grant):
            self._write(member, found)
        else:
            self._wait(member, found)

    def _closed(self, member: Member) -> AlignCode | None:
        if not member.is_reachable:
            return AlignCode.unreachable
        if member.is_suspended:
            return AlignCode.suspended
        if not member.is_acknowledged:
            return AlignCode.unacknowledged
        return AlignCode.overridden if member.is_fixed else None

    def _granted(self, member: Member, goal: int) -> _Grant | AlignCode:
        """The next spec of a cluster, or what keeps it from one."""
        sizes = self._sizes(member)
        moved = [AlignCode.paused if self._aim.is_paused else self._moved(member, goal, size) for size in sizes]
        # What can never be written is no beginning for what is.
        others = [_scaled(member, size, self._aim) for size in sizes if not (member.is_unasked and member.wanted)]
        further = _further(member, goal) if self._is_stuck else None
        every = (*moved, *others, _stopped(member), _told_again(member), further)
        usual = [spec for spec in every if isinstance(spec, Spec)]
        gentle = [self._by_surge_alone(spec) for spec in usual if spec.unavailable and spec.surge]
        for spec in (*usual, *gentle):
            if (grant := self._safe(member, spec)) is not None and self._lasts(member, grant):
                return grant
        if self._is_idle:  # nobody else gives anything back
            for spec in usual:
                if (grant := self._safe(member, spec)) is not None:
                    return grant
        if isinstance(moved[0], AlignCode):
            return self._scaling_wait(member) if member.wanted != _replicas(member) else moved[0]
        return AlignCode.budget_spent

    def _by_surge_alone(self, spec: Spec) -> Spec:
        """The same without pods that are taken away first; as many fewer are replaced now."""
        kept = min(spec.replicas, spec.partition + spec.unavailable) if self._aim.is_partitioned else 0
        return replace(spec, unavailable=0, partition=kept)

    def _scaling_wait(self, member: Member) -> AlignCode:
        return AlignCode.no_room if member.wanted > _replicas(member) else AlignCode.too_few

    def _sizes(self, member: Member) -> list[int]:
        """How many replicas it may have now: added as there is room, taken away as others are available.

        Those that do not work are taken away first of all, if that is safe.
        """
        now = _replicas(member)
        if member.is_unasked and member.wanted:
            others = self.total.most - self._held[member.name].most
            return [max(0, min(member.wanted, self._aim.most - others))]
        if member.wanted >= now:
            room = self._aim.most - self.total.most
            if self._aim.is_partitioned and is_new(member):
                room = min(room, self._aim.most_updated - self.total.updated)
            return [min(member.wanted, now + max(0, room))]
        if member.is_unasked:
            return [member.wanted]
        spare = max(0, self.total.fewest - self._aim.fewest)
        is_enough = self.total.fewest >= self._aim.fewest  # also if all those that do not work go
        broken = self._broken(member, now) if is_enough or self._may_discard(member) else 0
        most = max(0, self.total.steady - self._aim.fewest)
        ways = (spare + broken, most + _missing(member)), (spare + broken, most), (spare, most)
        return list(dict.fromkeys(max(member.wanted, now - min(way)) for way in ways))

    def _may_discard(self, member: Member) -> bool:
        """Whether pods that do not work make room for others. They may only be starting: if nobody waits, they stay."""
        others = [one for one in self._members if one.name != member.name and self._closed(one) is None]
        return self._is_stuck and any(not _is_there(self._aim, one, self.goals[one.name]) for one in others)

    @property
    def _is_stuck(self) -> bool:
        """Whether there is no room, and nobody has begun anything that would give some back."""
        return self.total.most >= self._aim.most and self._is_idle

    @property
    def _is_idle(self) -> bool:
        holds = self.total.unavailable or self.total.surge
        return not holds and all(one.is_acknowledged for one in self._members)

    def _broken(self, member: Member, replicas: int) -> int:
        """How many of its pods do not work, and not because they are replaced: to take those away costs nothing."""
        held = self._held[member.name]
        return max(0, replicas - held.unavailable - held.fewest)

    # Moving to the wanted template

    def _moved(self, member: Member, goal: int, replicas: int) -> Spec | AlignCode:
        if is_new(member):
            return self._first(member, replicas)
        held, last = self._held[member.name], member.last
        is_on = last is not None and last.template == member.template
        if is_on and member.updated >= goal:
            return self._settled(member, goal, replicas)
        begun = held.unavailable + held.surge
        if member.wanted == 0 and (is_on or not begun):
            return AlignCode.kept_back
        if self._aim.is_partitioned:
            goal = goal if is_on else max(goal, begun)  # what it has begun with another template is not left half done
            return self._moved_by_partition(member, min(goal, replicas), replicas)
        return self._moved_at_once(member, replicas)

    def _first(self, member: Member, replicas: int) -> Spec | AlignCode:
        """No pod there has another template: none is replaced, and those that are added are all of the wanted one."""
        if replicas == _replicas(member):
            return AlignCode.kept_back
        return Spec(0, member.template, replicas, *self._at_rest(replicas))

    def _at_rest(self, replicas: int) -> tuple[int, int]:
        """The strategy of a cluster that has nothing to replace. Both must not be 0."""
        if self._aim.recreates:
            return replicas, 0
        return (1, 0) if self._aim.is_partitioned else (0, 1)

    def _settled(self, member: Member, goal: int, replicas: int) -> Spec | AlignCode:
        """It has all the pods of the template that it is to have. If it keeps others back all the same, it is told not
        to: those may be of a template that was taken back."""
        last = member.last
        assert last is not None
        has_others = member.report.pods > member.updated
        if not self._aim.is_partitioned or last.moved >= goal or not has_others:
            return AlignCode.kept_back
        kept = self._kept(member)
        return Spec(0, member.template, replicas, *(kept if any(kept) else self._at_rest(replicas)), replicas - goal)

    def _moved_at_once(self, member: Member, replicas: int) -> Spec | AlignCode:
        """A kind without a partition replaces all its pods, so many at a time."""
        held, last = self._held[member.name], member.last
        assert last is not None
        need = max(replicas - member.updated, 0 if last.template == member.template else 1)
        kept = self._kept(member)
        unavailable = min(kept[0] + self._free_unavailable(member, replicas), need)
        surge = min(kept[1] + self._free_surge(member, replicas), need)
        if self._aim.recreates:
            unavailable, surge = replicas, 0
            if replicas > held.unavailable + self._free_unavailable(member, replicas):
                return AlignCode.recreates
        if last.template == member.template:
            unavailable = max(unavailable, min(last.unavailable, self._aim.unavailable))
            surge = max(
                surge, min(last.surge, self._aim.surge)
            )  # what it held when it began, unless it is too much now
            if (unavailable, surge, replicas) == (last.unavailable, last.surge, last.replicas):
                return AlignCode.rolling
        if unavailable == 0 and surge == 0:
            if last.template == member.template or not self._may_trade(member, replicas):
                return AlignCode.budget_spent
            replicas, surge = replicas - 1, 1
        return Spec(0, member.template, replicas, unavailable, surge)

    def _may_trade(self, member: Member, replicas: int) -> bool:
        """Whether a pod that does not work may make room for one of the wanted template, if nothing else does."""
        has_broken = 0 < replicas <= _replicas(member) and self._broken(member, replicas) > 0
        has_room = self.total.most <= self._aim.most  # with too many pods, none is created
        return has_broken and has_room and self._aim.surge > 0 and self._is_stuck

    def _moved_by_partition(self, member: Member, goal: int, replicas: int) -> Spec | AlignCode:
        """So many pods more than may be of the template already, as the budget pays for at once."""
        held, last = self._held[member.name], member.last
        assert last is not None
        is_on = last.template == member.template
        begun = held.updated if is_on else member.updated
        unavailable, surge = self._free_unavailable(member, replicas), self._free_surge(member, replicas)
        kept = self._kept(member)
        if not is_on:
            unavailable, surge, kept = kept[0] + unavailable, kept[1] + surge, (0, 0)
        wanted = min(goal - begun, self._aim.most_updated - self.total.updated + held.updated - begun)
        if not is_on and wanted > 0 and unavailable + surge == 0 and self._may_trade(member, replicas):
            replicas, surge = replicas - 1, 1
        number = min(wanted, unavailable + surge, replicas + 1)
        if not is_on and begun >= goal > 0:
            return Spec(0, member.template, replicas, 1, 0, max(0, replicas - begun))
        if number <= 0:
            is_begun = is_on and begun > member.updated
            return AlignCode.rolling if is_begun or goal <= begun else AlignCode.budget_spent
        taken = min(number, unavailable)
        return Spec(
            0, member.template, replicas, kept[0] + taken, kept[1] + number - taken, max(0, replicas - begun - number)
        )

    def _kept(self, member: Member) -> tuple[int, int]:
        """What it goes on with of what it holds: no more than there is now, but for one pod if that is all it has."""
        held, aim = self._held[member.name], self._aim
        kept = min(held.unavailable, aim.unavailable), min(held.surge, aim.surge)
        return kept if any(kept) else (min(held.unavailable, 1), min(held.surge, 1))

    def _free_unavailable(self, member: Member, replicas: int) -> int:
        """How many pods more a cluster may take away; those that do not work anyway cost nothing."""
        spare = max(0, self.total.fewest - self._aim.fewest)
        free, broken = self._aim.unavailable - self.total.unavailable, self._broken(member, replicas)
        fair = self._fair(member).unavailable - self._held[member.name].unavailable
        return max(0, min(free, spare + broken, fair + broken))

    def _free_surge(self, member: Member, replicas: int) -> int:
        """How many pods more than its replicas a cluster may have, beyond what it holds."""
        grown = max(0, replicas - _replicas(member))
        fair = self._fair(member).surge - self._held[member.name].surge
        return max(0, min(self._aim.surge - self.total.surge, self._aim.most - self.total.most - grown, fair))

    def _fair(self, member: Member) -> Bounds:
        """How much of the budget one cluster may hold: its part if that is divided, and one pod in any case."""
        if self._parts is None or self._aim.recreates:
            return Bounds(self._aim.unavailable, self._aim.surge)
        part = self._parts[member.name]
        return Bounds(max(1, part.unavailable), max(1, part.surge))

    # Granting

    def _safe(self, member: Member, spec: Spec) -> _Grant | None:
        """This spec, if all promises hold with it as well; those that do not hold already must not get worse."""
        numbered = replace(spec, seq=self._seq + 1)
        before = self._held[member.name]
        held = bounds_with(before, member, numbered)
        after = self.total - before + held
        return _Grant(numbered, held, after) if self._is_safe(after) else None

    def _is_safe(self, after: Bounds) -> bool:
        now, aim = self.total, self._aim
        return (
            after.unavailable <= max(aim.unavailable, now.unavailable)
            and after.fewest >= min(aim.fewest, now.fewest)
            and after.steady >= min(aim.fewest, now.steady)
            and after.most <= max(aim.most, now.most)
            and (not aim.is_partitioned or after.updated <= max(aim.most_updated, now.updated))
        )

    def _lasts(self, member: Member, grant: _Grant) -> bool:
        """Whether enough pods stay available also when those that do not work there are replaced, and those of others
        still do not work: by what is granted now, as many may be taken away then."""
        others, now = self.total.fewest - self._held[member.name].fewest, self._held[member.name].steady
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


def _goals(aim: Aim, members: Sequence[Member]) -> dict[str, int]:
    """How many pods of the wanted template each cluster is to have in the end. None is ever asked to go back."""
    shares = {member.name: member.wanted for member in members}
    if not aim.is_partitioned:
        return shares
    given = {member.name: min(member.wanted, _given(member)) for member in members}
    return divide(aim.moved, shares, given)


def _given(member: Member) -> int:
    """A cluster that nothing was written to has pods of the wanted template only. What is not known is no claim to have
    more of them."""
    if member.last is None:
        return member.wanted
    known = tuple(one for one in member.specs if one.template != UNKNOWN)
    return bounds(member if len(known) == len(member.specs) else replace(member, specs=known)).updated


def is_new(member: Member) -> bool:
    """Whether none of its pods can have another template than the wanted one."""
    last = member.last
    if last is not None and last.replicas == 0 and member.is_acknowledged and member.report.pods == 0:
        return True
    is_alone = all(spec.template == member.template and spec.partition == 0 for spec in member.specs)
    return is_alone and member.report.pods == member.updated


def _is_there(aim: Aim, member: Member, goal: int) -> bool:
    last, written = member.last, member.last_written
    if last is None:
        return member.wanted == 0
    if last.replicas != member.wanted or (not member.wanted and written is not None and written.replicas):
        return False
    if aim.is_partitioned:
        return goal == 0 or (last.template == member.template and last.moved >= goal)
    return last.template == member.template and member.updated >= goal


def _replicas(member: Member) -> int:
    return member.last.replicas if member.last is not None else 0


def _missing(member: Member) -> int:
    """How many pods of a kind that goes by their order were replaced and do not work: the last ones, which go first."""
    last, report = member.last, member.report
    return min(last.unavailable, max(0, report.updated - report.proven)) if last and member.is_ordered else 0


def _stopped(member: Member) -> Spec | None:
    """The last spec, without the pods that it has not got to yet; None if that helps nobody.

    A kind that goes by the order of its pods replaces those of another template safely once it is known which they are.
    """
    last, updated = member.last, member.report.updated
    if last is None or not member.is_ordered or last.template in (member.template, "") or last.moved <= updated:
        return None
    is_known = member.reported_template == last.template and member.is_acknowledged and not _works_alone(member)
    return replace(last, partition=max(0, last.replicas - updated)) if is_known and updated else None


def _told_again(member: Member) -> Spec | None:
    """What it has, if something was granted since that can never be written: once it acknowledges that, the grant is
    over."""
    return member.last_written if member.superseded and member.wanted else None


def _further(member: Member, goal: int) -> Spec | None:
    """The last spec, with one pod more; None if that helps nobody.

    A kind that goes by the order of its pods gets to those that do not work only by way of the last ones. If as many
    work as were replaced, others get their template first, as far as the wanted one goes: that takes away none that
    works, for it waits until all of those do.
    """
    last, updated = member.last, member.report.updated
    if last is None or not _works_alone(member) or last.template == member.template:
        return None
    is_there = last.moved <= updated < min(goal, last.replicas)
    return replace(last, partition=last.replicas - updated - 1) if is_there else None


def _works_alone(member: Member) -> bool:
    """Whether the last pods work, as far as anybody knows, and no others do."""
    report, last = member.report, member.last
    is_known = member.is_ordered and last is not None and member.reported_template == last.template
    return is_known and report.proven > 0 and report.updated == report.available


def _scaled(member: Member, replicas: int, aim: Aim) -> Spec | None:
    """The last spec with other replicas, and as many pods of its template as before; None if nothing changes."""
    last = member.last if member.wanted else member.last_written or member.last
    if last is None or replicas == last.replicas:
        return None
    if not aim.is_partitioned or member.is_ordered:
        return replace(last, replicas=replicas)
    return replace(last, replicas=replicas, partition=max(0, replicas - last.moved) if last.partition else 0)
