"""Moves: the next spec by which one cluster gets the wanted template, or what keeps it from one.

    spec = next_move(headroom, goal, replicas)

Promises, of every spec:

* it asks for no more of the budget than the cluster holds already and is free for it, but that both numbers must not be
  0: one that has nothing to replace may have one pod;
* with a partition no pod is to go back: as many as may be of the template already are let through, and no more of them
  than the budget pays for at once.
"""

from __future__ import annotations

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.goals import is_new
from kedge.plan.aligning.headroom import Headroom
from kedge.plan.aligning.ledger import Spec


def next_move(headroom: Headroom, goal: int, replicas: int) -> Spec | AlignCode:
    """With so many replicas, towards a goal of so many pods of the wanted template."""
    aim, member, held, last = headroom.aim, headroom.member, headroom.held, headroom.member.last
    if aim.is_paused:
        return AlignCode.paused
    if is_new(member):
        return _first(headroom, replicas)
    is_on = last is not None and last.template == member.template
    if is_on and member.updated >= goal:
        return _settled(headroom, goal, replicas)
    begun = held.unavailable + held.surge
    if member.wanted == 0 and (is_on or not begun):
        return AlignCode.kept_back
    if aim.is_partitioned:
        goal = goal if is_on else max(goal, begun)  # what it has begun with another template is not left half done
        return _by_partition(headroom, min(goal, replicas), replicas)
    return _at_once(headroom, replicas)


def _first(headroom: Headroom, replicas: int) -> Spec | AlignCode:
    """No pod there has another template: none is replaced, and those that are added are all of the wanted one."""
    member, last = headroom.member, headroom.member.last
    has_template = last is not None and last.template == member.template
    if replicas == member.replicas and (replicas or member.wanted or has_template):
        return AlignCode.creating if member.updated < replicas else AlignCode.kept_back
    return Spec(0, member.template, replicas, *at_rest(headroom.aim, replicas))


def at_rest(aim: Aim, replicas: int) -> tuple[int, int]:
    """The strategy of a cluster that has nothing to replace. Both must not be 0."""
    if aim.recreates:
        return replicas, 0
    return (1, 0) if aim.is_partitioned else (0, 1)


def _settled(headroom: Headroom, goal: int, replicas: int) -> Spec | AlignCode:
    """It has all the pods of the template that it is to have. If it keeps others back all the same, it is told not to:
    those may be of a template that was taken back."""
    aim, member, kept, last = headroom.aim, headroom.member, headroom.kept, headroom.member.last
    assert last is not None
    has_others = member.report.pods > member.updated
    # Of a kind that goes by the order of its pods, some of those may be kept back: the last ones say nothing of others.
    is_mixed = member.is_ordered and member.report.is_back
    if not aim.is_partitioned or last.moved >= goal or not has_others or is_mixed:
        return AlignCode.kept_back
    at_once = (1, 0) if aim.unavailable else (0, 1)
    return Spec(0, member.template, replicas, *(kept if any(kept) else at_once), replicas - goal)


def _at_once(headroom: Headroom, replicas: int) -> Spec | AlignCode:
    """A kind without a partition replaces all its pods, so many at a time."""
    aim, member, held, last = headroom.aim, headroom.member, headroom.held, headroom.member.last
    assert last is not None
    need = max(replicas - member.updated, 0 if last.template == member.template else 1)
    kept = headroom.kept
    unavailable = min(kept[0] + headroom.free_unavailable(replicas), need)
    surge = min(kept[1] + headroom.free_surge(replicas), need)
    if aim.recreates:
        unavailable, surge = replicas, 0
        if replicas > held.unavailable + headroom.free_unavailable(replicas):
            return AlignCode.recreates
    if last.template == member.template:  # what it held when it began, unless it is too much now
        unavailable = max(unavailable, min(last.unavailable, aim.unavailable))
        surge = max(surge, min(last.surge, aim.surge))
        if (unavailable, surge, replicas) == (last.unavailable, last.surge, last.replicas):
            return AlignCode.rolling
    if unavailable == 0 and surge == 0:
        if last.template == member.template or not headroom.may_trade(replicas):
            return AlignCode.budget_spent
        replicas, surge = replicas - 1, 1
    return Spec(0, member.template, replicas, unavailable, surge)


def _by_partition(headroom: Headroom, goal: int, replicas: int) -> Spec | AlignCode:
    """So many pods more than may be of the template already, as the budget pays for at once."""
    member, held, last = headroom.member, headroom.held, headroom.member.last
    assert last is not None
    is_on = last.template == member.template
    begun = held.updated if is_on else member.updated
    unavailable, surge = headroom.free_unavailable(replicas), headroom.free_surge(replicas)
    kept = headroom.kept
    if member.is_ordered and is_on and not unavailable:
        unavailable, kept = kept[0], (0, kept[1])  # it takes the next pod when the one that holds this is available
    if not is_on:
        unavailable, surge, kept = kept[0] + unavailable, kept[1] + surge, (0, 0)
    wanted = min(goal - begun, headroom.aim.most_updated - headroom.total.updated + held.updated - begun)
    is_begun = is_on and begun > member.updated
    if wanted > 0 and unavailable + surge == 0 and not is_begun and headroom.may_trade(replicas):
        replicas, surge = replicas - 1, 1
    free = unavailable + surge or min(1, replicas - member.replicas)  # one that is added takes the place of none
    number = min(wanted, free, replicas + 1)
    if not is_on and begun >= goal > 0:
        return Spec(0, member.template, replicas, 1, 0, max(0, replicas - begun))
    if number <= 0:
        return AlignCode.rolling if is_begun or goal <= begun else AlignCode.budget_spent
    taken = min(number, unavailable)
    more = kept[0] + taken, kept[1] + min(number - taken, surge)
    strategy = more if any(more) else at_rest(headroom.aim, replicas)
    partition = max(0, replicas - begun - number)
    if member.is_ordered and is_on and begun:  # those that have the template stay, and those that are added come last
        partition = min(partition, last.partition)
    return Spec(0, member.template, replicas, *strategy, partition)
