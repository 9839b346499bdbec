"""Dispatched cluster: one cluster that Karmada dispatches to, as its Work shows it, and how its turn goes on."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.karmada.keys import TEMPLATE_GENERATION
from kedge.api.karmada.works import Work
from kedge.plan.aligning.beside_policies import OVERRIDDEN
from kedge.plan.aligning.interpreter import (
    UnifiedRollingStatus,
    aim_of,
    calculate_template_hash,
    has_sets,
    interpret_rolling_status,
    report_of,
    revised,
    sequence_of,
)
from kedge.plan.aligning.ledger import UNKNOWN, Member, Report, Spec
from kedge.plan.aligning.turns import TAKEN, Turn, TurnRecord
from kedge.plan.digest import digest
from kedge.plan.fields import Object, at, whole

_SILENT: Final = Report(-1)


class DispatchedCluster(Struct, frozen=True):
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
    def is_doubtful(self) -> bool:
        """Whether its turn is over, and something else may have reached it than what it was granted."""
        return self.turn is None and len(self.specs) > 1 and self.specs[-1].template == UNKNOWN

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
        return all(at(asked, "spec", name) == at(self.manifest, "spec", name) for name in OVERRIDDEN)


def dispatched_cluster(name: str, wanted: int, work: Work, record: TurnRecord, *, is_ready: bool) -> DispatchedCluster:
    """A cluster by its Work, which has a manifest, and by what is kept of it."""
    manifest, statuses = work.spec.workload.manifests[0], work.status.manifest_statuses
    raw = statuses[0].status if statuses else None
    return DispatchedCluster(
        name,
        wanted,
        work,
        manifest,
        calculate_template_hash(manifest),
        interpret_rolling_status(raw) if raw is not None else None,
        record.ledger.specs.get(name, ()),
        record.turns.get(name),
        is_ready,
    )


def advanced(cluster: DispatchedCluster) -> DispatchedCluster:
    """A cluster with its turn begun, closed or over, if it is time for it."""
    turn = cluster.turn
    if turn is None:
        return _without_turn(cluster)
    if turn.is_open:
        is_done = cluster.is_acknowledged and cluster.is_let_through
        return replace(cluster, specs=cluster.specs[-1:], turn=replace(turn, is_open=False)) if is_done else cluster
    if not cluster.is_closed or (cluster.work.metadata.generation or 0) < turn.generation + 2:
        return cluster
    if not cluster.is_as_begun:
        known = cluster.specs[-1:] if cluster.is_acknowledged else cluster.specs
        return replace(cluster, specs=(*known, _doubt(cluster)), turn=None)
    return replace(cluster, specs=cluster.specs[-1:], turn=None) if cluster.is_acknowledged else cluster


def _without_turn(cluster: DispatchedCluster) -> DispatchedCluster:
    if not cluster.is_closed:  # not by us: it is taken as it is
        specs = cluster.specs or (_baseline(cluster),)
        return replace(cluster, specs=specs, turn=_taken(cluster))
    if not cluster.specs:
        return cluster if cluster.is_untouched else replace(cluster, specs=(_baseline(cluster),))
    if cluster.is_acknowledged or cluster.specs[-1].template == UNKNOWN:
        return cluster
    if cluster.template != cluster.specs[-1].template:
        return replace(cluster, specs=cluster.specs[:-1])  # it never was let through, and is no longer wanted
    return replace(cluster, turn=_begun(cluster)) if cluster.shows else cluster


def _taken(cluster: DispatchedCluster) -> Turn:
    """The turn of a cluster that somebody else lets through: it is to be suspended."""
    writes = (
        2 if cluster.work.spec.suspend_dispatching is True else 1
    )  # since it was suspended last, as far as is known
    return Turn((cluster.work.metadata.generation or 0) - writes, TAKEN, _digest(cluster.manifest), is_open=False)


def _begun(cluster: DispatchedCluster) -> Turn:
    reported = cluster.status.generation if cluster.status is not None and cluster.status.generation is not None else 0
    first, last = cluster.specs[0], cluster.specs[-1]
    # Then its generation stays: what it reports of its template says enough.
    is_same = replace(first, seq=0, template="") == replace(last, seq=0, template="") and (
        first.template == last.template or any(spec.template == UNKNOWN for spec in cluster.specs)
    )
    return Turn(cluster.work.metadata.generation or 0, reported - is_same, _digest(cluster.manifest))


def _baseline(cluster: DispatchedCluster) -> Spec:
    """What a cluster has that was there before: as its Work says, if that is what it reports to have."""
    numbers = _numbers(cluster)
    status = cluster.status
    is_there = status is not None and str(status.resource_template_generation) == _template_generation(cluster.manifest)
    if is_there or not cluster.is_closed:
        return replace(numbers, template=cluster.template)
    return replace(numbers, unavailable=numbers.replicas, surge=numbers.replicas, partition=0)


def _numbers(cluster: DispatchedCluster) -> Spec:
    """What the Work of a cluster says, whoever wrote it."""
    replicas = whole(cluster.manifest, "spec", "replicas")
    found = aim_of(cluster.manifest, cluster.wanted if replicas is None else replicas)
    return Spec(0, UNKNOWN, found.replicas, found.unavailable, found.surge, found.partition)


def _doubt(cluster: DispatchedCluster) -> Spec:
    """What may have reached a cluster, numbered later: the most of what was granted and what its Work says."""
    last, other = cluster.specs[-1], _numbers(cluster)
    return Spec(
        0,
        UNKNOWN,
        min(last.replicas, other.replicas),
        max(last.unavailable, other.unavailable),
        max(last.replicas + last.surge, other.replicas + other.surge) - min(last.replicas, other.replicas),
        min(last.partition, other.partition),
    )


def member_of(cluster: DispatchedCluster, top: int) -> Member:
    """A cluster as alignment takes it. In its turn, and if that is to begin, it may get whatever template."""
    specs = cluster.specs
    if cluster.turn is not None:
        specs = (*specs, replace(_doubt(cluster), seq=top + 1))
    elif cluster.is_next:
        specs = (*specs, replace(specs[-1], seq=top + 1, template=UNKNOWN))
    return Member(
        cluster.name,
        cluster.wanted,
        cluster.template,
        specs,
        cluster.report,
        cluster.is_ready,
        has_sets=has_sets(cluster.manifest),
        superseded=int(cluster.is_doubtful),
    )


def _digest(manifest: Object) -> str:
    return digest(manifest)[:12]


def _template_generation(manifest: Object) -> str:
    return str(at(manifest, "metadata", "annotations", TEMPLATE_GENERATION))
