"""Status: what a policy snapshot says of the clusters its policy picked.

A look that looked for nothing knows nothing new of the clusters that are not picked, and leaves what was said of them;
unless a cluster that was given up is being cleared, when the peer tells only what is picked (traces 06, 07), and so do
we. The same decisions in another order are no news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, Condition, set_condition
from kedge.api.fleet import PLACEMENT_GENERATION
from kedge.api.meta import ObjectMeta
from kedge.api.reasons import POLICY_FULFILLED, POLICY_UNFULFILLED, SCHEDULED
from kedge.api.snapshot import ClusterDecision, PolicySnapshotStatus
from kedge.plan.placing.schedule import Schedule


def has_told(meta: ObjectMeta, before: PolicySnapshotStatus | None) -> bool:
    """Whether the snapshot speaks of the placement as it is."""
    return before is not None and before.observed_crp_generation == _number(meta.annotations.get(PLACEMENT_GENERATION))


def status(
    meta: ObjectMeta, before: PolicySnapshotStatus | None, made: Schedule, now: datetime
) -> PolicySnapshotStatus:
    """What the snapshot is to say, given what it says; equal to that if there is no news."""
    generation = _number(meta.annotations.get(PLACEMENT_GENERATION))
    clusters = made.decisions
    if before is not None and _says_enough(before, made):
        clusters = before.target_clusters
    return PolicySnapshotStatus(
        observed_crp_generation=generation,
        conditions=set_condition(before.conditions if before else (), _scheduled(meta, made, now)),
        target_clusters=clusters,
    )


def _says_enough(before: PolicySnapshotStatus, made: Schedule) -> bool:
    said = _by_cluster(before.target_clusters)
    if said == _by_cluster(made.decisions):
        return True
    if made.unselected is not None or any(each.spec.state == BindingState.unscheduled for each in made.release):
        return False
    picked = (decision for decision in before.target_clusters if decision.selected)
    return _by_cluster(picked) == _by_cluster(made.selected)


def _scheduled(meta: ObjectMeta, made: Schedule, now: datetime) -> Condition:
    found = len(made.selected)
    if made.fulfilled:
        message = f"found all cluster needed as specified by the scheduling policy, found {found} cluster(s)"
    else:
        message = (
            "could not find all clusters needed as specified by the scheduling policy, "
            f"found {found} cluster(s) instead"
        )
    return Condition(
        type=SCHEDULED,
        status=TRUE if made.fulfilled else FALSE,
        reason=POLICY_FULFILLED if made.fulfilled else POLICY_UNFULFILLED,
        message=f"{message}: {made.problem}" if made.problem else message,
        last_transition_time=now,
        observed_generation=meta.generation,
    )


def _by_cluster(decisions: Iterable[ClusterDecision]) -> Mapping[str, ClusterDecision]:
    return {decision.cluster_name: decision for decision in decisions}


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else 0
