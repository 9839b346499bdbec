"""Scheduling: which clusters a policy means, and how many replicas each of them runs.

Divided by Webster's method, as Karmada does it. What a placement asks for and is not known here is refused in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from kedge.api.karmada.bindings import TargetCluster
from kedge.api.karmada.policies import ClusterAffinity, Placement, ReplicaSchedulingType, StaticClusterWeight
from kedge.plan.aligning.names import fnv32a
from kedge.plan.aligning.supporting import placement_problems
from kedge.plan.text import listed, natural


class CandidateCluster(Struct, frozen=True):
    """A cluster that something may be scheduled to."""

    name: str
    labels: Mapping[str, str] = {}


class NotScheduled(ValueError):
    """Why a policy cannot be followed, in words."""


def is_meant(affinity: ClusterAffinity | None, cluster: CandidateCluster) -> bool:
    """Whether an affinity means a cluster. One that says nothing means all."""
    if affinity is None:
        return True
    if cluster.name in affinity.exclude or (affinity.cluster_names and cluster.name not in affinity.cluster_names):
        return False
    return affinity.label_selector is None or affinity.label_selector.matches(cluster.labels)


def missing_clusters(placement: Placement, clusters: Iterable[str]) -> str:
    """Which clusters a placement names that do not exist, as a sentence; empty if all do."""
    scheduling = placement.replica_scheduling
    weights = scheduling.weight_preference if scheduling is not None else None
    rules = weights.static_weight_list if weights is not None else ()
    affinities = (placement.cluster_affinity, *(one.target_cluster for one in rules))
    named = dict.fromkeys(name for one in affinities if one is not None for name in one.cluster_names)
    if not named or not (missing := sorted(named.keys() - set(clusters), key=natural)):
        return ""
    return f"The placement names {listed(missing)}, which {'does' if len(missing) == 1 else 'do'} not exist."


def schedule(
    placement: Placement,
    replicas: int,
    clusters: Iterable[CandidateCluster],
    now: Mapping[str, int] | None = None,
    *,
    uid: str = "",
) -> tuple[TargetCluster, ...]:
    """The clusters, by name, and the replicas of each.

    `now` is what they run: it stays where it is as far as the weights allow, and only what is more is divided. The
    `uid` of the resource says which end of the alphabet wins a tie, so that not all lean to the same clusters.
    """
    if problems := placement_problems(placement):
        raise NotScheduled("; ".join(problems))
    meant = sorted((one for one in clusters if is_meant(placement.cluster_affinity, one)), key=lambda one: one.name)
    scheduling = placement.replica_scheduling
    if scheduling is None or scheduling.replica_scheduling_type is ReplicaSchedulingType.duplicated:
        return tuple(TargetCluster(name=one.name, replicas=replicas) for one in meant)
    preference = scheduling.weight_preference
    weights = _weights(meant, preference.static_weight_list if preference is not None else ())
    is_descending = bool(uid) and fnv32a(uid.encode()) % 2 == 1
    parts = apportioned(replicas, weights, _kept(now or {}, weights, replicas), is_descending=is_descending)
    return tuple(TargetCluster(name=name, replicas=parts[name]) for name in sorted(parts))


def _weights(clusters: Sequence[CandidateCluster], given: Sequence[StaticClusterWeight]) -> dict[str, int]:
    """The largest weight that is given to each; all the same if none is given to any."""
    found = {
        one.name: max((rule.weight for rule in given if is_meant(rule.target_cluster, one)), default=0)
        for one in clusters
    }
    return found if any(found.values()) else dict.fromkeys(found, 1)


def _kept(now: Mapping[str, int], weights: Mapping[str, int], replicas: int) -> dict[str, int]:
    """What may stay where it is: nothing of a cluster that is meant no more, nor if there are to be fewer."""
    kept = {name: now.get(name, 0) for name, weight in weights.items() if weight}
    return kept if sum(kept.values()) <= replicas else {}


def apportioned(
    seats: int, weights: Mapping[str, int], given: Mapping[str, int], *, is_descending: bool = False
) -> dict[str, int]:
    """So many seats by weight, one after the other, to whom the largest part of it is still owed.

    Of several that are owed the same, the one with fewer seats gets it; then the first by name, or the last.
    """
    parts = {name: given.get(name, 0) for name in weights}
    names = sorted(weights, reverse=is_descending)
    for _ in range(seats - sum(parts.values()) if names else 0):
        name = max(names, key=lambda one: (Fraction(weights[one], 2 * parts[one] + 1), -parts[one]))
        parts[name] += 1
    return parts
