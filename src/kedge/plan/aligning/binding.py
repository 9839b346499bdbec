"""Binding: what becomes of one binding, from what is observed to what is to be written.

The ledger is written first, with the version of the binding that was looked at: of two that decide at the same time one
fails. Then each Work is written as the ledger says, so that a crash in between is made up for by the next look. A
workload that is divided is aligned; everything else is copied to each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from itertools import takewhile

from msgspec import Struct

from kedge.api.karmada.bindings import BindingSpec, TargetCluster
from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.works import Work
from kedge.plan.aligning.adopting import adopted
from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.alignment import Alignment, align
from kedge.plan.aligning.bounds import may_have_extra
from kedge.plan.aligning.interpreter import (
    NotAligned,
    aim_of,
    calculate_template_hash,
    goes_in_order,
    has_sets,
    interpret_rolling_status,
    report_of,
    revised,
)
from kedge.plan.aligning.ledger import NOTHING, Member, OwnStrategy, Report, Spec
from kedge.plan.aligning.ledger_text import BadLedger, Ledger, read_ledger
from kedge.plan.aligning.overriding import AnyOverridePolicy, NotOverridden, Overridden, overridden
from kedge.plan.aligning.own_strategies import own_strategies, paused_clusters
from kedge.plan.aligning.propagating import propagated
from kedge.plan.aligning.retaining import retained, sized, without_retaining
from kedge.plan.aligning.scheduling import CandidateCluster
from kedge.plan.aligning.work_spec import was_sent
from kedge.plan.fields import Object, group_of, patched, text, whole
from kedge.plan.moving.wait import Wait


class BoundCluster(Struct, frozen=True, dict=True):
    """A cluster that a binding is about."""

    candidate: CandidateCluster
    is_reachable: bool = True
    work: Work | None = None
    is_suspended: bool = False
    """Whether nothing is written to it for now."""

    @cached_property
    def report(self) -> Report:
        """What it reports of the workload."""
        return report_in(self.work)


class BindingInput(Struct, frozen=True):
    """A binding, as it was observed."""

    spec: BindingSpec
    template: Object | None
    """The resource that is propagated; None if there is none any more."""
    clusters: Mapping[str, BoundCluster] = {}
    """Those it is scheduled to, and those that have a Work of it."""
    overrides: tuple[AnyOverridePolicy, ...] = ()
    ledger: str = ""
    is_divided: bool = True
    """Whether its replicas are divided over the clusters."""
    is_deleting: bool = False
    starting: Set[str] = frozenset()
    """Clusters whose number of pods changed a moment ago."""


class BindingPlan(Struct, frozen=True):
    """What to write."""

    ledger: Ledger = Ledger()
    manifests: Mapping[str, Object] = {}
    """What each cluster is to have. A cluster that is not here is not written to now."""
    overridden: Mapping[str, Overridden] = {}
    """What is different there, by which policies."""
    delete: tuple[str, ...] = ()
    """Clusters whose Work is deleted."""
    waiting: Mapping[str, Wait] = {}
    problems: tuple[str, ...] = ()
    """What keeps it from being written, in words."""
    aim: Aim | None = None
    """The budget of the whole workload; None if it is not aligned."""
    alignment: Alignment | None = None
    members: tuple[Member, ...] = ()
    """The clusters as they were aligned."""


def plan_binding(seen: BindingInput) -> BindingPlan:
    """What to write now. Pure: same binding, same plan."""
    try:
        ledger = read_ledger(seen.ledger)
    except BadLedger as error:
        return BindingPlan(problems=(str(error),))
    if seen.is_deleting or seen.template is None:
        return BindingPlan(Ledger(), delete=_with_work(seen, seen.clusters))
    problems: list[str] = []
    made = _made(seen, problems)
    wanted = {one.name: _replicas(seen, one, made.get(one.name)) for one in seen.spec.clusters}
    reports = {name: cluster.report for name, cluster in seen.clusters.items()}
    sizes = {**wanted, **retained(seen.template, reports, wanted)} if seen.is_divided else wanted
    try:
        aim = aim_of(seen.template, sum(sizes.values())) if seen.is_divided else None
    except NotAligned as error:
        aim, problems = None, [*problems, *_undivided(seen.template, str(error))]
    if aim is None:
        return _copied(seen, wanted, made, problems)
    return _aligned(seen, ledger, sizes, made, reports, aim, problems)


def _undivided(template: Object, why: str) -> list[str]:
    """What is wrong if a resource that is to be divided is copied. One that runs nothing has nothing to divide."""
    if (group_of(template), text(template, "kind")) == ("batch", "Job"):
        return ["Job is not divided: each of its clusters runs all of it"]
    return [why] if _has_replicas(template) else []


# What is copied to each cluster


def _copied(
    seen: BindingInput, wanted: Mapping[str, int], made: Mapping[str, Overridden], problems: Iterable[str]
) -> BindingPlan:
    staying = {*wanted, *(one.from_cluster for one in seen.spec.graceful_eviction_tasks)}
    gone = _with_work(seen, [name for name in seen.clusters if name not in staying])
    manifests = {name: one.obj for name, one in made.items() if name in wanted}
    return BindingPlan(Ledger(), manifests, made, gone, problems=tuple(problems))


# What is aligned


def _aligned(
    seen: BindingInput,
    ledger: Ledger,
    wanted: Mapping[str, int],
    made: Mapping[str, Overridden],
    reports: Mapping[str, Report],
    aim: Aim,
    problems: list[str],
) -> BindingPlan:
    owned = own_strategies(seen.template or {}, made, wanted, problems)
    is_ordered, is_of_sets = goes_in_order(seen.template or {}), has_sets(seen.template or {})
    ledger = _with_all_that_is_asked(seen, ledger, wanted, reports, aim.most)
    decided = retained(seen.template or {}, reports, wanted)
    known = {
        name: cluster
        for name, cluster in seen.clusters.items()
        if (name in made and name in wanted) or ledger.specs.get(name)
    }
    sources = {name: _sources(cluster.work, made.get(name)) for name, cluster in known.items()}
    members = [
        _member(
            name,
            wanted.get(name, 0),
            cluster,
            name in wanted and name in made,
            owned.get(name),
            sized(ledger.specs.get(name, ()), decided.get(name)),
            reports[name],
            sources[name],
            is_ordered=is_ordered,
            is_of_sets=is_of_sets,
            is_starting=name in seen.starting,
        )
        for name, cluster in sorted(known.items())
    ]
    gone = [one.name for one in members if not one.stays and _is_gone(one)]
    found = align(aim, [one for one in members if one.name not in gone])
    for one in members:
        if one.name in found.specs:
            ledger = ledger.with_spec(one.name, found.specs[one.name], one.report.seq)
    for name in gone:
        ledger = ledger.without(name)
    lowered = {one.name for one in members if may_have_extra(one)}
    paused = paused_clusters(ledger.specs.keys() - lowered, made, is_paused=aim.is_paused)
    manifests = {
        name: _numbered(sources[name].by_template[specs[-1].template], specs[-1], is_paused=name in paused)
        for name, specs in ledger.specs.items()
        if name in sources and specs and specs[-1].template in sources[name].by_template
    }
    delete = _with_work(seen, [*gone, *(name for name in seen.clusters if name not in ledger.specs)])
    return BindingPlan(ledger, manifests, made, delete, found.waiting, tuple(problems), aim, found, tuple(members))


def _with_all_that_is_asked(
    seen: BindingInput, ledger: Ledger, wanted: Mapping[str, int], reports: Mapping[str, Report], most: int
) -> Ledger:
    """What a cluster without replicas and pods was asked for is done."""
    asked = {
        name: manifest
        for name, cluster in seen.clusters.items()
        for manifest in _manifests(cluster.work)
        if name in wanted or reports[name].pods or whole(manifest, "spec", "replicas") != 0
    }
    return adopted(ledger, asked, reports, most)


def _manifests(work: Work | None) -> tuple[Object, ...]:
    """What a Work asks for that is not being deleted, and was let through once."""
    is_there = work is not None and work.metadata.deletion_timestamp is None and was_sent(work)
    return tuple(work.spec.workload.manifests[:1]) if work is not None and is_there else ()


def _member(
    name: str,
    wanted: int,
    cluster: BoundCluster,
    stays: bool,
    own: OwnStrategy | None,
    specs: tuple[Spec, ...],
    report: Report,
    sources: _Sources,
    *,
    is_ordered: bool,
    is_of_sets: bool,
    is_starting: bool,
) -> Member:
    lost = list(takewhile(lambda spec: spec.template not in sources.by_template, reversed(specs)))
    # Pods would be created only to be taken away. A Work without any keeps an older request from creating another one.
    is_over = wanted == 0 and cluster.work is None and bool(specs) and specs[-1].replicas > 0
    return Member(
        name,
        wanted,
        sources.wanted or specs[-1].template,
        specs,
        report,
        cluster.is_reachable,
        is_suspended=cluster.is_suspended,
        stays=stays,
        own=own,
        is_ordered=is_ordered,
        has_sets=is_of_sets,
        is_starting=is_starting,
        superseded=len(specs) if is_over else len(lost),
    )


def report_in(work: Work | None) -> Report:
    """What a cluster reports of the workload in a Work."""
    statuses = work.status.manifest_statuses if work is not None else ()
    if not statuses or statuses[0].status is None:
        return NOTHING
    return report_of(interpret_rolling_status(statuses[0].status))


def _is_gone(member: Member) -> bool:
    """Whether a cluster that is to leave has no pods any more."""
    last = member.last
    if member.wanted or last is None:
        return False
    return last.replicas == 0 and member.is_acknowledged and member.report.pods == 0


class _Sources(Struct, frozen=True):
    """Manifests of one cluster, whose numbers are those of a spec yet to be chosen."""

    wanted: str
    """The hash of the pod template it is to have; empty if it is to leave."""
    by_template: Mapping[str, Object]
    """What it was asked for before, and what the resource is now, by their templates. Nobody has others any more."""


def _sources(work: Work | None, made: Overridden | None) -> _Sources:
    there = work.spec.workload.manifests[:1] if work is not None and was_sent(work) else ()
    found = {calculate_template_hash(one): one for one in there}
    if made is None:
        return _Sources("", found)
    wanted = calculate_template_hash(made.obj)
    return _Sources(wanted, {**found, wanted: made.obj})


def _numbered(manifest: Object, spec: Spec, *, is_paused: bool) -> Object:
    """With the numbers of a spec, and the number of the spec itself, by which a cluster acknowledges it. While the
    workload is paused, its clusters stop with what they have begun."""
    return revised(manifest, spec, {SEQUENCE: str(spec.seq)}, is_paused=is_paused)


# Manifests


def _made(seen: BindingInput, problems: list[str]) -> dict[str, Overridden]:
    """The resource as each cluster is to have it: those that it is scheduled to, and those that are to leave."""
    assert seen.template is not None
    base = propagated(seen.template)
    wanted = {one.name: one.replicas for one in seen.spec.clusters}
    found = {}
    for name in (*wanted, *sorted(seen.clusters.keys() - wanted.keys())):
        cluster = seen.clusters.get(name)
        if cluster is None:
            problems.append(f"the cluster {name} does not exist")
            continue
        own = base
        if seen.is_divided and _has_replicas(base):
            own = patched(base, {"spec": {"replicas": wanted.get(name, 0)}})
            own = own if name in wanted else without_retaining(own)
        try:
            found[name] = overridden(own, cluster.candidate, seen.overrides)
        except NotOverridden as error:
            problems.append(f"cluster {name}: {error}")
    return found


def _replicas(seen: BindingInput, target: TargetCluster, made: Overridden | None) -> int:
    """How many replicas a cluster is to have: what it is scheduled to, unless an override says otherwise."""
    given = whole(made.obj, "spec", "replicas") if made is not None and seen.is_divided else None
    return target.replicas if given is None else given


def _has_replicas(obj: Object) -> bool:
    return whole(obj, "spec", "replicas") is not None


def _with_work(seen: BindingInput, names: Iterable[str]) -> tuple[str, ...]:
    known = {name for name in names if (found := seen.clusters.get(name)) is not None and found.work is not None}
    return tuple(sorted(known))
