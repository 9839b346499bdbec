"""Times: how long a cluster takes until what it was given is available: as told, else as measured, else by default.

Measured is what the fleet's own objects still tell of the last move: a binding says when its resources were applied and
when they became available, to the second. A move that no workload had to come up for tells nothing. A cluster of which
nothing is known takes as long as most others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from statistics import median

from msgspec import Struct

from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE
from kedge.api.reasons import APPLIED, AVAILABLE
from kedge.api.twins import Binding
from kedge.api.work import ManifestCondition, Work
from kedge.plan.previewing.coming import takes_time_kind

DEFAULT = 30.0
"""Seconds, where nothing is told and nothing was measured."""
SHORTEST = 1.0
"""Seconds: what is measured is measured to the second."""


class Measured(Struct, frozen=True):
    """How long it took last time; `first` if nothing was there before, so that all pods could come up at once."""

    seconds: float
    first: bool = False


class Expected(Struct, frozen=True):
    """How long a cluster takes, and how that is known."""

    seconds: float
    source: str
    first: bool = False


class Times(Struct, frozen=True):
    """How long each cluster takes."""

    given: Mapping[str, float] = {}
    """By cluster, as told."""
    for_all: float | None = None
    """As told for every other cluster."""
    measured: Mapping[str, Measured] = {}
    failing: Set[str] = frozenset()
    """Clusters on which what moves there never becomes available."""
    longest: bool = False
    """Whether every cluster takes as long as its workloads allow themselves: the worst that still ends well."""

    def of(self, cluster: str) -> Expected:
        """How long this cluster takes."""
        if cluster in self.given:
            return Expected(self.given[cluster], "told")
        if self.for_all is not None:
            return Expected(self.for_all, "told")
        if found := self.measured.get(cluster):
            return Expected(found.seconds, "measured", found.first)
        if self.measured:
            seconds = [one.seconds for one in self.measured.values()]
            firsts = [one.first for one in self.measured.values()]
            return Expected(median(seconds), f"median of {len(seconds)} measured", all(firsts))
        return Expected(DEFAULT, "default")

    def seconds(self, cluster: str, *, rounds: int, deadline: float, first: bool) -> float:
        """How long workloads take there that are replaced in so many rounds; infinity if they never come up."""
        if cluster in self.failing:
            return math.inf
        if self.longest:
            return deadline
        found = self.of(cluster)
        return found.seconds * (rounds if found.first and not first else 1)


def measured(bindings: Iterable[Binding], works: Iterable[Work]) -> dict[str, Measured]:
    """What the last move of each cluster took, where that can be told."""
    by_binding: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        by_binding.setdefault(_binding_of(work), []).append(work)
    found: dict[str, Measured] = {}
    for binding in bindings:
        own = by_binding.get((binding.metadata.namespace or "", binding.metadata.name), [])
        if own and (seconds := _took(binding, own)) is not None:
            found[binding.spec.target_cluster] = Measured(seconds, all(one.metadata.generation == 1 for one in own))
    return found


def _took(binding: Binding, works: Iterable[Work]) -> float | None:
    generation = binding.metadata.generation
    told = [find_condition(binding.status.conditions, kind) for kind in (APPLIED, AVAILABLE)]
    if any(one is None or one.status != TRUE or one.observed_generation != generation for one in told):
        return None
    applied, available = (one.last_transition_time for one in told if one is not None)
    if not any(_came_up(one, applied) for work in works for one in work.status.manifest_conditions):
        return None
    return max(SHORTEST, (available - applied).total_seconds())


def _came_up(found: ManifestCondition, since: datetime) -> bool:
    """Whether this is a workload that became available since then."""
    which = found.identifier
    said = find_condition(found.conditions, AVAILABLE)
    return (
        takes_time_kind(which.group, which.kind)
        and said is not None
        and said.status == TRUE
        and said.last_transition_time >= since
    )


def _binding_of(work: Work) -> tuple[str, str]:
    labels = work.metadata.labels
    return labels.get(PARENT_NAMESPACE, ""), labels.get(PARENT_BINDING, "")
