"""Beside: how a workload is aligned that a Karmada propagates, which writes all Works itself.

Karmada writes a new template to every cluster at once. So every cluster is suspended, and let through one by one:

1. a cluster is granted a spec: an override of its strategy, replicas and number. Its Work, still suspended, shows it;
2. its turn begins: it is let through, and what is in its Work reaches it;
3. when it acknowledges the spec, it is suspended again;
4. when its Work is known to be suspended, and nothing else was in it meanwhile, the turn is over.

During a turn somebody may change the template, and Karmada sends it through. So until the turn is over a cluster counts
with everything its numbers allow, whatever it has proven. If something else was in the Work, that may have reached the
cluster and counts until the cluster has had another turn. A cluster has one turn at a time, and none begins before the
one before it is over: so it is clear what is acknowledged even if a cluster does not report the number of its spec.

Only Deployments are aligned so: for a partition it would have to be known at any time of which template pods are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.keys import SEQUENCE, TEMPLATE_GENERATION
from kedge.api.karmada.policies import ResourceSelector
from kedge.api.karmada.works import Work
from kedge.plan.aligning.alignment import Aim, align
from kedge.plan.aligning.bounds import Bounds, bounds
from kedge.plan.aligning.interpreter import (
    NotAligned,
    UnifiedRollingStatus,
    aim_of,
    calculate_template_hash,
    interpret_rolling_status,
    report_of,
    revised,
    sequence_of,
)
from kedge.plan.aligning.ledger import Member, Report, Spec
from kedge.plan.aligning.ledger_text import Ledger
from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, whole
from kedge.plan.moving.wait import Wait

UNKNOWN: Final = "?"
"""The template of a spec that may have reached a cluster with whatever template there was."""
TAKEN: Final = -2
"""Instead of a generation, of a turn that somebody else began."""
_SILENT: Final = Report(-1)
_OVERRIDDEN: Final = ("strategy", "updateStrategy", "replicas")


class Turn(Struct, frozen=True, array_like=True):
    """The turn of one cluster."""

    generation: int
    """That of its Work before it was let through."""
    reported: int
    """The generation of the workload that the cluster had reported then; what it acknowledges is a later one."""
    digest: str
    """Of what was in its Work then."""
    is_open: bool = True
    """Whether it is let through now."""


class Record(Struct, frozen=True):
    """What is kept of a binding."""

    ledger: Ledger = Ledger()
    turns: Mapping[str, Turn] = {}


class BesideInput(Struct, frozen=True):
    """A binding of a Karmada, as it was observed."""

    spec: BindingSpec
    template: Object
    works: Mapping[str, Work] = {}
    ready: Set[str] = frozenset()
    """The clusters that are heard from."""
    record: Record = Record()


class BesidePlan(Struct, frozen=True):
    """What to write: first the record with the overrides, then who is let through."""

    record: Record = Record()
    overrides: Mapping[str, tuple[tuple[str, Any], ...]] = {}
    """By cluster: paths and their values."""
    open: tuple[str, ...] = ()
    waiting: Mapping[str, Wait] = {}
    problem: str = ""
    """Why nothing is aligned, in words."""


def plan_beside(seen: BesideInput) -> BesidePlan:
    """What to write now. Pure: same binding, same plan."""
    wanted = {one.name: one.replicas for one in seen.spec.clusters}
    try:
        aim = aim_of(seen.template, sum(wanted.values()))
        sites = [
            _site(name, wanted[name], work, seen)
            for name, work in sorted(seen.works.items())
            if _is_usable(work, wanted, name)
        ]
    except NotAligned as error:
        return BesidePlan(seen.record, problem=str(error))
    sites = _numbered([_moved(site) for site in sites if not site.is_coming], seen.record)
    members = [_member(site, top=_top(sites)) for site in sites]
    found = align(aim, members)
    granted = _within(aim, members, found.specs)
    specs = {site.name: site.specs for site in sites if site.specs}
    for name, spec in {**_again(sites, granted), **granted}.items():
        specs[name] = (*specs.get(name, ()), spec)
    turns = {site.name: site.turn for site in sites if site.turn is not None}
    manifests = {site.name: site.manifest for site in sites}
    return BesidePlan(
        Record(Ledger(specs), turns),
        {name: _overrides(manifests[name], given) for name, found_ in specs.items() if (given := _granted(found_))},
        tuple(name for name, turn in turns.items() if turn.is_open),
        found.waiting,
    )


# One cluster


class _Site(Struct, frozen=True):
    """A cluster and what is known of it."""

    name: str
    wanted: int
    work: Work
    manifest: Object
    template: str
    status: UnifiedRollingStatus | None
    specs: tuple[Spec, ...]
    turn: Turn | None
    is_ready: bool

    @property
    def is_closed(self) -> bool:
        """Whether Karmada knows, too, that nothing is to be sent there: it works on one version of a Work at a time."""
        found = find_condition(self.work.status.conditions, "Dispatching")
        return self.work.spec.suspend_dispatching is True and found is not None and found.status == FALSE

    @property
    def is_let_through(self) -> bool:
        """Whether Karmada knows that it may be sent what its Work has: what it knows of a suspension then is later."""
        found = find_condition(self.work.status.conditions, "Dispatching")
        return self.work.spec.suspend_dispatching is not True and found is not None and found.status == TRUE

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is known to have been sent to it."""
        return self.status is None and find_condition(self.work.status.conditions, "Applied") is None

    @property
    def is_coming(self) -> bool:
        """Whether its Work was just made, suspended, and Karmada has not looked at it yet."""
        is_new = not self.specs and self.turn is None and self.is_untouched
        return is_new and self.work.spec.suspend_dispatching is True and not self.is_closed

    @property
    def report(self) -> Report:
        """What the cluster reports, and of which spec that is."""
        if self.status is None:
            return _SILENT
        found = report_of(self.status)
        if self.status.generation is None or self.status.generation != self.status.observed_generation:
            return replace(found, seq=-1)
        if self.status.alignment_seq is not None or not self.specs:
            return found
        if not self.is_awaited:
            return replace(found, seq=self.specs[0].seq)
        before = self.specs[0].seq if len(self.specs) > 1 else -1
        return replace(found, seq=self.specs[-1].seq if self._is_later else before)

    @property
    def is_awaited(self) -> bool:
        """Whether it has a turn, and has not acknowledged yet what it got in it."""
        return self.turn is not None and (self.turn.is_open or self.turn.reported == TAKEN)

    @property
    def _is_later(self) -> bool:
        """Whether what it reports is of the turn, where it does not say of which spec it is."""
        if self.turn is None or self.status is None:
            return False
        has_template = str(self.status.resource_template_generation) == _template_generation(self.manifest)
        return has_template and (self.status.generation or 0) > self.turn.reported

    @property
    def is_acknowledged(self) -> bool:
        return not self.specs or self.report.seq >= self.specs[-1].seq

    @property
    def is_next(self) -> bool:
        """Whether it was granted something, and its turn is still to begin."""
        return self.turn is None and not self.is_acknowledged and self.specs[-1].template != UNKNOWN

    @property
    def is_as_begun(self) -> bool:
        """Whether nothing else was in its Work since its turn began: it was let through, and suspended again."""
        turn = self.turn
        return turn is None or (
            self.work.metadata.generation == turn.generation + 2 and _digest(self.manifest) == turn.digest
        )

    @property
    def shows(self) -> bool:
        """Whether its Work is what its last spec asks for."""
        last = self.specs[-1]
        if sequence_of(self.manifest) != last.seq or self.template != last.template:
            return False
        asked = revised(self.manifest, last)
        return all(at(asked, "spec", name) == at(self.manifest, "spec", name) for name in _OVERRIDDEN)


def _is_usable(work: Work, wanted: Mapping[str, int], name: str) -> bool:
    return name in wanted and bool(work.spec.workload.manifests) and work.metadata.deletion_timestamp is None


def _site(name: str, wanted: int, work: Work, seen: BesideInput) -> _Site:
    manifest, statuses = work.spec.workload.manifests[0], work.status.manifest_statuses
    raw = statuses[0].status if statuses else None
    return _Site(
        name,
        wanted,
        work,
        manifest,
        calculate_template_hash(manifest),
        interpret_rolling_status(raw) if raw is not None else None,
        seen.record.ledger.specs.get(name, ()),
        seen.record.turns.get(name),
        name in seen.ready,
    )


def _moved(site: _Site) -> _Site:
    """A cluster with its turn begun, closed or over, if it is time for it."""
    turn = site.turn
    if turn is None:
        return _without_turn(site)
    if turn.is_open:
        is_done = site.is_acknowledged and site.is_let_through
        return replace(site, specs=site.specs[-1:], turn=replace(turn, is_open=False)) if is_done else site
    if not site.is_closed or (site.work.metadata.generation or 0) < turn.generation + 2:
        return site
    if not site.is_as_begun:
        known = site.specs[-1:] if site.is_acknowledged else site.specs
        return replace(site, specs=(*known, _doubt(site)), turn=None)
    return replace(site, specs=site.specs[-1:], turn=None) if site.is_acknowledged else site


def _without_turn(site: _Site) -> _Site:
    if not site.is_closed:  # not by us: it is taken as it is
        specs = site.specs or (_baseline(site),)
        return replace(site, specs=specs, turn=_taken(site))
    if not site.specs:
        return site if site.is_untouched else replace(site, specs=(_baseline(site),))
    if site.is_acknowledged or site.specs[-1].template == UNKNOWN:
        return site
    if site.template != site.specs[-1].template:
        return replace(site, specs=site.specs[:-1])  # it never was let through, and is no longer wanted
    return replace(site, turn=_begun(site)) if site.shows else site


def _taken(site: _Site) -> Turn:
    """The turn of a cluster that somebody else lets through: it is to be suspended."""
    writes = 2 if site.work.spec.suspend_dispatching is True else 1  # since it was suspended last, as far as is known
    return Turn((site.work.metadata.generation or 0) - writes, TAKEN, _digest(site.manifest), is_open=False)


def _begun(site: _Site) -> Turn:
    reported = site.status.generation if site.status is not None and site.status.generation is not None else 0
    first, last = site.specs[0], site.specs[-1]
    # Then its generation stays: what it reports of its template says enough.
    is_same = replace(first, seq=0, template="") == replace(last, seq=0, template="") and (
        first.template == last.template or any(spec.template == UNKNOWN for spec in site.specs)
    )
    return Turn(site.work.metadata.generation or 0, reported - is_same, _digest(site.manifest))


def _baseline(site: _Site) -> Spec:
    """What a cluster has that was there before: as its Work says, if that is what it reports to have."""
    numbers = _numbers(site)
    status = site.status
    is_there = status is not None and str(status.resource_template_generation) == _template_generation(site.manifest)
    if is_there or not site.is_closed:
        return replace(numbers, template=site.template)
    return replace(numbers, unavailable=numbers.replicas, surge=numbers.replicas, partition=0)


def _numbers(site: _Site) -> Spec:
    """What the Work of a cluster says, whoever wrote it."""
    replicas = whole(site.manifest, "spec", "replicas")
    found = aim_of(site.manifest, site.wanted if replicas is None else replicas)
    return Spec(0, UNKNOWN, found.replicas, found.unavailable, found.surge, found.partition)


def _doubt(site: _Site) -> Spec:
    """What may have reached a cluster, numbered later: the most of what was granted and what its Work says."""
    last, other = site.specs[-1], _numbers(site)
    return Spec(
        0,
        UNKNOWN,
        min(last.replicas, other.replicas),
        max(last.unavailable, other.unavailable),
        max(last.replicas + last.surge, other.replicas + other.surge) - min(last.replicas, other.replicas),
        min(last.partition, other.partition),
    )


def _numbered(sites: list[_Site], record: Record) -> list[_Site]:
    """With a number of its own for each spec that has none yet, beside those that were there before."""
    top = max((spec.seq for specs in record.ledger.specs.values() for spec in specs), default=0)
    new = [site.name for site in sites if len(site.specs) > 1 and site.specs[-1].seq == 0]
    numbers = {name: top + number for number, name in enumerate(new, 1)}
    return [_with_number(site, numbers[site.name]) if site.name in numbers else site for site in sites]


def _with_number(site: _Site, seq: int) -> _Site:
    return replace(site, specs=(*site.specs[:-1], replace(site.specs[-1], seq=seq)))


def _top(sites: list[_Site]) -> int:
    return max((spec.seq for site in sites for spec in site.specs), default=0)


def _member(site: _Site, top: int) -> Member:
    """A cluster as alignment takes it. In its turn, and if that is to begin, it may get whatever template."""
    specs = site.specs
    if site.turn is not None:
        specs = (*specs, replace(_doubt(site), seq=top + 1))
    elif site.is_next:
        specs = (*specs, replace(specs[-1], seq=top + 1, template=UNKNOWN))
    return Member(
        site.name,
        site.wanted,
        site.template,
        specs,
        site.report,
        site.is_ready,
        superseded=int(site.turn is None and len(site.specs) > 1 and site.specs[-1].template == UNKNOWN),
    )


def _within(aim: Aim, members: Sequence[Member], asked: Mapping[str, Spec]) -> dict[str, Spec]:
    """Of what is granted, what is within the budget if every turn that begins brings another template as well."""
    by_name = {member.name: member for member in members}
    held = {member.name: bounds(member) for member in members}
    total = sum(held.values(), Bounds())
    unavailable, surge = aim.unavailable - total.unavailable, aim.surge - total.surge
    found = {}
    for name, given in asked.items():
        own, spec = held[name], _with_template(aim, total, by_name[name], given)
        most = own.unavailable + max(0, unavailable), own.surge + max(0, surge)
        cut = replace(spec, unavailable=min(spec.unavailable, most[0]), surge=min(spec.surge, most[1]))
        if not cut.unavailable and not cut.surge and (by_name[name].last is None or not cut.replicas):
            cut = replace(cut, unavailable=min(1, most[0]) if cut.replicas else 1)  # both must not be 0
        if (cut.unavailable or cut.surge) and not (aim.recreates and cut.unavailable < spec.unavailable):
            found[name] = cut
            unavailable -= max(0, cut.unavailable - own.unavailable)
            surge -= max(0, cut.surge - own.surge)
    return found


def _with_template(aim: Aim, total: Bounds, member: Member, spec: Spec) -> Spec:
    """A spec with the template that is wanted, if that is safe: a Work has no other one, also if it is only scaled."""
    if spec.template == member.template:
        return spec
    new = replace(spec, template=member.template, unavailable=0, surge=0)
    by_surge = [replace(new, surge=max(1, spec.surge))] if aim.surge else []
    for way in (*by_surge, replace(new, unavailable=1)):
        after = total - bounds(member) + bounds(member, (way,))
        if after.fewest >= min(aim.fewest, total.fewest) and after.most <= max(aim.most, total.most):
            return way
    return replace(spec, unavailable=0, surge=0)


def _again(sites: list[_Site], granted: Mapping[str, Spec]) -> dict[str, Spec]:
    """What clusters get once more that have what they are to have, and may have had something else in between."""
    top = max([_top(sites), *(spec.seq for spec in granted.values())])
    doubtful = [
        site
        for site in sites
        if site.turn is None and len(site.specs) > 1 and site.specs[-1].template == UNKNOWN and site.name not in granted
        if site.specs[-2].template == site.template
    ]
    return {site.name: replace(site.specs[-2], seq=top + number) for number, site in enumerate(doubtful, 1)}


# Overrides


def _granted(specs: tuple[Spec, ...]) -> Spec | None:
    """The last spec that was granted, not only taken as it is."""
    return next((spec for spec in reversed(specs) if spec.seq > 0 and spec.template != UNKNOWN), None)


def _overrides(manifest: Object, spec: Spec) -> tuple[tuple[str, Any], ...]:
    asked = revised(manifest, spec)
    values = ((name, at(asked, "spec", name)) for name in _OVERRIDDEN)
    number = (f"/metadata/annotations/{SEQUENCE.replace('/', '~1')}", str(spec.seq))
    return (*((f"/spec/{name}", value) for name, value in values if value is not None), number)


def _digest(manifest: Object) -> str:
    return digest(manifest)[:12]


def _template_generation(manifest: Object) -> str:
    return str(at(manifest, "metadata", "annotations", TEMPLATE_GENERATION))


# The record as it is kept


def turns_text(turns: Mapping[str, Turn]) -> str:
    """The annotation, in the order of clusters."""
    return msgspec.json.encode(dict(sorted(turns.items()))).decode()


def read_turns(written: str) -> dict[str, Turn]:
    """The turns of an annotation. Raises ValueError if it cannot be read: nothing is guessed."""
    try:
        return msgspec.json.decode(written or "{}", type=dict[str, Turn])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"the turns of the alignment cannot be read: {error}") from None


# The policy


def policy_problem(selectors: Sequence[ResourceSelector], spec: BindingSpec) -> str:
    """Why a policy cannot let the clusters of one binding through one by one; empty if it can."""
    bound = spec.resource
    if (bound.api_version, bound.kind) != ("apps/v1", "Deployment"):
        return f"beside a Karmada only Deployments of apps/v1 are aligned, not {bound.kind} of {bound.api_version}"
    if len(selectors) == 1 and selectors[0].name == bound.name and selectors[0].kind == bound.kind:
        return ""
    named = f"{bound.kind} {bound.namespace}/{bound.name}"
    return f"the policy selects more than {named}, which would be let through as well: give it a policy of its own"
