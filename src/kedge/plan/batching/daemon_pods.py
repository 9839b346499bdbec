"""Daemon pods: the pods of a DaemonSet by what they run, and which of them are deleted now to come back updated.

The status of a DaemonSet does not name its present revision. Whoever observes it may (`Workload.update_revision`, from
the newest ControllerRevision). Else the pods tell, as far as they can: those with the set's template generation, or
all, or none, if the status counts so many as updated. If that does not tell, it is waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.pods import Pod
from kedge.plan.batching.in_place import is_pod_available, own_pods
from kedge.plan.batching.moves import Batch, Workload
from kedge.plan.fields import count, text
from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.grants import Grants, grant
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.workloads.pods import is_active, is_ready, is_terminating, revision_of, stuck_reason

GENERATION: Final = "pod-template-generation"
_SET_GENERATION: Final = "deprecated.daemonset.template.generation"
_NONE_YET: Final = "-"
"""A revision that no pod has: labels do not begin with a dash."""


class Daemons(Struct, frozen=True):
    """The pods of a DaemonSet, counted."""

    desired: int
    """How many nodes are to have one."""
    update: str
    """The revision of its present template."""
    pods: tuple[Pod, ...] = ()
    """Those that are neither at their end nor on their way out."""
    leaving: tuple[Pod, ...] = ()
    available: frozenset[str] = frozenset()
    """The names of those that are available."""

    @property
    def updated(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if revision_of(pod.metadata) == self.update)

    @property
    def outdated(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if revision_of(pod.metadata) != self.update)

    @property
    def asked(self) -> int:
        """How many pods have the present template, or get it when they are created."""
        return max(0, self.desired - len(self.outdated))

    @property
    def ready(self) -> int:
        return sum(is_ready(pod) for pod in self.updated)

    @property
    def updated_available(self) -> int:
        return sum(pod.metadata.name in self.available for pod in self.updated)


def count_daemons(workload: Workload, now: datetime | None) -> Daemons | None:
    """The pods; None if it cannot be told which are updated."""
    obj = workload.obj or {}
    mine = own_pods(workload)
    active = tuple(sorted((pod for pod in mine if is_active(pod)), key=lambda pod: pod.metadata.name))
    update = _update_revision(workload, active)
    if not update:
        return None
    return Daemons(
        count(obj, "status", "desiredNumberScheduled"),
        update,
        active,
        tuple(pod for pod in mine if is_terminating(pod)),
        frozenset(pod.metadata.name for pod in active if is_pod_available(pod, obj, now)),
    )


def _update_revision(workload: Workload, pods: Iterable[Pod]) -> str:
    """The revision of the present template; empty if nobody says."""
    obj = workload.obj or {}
    if workload.update_revision:
        return workload.update_revision
    generation = text(obj, "metadata", "annotations", _SET_GENERATION)
    revisions = [revision_of(pod.metadata) for pod in pods]
    made = (pod for pod in pods if generation and pod.metadata.labels.get(GENERATION) == generation)
    if found := next((revision_of(pod.metadata) for pod in made), ""):
        return found
    updated = count(obj, "status", "updatedNumberScheduled")
    if updated == 0:
        return _NONE_YET
    return revisions[0] if len(set(revisions)) == 1 and updated == len(revisions) else ""


def next_deletions(found: Daemons, batch: Batch, goal: int) -> Grants:
    """Which old pods are deleted now: those that are named, or as many as the goal leaves; broken ones first.

    Budget and exposure are the kernel's. A DaemonSet has no pods to spare, so at least one may always be taken down.
    """
    at_once = max(1, batch.budget.max_unavailable)
    units = [_unit(pod, found) for pod in (*found.pods, *found.leaving)]
    by_key = {unit.key: unit for unit in units}
    names = sorted(
        (pod.metadata.name for pod in wanted_pods(found, batch)), key=lambda name: not by_key[name].needs_no_budget
    )
    order = names if batch.pods else names[: max(0, goal - found.asked)]
    budget = replace(batch.budget, desired=found.desired, max_unavailable=at_once)
    return grant(units, budget, order=order, exposure=Exposure(at_once))


def wanted_pods(found: Daemons, batch: Batch) -> tuple[Pod, ...]:
    """The old pods that the batch may replace."""
    return tuple(pod for pod in found.outdated if not batch.pods or pod.metadata.name in batch.pods)


def _unit(pod: Pod, found: Daemons) -> Unit:
    name, held = pod.metadata.name, revision_of(pod.metadata) or "unknown"
    return Unit(name, held, found.update, _proof(pod, found), place=pod.spec.node_name or name)


def _proof(pod: Pod, found: Daemons) -> Proof:
    if not is_active(pod):
        return Proof.leaving
    if pod.metadata.name in found.available:
        return Proof.proven
    return Proof.failed if stuck_reason(pod) else Proof.pending
