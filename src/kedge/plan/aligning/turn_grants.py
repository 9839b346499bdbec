"""Turn grants: of what alignment grants, what may be let through by a turn.

In a turn a cluster may get any template beside the one it is granted, with the numbers that it is granted. So these are
to keep the budget also if every pod is replaced by them. A Deployment needs one of its two numbers. If a cluster only
grows, its new pods may be the ones that are missing; if it only shrinks, those that go make room for one that is extra:
so replicas move with a budget of one pod, whichever of the two that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.bounds import Bounds, bounds
from kedge.plan.aligning.ledger import UNKNOWN, Member, Spec


def turn_grants(aim: Aim, members: Sequence[Member], asked: Mapping[str, Spec]) -> dict[str, Spec]:
    """By cluster, the first way to grant it what is asked for that keeps the budget. A cluster without one waits."""
    by_name = {member.name: member for member in members}
    total, found = sum(map(bounds, members), Bounds()), dict[str, Spec]()
    for name, spec in asked.items():
        member = by_name[name]
        for way in filter(partial(_is_news, member), _ways(aim, total, member, spec)):
            after = total - bounds(member) + _in_turn(member, way)
            if _is_kept(aim, total, after, max(0, way.replicas - member.replicas)):
                found[name], total = way, after
                break
    return found


def _is_news(member: Member, spec: Spec) -> bool:
    """Whether a spec is one that a cluster could have: not without both numbers, and not what it has anyway."""
    last = member.last
    return bool(spec.unavailable or spec.surge) and (last is None or replace(spec, seq=last.seq) != last)


def _in_turn(member: Member, spec: Spec) -> Bounds:
    """What a cluster may come to in a turn by a spec: with the template of that, and any other."""
    return bounds(member, (spec, replace(spec, seq=spec.seq + 1, template=UNKNOWN)))


def _is_kept(aim: Aim, now: Bounds, after: Bounds, grown: int) -> bool:
    """Whether all promises are kept; those that are broken already must not be broken any more.

    Pods that a cluster gets may be missing as long as they were not there before.
    """
    return (
        after.unavailable <= max(aim.unavailable, now.unavailable) + grown
        and after.fewest >= min(aim.fewest, now.fewest)
        and after.steady >= min(aim.fewest, now.steady)
        and after.most <= max(aim.most, now.most)
    )


def _ways(aim: Aim, total: Bounds, member: Member, asked: Spec) -> Iterator[Spec]:
    """Ways to grant a spec, the best first: with the wanted template, as a Work has no other one."""
    spec = replace(asked, template=member.template)
    if aim.recreates:
        yield replace(spec, unavailable=spec.replicas or 1, surge=0)
        return
    if asked.template == member.template and spec.replicas:
        cut = _cut(aim, total, member, spec)
        yield from (cut, replace(cut, surge=0), replace(cut, unavailable=0))
    now = member.replicas
    for replicas in _steps(now, spec):
        ways = [(0, 1), (1, 0)] if 0 < replicas <= now else [(1, 0), (0, 1)]  # what costs nothing first
        yield from (replace(spec, replicas=replicas, unavailable=one, surge=other) for one, other in ways)


def _cut(aim: Aim, total: Bounds, member: Member, spec: Spec) -> Spec:
    """With no more than is left of the budget, and what the cluster holds of it already."""
    own = bounds(member)
    unavailable = own.unavailable + max(0, aim.unavailable - total.unavailable)
    surge = own.surge + max(0, aim.surge - total.surge)
    return replace(spec, unavailable=min(spec.unavailable, unavailable), surge=min(spec.surge, surge))


def _steps(now: int, spec: Spec) -> Sequence[int]:
    """The replicas to try: those that are asked for, then ever fewer to add or to take away."""
    if spec.replicas > now:
        return range(spec.replicas, now, -1)
    return range(spec.replicas, now) or (spec.replicas,)
