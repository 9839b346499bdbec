"""Bounds: how few available pods and how many pods one cluster may come to, by everything it may act on.

Two rules of every member's controller are all this relies on: by a spec it takes away available pods only down to
`replicas - unavailable`, and creates pods only up to `replicas + surge`, and at most `replicas - partition` of the
template. What it has done already, and a report proves, needs no budget any more.

A Deployment that is scaled down while it rolls takes pods away from all its ReplicaSets in proportion to their sizes,
whether or not others work.

A kind that goes by the order of its pods keeps less: it takes the next one away whether or not others are available,
unless it waits for one of its own template; and when it is scaled down, the last ones go, also if others are broken.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.aligning.ledger import UNKNOWN, Member, Report, Spec


class Bounds(Struct, frozen=True, gc=False):
    """What one cluster, or all of them, may come to."""

    unavailable: int = 0
    """How many pods it may have replaced at a time and not proven: the part of maxUnavailable that it holds."""
    surge: int = 0
    """How many pods more than its replicas it may yet create: the part of maxSurge that it holds."""
    fewest: int = 0
    """How few pods may be available."""
    steady: int = 0
    """How few may be if every pod there is works, also those that were reported as broken: that may be long ago."""
    most: int = 0
    """How many pods there may be."""
    updated: int = 0
    """How many pods of the wanted template there may be."""
    unproven: int = 0
    """How many of those may have taken the place of others and not work: the part of the budget spent on it."""

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(
            self.unavailable + other.unavailable,
            self.surge + other.surge,
            self.fewest + other.fewest,
            self.steady + other.steady,
            self.most + other.most,
            self.updated + other.updated,
            self.unproven + other.unproven,
        )

    def __or__(self, other: Bounds) -> Bounds:
        """What it may come to in one way or the other."""
        return Bounds(
            max(self.unavailable, other.unavailable),
            max(self.surge, other.surge),
            min(self.fewest, other.fewest),
            min(self.steady, other.steady),
            max(self.most, other.most),
            max(self.updated, other.updated),
            max(self.unproven, other.unproven),
        )

    def __sub__(self, other: Bounds) -> Bounds:
        return Bounds(
            self.unavailable - other.unavailable,
            self.surge - other.surge,
            self.fewest - other.fewest,
            self.steady - other.steady,
            self.most - other.most,
            self.updated - other.updated,
            self.unproven - other.unproven,
        )


def bounds(member: Member, also: Iterable[Spec] = ()) -> Bounds:
    """The bounds of a cluster, if these specs may be in effect as well."""
    specs = (*member.in_effect, *also)
    if not specs:
        return Bounds(most=member.report.pods)
    found = [_bounds(member, spec, specs) for spec in specs]
    if len(found) == 1 and not member.lingering:
        return found[0]
    low = [*found, *(_bounds(member, spec, specs) for spec in member.lingering)]
    return Bounds(
        unavailable=max(one.unavailable for one in found),
        surge=max(one.surge for one in found),
        fewest=min(one.fewest for one in low),
        steady=min(one.steady for one in low),
        most=max(one.most for one in found),
        updated=max(one.updated for one in found),
        unproven=max(one.unproven for one in found),
    )


def fewest_in_effect(member: Member, also: Iterable[Spec] = ()) -> int:
    """How few pods may be available by what a cluster may act on, but for those on their way out already."""
    specs = (*member.in_effect, *also)
    return min((_bounds(member, spec, specs).fewest for spec in specs), default=0)


def steady_by(member: Member, spec: Spec) -> int:
    """How few pods may be available by a spec alone, if it has all its pods, and every one of them works."""
    report = replace(member.report, pods=max(member.report.pods, spec.replicas))
    return _bounds(replace(member, report=report), spec, (spec,)).steady


def steady_now(member: Member) -> int:
    """How many pods may work by now: all that there are, but for those that were replaced and do not work.

    0 of a kind that does not go by the order of its pods: it replaces those that do not work first, whichever they are.
    """
    report, last = member.report, member.last
    if not member.is_ordered or last is None:
        return 0
    replaced = max(0, report.updated - report.proven) if member.reported_template else report.pods
    replaced = 0 if _was_done(report) else replaced
    return min(report.pods, last.replicas) - min(replaced, report.pods)


def bounds_with(held: Bounds, member: Member, spec: Spec) -> Bounds:
    """The same as `bounds(member, (spec,))`, of which `held` are those without it.

    A spec changes nothing of what those before it may come to.
    """
    specs = (*member.in_effect, spec)
    return held | _bounds(member, spec, specs) if member.in_effect else _bounds(member, spec, specs)


def _bounds(member: Member, spec: Spec, specs: Iterable[Spec]) -> Bounds:
    """The bounds by one spec, of those that may be in effect."""
    report, is_same = member.report, member.reported_template == spec.template
    proven = _kept(member, spec, specs) if is_same else 0
    leaving, removed = _leaving(member, spec, specs), max(0, report.pods - spec.replicas)
    # Paused while it rolls, a Deployment has as many pods as it may, however few it is yet to replace.
    is_whole = bool(leaving) and (member.has_sets or _grows(member, spec, specs))
    surge = spec.surge if is_whole else min(spec.surge, leaving)
    to_move = spec.moved - proven
    if is_same and spec.partition:  # if others are kept back, those of its own that are too many may go
        to_move = max(to_move, report.updated - spec.moved)
    taken = max(0, min(spec.unavailable, to_move))
    # Of what follows, each alone is sure: it takes away no more than the spec allows; nothing of its own template, but
    # to scale down.
    kept = min(report.available, spec.replicas - taken, report.available - scaled_away(member, spec, specs))
    fewest = max(kept, max(report.available - leaving, proven) - removed)
    going = taken if leaving else 0
    steady = min(report.pods, spec.replicas - going)
    if member.is_ordered:
        going = max(going + _on_the_way(member, spec, specs), _in_doubt(member, spec))
        fewest = _fewest_in_order(member, spec, specs, going)
        steady = min(report.pods, spec.replicas) - max(going, _unproven(member, spec, specs))
    on_trial, may_be_wanted = _on_trial(member, spec), spec.template in (member.template, UNKNOWN)
    unavailable = taken if leaving else min(taken, on_trial)
    spent = max(unavailable + surge, 0 if member.is_ordered else on_trial, _exposed(member, spec, specs, surge))
    return Bounds(
        unavailable=unavailable,
        surge=surge,
        fewest=max(0, min(spec.replicas, fewest)),
        steady=max(0, steady),
        most=max(report.pods, spec.replicas + surge),
        updated=max(member.updated, _new(member, spec, specs)) if may_be_wanted else member.updated,
        unproven=spent if may_be_wanted else 0,
    )


def scaled_away(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods a Deployment that rolls may take away to be scaled down, whether or not others work: of those that
    it has, or may be creating by what it was asked for before. What it says to act on it may still be doing."""
    report, before = member.report, [one for one in specs if one.seq < spec.seq]
    is_single = member.reported_template == spec.template and report.updated == report.pods
    if not member.has_sets or (is_single and all(one.template == spec.template for one in before)):
        return 0  # of one ReplicaSet those go first that do not work
    if spec.seq == report.seq:
        before = [one for one in member.specs if one.seq < spec.seq]
    larger = [one.replicas + one.surge for one in before if one.replicas > spec.replicas]
    there = report.pods if spec.seq == report.seq else max(report.pods, *larger, 0)
    return max(0, there - spec.replicas - spec.surge) if larger else 0


def extra_kept(member: Member) -> int:
    """How many pods a Deployment has that are more than it may have by now. It was not asked to give up any, and keeps
    them as long as those that it replaced do not work; but paused it gives them up, whichever they are."""
    last = member.last
    if not member.has_sets or last is None or any(one.replicas > last.replicas for one in member.specs):
        return 0
    return max(0, member.report.pods - last.replicas - last.surge)


def may_have_extra(member: Member) -> bool:
    """Whether a Deployment may have more pods than it is asked for, and has not acknowledged that it may have fewer: it
    is not to be paused before it has."""
    last = member.last_written
    if not member.has_sets or last is None or member.is_acknowledged:
        return False
    before = [one for one in member.in_effect if one.seq < last.seq and one.replicas <= last.replicas]
    return any(one.replicas + one.surge > last.replicas + last.surge for one in before)


def _kept(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods of its template are proven, and are not taken away by what may still be in effect from before: a
    kind that has more of them than are let through gives those up for pods it keeps back."""
    proven = member.report.proven
    if not proven or member.is_ordered:
        return proven
    before = [one for one in specs if one.seq < spec.seq and one.template == spec.template and one.partition]
    return min([proven, *(one.moved for one in before)]) if before else proven


def _grows(member: Member, spec: Spec, specs: Iterable[Spec]) -> bool:
    """Whether it may be creating pods for more replicas, by a spec: a Deployment that rolls creates some of those with
    the templates before, and so may have as many to replace as are allowed to be extra."""
    before = [one for one in (*member.lingering, *specs) if one.seq < spec.seq]
    return not member.is_ordered and any(one.replicas < spec.replicas for one in before)


def _on_the_way(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods it may be replacing by another template, and are reported as available, when it acts on a spec: it
    does not wait for those, and begins with the last ones."""
    before = [one for one in specs if one.seq < spec.seq and one.template != spec.template]
    return max((min(_next(member, one), _leaving(member, one, specs)) for one in before), default=0)


def _leaving(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods of other templates there may be that a spec does not keep back."""
    return max(0, _old(member, spec, specs) - spec.partition)


def _next(member: Member, spec: Spec) -> int:
    """How many available pods it takes away next by a spec. It waits for those that it has replaced."""
    report = member.report
    is_same = member.reported_template == spec.template
    updated, proven = (report.updated, report.proven) if is_same else (0, 0)
    return max(0, min(spec.unavailable, spec.moved - updated) - (updated - proven))


def _in_doubt(member: Member, spec: Spec) -> int:
    """How many pods it may be replacing, and are reported as available, by a spec that seems to be done.

    A cluster that goes back to the template of the pods it kept back counts these as updated as well: they prove
    nothing of the last ones.
    """
    report = member.report
    is_back = member.reported_template == spec.template and report.is_back and report.updated < report.pods
    if not is_back or not spec.partition:
        return 0
    return max(0, min(spec.unavailable, spec.moved - max(0, report.proven - spec.partition)))


def _on_trial(member: Member, spec: Spec) -> int:
    """How many pods have the template that is wanted now, and are not proven. Those that were replaced hold the budget
    also if none are left to replace: else a bad release would get to whatever breaks elsewhere."""
    is_wanted = spec.template == member.template == member.reported_template
    return max(0, member.report.updated - member.report.proven) if is_wanted else 0


def _exposed(member: Member, spec: Spec, specs: Iterable[Spec], surge: int) -> int:
    """How many pods of a Deployment may have its template and not be proven, while some are extra: those that took the
    place of others by what it was asked for before stay, and the extra ones come on top of them."""
    if not member.has_sets or not surge:
        return 0
    before = [one.unavailable for one in specs if one.seq < spec.seq and one.template == spec.template]
    extra = max(0, spec.replicas + surge - max(member.report.pods, spec.replicas))
    return max(_on_trial(member, spec) + extra, surge + max(before, default=0))


def _unproven(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods it has replaced by a spec, and not proven; but for those that are removed."""
    report, is_same = member.report, member.reported_template == spec.template
    had_others = report.updated < report.pods or any(one.template != spec.template for one in member.specs)
    if not is_same or not had_others or _was_done(report):
        return 0  # it may have created them, and taken none away
    removed = min(_broken_last(member, spec, specs), max(0, report.pods - spec.replicas))
    return max(0, min(spec.unavailable, report.updated - report.proven) - removed)


def _was_done(report: Report) -> bool:
    """Whether all pods have the template, and all of them have been available with it: what does not work now broke
    later."""
    return report.is_back and report.updated == report.pods


def _fewest_in_order(member: Member, spec: Spec, specs: Iterable[Spec], taken: int) -> int:
    """How few pods may be available of a kind that goes by their order.

    It takes no other one away before those of its own template are available; nor, if the last ones are of another
    template and none of them is available, before it has replaced those. To remove them costs nothing, too.
    """
    report, broken = member.report, _broken_last(member, spec, specs)
    is_same = member.reported_template == spec.template
    is_waiting = report.updated > report.proven if is_same and _follows(member, spec, specs) else broken > 0
    is_waiting = is_waiting and not _in_doubt(member, spec)
    removed = max(0, report.pods - spec.replicas - broken)
    return report.available - removed - (0 if is_waiting else taken)


def _broken_last(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many of the last pods are taken for broken: those that were replaced, if no more were to follow, and as many
    do not work. A report says how many, and not which: if others broke, this is wrong by as many. Without it a fix
    would never reach pods that broke after they had been proven."""
    report = member.report
    is_known = bool(member.reported_template) and report.proven == 0 and _follows(member, spec, specs)
    has_stopped = all(one.moved <= report.updated for one in specs if one.seq <= report.seq)
    return report.updated if is_known and has_stopped else 0


def _follows(member: Member, spec: Spec, specs: Iterable[Spec]) -> bool:
    """Whether a spec, if it is in effect, comes right after the one that the cluster reports about."""
    return not any(member.report.seq < one.seq < spec.seq for one in specs)


def _new(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods of its template there may be by a spec. One that has no others creates no others."""
    report, before = member.report, [one for one in specs if one.seq < spec.seq]
    is_same = member.reported_template == spec.template
    if is_same:
        has_others = report.pods > report.updated and all(one.partition for one in before)
    else:
        has_others = report.pods > 0 and all(one.template != spec.template for one in before)
    if not has_others:
        return spec.replicas
    # Pods that are added have the template that all pods had last. If it goes back to that, it is its own.
    may_be_back = report.is_back if is_same else not report.is_back
    added = max(0, spec.replicas - report.pods) if may_be_back else 0
    return max(spec.moved + _below(member, spec, before), (report.updated if is_same and added else 0) + added)


def _below(member: Member, spec: Spec, before: Iterable[Spec]) -> int:
    """How many pods may have its template that a spec keeps back now: a kind that goes by the order of its pods takes
    none of them back, and counts its partition from the first pod."""
    report, same = member.report, [one for one in before if one.template == spec.template]
    if not member.is_ordered or not spec.partition:
        return 0
    first, there = [one.partition for one in same], [one.replicas for one in same]
    if member.reported_template == spec.template:
        first, there = [*first, report.pods - report.updated], [*there, report.pods]
    return max(0, min(max(there, default=0), spec.partition) - min(first, default=spec.partition))


def _old(member: Member, spec: Spec, specs: Iterable[Spec]) -> int:
    """How many pods of other templates there may be when a cluster acts on a spec.

    Those that it reports, unless it may have acted on another template meanwhile; and none are created but by a
    partition, unless those that are kept back have the template as well.
    """
    report, others = member.report, [one for one in specs if one.seq < spec.seq]
    if member.reported_template == spec.template and all(one.template == spec.template for one in others):
        kept_back = 0 if report.is_back else max(one.partition for one in (spec, *others))
        return max(report.pods - report.updated, kept_back)
    return max(report.pods, 0, *(one.replicas + one.surge for one in others))
