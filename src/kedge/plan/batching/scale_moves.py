"""Scale moves: nothing to move from, so the target is deployed, or gets more or fewer pods, batch by batch.

On the way up a batch is done when enough pods are available, on the way down when no more pods are left than it asks
for. On the way up the replicas are only raised, on the way down only lowered, until the last batch: it sets them to
the size of the plan. A target that does not exist is created without pods first.

Pods that are not of the present template are never counted: while there are any, it waits.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.claims import (
    annotation_patch,
    can_begin,
    claimed_by,
    claimed_by_other,
    frozen_record,
    not_steady,
    patched,
    resumed,
    still_scaling,
    unreported,
    waiting,
    wanted_hash,
)
from kedge.plan.batching.in_place import not_available, outdated_pods
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads, Write
from kedge.plan.batching.waits import MoveCode
from kedge.plan.fields import Object, count, merged, whole
from kedge.plan.workloads import WorkloadHandler
from kedge.plan.workloads.handler import held_replicas, is_paused


class ScaleMoves(Struct, frozen=True):
    """The moves of a workload that is deployed or scaled."""

    handler: WorkloadHandler

    def verify(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Verified | Step:  # noqa: ARG002
        """Whether the workload can be scaled now. It is waited for while it scales or updates."""
        target = seen.target
        if problem := self._problem(target, plan):
            return Step(failure=problem)
        size = self._size(target, plan)
        if target.obj is None and target.manifest is not None:
            return Verified(0, size, wanted_hash(self.handler, target))
        if (step := can_begin(seen)) is not None:
            return step
        held = self._held(target.obj or {})
        step = still_scaling(target, held) or self._still_updating(target)
        return step or Verified(held, size, wanted_hash(self.handler, target))

    def initialize(self, seen: Workloads, status: RolloutStatus, claim: str) -> Step:  # noqa: ARG002
        """Claim the target; create it without pods if it does not exist."""
        target = seen.target
        if target.obj is None and target.manifest is not None:
            return Step((Write(target.ref, create=self._without_pods(target, target.manifest, claim)),))
        if target.obj is None:
            return waiting(target, MoveCode.not_found)
        step = claimed_by_other(target, claim) or unreported(target)
        return step or patched(
            target, annotation_patch(claim=claim), self._resumed(target), self._unfreeze_patch(target)
        )

    def roll(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Set the replicas to what the batch asks for, then wait for the pods."""
        target = seen.target
        if (step := not_steady(target)) is not None:
            return step
        desired = self.handler.replicas(target.obj or {}).desired
        on_the_way = max(desired, batch.goal) if _is_up(status, batch) else min(desired, batch.goal)
        aim = batch.goal if batch.goal == batch.total else on_the_way
        return self.check(seen, status, batch) if aim == desired else self._scaled(target, aim)

    def check(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Whether enough pods are available, or enough have gone."""
        target = seen.target
        if (step := not_steady(target)) is not None:
            return step
        if not _is_up(status, batch):
            left = self._until_gone(target, batch.goal)
            return (self._still_updating(target) or DONE) if left.is_done else left
        if (step := self._still_updating(target)) is not None:
            return step
        available = self.handler.replicas(target.obj or {}).available
        if available + batch.tolerated >= batch.goal:
            return DONE
        blockers = not_available(target.pods, target.obj or {}, seen.now)
        numbers = {"available": available, "goal": batch.goal, "tolerated": batch.tolerated}
        return waiting(target, MoveCode.not_available, *blockers, **numbers)

    def finalize(self, seen: Workloads, status: RolloutStatus, *, succeeded: bool) -> Step:  # noqa: ARG002
        """Let go of the target. It keeps the replicas it has."""
        target = seen.target
        if not claimed_by(target) or claimed_by_other(target, seen.claim):
            return DONE
        return patched(target, annotation_patch(claim=None))

    def revert(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Go back to as many pods as there were, at most as many at once as the batch moved.

        Of several attempts the first one knows it: it may have taken away pods that the next one did not find.
        """
        target, original = seen.target, max(status.rollout_original_size, status.target_before)
        if target.obj is None or not claimed_by(target) or claimed_by_other(target, seen.claim):
            return DONE
        desired, size = self.handler.replicas(target.obj).desired, max(1, abs(batch.goal - batch.before))
        if (step := not_steady(target)) is not None:
            return step
        if desired < original:
            return still_scaling(target, desired) or self._scaled(target, min(original, desired + size))
        left = self._until_gone(target, desired)
        return left if not left.is_done or desired == original else self._scaled(target, max(original, desired - size))

    def ready_pods(self, seen: Workloads) -> int:
        """How many pods are ready for sure: those of an old template may be among the ready ones."""
        if seen.target.obj is None:
            return 0
        found, outdated = self.handler.replicas(seen.target.obj), outdated_pods(self.handler, seen.target.obj)
        return max(0, found.ready - outdated)

    def _problem(self, target: Workload, plan: RolloutPlan) -> str:
        if self.handler.scale(0) is None:
            return f"{target.ref} cannot be scaled: a {self.handler.kind} has no replicas"
        if plan.target_size is None and target.manifest is None:
            return f"the rollout plan has no source to move from and no targetSize to scale {target.ref} to"
        named = [index for index, batch in enumerate(plan.rollout_batches or ()) if batch.pod_list]
        return f"rolloutBatches[{named[0]}].podList is set, but pods are only added or removed" if named else ""

    def _size(self, target: Workload, plan: RolloutPlan) -> int:
        """As the plan says; else as many as it has, or as many as its revision asks for if it was only just made."""
        if plan.target_size is not None:
            return plan.target_size
        is_new = target.obj is None or _is_only_frozen(target)
        return self.handler.replicas((target.manifest if is_new else target.obj) or {}).desired

    def _held(self, obj: Object) -> int:
        """How many pods it has to begin with: one that is paused may ask for others that nobody makes."""
        return held_replicas(obj, self.handler.replicas(obj).desired)

    def _resumed(self, target: Workload) -> dict[str, Any]:
        """The patch that makes pods of one that was never more than written. One that has all of its pods scales."""
        obj = target.obj or {}
        is_only_written = is_paused(obj) and self._held(obj) < max(1, self.handler.replicas(obj).desired)
        return resumed(self.handler, target) if is_only_written else {}

    def _unfreeze_patch(self, target: Workload) -> dict[str, Any]:
        """The patch that gives a new workload its strategy back: a frozen one may not even make its first pods."""
        record = frozen_record(target)
        if record is None or not _is_only_frozen(target):
            return {}
        return merged(annotation_patch(frozen=None), self.handler.with_strategy(record.strategy) or {})

    def _still_updating(self, target: Workload) -> Step | None:
        """Whether it has pods of another template: it replaces them, or somebody holds them back."""
        found = self.handler.replicas(target.obj or {})
        if not outdated_pods(self.handler, target.obj or {}):
            return None
        numbers = {"updated": found.updated, "desired": found.desired, "available": found.available}
        return waiting(target, MoveCode.updating, **numbers)

    def _scaled(self, target: Workload, replicas: int) -> Step:
        is_fewer = replicas < self.handler.replicas(target.obj or {}).desired
        return patched(target, self.handler.scale(replicas) or {}, takes_away=is_fewer)

    def _without_pods(self, target: Workload, manifest: Object, claim: str) -> dict[str, Any]:
        ref = target.ref
        named = {"metadata": {"name": ref.name, "namespace": ref.namespace}}
        made = merged(manifest, named, annotation_patch(claim=claim), self.handler.scale(0) or {})
        return {"apiVersion": ref.api_version, "kind": ref.kind} | {k: v for k, v in made.items() if k != "status"}

    def _until_gone(self, target: Workload, goal: int) -> Step:
        pods = count(target.obj or {}, "status", "replicas")
        return DONE if pods <= goal else waiting(target, MoveCode.pods_left, pods=pods, goal=goal)


def _is_up(status: RolloutStatus, batch: Batch) -> bool:
    return batch.total >= status.rollout_original_size


def _is_only_frozen(target: Workload) -> bool:
    """Whether it was written for this rollout to bring in: frozen, and without pods."""
    obj = target.obj or {}
    return (
        frozen_record(target) is not None
        and not whole(obj, "spec", "replicas")
        and not count(obj, "status", "replicas")
    )
