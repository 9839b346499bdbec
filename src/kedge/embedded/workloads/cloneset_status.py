"""What a CloneSet says of itself, and which revisions it needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, to_builtins

from kedge.api.apps import HISTORY_LIMIT, ControllerRevision
from kedge.api.condition import TRUE, find_condition
from kedge.api.kruise import FAILED_UPDATE, CloneSet, CloneSetCondition, CloneSetStatus
from kedge.api.pods import Pod
from kedge.embedded.tables.cell_text import selector_text
from kedge.embedded.workloads import cloneset_plan
from kedge.embedded.workloads.cloneset_plan import CloneCounts, ClonePod, WantedClones


class ObservedCloneSet(Struct, frozen=True):
    """A set, its pods by name, and its revisions, oldest first; the one it asks for may be none of them yet."""

    set: CloneSet
    pods: Mapping[str, Pod]
    clones: tuple[ClonePod, ...]
    history: tuple[ControllerRevision, ...]
    update: ControllerRevision
    wanted: WantedClones

    @property
    def revisions(self) -> dict[str, ControllerRevision]:
        """By name."""
        return {one.metadata.name: one for one in (*self.history, self.update)}

    @property
    def counts(self) -> CloneCounts:
        return cloneset_plan.counts(self.clones, self.wanted.update)


class CloneFailure(Struct, frozen=True):
    """Why pods could not be created, deleted or updated; `type` is the condition that says so."""

    type: str
    message: str


def current_revision(
    seen: CloneSet, clones: Iterable[ClonePod], history: Sequence[ControllerRevision], update: str
) -> str:
    """The revision that pods behind the partition are of; the update revision once all pods are updated.

    If the status does not say it yet, it is the oldest that a pod is of.
    """
    counted = cloneset_plan.counts(there := tuple(clones), update)
    if cloneset_plan.is_complete(seen.replicas, counted):
        return update
    names = [one.metadata.name for one in history]
    used = {one.revision for one in there}
    said = seen.status.current_revision
    return said if said in names else next((name for name in names if name in used), update)


def status(seen: ObservedCloneSet, now: datetime, failure: CloneFailure | None = None) -> CloneSetStatus:
    """What the set says of itself."""
    counted, wanted, selector = seen.counts, seen.wanted, seen.set.selector
    return CloneSetStatus(
        observed_generation=seen.set.metadata.generation,
        replicas=counted.replicas,
        ready_replicas=counted.ready,
        available_replicas=counted.available,
        updated_replicas=counted.updated,
        updated_ready_replicas=counted.updated_ready,
        updated_available_replicas=counted.updated_available,
        expected_updated_replicas=wanted.to_update,
        update_revision=wanted.update,
        current_revision=wanted.current,
        collision_count=seen.set.status.collision_count or 0,
        label_selector=selector_text(to_builtins(selector)) if selector else "",
        conditions=_conditions(seen.set, failure or _stuck(seen), now),
    )


def _stuck(seen: ObservedCloneSet) -> CloneFailure | None:
    """Whether pods are to be updated that cannot be updated in place."""
    stuck = sorted(pod.name for pod in seen.clones if pod.stuck and pod.revision != seen.wanted.update)
    if not stuck or not seen.wanted.updates or seen.counts.updated >= seen.wanted.to_update:
        return None
    return CloneFailure(FAILED_UPDATE, f"more than images changed, so pod {stuck[0]} cannot be updated in place")


def _conditions(seen: CloneSet, failure: CloneFailure | None, now: datetime) -> tuple[CloneSetCondition, ...]:
    if failure is None:
        return ()
    before = find_condition(seen.status.conditions, failure.type)
    if before is not None:
        return (before,)  # what failed first stays: a message that names another pod each time would wake the set
    since = now.replace(microsecond=0)
    return (CloneSetCondition(type=failure.type, status=TRUE, message=failure.message, last_transition_time=since),)


def unused_revisions(seen: ObservedCloneSet) -> Sequence[ControllerRevision]:
    """The revisions beyond the limit, oldest first. Those in use do not count, and stay."""
    used = {seen.wanted.current, seen.wanted.update, *(one.revision for one in seen.clones)}
    unused = [one for one in seen.history if one.metadata.name not in used]
    limit = seen.set.spec.revision_history_limit
    return unused[: max(0, len(unused) - (HISTORY_LIMIT if limit is None else limit))]
