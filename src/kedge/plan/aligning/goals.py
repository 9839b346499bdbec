"""Goals: how many pods of the wanted template each cluster is to have in the end, and whether it is there.

Promises:

* all goals together are as many pods as the partition lets through, or as many as have the template already;
* no cluster is to have fewer pods of the template than it may have by now: none is ever asked to go back.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.bounds import bounds
from kedge.plan.aligning.ledger import UNKNOWN, Member
from kedge.plan.moving.division import divide


def goals(aim: Aim, members: Sequence[Member]) -> dict[str, int]:
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


def is_empty(member: Member) -> bool:
    """Whether it has no pods, and none are on their way: what could never be written created none."""
    return member.is_unasked and member.report.pods == 0


def is_there(aim: Aim, member: Member, goal: int) -> bool:
    last, written = member.last, member.last_written
    if last is None:
        return member.wanted == 0
    if last.replicas != member.wanted or (not member.wanted and written is not None and written.replicas):
        return False
    if aim.is_partitioned:
        return goal == 0 or (last.template == member.template and last.moved >= goal)
    return last.template == member.template and member.updated >= goal
