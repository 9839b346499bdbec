"""Daemon moves: a DaemonSet changes in place, its pods deleted batch by batch.

The new template is written in the same write that makes the set OnDelete, so that no pod moves by itself. Then each
batch deletes old pods, within the budget; they come back on their nodes with the new template. How many pods there are
is for the nodes to say, at any time: a node that comes gets a pod of the new template, one that goes is not missed.

A set that never existed is created before its size is known, since only its own status says it. All its pods come at
once: there is nothing that they replace. Taken back, it goes again; only what says itself that this rollout created it
is ever deleted, whatever the status says.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.claims import (
    annotation_patch,
    can_begin,
    claimed_by,
    claimed_by_other,
    frozen_record,
    has_template,
    not_steady,
    patched,
    pod_identity,
    remembered,
    remembered_of_new,
    size_problem,
    waiting,
    wanted_hash,
    write_frozen,
)
from kedge.plan.batching.daemon_pods import Daemons, count_daemons, next_deletions, wanted_pods
from kedge.plan.batching.in_place import not_available, own_pods
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads, Write
from kedge.plan.batching.waits import MoveCode
from kedge.plan.fields import Object, count, merged, text
from kedge.plan.text import listed
from kedge.plan.workloads import WorkloadHandler
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.handler import ON_DELETE


class DaemonMoves(Struct, frozen=True):
    """The moves of a DaemonSet."""

    handler: WorkloadHandler = DaemonSets()

    def verify(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Verified | Step:
        """Whether the rollout can begin: every node that is to have a pod has one, and nothing moves by itself."""
        target = seen.target
        if target.obj is None and target.manifest is not None and not status.target_before:
            return self._created(target, target.manifest, seen.claim)
        if (step := can_begin(seen)) is not None:
            return step
        size = self.handler.replicas(target.obj or {}).desired
        if problem := size_problem(self.handler.kind, plan, size) or _pod_list_problem(target, plan):
            return Step(failure=problem)
        pods = count(target.obj or {}, "status", "currentNumberScheduled")
        if pods != size:
            return waiting(target, MoveCode.scaling, pods=pods, desired=size)
        return self._verified(seen, status, size)

    def initialize(self, seen: Workloads, status: RolloutStatus, claim: str) -> Step:  # noqa: ARG002
        """The template, with OnDelete in the same write."""
        target = seen.target
        if target.obj is None:
            return waiting(target, MoveCode.not_found)
        if (step := claimed_by_other(target, claim)) is not None:
            return step
        if not has_template(self.handler, target, target.manifest, claim):
            return write_frozen(self.handler, target, target.manifest or {}, claim)
        record = frozen_record(target)
        written = record.written if record is not None and claimed_by(target) == claim else ""
        notes = annotation_patch(claim=claim, frozen=remembered(self.handler, target, written))
        return patched(target, notes, self.handler.freeze(target.obj))

    def roll(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Delete old pods as far as the batch and the budget go, then wait for those that come back."""
        found = self._look(seen)
        if isinstance(found, Step):
            return found
        deletion = _delete(seen.target, found, batch, _goal(found, batch))
        return self.check(seen, status, batch) if deletion is None else deletion

    def check(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:  # noqa: ARG002
        """Whether enough pods of the present template are available, and those that were named are replaced."""
        found = self._look(seen)
        if isinstance(found, Step):
            return found
        goal = _goal(found, batch)
        is_left = bool(batch.pods) and bool(wanted_pods(found, batch))
        if found.updated_available + batch.tolerated >= goal and not is_left:
            return DONE
        return self._not_available(seen, found, goal, batch.tolerated)

    def finalize(self, seen: Workloads, status: RolloutStatus, *, succeeded: bool) -> Step:  # noqa: ARG002
        """Let go. The strategy is given back after a success; after a failure no pod moves by itself."""
        target = seen.target
        record = frozen_record(target)
        if target.obj is None or claimed_by_other(target, seen.claim) or not (record or claimed_by(target)):
            return DONE
        return self._give_back(target) if succeeded else patched(target, annotation_patch(claim=None))

    def revert(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Write the old template back, and delete pods within the budget until all are of it."""
        target = seen.target
        record = frozen_record(target)
        if target.obj is None or claimed_by_other(target, seen.claim) or record is None:
            return DONE
        if not status.target_before and record.created_by == seen.claim != "":  # there was none
            return Step((Write(target.ref, delete=True, uid=text(target.obj, "metadata", "uid"), takes_away=True),))
        source = next((one.manifest for one in seen.sources if one.manifest is not None), None)
        if source is None:
            return Step(failure=f"{target.ref} cannot go back: what it was before is not known")
        claim = claimed_by(target) or seen.claim
        if not has_template(self.handler, target, source, claim):
            return write_frozen(self.handler, target, source, claim)
        return self._revert_in_budget(seen, batch)

    def ready_pods(self, seen: Workloads) -> int:
        """How many pods of the target are ready. None is known to be while its status is of before a change."""
        found = None if not_steady(seen.target) is not None else count_daemons(seen.target, seen.now)
        return found.ready if found is not None else 0

    def _created(self, target: Workload, manifest: Object, claim: str) -> Step:
        """The set of a revision as it is taken over."""
        ref, record = target.ref, remembered_of_new(self.handler, manifest, claim)
        named = {"metadata": {"name": ref.name, "namespace": ref.namespace}}
        notes = annotation_patch(claim=claim, frozen=record)
        made = merged(manifest, named, notes, self.handler.freeze(manifest))
        typed = {"apiVersion": ref.api_version, "kind": ref.kind}
        return Step((Write(ref, create=typed | {name: part for name, part in made.items() if name != "status"}),))

    def _verified(self, seen: Workloads, status: RolloutStatus, size: int) -> Verified | Step:
        target, wanted = seen.target, wanted_hash(self.handler, seen.target)
        if not has_template(self.handler, target, target.manifest, seen.claim):
            return Verified(size, size, wanted)
        found = count_daemons(target, seen.now)
        if found is None:
            return waiting(target, MoveCode.not_observed)
        is_updated = not found.outdated and not found.leaving
        if is_updated and wanted == status.last_applied_pod_template_identifier:
            return Step(failure=f"there is no difference between the source and target, hash = {wanted}")
        if not is_updated and self.handler.strategy(target.obj or {}).type != ON_DELETE:
            return Step(failure=f"{target.ref} is in the middle of updating, need to be paused first")
        return Verified(size, size, wanted)

    def _look(self, seen: Workloads) -> Daemons | Step:
        target = seen.target
        if (step := not_steady(target)) is not None:
            return step
        if self.handler.strategy(target.obj or {}).type != ON_DELETE:
            return waiting(target, MoveCode.strategy_changed)
        return count_daemons(target, seen.now) or waiting(target, MoveCode.not_observed)

    def _revert_in_budget(self, seen: Workloads, batch: Batch) -> Step:
        found = self._look(seen)
        if isinstance(found, Step):
            return found
        if not found.outdated and not found.leaving:
            return self._give_back(seen.target)
        # All pods go back, whichever the batch names.
        deletion = _delete(seen.target, found, replace(batch, pods=()), found.desired)
        return self._not_available(seen, found, found.desired, 0) if deletion is None else deletion

    def _give_back(self, target: Workload) -> Step:
        record = frozen_record(target)
        strategy = {} if record is None else self.handler.with_strategy(record.strategy) or {}
        return patched(target, annotation_patch(claim=None, frozen=None), strategy)

    def _not_available(self, seen: Workloads, found: Daemons, goal: int, tolerated: int) -> Step:
        blockers = not_available((*found.updated, *found.leaving), seen.target.obj or {}, seen.now)
        numbers = {"available": found.updated_available, "goal": goal, "tolerated": tolerated}
        return waiting(seen.target, MoveCode.not_available, *blockers, **numbers)


def _goal(found: Daemons, batch: Batch) -> int:
    """What the batch asks for, of as many pods as there are to be now. The last one asks for all."""
    return found.desired if batch.goal >= batch.total else min(batch.goal, found.desired)


def _delete(target: Workload, found: Daemons, batch: Batch, goal: int) -> Step | None:
    """The old pods that may be deleted now, or what they wait for; None if the batch has none left."""
    grants = next_deletions(found, batch, goal)
    if grants.moved:
        chosen = tuple(pod_identity(pod) for pod in found.pods if pod.metadata.name in grants.moved)
        return Step((Write(target.ref, delete_pods=chosen, takes_away=True),))
    return Step(wait=next(iter(grants.waiting.values()))) if grants.waiting else None


def _pod_list_problem(target: Workload, plan: RolloutPlan) -> str:
    names = {pod.metadata.name for pod in own_pods(target)}
    for index, batch in enumerate(plan.rollout_batches or ()):
        if missing := [name for name in batch.pod_list if name not in names]:
            return f"rolloutBatches[{index}].podList names {listed(missing)}, which {target.ref} does not have"
    return ""
