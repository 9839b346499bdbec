"""Beside: how a workload is aligned that a Karmada propagates, which writes all Works itself.

Clusters are suspended, and let through one by one (`turns`), with what alignment grants them (`turn_grants`) as an
override (`beside_policies`).

Only Deployments are aligned so: for a partition it would have to be known at any time of which template pods are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import is_true
from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import LEDGER, RETAIN_REPLICAS, TURNS
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.alignment import Alignment, align
from kedge.plan.aligning.beside_policies import granted_spec, overridden_values
from kedge.plan.aligning.bounds import bounds
from kedge.plan.aligning.dispatched_cluster import DispatchedCluster, advanced, dispatched_cluster, member_of
from kedge.plan.aligning.interpreter import NotAligned, aim_of
from kedge.plan.aligning.ledger import Member, Spec
from kedge.plan.aligning.ledger_text import Ledger, ledger_text, read_ledger
from kedge.plan.aligning.retaining import retains_replicas
from kedge.plan.aligning.turn_grants import turn_grants
from kedge.plan.aligning.turns import TAKEN, TurnCode, TurnRecord, read_turns, turns_text
from kedge.plan.fields import Object
from kedge.plan.moving.wait import Blocker, Wait

RETAINED: Final = (
    f"each cluster decides how many pods it has ({RETAIN_REPLICAS}), and Karmada does not report how many that are: it"
    " is aligned by `kedge hub --api karmada` only"
)


class BesideInput(Struct, frozen=True):
    """A binding of a Karmada, as it was observed."""

    spec: BindingSpec
    template: Object
    works: Mapping[str, Work] = {}
    ready: Set[str] = frozenset()
    """The clusters that are heard from."""
    record: TurnRecord = TurnRecord()
    starting: Set[str] = frozenset()
    """Clusters whose number of pods changed a moment ago."""


class BesidePlan(Struct, frozen=True):
    """What to write: first the record with the overrides, then who is let through."""

    record: TurnRecord = TurnRecord()
    overrides: Mapping[str, tuple[tuple[str, Any], ...]] = {}
    """By cluster: paths and their values."""
    open: tuple[str, ...] = ()
    waiting: Mapping[str, Wait] = {}
    problems: tuple[str, ...] = ()
    """Why nothing is aligned, in words."""
    aim: Aim | None = None
    """The budget of the whole workload; None if it is not aligned."""
    alignment: Alignment | None = None
    """What is granted now, and what others wait for."""
    members: tuple[Member, ...] = ()
    """The clusters as they were aligned: in its turn, each with whatever may reach it."""
    granted: Mapping[str, Spec] = {}
    """What each cluster was granted last."""


def beside_input(
    spec: BindingSpec,
    template: Object,
    works: Mapping[str, Work],
    members: Iterable[Cluster],
    override: OverridePolicy | None,
) -> BesideInput:
    """A binding by the objects there are. Raises ValueError if what is kept on the override cannot be read."""
    ready = {one.metadata.name for one in members if is_true(one.status.conditions, "Ready")}
    notes: Mapping[str, str] = override.metadata.annotations if override is not None else {}
    record = TurnRecord(read_ledger(notes.get(LEDGER, "")), read_turns(notes.get(TURNS, "")))
    return BesideInput(spec, template, works, ready, record)


def record_notes(record: TurnRecord) -> dict[str, str]:
    """What is kept, as the annotations of the override."""
    return {LEDGER: ledger_text(record.ledger), TURNS: turns_text(record.turns)}


def plan_beside(seen: BesideInput) -> BesidePlan:
    """What to write now. Pure: same binding, same plan."""
    wanted = {one.name: one.replicas for one in seen.spec.clusters}
    if retains_replicas(seen.template):
        return BesidePlan(seen.record, problems=(RETAINED,))
    try:
        aim = aim_of(seen.template, sum(wanted.values()))
        found = [
            dispatched_cluster(name, wanted[name], work, seen.record, is_ready=name in seen.ready)
            for name, work in sorted(seen.works.items())
            if _is_usable(work, wanted, name)
        ]
    except NotAligned as error:
        return BesidePlan(seen.record, problems=(str(error),))
    clusters = _numbered([advanced(one) for one in found if not one.is_coming], seen.record)
    top = _top(clusters)
    members = [replace(member_of(one, top=top), is_starting=one.name in seen.starting) for one in clusters]
    asked = align(aim, members)
    grants = turn_grants(aim, members, asked.specs)
    grants = {**_again(clusters, grants), **grants}
    specs = {one.name: one.specs for one in clusters if one.specs}
    for name, spec in grants.items():
        specs[name] = (*specs.get(name, ()), spec)
    turns = {one.name: one.turn for one in clusters if one.turn is not None}
    granted = {name: given for name, known in specs.items() if (given := granted_spec(known)) is not None}
    manifests = {one.name: one.manifest for one in clusters}
    waiting = _no_works(wanted, seen.works, found) | _waiting(aim, clusters, members, asked, grants)
    return BesidePlan(
        TurnRecord(Ledger(specs), turns),
        {name: overridden_values(manifests[name], given) for name, given in granted.items()},
        tuple(name for name, turn in turns.items() if turn.is_open),
        waiting,
        aim=aim,
        alignment=replace(asked, specs=grants, waiting=waiting),
        members=tuple(members),
        granted=granted,
    )


def _is_usable(work: Work, wanted: Mapping[str, int], name: str) -> bool:
    return name in wanted and bool(work.spec.workload.manifests) and work.metadata.deletion_timestamp is None


# Numbers


def _numbered(clusters: list[DispatchedCluster], record: TurnRecord) -> list[DispatchedCluster]:
    """With a number of its own for each spec that has none yet, beside those that were there before."""
    top = max((spec.seq for specs in record.ledger.specs.values() for spec in specs), default=0)
    new = [one.name for one in clusters if len(one.specs) > 1 and one.specs[-1].seq == 0]
    numbers = {name: top + number for number, name in enumerate(new, 1)}
    return [_with_number(one, numbers[one.name]) if one.name in numbers else one for one in clusters]


def _with_number(cluster: DispatchedCluster, seq: int) -> DispatchedCluster:
    return replace(cluster, specs=(*cluster.specs[:-1], replace(cluster.specs[-1], seq=seq)))


def _top(clusters: Iterable[DispatchedCluster]) -> int:
    return max((spec.seq for one in clusters for spec in one.specs), default=0)


def _again(clusters: Iterable[DispatchedCluster], granted: Mapping[str, Spec]) -> dict[str, Spec]:
    """What clusters get once more that have what they are to have, and may have had something else in between."""
    top = max([_top(clusters), *(spec.seq for spec in granted.values())])
    doubtful = [one for one in clusters if one.is_doubtful and one.name not in granted and _has_what_it_is_to_have(one)]
    return {
        one.name: replace(one.specs[-2], seq=top + number, template=one.template)
        for number, one in enumerate(doubtful, 1)
    }


def _has_what_it_is_to_have(cluster: DispatchedCluster) -> bool:
    """Of a doubtful one: by what it was granted before, if nothing else has reached it. No pods have any template."""
    last = cluster.specs[-2]
    return last.template == cluster.template or last.replicas == cluster.wanted == 0


# Waits


def _no_works(
    wanted: Mapping[str, int], works: Mapping[str, Work], found: Iterable[DispatchedCluster]
) -> dict[str, Wait]:
    """Clusters that Karmada has only just been told of."""
    unseen = {one.name for one in found if one.is_coming}
    missing = {
        name
        for name, number in wanted.items()
        if number and not (name in works and _is_usable(works[name], wanted, name))
    }
    return {name: Wait(name, TurnCode.work_unseen) for name in unseen} | {
        name: Wait(name, TurnCode.no_work) for name in missing
    }


def _waiting(
    aim: Aim,
    clusters: Iterable[DispatchedCluster],
    members: Iterable[Member],
    asked: Alignment,
    grants: Mapping[str, Spec],
) -> dict[str, Wait]:
    """What clusters wait for that are granted nothing now: in a turn its end, else what alignment says."""
    found = {}
    for one in clusters:
        wait, code = asked.waiting.get(one.name), _turn_code(one)
        if code is not None and (wait is None or wait.code != AlignCode.unreachable):
            found[one.name] = Wait(one.name, code)
        elif one.name in asked.specs and one.name not in grants:
            found[one.name] = _budget_spent(aim, one.name, members, grants)
        elif wait is not None:
            found[one.name] = wait
    return found


def _turn_code(cluster: DispatchedCluster) -> TurnCode | None:
    if cluster.turn is None:
        return TurnCode.granted if cluster.is_next else None
    if cluster.turn.is_open:
        return TurnCode.let_through
    return TurnCode.taken_over if cluster.turn.reported == TAKEN else TurnCode.closing


def _budget_spent(aim: Aim, name: str, members: Iterable[Member], grants: Iterable[str]) -> Wait:
    """Alignment would grant it something, and its turn, which may bring any template, would cost too much."""
    held = {member.name: bounds(member) for member in members}
    holders = {other for other, one in held.items() if one.unavailable or one.surge} | set(grants)
    numbers = {
        "replicas": aim.replicas,
        "maxUnavailable": aim.unavailable,
        "maxSurge": aim.surge,
        "fewest": sum(one.fewest for one in held.values()),
    }
    return Wait(name, AlignCode.budget_spent, numbers, tuple(map(Blocker, sorted(holders - {name}))))
