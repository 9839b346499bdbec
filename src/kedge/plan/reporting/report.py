"""Report: the whole status of a placement, from all that is seen of it.

    status = report(seen, now)

Pure, and a function of what is seen alone; times are taken over from what was said before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition, set_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import SUBINDEX
from kedge.api.meta import ObjectMeta
from kedge.api.placement_status import ClusterPlacementStatus, PlacementStatus
from kedge.api.reasons import INVALID_SELECTORS, ROLLOUT_STARTED, SCHEDULED
from kedge.api.snapshot import ClusterDecision
from kedge.api.twins import Binding, Placement, PolicySnapshot, Run
from kedge.plan.placements import is_external, reports_to_original
from kedge.plan.placing.bindings import is_being_removed, remaining_bindings
from kedge.plan.placing.policies import wanted_number
from kedge.plan.reporting import overall
from kedge.plan.reporting.clusters import Around, not_picked, picked
from kedge.plan.reporting.steps import STEPS, Said
from kedge.plan.revisions import is_master, newest_policy, newest_resources, resource_index
from kedge.plan.rolling.wanted import wanted
from kedge.plan.rolling.why import waits, waits_to_go
from kedge.plan.staging.progress import progress, telling, turns


class Seen(Struct, frozen=True):
    """All that is seen of a placement."""

    placement: Placement
    prefix: str
    """Of the types of its conditions."""
    policies: Sequence[PolicySnapshot]
    snapshots: Sequence[ObjectMeta]
    """Of its resources."""
    bindings: Sequence[Binding]
    unreachable: Mapping[str, str] = {}
    """What is said of the members that cannot be reached."""
    unwell: Mapping[str, str] = {}
    """What the agents of members say is wrong with their clusters."""
    problem: str = ""
    """Why its resource selectors make no sense; empty if they do."""
    pending: str = ""
    """What is not known yet of what they select."""
    warning: str = ""
    """What else there is to say of them."""
    runs: Sequence[Run] = ()
    """Staged update runs that move it, or have."""
    dialect: Dialect = Dialect.seed


def report(seen: Seen, now: datetime) -> PlacementStatus:
    """What there is to say of a placement, but for the objects its resources are: those are in the snapshots."""
    meta, before = seen.placement.metadata, seen.placement.status
    policy = _policy(seen)
    scheduled = overall.scheduled(policy, meta.generation, seen.problem, seen.pending)
    snapshot = _spoken_of(seen)
    clusters, chosen = ((), 0) if policy is None or _is_pending(scheduled) else _clusters(seen, policy, snapshot, now)
    snapshot = snapshot if snapshot is not None else _shared(seen, clusters[:chosen])
    said = [_with_warnings(seen, scheduled, chosen), *_overall(seen, scheduled, clusters[:chosen], snapshot)]
    return PlacementStatus(
        conditions=tuple(
            Said(f"{seen.prefix}{one.type}", one.status, one.reason, one.message).condition(
                find_condition(before.conditions, f"{seen.prefix}{one.type}"), meta.generation, now
            )
            for one in said
        ),
        observed_resource_index=str(resource_index(snapshot)) if snapshot is not None else None,
        placement_statuses=clusters,
    )


def not_followed(placement: Placement, problem: str, now: datetime) -> PlacementStatus:
    """That a placement is not followed as it is now, and why; all else is still said of it as it was."""
    meta, before, kind = placement.metadata, placement.status, f"{placement.resource.kind}{SCHEDULED}"
    said = Said(kind, FALSE, INVALID_SELECTORS, problem)
    condition = said.condition(find_condition(before.conditions, kind), meta.generation, now)
    return replace(before, conditions=set_condition(before.conditions, condition))


def is_complete(status: PlacementStatus) -> bool:
    """Whether all is done that was to do: every step is taken."""
    return len(status.conditions) > len(STEPS) and all(one.status == TRUE for one in status.conditions)


def stands_the_same(before: PlacementStatus, after: PlacementStatus) -> bool:
    """Whether the placement as a whole is said to stand as before: what changes is of single clusters, or words."""
    said = set(map(_gist, before.conditions))
    same_resources = before.observed_resource_index == after.observed_resource_index
    return same_resources and said.issuperset(map(_gist, after.conditions))


def _gist(condition: Condition) -> tuple[object, ...]:
    return (condition.type, condition.status, condition.reason, condition.observed_generation)


# The resources it speaks of


def revision(snapshots: Sequence[ObjectMeta], index: str | None) -> list[ObjectMeta]:
    """All parts of the resources with this index, the master first."""
    parts = [one for one in snapshots if index is not None and str(resource_index(one)) == index]
    return sorted(parts, key=lambda one: (not is_master(one), _part(one)))


def _part(meta: ObjectMeta) -> int:
    told = meta.annotations.get(SUBINDEX, "")
    return int(told) if told.isdecimal() else 0


def _spoken_of(seen: Seen) -> ObjectMeta | None:
    """The resources that are rolled out; None if there are none yet, or runs from outside decide that."""
    if is_external(seen.placement):
        return None
    newest = newest_resources(seen.snapshots)
    name = wanted(seen.placement.metadata, seen.snapshots).name or (newest.name if newest is not None else "")
    return next((one for one in seen.snapshots if one.name == name), None)


def _shared(seen: Seen, clusters: Sequence[ClusterPlacementStatus]) -> ObjectMeta | None:
    """What all clusters have, if a run has given all of them the same."""
    indexes = {one.observed_resource_index for one in clusters}
    if not is_external(seen.placement) or len(indexes) != 1:
        return None
    return next(iter(revision(seen.snapshots, indexes.pop())), None)


# Its clusters


def _clusters(
    seen: Seen, policy: PolicySnapshot, snapshot: ObjectMeta | None, now: datetime
) -> tuple[tuple[ClusterPlacementStatus, ...], int]:
    """What is said of each cluster that was picked, and of why there are no more; and how many were picked."""
    before = seen.placement.status.placement_statuses
    around = Around(
        generation=seen.placement.metadata.generation,
        now=now,
        dialect=seen.dialect,
        snapshot=None if is_external(seen.placement) else snapshot.name if snapshot is not None else "",
        indexes={one.name: str(resource_index(one)) for one in seen.snapshots},
        unreachable=seen.unreachable,
        unwell=seen.unwell,
        before={one.cluster_name: one for one in before if one.cluster_name},
        turns={name: said for run in seen.runs for name, said in turns(run).items()},
    )
    decisions = policy.status.target_clusters if policy.status is not None else ()
    chosen = [one for one in decisions if one.selected]
    bound = {one.spec.target_cluster: one for one in remaining_bindings(seen.bindings)}
    found = [picked(one, bound.get(one.cluster_name), around) for one in chosen]
    nameless = [one for one in before if not one.cluster_name]
    short = _short_of(seen.placement, decisions)
    found += [
        not_picked(one, around, old)
        for one, old in zip(short, [*nameless, *[ClusterPlacementStatus()] * len(short)], strict=False)
    ]
    return tuple(found), len(chosen)


def _short_of(placement: Placement, decisions: Sequence[ClusterDecision]) -> list[ClusterDecision]:
    """Why clusters are missing: as many reasons as clusters."""
    missing = wanted_number(placement.spec.policy) - sum(one.selected for one in decisions)
    return [one for one in decisions if not one.selected][: max(0, missing)]


# The whole


def _overall(
    seen: Seen, scheduled: Said, clusters: Sequence[ClusterPlacementStatus], shared: ObjectMeta | None
) -> list[Said]:
    if not clusters or scheduled.reason == INVALID_SELECTORS:
        return []
    if is_external(seen.placement) and (shared is None or any(_is_unknown(one) for one in clusters)):
        run = telling(seen.runs)
        return [overall.moved_outside(clusters, progress(run) if run is not None else "")]
    return overall.taken(clusters, _leaving(seen, clusters))


def _with_warnings(seen: Seen, scheduled: Said, chosen: int) -> Said:
    """With what there is to say of the selectors, and what cannot be done for so many clusters."""
    if seen.warning and not seen.problem:
        scheduled = replace(scheduled, message=f"{scheduled.message}. {seen.warning}")
    if chosen < 2 or not reports_to_original(seen.placement):
        return scheduled
    field = "spec.strategy.reportBackStrategy.destination"
    warning = f"{field} is OriginalResource, which can show the status of one cluster, and {chosen} are picked"
    advice = "statuses are not brought back: pick one cluster, or use WorkAPI"
    return replace(scheduled, message=f"{scheduled.message}. {warning}: {advice}")


def _leaving(seen: Seen, clusters: Sequence[ClusterPlacementStatus]) -> list[str]:
    """What is said of clusters that hold resources, and are no longer picked."""
    stay = {one.cluster_name for one in clusters}
    going = [one for one in seen.bindings if one.spec.target_cluster not in stay and is_being_removed(one)]
    return [_farewell(one) for one in sorted(going, key=lambda one: one.metadata.name)]


def _farewell(binding: Binding) -> str:
    cluster = binding.spec.target_cluster
    if binding.metadata.deletion_timestamp is not None:
        return f"{cluster} removes its objects"
    why = waits_to_go(binding)
    return waits(binding, why) if why else f"{cluster} is to be removed"


def _policy(seen: Seen) -> PolicySnapshot | None:
    newest = newest_policy([one.metadata for one in seen.policies])
    return next((one for one in seen.policies if newest is not None and one.metadata.name == newest.name), None)


def _is_pending(scheduled: Said) -> bool:
    return scheduled.status == UNKNOWN


def _is_unknown(cluster: ClusterPlacementStatus) -> bool:
    found = find_condition(cluster.conditions, ROLLOUT_STARTED)
    return found is None or found.status == UNKNOWN
