"""Partition moves: one workload changes in place, as far as its partition lets it. CloneSets, StatefulSets, their like.

A new template is written in the same write that freezes the workload, so that no pod moves before its batch. Then each
batch lowers the partition, and never below what the batch asks for. A batch is done when enough pods of the present
template are available; old pods prove nothing.

The partition is lowered at once to what a batch asks for: how many pods are down at a time is for the workload's own
maxUnavailable to say. On the way back there are no batches, so the partition follows the budget: so many pods at a
time, and the next when those are available. A workload without surge has to take down at least one.

A StatefulSet that keeps the order of its pods waits for a broken pod before it replaces it, or creates those after it.
So an old pod that is to be replaced and is not ready is deleted: it comes back with the present template. One that is
kept back and is of a revision that nobody wants any more is deleted, too: it comes back as what the set runs. And
nobody waits for pods that are missing because of one that is not ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    size_problem,
    still_scaling,
    waiting,
    wanted_hash,
    write_frozen,
)
from kedge.plan.batching.in_place import (
    InPlace,
    count_pods,
    not_available,
    numbered_pods,
    numbers_pods,
    own_pods,
    update_revision,
)
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads, Write
from kedge.plan.batching.pod_lists import pod_list_problem
from kedge.plan.batching.waits import MoveCode
from kedge.plan.fields import text
from kedge.plan.workloads import WorkloadHandler
from kedge.plan.workloads.handler import ON_DELETE, ROLLING
from kedge.plan.workloads.pods import is_ready, is_terminating, revision_of


class PartitionMoves(Struct, frozen=True):
    """The moves of a kind with a partition."""

    handler: WorkloadHandler

    def verify(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Verified | Step:
        """Whether the rollout can begin. What passes by itself is waited for, never a failure."""
        target, handler = seen.target, self.handler
        if (step := can_begin(seen)) is not None:
            return step
        size = handler.replicas(target.obj or {}).desired
        if problem := size_problem(handler.kind, plan, size) or pod_list_problem(handler, target, plan, size):
            return Step(failure=problem)
        if (step := still_scaling(target, size)) is not None and not self._is_held_up(target, size):
            return step
        wanted = wanted_hash(handler, target)
        if problem := self._nothing_or_too_much(seen, status, wanted):
            return Step(failure=problem)
        return Verified(size, size, wanted)

    def initialize(self, seen: Workloads, status: RolloutStatus, claim: str) -> Step:  # noqa: ARG002
        """First the template with everything frozen; when the workload has reported, hold exactly what is old."""
        target = seen.target
        if target.obj is None:
            return waiting(target, MoveCode.not_found)
        if (step := claimed_by_other(target, claim)) is not None:
            return step
        if not has_template(self.handler, target, target.manifest, claim):
            return write_frozen(self.handler, target, target.manifest or {}, claim)
        return self._hold(seen, claim)

    def roll(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Lower the partition to what the batch asks for, then wait for its pods."""
        found = self._look(seen)
        if isinstance(found, Step):
            return found
        partition = found.partition_for(_goal(found, batch))
        if partition < found.partition:
            return patched(seen.target, self.handler.with_partition(partition) or {}, takes_away=True)
        return self._replace_broken(seen.target, found) or self.check(seen, status, batch)

    def check(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:  # noqa: ARG002
        """Whether enough pods of the present template are available."""
        found = self._look(seen)
        if isinstance(found, Step):
            return found
        goal = _goal(found, batch)
        if found.available + batch.tolerated >= goal:
            return DONE
        blockers = self._unavailable(seen)
        numbers = {"available": found.available, "goal": goal, "tolerated": batch.tolerated}
        return waiting(seen.target, MoveCode.not_available, *blockers, **numbers)

    def finalize(self, seen: Workloads, status: RolloutStatus, *, succeeded: bool) -> Step:  # noqa: ARG002
        """Let go. The strategy is given back after a success; after a failure the partition stays, and a pause."""
        target = seen.target
        record = frozen_record(target)
        if target.obj is None or claimed_by_other(target, seen.claim) or not (record or claimed_by(target)):
            return DONE
        if succeeded:
            return self._give_back(target, partition=0)
        if not claimed_by(target):
            return DONE  # let go of already; what users did to it since is theirs
        still = replace(self.handler.strategy(target.obj), paused=True)
        return patched(target, annotation_patch(claim=None), self.handler.with_strategy(still) or {})

    def revert(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:  # noqa: ARG002
        """Write the old template back, frozen, and walk back within the budget until no pod is of another one."""
        target = seen.target
        if target.obj is None or claimed_by_other(target, seen.claim) or not frozen_record(target):
            return DONE
        source = next((one.manifest for one in seen.sources if one.manifest is not None), None)
        if source is None:
            return Step(failure=f"{target.ref} cannot go back: what it was before is not known")
        claim = claimed_by(target) or seen.claim
        if not has_template(self.handler, target, source, claim):
            return write_frozen(self.handler, target, source, claim)
        return self._revert_in_budget(seen, batch, claim)

    def ready_pods(self, seen: Workloads) -> int:
        """How many pods of the target are ready. None is known to be while its status is of before a change."""
        if not_steady(seen.target) is not None:
            return 0
        return count_pods(self.handler, seen.target, seen.now).ready

    # Verification

    def _nothing_or_too_much(self, seen: Workloads, status: RolloutStatus, wanted: str) -> str:
        """A workload with the template already may have nothing left to do, or do it by itself."""
        target = seen.target
        if not has_template(self.handler, target, target.manifest, seen.claim):
            return ""
        found = count_pods(self.handler, target, seen.now)
        if found.is_updated and wanted == status.last_applied_pod_template_identifier:
            return f"there is no difference between the source and target, hash = {wanted}"
        # What an earlier rollout left half frozen is frozen again when it is taken over.
        if found.moves_by_itself and frozen_record(target) is None:
            return f"{target.ref} is in the middle of updating, need to be paused first"
        return ""

    def _is_held_up(self, target: Workload, size: int) -> bool:
        """Whether pods that are missing may wait for one that is there and not ready."""
        if not numbers_pods(self.handler):
            return False
        pods = numbered_pods(target, size)
        return len(pods) == len(own_pods(target)) and not all(is_ready(pod) for pod in pods.values())

    # Taking over

    def _hold(self, seen: Workloads, claim: str) -> Step:
        """Claimed and not paused, with a partition that keeps back exactly what is old."""
        target = seen.target
        if (step := self._not_reported(target)) is not None:
            return step
        found = count_pods(self.handler, target, seen.now)
        record = frozen_record(target)
        written = record.written if record is not None and claimed_by(target) == claim else ""
        notes = annotation_patch(claim=claim, frozen=remembered(self.handler, target, written))
        return patched(target, notes, self._strategy_patch(target, found.hold))

    def _strategy_patch(self, target: Workload, partition: int) -> Mapping[str, Any]:
        given = self.handler.strategy(target.obj or {})
        kind = ROLLING if given.type == ON_DELETE else given.type
        return self.handler.with_strategy(replace(given, type=kind, partition=partition, paused=False)) or {}

    # Moving

    def _look(self, seen: Workloads) -> InPlace | Step:
        """The target's pods; or what has to pass before anything can be said of them."""
        target = seen.target
        if (step := self._not_reported(target)) is not None:
            return step
        found = count_pods(self.handler, target, seen.now)
        if self.handler.strategy(target.obj or {}).type == ON_DELETE:
            return waiting(target, MoveCode.strategy_changed)
        return waiting(target, MoveCode.paused) if found.paused else found

    def _not_reported(self, target: Workload) -> Step | None:
        step = not_steady(target)
        if step is None and numbers_pods(self.handler) and not update_revision(target):
            return waiting(target, MoveCode.not_observed)
        return step

    def _replace_broken(self, target: Workload, found: InPlace) -> Step | None:
        """Delete numbered pods that are old and not ready, to be replaced or of no use; None if there are none.

        One that is kept back is of no use if it is of a release that was given up: of a revision that no pod works
        with, and that is not the one it comes back with, which the workload calls its current one.
        """
        if found.updated_at is None:
            return None
        pods, current = numbered_pods(target, found.replicas), text(target.obj, "status", "currentRevision")
        old = [(at, pods[at]) for at in sorted(found.outdated_at) if at in pods]
        working = {revision_of(pod.metadata) for pod in pods.values() if is_ready(pod)} | {current}
        is_known = current != ""
        moving = (
            pod for at, pod in old if at >= found.partition or (is_known and revision_of(pod.metadata) not in working)
        )
        broken = tuple(pod_identity(pod) for pod in moving if not is_ready(pod) and not is_terminating(pod))
        return Step((Write(target.ref, delete_pods=broken, takes_away=True),)) if broken else None

    def _unavailable(self, seen: Workloads) -> tuple[Any, ...]:
        update = update_revision(seen.target)
        pods = (pod for pod in own_pods(seen.target) if revision_of(pod.metadata) == update)
        return not_available(pods, seen.target.obj or {}, seen.now)

    # Going back and letting go

    def _revert_in_budget(self, seen: Workloads, batch: Batch, claim: str) -> Step:
        target = seen.target
        if (step := self._not_reported(target)) is not None:
            return step
        found = count_pods(self.handler, target, seen.now)
        if found.is_updated:
            return self._give_back(target, partition=None)
        if found.paused or self.handler.strategy(target.obj or {}).type == ON_DELETE:
            return self._hold(seen, claim)
        partition = min(found.partition, _next_partition(found, batch))
        if partition < found.partition:
            return patched(target, self.handler.with_partition(partition) or {}, takes_away=True)
        numbers = {"available": found.available, "goal": found.asked, "tolerated": 0}
        wait = waiting(target, MoveCode.not_available, *self._unavailable(seen), **numbers)
        return self._replace_broken(target, found) or wait

    def _give_back(self, target: Workload, partition: int | None) -> Step:
        """The strategy from before, with this partition if it has one at all; with its own if None is given."""
        record = frozen_record(target)
        if record is None:
            patch = self.handler.with_partition(0) or {}
        elif partition is None or record.strategy.type == ON_DELETE:
            patch = self.handler.with_strategy(record.strategy) or {}
        else:
            patch = self.handler.with_strategy(replace(record.strategy, partition=partition, paused=False)) or {}
        return patched(target, annotation_patch(claim=None, frozen=None), patch)


def _goal(found: InPlace, batch: Batch) -> int:
    """What the batch asks for. The last one asks for all pods, also if somebody scaled the workload in between."""
    return found.replicas if batch.goal >= batch.total else min(batch.goal, found.replicas)


def _next_partition(found: InPlace, batch: Batch) -> int:
    """How far back the partition may go now: pods that are asked for and not there yet are as good as taken down.

    The floor is of as many pods as there are to be now: somebody may have scaled the workload since the plan was made.
    """
    coming = found.asked - found.updated
    spare = replace(batch.budget, desired=found.replicas).may_take_down(found.all_available - coming)
    least = 1 if found.available >= found.asked else 0
    return found.partition_for(min(found.replicas, found.asked + max(spare, least, found.free)))
