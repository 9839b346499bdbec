"""Overall: what a placement's status says of the placement as a whole, from what it says of each cluster.

A step is taken when every cluster has taken it; the sentence names those that have not, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import (
    CONTROLLED_OUTSIDE,
    INVALID_SELECTORS,
    OVERRIDDEN,
    OVERRIDDEN_SUCCEEDED,
    ROLLOUT_STARTED,
    SCHEDULE_PENDING,
    SCHEDULED,
)
from kedge.api.twins import PolicySnapshot
from kedge.plan.placing.policies import names_no_cluster
from kedge.plan.reporting.steps import STEPS, Said, Step

Standing: TypeAlias = tuple[ClusterPlacementStatus, Condition]
"""A cluster, and what it says of one step."""
_SHOWN: Final = 3
_OF_ONE: Final = {"have": "has", "need": "needs", "wait": "waits", "do": "does"}


def scheduled(policy: PolicySnapshot | None, generation: int, problem: str, pending: str = "") -> Said:
    """Whether clusters were picked for the placement as it is now. `pending`: what it selects that is not known yet."""
    if problem:
        return Said(SCHEDULED, FALSE, INVALID_SELECTORS, problem)
    if policy is None and pending:
        message = f"Clusters are picked once it is known what to place, and {pending}"
        return Said(SCHEDULED, UNKNOWN, SCHEDULE_PENDING, message)
    found = _decided(policy, generation)
    if found is None and policy is not None and names_no_cluster(policy.spec.policy):
        message = "spec.policy.clusterNames is empty: name the clusters that PickFixed is to take"
        return Said(SCHEDULED, UNKNOWN, SCHEDULE_PENDING, message)
    if found is None:
        return Said(SCHEDULED, UNKNOWN, SCHEDULE_PENDING, "Clusters are being picked")
    return Said(SCHEDULED, found.status, found.reason, found.message)


def _decided(policy: PolicySnapshot | None, generation: int) -> Condition | None:
    if policy is None or policy.status is None or policy.status.observed_crp_generation < generation:
        return None
    found = find_condition(policy.status.conditions, SCHEDULED)
    if found is None or found.status == UNKNOWN or (found.observed_generation or 0) < policy.metadata.generation:
        return None
    return found


def taken(clusters: Sequence[ClusterPlacementStatus], leaving: Iterable[str] = ()) -> list[Said]:
    """The steps the placement has taken, and the first it has not. `leaving`: what is said of clusters that go.

    What a cluster says begins with its scheduling and goes on with the steps, in order. Where every cluster has taken
    one step, every cluster says something of the next.
    """
    said: list[Said] = []
    for number, step in enumerate(STEPS, start=1):
        said.append(_step(step, [(one, one.conditions[number]) for one in clusters]))
        if said[-1].status != TRUE:
            break
    return [_and(said[0], leaving), *said[1:]]


def moved_outside(clusters: Sequence[ClusterPlacementStatus], run: str = "") -> Said:
    """What is said while staged runs decide which cluster has what. `run`: how far one has got."""
    at = sorted({one.observed_resource_index for one in clusters if one.observed_resource_index})
    have = f"clusters have resources {', '.join(at)}" if at else "no cluster has resources yet"
    message = f"Staged update runs move this placement from cluster to cluster, and {have}"
    message += f": {run}" if run else ""
    return Said(ROLLOUT_STARTED, UNKNOWN, CONTROLLED_OUTSIDE, message)


def _step(step: Step, clusters: Sequence[Standing]) -> Said:
    """One step. Unknown comes before no: as long as a cluster has not spoken, there may be more to say."""
    for status in (UNKNOWN, FALSE):
        if found := [one for one in clusters if one[1].status == status]:
            words = step.unknown if status == UNKNOWN else step.failed
            message = f"{_counted(len(found), len(clusters), words)}: {_named(found)}"
            return Said(step.type, status, step.reasons[status], message)
    reason = step.reasons[TRUE]
    if step.type == OVERRIDDEN and any(_is_overridden(cluster) for cluster, _ in clusters):
        reason = OVERRIDDEN_SUCCEEDED
    return Said(step.type, TRUE, reason, _counted(len(clusters), len(clusters), step.done))


def _counted(number: int, whole: int, words: str) -> str:
    """`2 of 3 clusters wait`, `1 of 3 clusters waits`, `1 of 1 cluster has its Works`."""
    verb, _, rest = words.partition(" ")
    if number == 1:
        words = " ".join(
            (_OF_ONE.get(verb, verb), *([rest.replace("they", "it").replace("their", "its")] if rest else ()))
        )
    return f"{number} of {whole} {'cluster' if whole == 1 else 'clusters'} {words}"


def _is_overridden(cluster: ClusterPlacementStatus) -> bool:
    return bool(cluster.applicable_resource_overrides or cluster.applicable_cluster_resource_overrides)


def _named(clusters: Sequence[Standing]) -> str:
    """The first few reasons, each with the clusters that give it: those that wait often wait for the same."""
    by_reason: dict[str, list[str]] = {}
    for cluster, found in sorted(clusters, key=lambda one: one[0].cluster_name):
        by_reason.setdefault(_reason(cluster.cluster_name, found.message), []).append(cluster.cluster_name)
    told = list(by_reason.items())
    rest = sum(len(names) for _, names in told[_SHOWN:])
    named = "; ".join(_why(names, reason) for reason, names in told[:_SHOWN])
    return f"{named}; and {rest} more" if rest else named


def _reason(cluster: str, message: str) -> str:
    """What is said of a cluster, without its name."""
    who, _, what = message.partition(" ")
    return what.removeprefix("waits").removeprefix(": ") if who == cluster else message


def _why(names: Sequence[str], reason: str) -> str:
    return f"{_listed(names)}: {reason}" if reason else _listed(names)


def _listed(names: Sequence[str]) -> str:
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _and(said: Said, leaving: Iterable[str]) -> Said:
    rest = list(leaving)
    if not rest:
        return said
    more = f"; and {len(rest) - _SHOWN} more" if len(rest) > _SHOWN else ""
    message = f"{said.message}. Still to be removed: {'; '.join(rest[:_SHOWN])}{more}"
    return Said(said.type, said.status, said.reason, message, said.since)
