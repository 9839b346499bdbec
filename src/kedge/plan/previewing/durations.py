"""Durations: how long a cluster takes until what it was given is available: as given, else as measured, else a default.

Measured is what the objects of the fleet still show of the last change: a binding has the times when its resources were
applied and became available, to the second. A change for which no workload had to start shows nothing. A cluster
without a measurement takes the median of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from statistics import median

from msgspec import Struct

from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE
from kedge.api.placement_kinds import Binding
from kedge.api.reasons import APPLIED, AVAILABLE
from kedge.api.work import ManifestCondition, Work
from kedge.plan.previewing.expected_objects import takes_time_kind

DEFAULT_SECONDS = 30.0
"""Seconds, if nothing is given and nothing was measured."""
MIN_SECONDS = 1.0
"""Seconds: what is measured is measured to the second."""


class MeasuredDuration(Struct, frozen=True):
    """How long it took last time. `first`: nothing was there before, so all pods could start at once."""

    seconds: float
    first: bool = False


class ExpectedDuration(Struct, frozen=True):
    """How long a cluster takes, and how that is known."""

    seconds: float
    source: str
    first: bool = False


class Durations(Struct, frozen=True):
    """How long each cluster takes."""

    given: Mapping[str, float] = {}
    """By cluster, as given."""
    for_all: float | None = None
    """As given for every other cluster."""
    measured: Mapping[str, MeasuredDuration] = {}
    failing: Set[str] = frozenset()
    """Clusters on which what moves there never becomes available."""
    longest: bool = False
    """Whether every cluster takes until the deadline of its workloads: the slowest rollout that still succeeds."""

    def of(self, cluster: str) -> ExpectedDuration:
        """How long this cluster takes."""
        if cluster in self.given:
            return ExpectedDuration(self.given[cluster], "told")
        if self.for_all is not None:
            return ExpectedDuration(self.for_all, "told")
        if found := self.measured.get(cluster):
            return ExpectedDuration(found.seconds, "measured", found.first)
        if self.measured:
            seconds = [one.seconds for one in self.measured.values()]
            firsts = [one.first for one in self.measured.values()]
            return ExpectedDuration(median(seconds), f"median of {len(seconds)} measured", all(firsts))
        return ExpectedDuration(DEFAULT_SECONDS, "default")

    def seconds(self, cluster: str, *, rounds: int, deadline: float, first: bool) -> float:
        """How long workloads that are replaced in this many rounds take there; infinity if they never do."""
        if cluster in self.failing:
            return math.inf
        if self.longest:
            return deadline
        found = self.of(cluster)
        return found.seconds * (rounds if found.first and not first else 1)


def measured_durations(bindings: Iterable[Binding], works: Iterable[Work]) -> dict[str, MeasuredDuration]:
    """How long the last change of each cluster took, where that is known."""
    by_binding: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        by_binding.setdefault(_binding_of(work), []).append(work)
    found: dict[str, MeasuredDuration] = {}
    for binding in bindings:
        own = by_binding.get((binding.metadata.namespace or "", binding.metadata.name), [])
        if own and (seconds := _measured_seconds(binding, own)) is not None:
            found[binding.spec.target_cluster] = MeasuredDuration(
                seconds, all(one.metadata.generation == 1 for one in own)
            )
    return found


def _measured_seconds(binding: Binding, works: Iterable[Work]) -> float | None:
    generation = binding.metadata.generation
    conditions = [find_condition(binding.status.conditions, kind) for kind in (APPLIED, AVAILABLE)]
    if any(one is None or one.status != TRUE or one.observed_generation != generation for one in conditions):
        return None
    applied, available = (one.last_transition_time for one in conditions if one is not None)
    if not any(_became_available(one, applied) for work in works for one in work.status.manifest_conditions):
        return None
    return max(MIN_SECONDS, (available - applied).total_seconds())


def _became_available(found: ManifestCondition, since: datetime) -> bool:
    """Whether this is a workload that became available since then."""
    which = found.identifier
    available = find_condition(found.conditions, AVAILABLE)
    return (
        takes_time_kind(which.group, which.kind)
        and available is not None
        and available.status == TRUE
        and available.last_transition_time >= since
    )


def _binding_of(work: Work) -> tuple[str, str]:
    labels = work.metadata.labels
    return labels.get(PARENT_NAMESPACE, ""), labels.get(PARENT_BINDING, "")
