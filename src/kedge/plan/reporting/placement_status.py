"""Placement status: the whole status of a placement, from everything that is known of it.

    status = placement_status(facts, now)

Pure: the same facts give the same status. Times of transition are taken over from the status before.

An object of more than about 1.5 MB is refused as a whole. So a status that is too large leaves out what matters least:
first the messages of what went well, then all but the first failed object of each cluster, then most of the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition, set_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import SUBINDEX
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement, PolicySnapshot, Run
from kedge.api.placement_status import ClusterPlacementStatus, PlacementStatus
from kedge.api.reasons import INVALID_SELECTORS, ROLLOUT_STARTED, SCHEDULED
from kedge.api.snapshot import ClusterDecision
from kedge.plan.findings import Finding
from kedge.plan.placements import is_external, reports_to_original
from kedge.plan.placing.bindings import is_being_removed, remaining_bindings
from kedge.plan.placing.policies import wanted_number
from kedge.plan.reporting.cluster_status import StatusFacts, picked_cluster_status, unpicked_cluster_status
from kedge.plan.reporting.condition_order import CONDITION_STEPS
from kedge.plan.reporting.placement_conditions import external_finding, rollout_findings, scheduled_finding
from kedge.plan.revisions import is_master, newest_policy, newest_resources, resource_index
from kedge.plan.rolling.rollout_input import wanted
from kedge.plan.staging.progress import progress, run_to_report, turn_texts


class PlacementFacts(Struct, frozen=True):
    """Everything that the status of a placement depends on."""

    placement: Placement
    prefix: str
    """What the types of its conditions begin with: its kind."""
    policies: Sequence[PolicySnapshot]
    snapshots: Sequence[ObjectMeta]
    """Of its resource snapshots."""
    bindings: Sequence[Binding]
    unreachable: Mapping[str, str] = {}
    """Why members cannot be reached, by name."""
    unhealthy: Mapping[str, str] = {}
    """What agents report is wrong with their clusters, by name."""
    problem: str = ""
    """What is wrong with its resource selectors; empty if nothing is."""
    pending: str = ""
    """What of the selection is not known yet."""
    warning: str = ""
    """A warning about the selectors."""
    removal_waits: Mapping[str, str] = {}
    """What bindings that are to be removed wait for, in sentences, by name."""
    runs: Sequence[Run] = ()
    """The staged update runs of the placement."""
    dialect: Dialect = Dialect.seed


def placement_status(facts: PlacementFacts, now: datetime) -> PlacementStatus:
    """The status of a placement, without the selected resources, which are in the snapshots."""
    meta, before = facts.placement.metadata, facts.placement.status
    policy = _policy(facts)
    scheduled = scheduled_finding(policy, meta.generation, facts.problem, facts.pending)
    snapshot = _reported_snapshot(facts)
    clusters, chosen = ((), 0) if policy is None or _is_pending(scheduled) else _clusters(facts, policy, snapshot, now)
    snapshot = snapshot if snapshot is not None else _common_snapshot(facts, clusters[:chosen])
    findings = [_with_warnings(facts, scheduled, chosen), *_overall(facts, scheduled, clusters[:chosen], snapshot)]
    return PlacementStatus(
        conditions=tuple(
            Finding(f"{facts.prefix}{one.type}", one.status, one.reason, one.message).condition(
                find_condition(before.conditions, f"{facts.prefix}{one.type}"), meta.generation, now
            )
            for one in findings
        ),
        observed_resource_index=str(resource_index(snapshot)) if snapshot is not None else None,
        placement_statuses=clusters,
    )


def not_followed_status(placement: Placement, problem: str, now: datetime) -> PlacementStatus:
    """The status of a placement that is not followed: why, and everything else as before."""
    meta, before, kind = placement.metadata, placement.status, f"{placement.resource.kind}{SCHEDULED}"
    finding = Finding(kind, FALSE, INVALID_SELECTORS, problem)
    condition = finding.condition(find_condition(before.conditions, kind), meta.generation, now)
    return replace(before, conditions=set_condition(before.conditions, condition))


def is_complete(status: PlacementStatus) -> bool:
    """Whether the rollout is complete: every condition is True."""
    return len(status.conditions) > len(CONDITION_STEPS) and all(one.status == TRUE for one in status.conditions)


def only_clusters_or_messages_differ(before: PlacementStatus, after: PlacementStatus) -> bool:
    """Whether only single clusters or messages differ: the conditions of the placement have not changed."""
    known = set(map(_without_message_and_time, before.conditions))
    same_resources = before.observed_resource_index == after.observed_resource_index
    return same_resources and known.issuperset(map(_without_message_and_time, after.conditions))


def _without_message_and_time(condition: Condition) -> tuple[object, ...]:
    return (condition.type, condition.status, condition.reason, condition.observed_generation)


# The reported revision


def parts_of_revision(snapshots: Sequence[ObjectMeta], index: str | None) -> list[ObjectMeta]:
    """The snapshots of the revision with this index, the first part first."""
    parts = [one for one in snapshots if index is not None and str(resource_index(one)) == index]
    return sorted(parts, key=lambda one: (not is_master(one), _part_number(one)))


def _part_number(meta: ObjectMeta) -> int:
    number = meta.annotations.get(SUBINDEX, "")
    return int(number) if number.isdecimal() else 0


def _reported_snapshot(facts: PlacementFacts) -> ObjectMeta | None:
    """The snapshot that is rolled out; None if there is none yet, or staged runs decide it."""
    if is_external(facts.placement):
        return None
    newest = newest_resources(facts.snapshots)
    name = wanted(facts.placement.metadata, facts.snapshots).name or (newest.name if newest is not None else "")
    return next((one for one in facts.snapshots if one.name == name), None)


def _common_snapshot(facts: PlacementFacts, clusters: Sequence[ClusterPlacementStatus]) -> ObjectMeta | None:
    """The snapshot that all clusters have, if staged runs have given all of them the same."""
    indexes = {one.observed_resource_index for one in clusters}
    if not is_external(facts.placement) or len(indexes) != 1:
        return None
    return next(iter(parts_of_revision(facts.snapshots, indexes.pop())), None)


# Its clusters


def _clusters(
    facts: PlacementFacts, policy: PolicySnapshot, snapshot: ObjectMeta | None, now: datetime
) -> tuple[tuple[ClusterPlacementStatus, ...], int]:
    """The status of each picked cluster, then of each missing one; and how many were picked."""
    before = facts.placement.status.placement_statuses
    fleet = StatusFacts(
        generation=facts.placement.metadata.generation,
        now=now,
        dialect=facts.dialect,
        snapshot=None if is_external(facts.placement) else snapshot.name if snapshot is not None else "",
        indexes={one.name: str(resource_index(one)) for one in facts.snapshots},
        unreachable=facts.unreachable,
        unhealthy=facts.unhealthy,
        before={one.cluster_name: one for one in before if one.cluster_name},
        run_turns={name: turn for run in facts.runs for name, turn in turn_texts(run).items()},
    )
    decisions = policy.status.target_clusters if policy.status is not None else ()
    chosen = [one for one in decisions if one.selected]
    bound = {one.spec.target_cluster: one for one in remaining_bindings(facts.bindings)}
    found = [picked_cluster_status(one, bound.get(one.cluster_name), fleet) for one in chosen]
    nameless = [one for one in before if not one.cluster_name]
    short = _missing_clusters(facts.placement, decisions)
    found += [
        unpicked_cluster_status(one, fleet, old)
        for one, old in zip(short, [*nameless, *[ClusterPlacementStatus()] * len(short)], strict=False)
    ]
    return tuple(found), len(chosen)


def _missing_clusters(placement: Placement, decisions: Sequence[ClusterDecision]) -> list[ClusterDecision]:
    """The decisions of clusters that were not picked: as many as are missing."""
    missing = wanted_number(placement.spec.policy) - sum(one.selected for one in decisions)
    return [one for one in decisions if not one.selected][: max(0, missing)]


# The placement as a whole


def _overall(
    facts: PlacementFacts, scheduled: Finding, clusters: Sequence[ClusterPlacementStatus], shared: ObjectMeta | None
) -> list[Finding]:
    if not clusters or scheduled.reason == INVALID_SELECTORS:
        return []
    if is_external(facts.placement) and (shared is None or any(_is_unknown(one) for one in clusters)):
        run = run_to_report(facts.runs)
        return [external_finding(clusters, progress(run) if run is not None else "")]
    return rollout_findings(clusters, _removals(facts, clusters))


def _with_warnings(facts: PlacementFacts, scheduled: Finding, chosen: int) -> Finding:
    """With the warning about the selectors, and that OriginalResource needs a single cluster."""
    if facts.warning and not facts.problem:
        scheduled = replace(scheduled, message=f"{scheduled.message}. {facts.warning}")
    if chosen < 2 or not reports_to_original(facts.placement):
        return scheduled
    field = "spec.strategy.reportBackStrategy.destination"
    warning = f"{field} is OriginalResource, which can show the status of one cluster, and {chosen} are picked"
    advice = "statuses are not brought back: pick one cluster, or use WorkAPI"
    return replace(scheduled, message=f"{scheduled.message}. {warning}: {advice}")


def _removals(facts: PlacementFacts, clusters: Sequence[ClusterPlacementStatus]) -> list[str]:
    """Texts about clusters that still have resources and are no longer picked."""
    stay = {one.cluster_name for one in clusters}
    going = [one for one in facts.bindings if one.spec.target_cluster not in stay and is_being_removed(one)]
    return [_removal_text(one, facts.removal_waits) for one in sorted(going, key=lambda one: one.metadata.name)]


def _removal_text(binding: Binding, waits: Mapping[str, str]) -> str:
    cluster = binding.spec.target_cluster
    if binding.metadata.deletion_timestamp is not None:
        return f"{cluster} removes its objects"
    return waits.get(binding.metadata.name, f"{cluster} is to be removed")


def _policy(facts: PlacementFacts) -> PolicySnapshot | None:
    newest = newest_policy([one.metadata for one in facts.policies])
    return next((one for one in facts.policies if newest is not None and one.metadata.name == newest.name), None)


def _is_pending(scheduled: Finding) -> bool:
    return scheduled.status == UNKNOWN


def _is_unknown(cluster: ClusterPlacementStatus) -> bool:
    found = find_condition(cluster.conditions, ROLLOUT_STARTED)
    return found is None or found.status == UNKNOWN


# Size


MAX_STATUS_BYTES: Final = 1_200_000  # the rest of the object needs some, too
Shorten: TypeAlias = Callable[[ClusterPlacementStatus], ClusterPlacementStatus]


def shortened_to_fit(status: PlacementStatus, largest: int = MAX_STATUS_BYTES) -> PlacementStatus:
    """The status, shortened if it is larger than allowed."""
    for shorten in _SHORTENERS:
        if _size(status) <= largest:
            return status
        status = replace(status, placement_statuses=tuple(shorten(one) for one in status.placement_statuses))
    return status


def _size(status: PlacementStatus) -> int:
    return len(msgspec.json.encode(status))


def _without_messages_of_success(cluster: ClusterPlacementStatus) -> ClusterPlacementStatus:
    conditions = tuple(replace(one, message="") if one.status == TRUE else one for one in cluster.conditions)
    return replace(cluster, conditions=conditions)


def _with_first_failures(cluster: ClusterPlacementStatus) -> ClusterPlacementStatus:
    return replace(
        cluster,
        failed_placements=cluster.failed_placements[:1],
        drifted_placements=cluster.drifted_placements[:1],
        diffed_placements=cluster.diffed_placements[:1],
    )


def _with_short_messages(cluster: ClusterPlacementStatus) -> ClusterPlacementStatus:
    conditions = tuple(replace(one, message=one.message[:100]) for one in cluster.conditions)
    return replace(cluster, conditions=conditions, failed_placements=(), drifted_placements=(), diffed_placements=())


_SHORTENERS: Final[tuple[Shorten, ...]] = (_without_messages_of_success, _with_first_failures, _with_short_messages)
