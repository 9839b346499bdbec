"""Offers: the specs that one cluster may be asked for next, the best first.

    offered = offers(headroom, goal)

Promises:

* replicas are added as there is room for pods, and taken away as others are available, those that do not work first;
* a cluster that cannot move to the wanted template may still be scaled, with the template that it has;
* for a kind that goes by the order of its pods there are ways round those that do not work;
* nothing here says that a spec is safe together with what others hold: `alignment` looks at that, spec by spec.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.goals import is_empty, is_new
from kedge.plan.aligning.headroom import Headroom
from kedge.plan.aligning.ledger import Member, Spec
from kedge.plan.aligning.moves import at_rest, next_move


class Offers(Struct, frozen=True):
    """What one cluster may be asked for, if that is safe."""

    usual: tuple[Spec, ...]
    gentle: tuple[Spec, ...]
    """Some of them without pods that are taken away first, or with no more of those than it holds."""
    otherwise: AlignCode
    """What it waits for if none of them is safe."""


def offers(headroom: Headroom, goal: int) -> Offers:
    """For a cluster that is to have so many pods of the wanted template in the end."""
    member, sizes = headroom.member, _sizes(headroom)
    moved = [next_move(headroom, goal, size) for size in sizes]
    # What can never be written is no beginning for what is.
    others = [
        one for size in sizes for one in (*_created(headroom.aim, member, size), *_scaled(headroom.aim, member, size))
    ]
    further = _further(member, goal) if headroom.is_stuck else None
    every = (*moved, *others, _stopped(member), _without_surplus(headroom.aim, member), _told_again(member), further)
    usual = tuple(spec for spec in every if isinstance(spec, Spec))
    gentle = tuple(_by_surge_alone(headroom.aim, member, spec) for spec in usual if spec.unavailable and spec.surge)
    kept = headroom.kept[0] if not headroom.aim.is_partitioned else 0
    with_kept = tuple(replace(spec, unavailable=kept) for spec in usual if 0 < kept < spec.unavailable)
    return Offers(usual, (*gentle, *with_kept), _otherwise(member, moved[0]))


def own_offers(headroom: Headroom, goal: int) -> Offers:
    """For a cluster that has a strategy of its own: the wanted template by that, or else what it has, scaled."""
    aim, member, own = headroom.aim, headroom.member, headroom.member.own
    assert own is not None
    sizes, last = _sizes(headroom), member.last
    scaled = tuple(spec for size in sizes for spec in _scaled(aim, member, size))
    if aim.is_paused:
        return Offers(scaled, (), AlignCode.paused)
    is_on = last is not None and last.template == member.template
    begun = headroom.held.updated if is_on else member.updated
    moved = []
    for size in sizes:
        kept_back = min(size, max(0, size - goal) if own.partition is None else own.partition)
        if aim.is_partitioned and not is_new(member):  # as many more as it replaces at once
            kept_back = max(kept_back, size - begun - max(1, own.unavailable + own.surge))
        moved.append(Spec(0, member.template, size, own.unavailable, own.surge, kept_back))
    if last is not None and replace(last, seq=0) in moved:
        return Offers(scaled, (), AlignCode.rolling)
    return Offers((*moved, *scaled), (), AlignCode.overridden)


def _created(aim: Aim, member: Member, replicas: int) -> tuple[Spec, ...]:
    """All its pods, or one less if there is no room for one that is extra: of a cluster that has none yet."""
    sizes = (replicas, replicas - 1) if is_empty(member) and not aim.is_paused else ()
    return tuple(Spec(0, member.template, size, *at_rest(aim, size)) for size in sizes if size > 0)


def _otherwise(member: Member, moved: Spec | AlignCode) -> AlignCode:
    """What a cluster waits for: for its number of pods, if that is to change and the template cannot."""
    if isinstance(moved, Spec):
        return AlignCode.budget_spent
    if member.wanted == member.replicas:
        return moved
    return AlignCode.no_room if member.wanted > member.replicas else AlignCode.too_few


def _by_surge_alone(aim: Aim, member: Member, spec: Spec) -> Spec:
    """The same without pods that are taken away first; as many fewer are replaced now, and none goes back."""
    last = member.last
    begun = last.moved if last is not None and last.template == spec.template else member.updated
    fewer = max(0, spec.moved - begun - spec.surge) if aim.is_partitioned else 0
    return replace(spec, unavailable=0, partition=min(spec.replicas, spec.partition + fewer))


def _sizes(headroom: Headroom) -> list[int]:
    """How many replicas it may have now: added as there is room, taken away as others are available.

    Those that do not work are taken away first of all, if that is safe.
    """
    aim, member, total = headroom.aim, headroom.member, headroom.total
    now = member.replicas
    if member.is_unasked and member.wanted:
        room = aim.most - total.most + headroom.held.most
        if aim.is_partitioned:
            room = min(room, aim.most_updated - total.updated + headroom.held.updated)
        return [max(0, min(member.wanted, room))]
    if member.wanted >= now:
        room, let_through = aim.most - total.most, aim.most_updated - total.updated
        if aim.is_partitioned and is_new(member):
            room = min(room, let_through)
        # Of a kind that goes by the order of its pods, those that are added come after those that have the template.
        rooms = (room, min(room, let_through)) if member.is_ordered else (room,)
        return list(dict.fromkeys(min(member.wanted, now + max(0, one)) for one in rooms))
    if member.is_unasked:
        return [member.wanted]
    spare = max(0, total.fewest - aim.fewest)
    is_enough = total.fewest >= aim.fewest  # also if all those that do not work go
    broken = headroom.broken(now) if is_enough or headroom.is_stuck else 0
    most = max(0, total.steady - aim.fewest)
    missing = _missing(member)
    ways = (
        (spare + broken + missing, most + missing),
        (spare + broken, most + missing),
        (spare + broken, most),
        (spare, most),
    )
    sizes = [max(member.wanted, now - min(way)) for way in ways]
    if member.has_sets and member.last is not None and member.last.template != member.template:
        sizes.append(now)  # scaled down while it rolls, a Deployment takes pods that work: the fix may come first
    return list(dict.fromkeys(sizes))


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


def _without_surplus(aim: Aim, member: Member) -> Spec | None:
    """The last spec, with as many pods of its template as there are: so those of others that it has too many may go.

    A CloneSet that goes back to the template of the pods it kept back counts these as well, and gives up none of them
    for one that does not work.
    """
    last, report = member.last, member.report
    if last is None or not aim.is_partitioned or member.is_ordered or member.reported_template != last.template:
        return None
    has_surplus = report.pods > last.replicas and report.updated > last.moved
    return replace(last, partition=max(0, last.replicas - report.updated)) if has_surplus and last.partition else None


def _scaled(aim: Aim, member: Member, replicas: int) -> tuple[Spec, ...]:
    """What it was asked for last with other replicas, and as many pods of its template as before, or if that takes away
    too many of those that are kept back, as many of these; none if nothing changes."""
    if member.is_unasked:  # what can never be written is no beginning for what is
        return () if member.wanted else (Spec(0, member.template, 0, *at_rest(aim, 0)),)
    last = member.last_written or member.last
    if last is None or replicas == last.replicas:
        return ()
    report = member.report
    there = report.updated if member.reported_template == last.template else 0
    if member.is_ordered and last.partition >= last.replicas > 0 == there:  # none has the template, and none is to
        return (replace(last, replicas=replicas, partition=replicas),)
    if not aim.is_partitioned or member.is_ordered or not last.partition:
        return (replace(last, replicas=replicas),)
    as_many = replace(last, replicas=replicas, partition=max(0, replicas - max(last.moved, there)))
    if replicas > last.replicas or aim.is_paused:
        return (as_many,)
    # None that works goes for one that does not, whichever it is, if nothing may be unavailable.
    gentle = replace(as_many, unavailable=0, surge=1)
    kept = replace(gentle, partition=min(replicas, last.partition))
    return (as_many, kept, gentle) if report.proven < there else (as_many, gentle)
