"""Disruption: whether a pod may go now, as far as a ZoneAwarePodDisruptionBudget has a say in it.

    decide(Disruption(pod=pod, budgets=budgets, owner=owner, zones=zones, recent=uids, now=now))

Without partitions, a pod may go if no other zone is disrupted, and fewer than the maximum are away in its own. With
partitions, fewer than the maximum may be away among the pods of its partition in the other zones. A pod that cannot be
seen counts as away, and so does one whose eviction was allowed a moment ago.

Codes, messages and reasons are those of Grafana's rollout-operator. A webhook takes the steps one by one, because it
reads what each of them needs from the server; a rollout reads everything before it asks, and takes them at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.meta import OwnerReference, controller_of
from kedge.api.pods import Pod
from kedge.api.zones import READY_TIME
from kedge.plan.workloads.pods import ready_condition
from kedge.plan.zoning.budget_spec import NO_DELAY, ZoneBudget, desired_replicas
from kedge.plan.zoning.go_time import parse_rfc3339
from kedge.plan.zoning.pods import is_running_and_ready

OK, BAD_REQUEST, FORBIDDEN, TOO_MANY, ERROR = 200, 400, 403, 429, 500
GONE_ANYWAY: Final = ("Succeeded", "Failed", "Pending")
NOT_READY_WARNING: Final = "pod is not ready"
_NAME: Final = "name"


class Allowed(Struct, frozen=True):
    """The pod may go. `counts` if it has to be remembered as gone until that can be seen."""

    reason: str
    status: int = OK
    warning: str = ""
    counts: bool = False


class Denied(Struct, frozen=True):
    """The pod may not go now."""

    status: int
    message: str
    reason: str


Decision: TypeAlias = Allowed | Denied


class ZonePods(Protocol):
    """What is counted of a zone: a StatefulSet, and its pods."""

    @property
    def stateful_set(self) -> StatefulSet: ...

    @property
    def pods(self) -> tuple[Pod, ...]: ...


class SelectedZone(Struct, frozen=True):
    """A StatefulSet that a budget selects, and its pods."""

    stateful_set: StatefulSet
    pods: tuple[Pod, ...]


class BudgetZones(Struct, frozen=True):
    """A budget, and the StatefulSets that it selects, of whatever rollout groups; or the denial if they cannot be
    read."""

    budget: ZoneBudget
    zones: tuple[ZonePods, ...] | Denied


class Disruption(Struct, frozen=True):
    """A pod that is to go, and all that the decision depends on."""

    pod: Pod
    budgets: tuple[ZoneBudget, ...]
    """The budgets of its namespace."""
    owner: StatefulSet | None
    """The StatefulSet that controls it; None if there is none."""
    zones: tuple[ZonePods, ...] | Denied
    """The StatefulSets that its budget selects, of whatever rollout groups, each with its pods; those that it does not
    select do not matter. Or the denial, if they cannot be read."""
    recent: Collection[str]
    """The uids of pods whose eviction was allowed a moment ago."""
    now: datetime
    override: int | None = None
    """What counts instead of a maximum of 0: a rollout goes on where evictions are switched off."""


NOT_IN_SCOPE: Final = Allowed("pod-not-in-scope")
MULTIPLE: Final = Denied(BAD_REQUEST, "multiple zoned pod disruption budgets found for pod", "cfg-not-found")
NO_MAXIMUM: Final = Denied(FORBIDDEN, "max unavailable = 0", "max-unavailable-0")
TOO_FEW_ZONES: Final = Denied(BAD_REQUEST, "minimum number of StatefulSets not found", "min-sts-not-found")
NO_PARTITION: Final = Denied(
    BAD_REQUEST, "failed to extract partition from pod Name regular expression", "partition-not-identified"
)
UNCOUNTED: Final = Denied(
    ERROR, "unable to determine pod status in related StatefulSet", "err: sts-pod-status-not-determined"
)


def rollout_override(budget: ZoneBudget, max_unavailable: int) -> int:
    """What counts for a rollout if the maximum of the budget is 0: of a partition one pod, else what it may take."""
    return 1 if budget.partitions is not None else max_unavailable


def decide(asked: Disruption) -> Decision:
    """Whether the pod may go now."""
    budget = budget_for(asked.pod, asked.budgets)
    if not isinstance(budget, ZoneBudget):
        return budget
    reference = owner_reference(asked.pod)
    if isinstance(reference, Denied):
        return reference
    if asked.owner is None:
        return owner_missing(reference.name)
    return no_allowance(budget, asked.owner, asked.override) or decide_in_zones(asked, budget, asked.owner)


def budget_for(pod: Pod, budgets: Iterable[ZoneBudget]) -> ZoneBudget | Decision:
    """The budget that has a say, or the decision if there is not exactly one."""
    if pod.status.phase in GONE_ANYWAY or pod.metadata.deletion_timestamp is not None:
        return Allowed("pod-not-ready", warning=NOT_READY_WARNING)
    found = [budget for budget in budgets if budget.selects(pod.metadata.labels)]
    if len(found) > 1:
        return MULTIPLE
    return found[0] if found else NOT_IN_SCOPE


def owner_reference(pod: Pod) -> OwnerReference | Denied:
    """Which StatefulSet controls the pod."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return _without_owner("unable to find a StatefulSet pod owner")
    if owner.kind != StatefulSet.resource.kind:
        name = pod.metadata.name
        return _without_owner(f"pod owner is not a StatefulSet - {name} has owner {owner.name} ({owner.kind})")
    return owner


def owner_missing(name: str, problem: str = "") -> Denied:
    """The StatefulSet that controls the pod cannot be read."""
    return _without_owner(f"unable to find StatefulSet {name} by name" + (f": {problem}" if problem else ""))


def _without_owner(message: str) -> Denied:
    return Denied(ERROR, message, "sts-no-found")


def no_allowance(budget: ZoneBudget, owner: StatefulSet, override: int | None = None) -> Denied | None:
    """The denial if no pod of the owner may ever go."""
    return None if _allowance(budget, owner, override) else NO_MAXIMUM


def _allowance(budget: ZoneBudget, owner: StatefulSet, override: int | None) -> int:
    return budget.allowance(owner) or override or 0


def decide_in_zones(asked: Disruption, budget: ZoneBudget, owner: StatefulSet) -> Decision:
    """Whether the zones can spare the pod: needs all StatefulSets that the budget selects, with their pods."""
    if isinstance(asked.zones, Denied):
        return asked.zones
    selected = [zone for zone in asked.zones if budget.selects(zone.stateful_set.metadata.labels)]
    zones = sorted(selected, key=lambda zone: zone.stateful_set.metadata.name)
    if len(zones) < 2:
        return TOO_FEW_ZONES
    most = _allowance(budget, owner, asked.override)
    if budget.partitions is not None:
        return _in_partition(asked, budget, owner, zones, most)
    return _in_own_zone(asked, budget, owner, zones, most)


def _in_own_zone(
    asked: Disruption, budget: ZoneBudget, owner: StatefulSet, zones: Iterable[ZonePods], most: int
) -> Decision:
    """No other zone may be disrupted, and in this one there must be room."""
    own: _Count | None = None
    for zone in zones:
        count = _count(asked, budget, zone)
        if _is_same(zone.stateful_set, owner):
            own = count
        elif count.away:
            return _denied(count, zone.stateful_set.metadata.name)
    if own is None:  # the budget selects the pod, and not the StatefulSet that made it
        return UNCOUNTED
    return _denied(own, owner.metadata.name) if own.away >= most else Allowed("allowed", counts=True)


def _in_partition(
    asked: Disruption, budget: ZoneBudget, owner: StatefulSet, zones: Iterable[ZonePods], most: int
) -> Decision:
    """Enough other pods of its partition must be there. A zone that has none of them counts as one that is away."""
    assert budget.partitions is not None
    partition = budget.partitions.of(asked.pod.metadata.name)
    if not partition:
        return NO_PARTITION
    others = [zone for zone in zones if not _is_same(zone.stateful_set, owner)]
    counts = [_count(asked, budget, zone, partition) for zone in others]
    total = _Count(
        not_ready=sum(count.not_ready for count in counts),
        unknown=sum(count.unknown + (1 if count.is_empty else 0) for count in counts),
    )
    return _denied(total, f"partition {partition}") if total.away >= most else Allowed("allowed", counts=True)


class _Count(Struct, frozen=True):
    """Pods of a zone: looked at, of those not ready, and those that should be there and cannot be seen."""

    tested: int = 0
    not_ready: int = 0
    unknown: int = 0

    @property
    def away(self) -> int:
        return self.not_ready + self.unknown

    @property
    def is_empty(self) -> bool:
        return not (self.tested or self.away)


def _count(asked: Disruption, budget: ZoneBudget, zone: ZonePods, partition: str = "") -> _Count:
    """All missing pods of the zone are unknown: nobody knows of which partition they would be."""
    replicas = max(desired_replicas(zone.stateful_set), zone.stateful_set.status.replicas)
    tested = [pod for pod in zone.pods if not partition or _is_in(pod, budget, partition)]
    others = [pod for pod in tested if pod.metadata.uid != asked.pod.metadata.uid]
    return _Count(
        tested=len(tested),
        not_ready=sum(not _is_ready(asked, budget, pod) for pod in others),
        unknown=max(0, replicas - len(zone.pods)),
    )


def _is_in(pod: Pod, budget: ZoneBudget, partition: str) -> bool:
    return budget.partitions is not None and budget.partitions.of(pod.metadata.name) == partition


def _is_ready(asked: Disruption, budget: ZoneBudget, pod: Pod) -> bool:
    if pod.metadata.uid in asked.recent or not is_running_and_ready(pod):
        return False
    since = _ready_since(pod)
    return budget.delay == NO_DELAY or (since is not None and asked.now - since > budget.delay)


def _ready_since(pod: Pod) -> datetime | None:
    """Since when a pod is ready: by its condition Ready, or else by its annotation; None if neither says so."""
    ready = ready_condition(pod)
    said = ready.last_transition_time if ready is not None else None
    return said if said is not None else ready_time(pod)


def ready_time(pod: Pod) -> datetime | None:
    """When the pod was first seen ready, as its annotation says; None if that cannot be read."""
    try:
        return parse_rfc3339(pod.metadata.annotations[READY_TIME])
    except (KeyError, ValueError):
        return None


def _is_same(one: StatefulSet, other: StatefulSet) -> bool:
    return one.metadata.uid == other.metadata.uid


def _denied(count: _Count, span: str) -> Denied:
    parts = [
        f"{number} {'pod' if number == 1 else 'pods'} {what}"
        for number, what in ((count.not_ready, "not ready"), (count.unknown, "unknown"))
        if number
    ]
    # A maximum that is all spent by nothing cannot be: it is at least 1.
    return Denied(TOO_MANY, f"{', '.join(parts)} in {span}", "denied")


def pods_of(stateful_set: StatefulSet, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods of a StatefulSet: those that it controls; if it controls none, those with its label `name`.

    Pods that somebody else controls are never among them, even if they have the same label.
    """
    there = tuple(pods)
    owned = tuple(pod for pod in there if _controller_uid(pod) == stateful_set.metadata.uid)
    label = _template_labels(stateful_set).get(_NAME)
    if owned or not label:
        return owned
    return tuple(
        pod for pod in there if controller_of(pod.metadata) is None and pod.metadata.labels.get(_NAME) == label
    )


def _controller_uid(pod: Pod) -> str | None:
    owner = controller_of(pod.metadata)
    return None if owner is None else owner.uid


def _template_labels(stateful_set: StatefulSet) -> dict[str, str]:
    meta = stateful_set.spec.template.get("metadata") or {}
    return dict(meta.get("labels") or {})
