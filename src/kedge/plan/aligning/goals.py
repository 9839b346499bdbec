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
from kedge.plan.aligning.ledger import UNKNOWN, Member, OwnStrategy, Spec
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


def _has_own(spec: Spec, own: OwnStrategy) -> bool:
    """Whether a spec is by a cluster's own strategy. One whose pods stay as they are has any."""
    partition = spec.partition if own.partition is None else own.partition
    return own.is_held or (spec.unavailable, spec.surge, spec.partition) == (own.unavailable, own.surge, partition)


def _has_strays(member: Member, goal: int) -> bool:
    """Whether it has as many pods of the template as it is to have, and some of them by an older release: where pods
    have an order, those are not the last ones, and a lower partition would let others through."""
    return member.is_ordered and member.updated >= goal


def is_there(aim: Aim, member: Member, goal: int) -> bool:
    last, written = member.last, member.last_written
    if last is None:
        return member.wanted == 0 and not member.stays
    if member.own is not None and member.wanted and not _has_own(last, member.own):
        return False
    if last.replicas != member.wanted or (not member.wanted and written is not None and written.replicas):
        return False
    if aim.is_partitioned:
        return goal == 0 or (last.template == member.template and (last.moved >= goal or _has_strays(member, goal)))
    return last.template == member.template and member.updated >= goal
