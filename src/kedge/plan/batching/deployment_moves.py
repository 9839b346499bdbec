"""Deployment moves: a rollout from Deployments of old revisions, which are one pool, to the Deployment of the target.

Promises, whatever is observed:

* IncreaseFirst: the target is raised to the goal, while there are no more pods than the ceiling; once its pods are
  available the old ones are lowered. DecreaseFirst: the other way round;
* old pods are lowered only while enough pods stay available; those that are not available cost nothing, and go first;
* the target is never raised past the goal, and old ones never lowered past what the goal leaves to them.

Other kinds that can only be scaled move in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.keys import LEFT
from kedge.api.oam.rollout_plan import RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.claims import (
    annotation_patch,
    can_move,
    claimed_by_other,
    is_claimed,
    is_ours,
    patched,
    resumed,
    unreported,
    waiting,
)
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads, Write
from kedge.plan.batching.pod_choice import with_chosen_pods
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.batching.waits import MoveCode
from kedge.plan.fields import at, count, text
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.wait import Wait
from kedge.plan.workloads import Replicas, WorkloadHandler, template_hash

_TOO_SMALL: Final = "target size `{total}` less than source size `{pool}`"
_SAME: Final = "there is no difference between the source and target, hash = {hash}"


class DeploymentMoves(Struct, frozen=True):
    """The moves of a kind whose revisions are objects of their own."""

    handler: WorkloadHandler

    # The size of the rollout

    def verify(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Verified | Step:
        every = (seen.target, *(one for one in seen.sources if not _is_forgotten(one, seen)))
        for one in every:
            if one.obj is None and (one.manifest is None or one is not seen.target):
                return waiting(one, MoveCode.not_found)
            if problem := one.obj is not None and (can_move(one, seen.claim) or self._unstable(one)):
                return problem
        return self._sized(seen, plan, status)

    def _sized(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Verified | Step:
        pool = sum(self._asked(one) for one in seen.sources)
        # A target that rollouts bring in has no pods but those of one that was given up. Without any to move, it is
        # the target that runs.
        left = self._asked(seen.target) if seen.target.manifest is not None or not pool else 0
        total = plan.target_size if plan.target_size is not None else status.desired_size or pool + left
        if total < pool and not status.desired_size:
            return Step(failure=_TOO_SMALL.format(total=total, pool=pool))
        hashed = template_hash(self.handler.template(seen.target.obj or seen.target.manifest or {}))
        # Midway there is a way back to what ran last.
        if hashed == status.last_applied_pod_template_identifier and not status.desired_size:
            return Step(failure=_SAME.format(hash=hashed))
        return Verified(original=pool, total=total, template_hash=hashed)

    def _unstable(self, one: Workload) -> Step | None:
        """Whether somebody else is still at work on it. A paused one stands still."""
        assert one.obj is not None
        found, pods = self._replicas(one), count(one.obj, "status", "replicas")
        if self.handler.strategy(one.obj).paused or (found.observed and found.desired == pods):
            return None
        return waiting(one, MoveCode.scaling, pods=pods, desired=found.desired)

    # Beginning and end

    def initialize(self, seen: Workloads, status: RolloutStatus, claim: str) -> Step:
        """Claim all; create the target if it is not there; the target gets what the old ones lack of the total.

        A target that is paused has no pods of a new template, however many it asks for: it goes on with what it has.
        """
        if (claimed := self._claimed_by_other(seen)) is not None:
            return claimed
        if seen.target.obj is None:
            return self._created(seen.target, claim)
        if (step := unreported(seen.target)) is not None:
            return step
        there = [one for one in seen.sources if one.obj is not None]
        steps = [patched(one, annotation_patch(claim=claim), _left_by_patch(one, None)) for one in there]
        steps.append(patched(seen.target, annotation_patch(claim=claim), resumed(self.handler, seen.target)))
        writes = tuple(write for step in steps for write in step.writes)
        return Step(writes) if writes else self._balanced(seen, status)

    def _claimed_by_other(self, seen: Workloads) -> Step | None:
        steps = (claimed_by_other(one, seen.claim) for one in (seen.target, *seen.sources))
        return next((step for step in steps if step is not None), None)

    def _created(self, target: Workload, claim: str) -> Step:
        if target.manifest is None:
            return waiting(target, MoveCode.not_found)
        spec = {**at(target.manifest, "spec"), "replicas": 0}
        meta = at(target.manifest, "metadata")
        annotations = {**(meta.get("annotations") or {}), **annotation_patch(claim=claim)["metadata"]["annotations"]}
        made = {**target.manifest, "metadata": {**meta, "annotations": annotations}, "spec": spec}
        return Step((Write(target.ref, create=made),))

    def _balanced(self, seen: Workloads, status: RolloutStatus) -> Step:
        """What the old ones lack of the total, the target has from the start; what is too many, it has not."""
        total, pool = status.rollout_target_size, sum(self._asked(one) for one in seen.sources)
        wanted, now = max(0, total - pool), self._asked(seen.target)
        spare = Budget(total, 0).may_take_down(self._available(seen))
        aim = max(wanted, now - spare)
        return DONE if aim == now else Step((self._scaled(seen.target, aim, takes_away=aim < now),))

    def finalize(self, seen: Workloads, status: RolloutStatus, *, succeeded: bool) -> Step:  # noqa: ARG002
        """Let go. Old workloads that are empty are deleted after success, where that was asked for."""
        removes = succeeded and seen.removes_sources
        gone = [one for one in seen.sources if removes and not self._asked(one) and is_claimed(one, seen.claim)]
        released = [one for one in (seen.target, *seen.sources) if is_claimed(one, seen.claim) and one not in gone]
        left = seen.claim if not succeeded else None
        writes = [write for one in released for write in _released(one, left, thawed=succeeded and one is seen.target)]
        return Step((*writes, *(Write(one.ref, delete=True, uid=text(one.obj, "metadata", "uid")) for one in gone)))

    # Batches

    def roll(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:  # noqa: ARG002
        problem = self._problem(seen)
        if problem is not None:
            return problem
        if batch.strategy is RolloutStrategy.decrease_first:
            return self._first([self._lower(seen, batch), self._gone(seen, batch), self._raise(seen, batch)])
        steps = [self._raise(seen, batch), self._proof(seen, batch), self._lower(seen, batch)]
        is_full = steps[0].wait is not None
        # Without room for the target, old pods that nobody needs make some: those of a bad release, above all.
        return replace(steps[2], makes_room=True) if is_full and steps[2].writes else self._first(steps)

    def check(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:  # noqa: ARG002
        problem = self._problem(seen)
        if problem is not None:
            return problem
        if self._asked(seen.target) < batch.goal:
            return self._not_available(seen, batch)
        return self._first([self._proof(seen, batch), self._gone(seen, batch)])

    @staticmethod
    def _first(steps: Sequence[Step]) -> Step:
        return next((step for step in steps if not step.is_done), DONE)

    def _problem(self, seen: Workloads) -> Step | None:
        if seen.target.obj is None:
            return waiting(seen.target, MoveCode.not_found)
        return None

    def _raise(self, seen: Workloads, batch: Batch) -> Step:
        """Raise the target to the goal, as far as the ceiling allows."""
        now = self._asked(seen.target)
        if now >= batch.goal:
            return DONE
        pods = self._pods(seen)
        room = batch.budget.may_add(pods)
        if not room:
            return Step(wait=waiting_for(str(seen.target.ref), BatchCode.ceiling, most=batch.budget.most, pods=pods))
        return Step((self._scaled(seen.target, min(batch.goal, now + room)),))

    def _proof(self, seen: Workloads, batch: Batch) -> Step:
        """Whether as many pods of the target are available as the goal asks for."""
        found = self._replicas(seen.target)
        if found.observed and found.available + batch.tolerated >= batch.goal:
            return DONE
        return self._not_available(seen, batch)

    def _not_available(self, seen: Workloads, batch: Batch) -> Step:
        available = self._replicas(seen.target).available
        numbers = {"available": available, "goal": batch.goal, "tolerated": batch.tolerated}
        return waiting(seen.target, MoveCode.not_available, **numbers)

    def _gone(self, seen: Workloads, batch: Batch) -> Step:
        """Whether the old ones have no more pods than the goal leaves to them."""
        left, pods = batch.total - batch.goal, sum(self._existing(one) for one in seen.sources)
        if pods <= left:
            return DONE
        return Step(wait=Wait("the pool of old revisions", MoveCode.pods_left, {"pods": pods, "goal": left}))

    def _lower(self, seen: Workloads, batch: Batch) -> Step:
        """Lower the old ones to what the goal leaves to them, as far as enough pods stay available."""
        asked = {one.ref.name: self._asked(one) for one in seen.sources}
        surplus = sum(asked.values()) - (batch.total - batch.goal)
        if surplus <= 0:
            return DONE
        spare = batch.budget.may_take_down(self._available(seen))
        taken = taken_from(asked, self._unavailable(seen.sources), surplus, spare)
        if not any(taken.values()):
            return Step(wait=self._budget_spent(seen, batch))
        return with_chosen_pods(
            seen,
            batch,
            tuple(
                self._scaled(one, asked[one.ref.name] - taken[one.ref.name], takes_away=True)
                for one in seen.sources
                if taken[one.ref.name]
            ),
        )

    def _budget_spent(self, seen: Workloads, batch: Batch) -> Any:
        return waiting_for(
            str(seen.target.ref),
            BatchCode.floor,
            floor=batch.budget.must_stay_available,
            total=batch.total,
            available=self._available(seen),
        )

    # Back to what was before

    def revert(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Raise what has fewer pods than before while there is room, lower what has more while enough are available.

        What nothing is recorded of stays as it is: nobody knows how many pods it had.
        """
        if any(claimed_by_other(one, seen.claim) for one in (seen.target, *seen.sources)):
            return DONE  # after a failure they were free for others
        before = {one.name: one.replicas for one in status.sources} | {seen.target.ref.name: status.target_before}
        there = [one for one in (*seen.sources, seen.target) if one.ref.name in before and is_ours(one, seen.claim)]
        short = [one for one in there if self._asked(one) < before.get(one.ref.name, 0)]
        total = batch.budget.desired
        after = sum(before.values()) if status.sources else total  # on the way back both sizes have to be possible
        ceiling = replace(batch.budget, desired=max(total, after))
        room = ceiling.may_add(self._pods(seen))
        if short and room:
            first = short[0]
            return Step((self._scaled(first, min(before[first.ref.name], self._asked(first) + room)),))
        asked = {one.ref.name: max(0, self._asked(one) - before.get(one.ref.name, 0)) for one in there}
        if any(asked.values()):
            floor = replace(batch.budget, desired=min(total, after))
            return self._taken_back(seen, there, asked, replace(batch, budget=floor))
        if short:
            return Step(wait=waiting_for("the rollout", BatchCode.ceiling, most=ceiling.most, pods=self._pods(seen)))
        return self._settled(there, before)

    def _taken_back(self, seen: Workloads, there: Sequence[Workload], surplus: Mapping[str, int], batch: Batch) -> Step:
        spare = batch.budget.may_take_down(self._available(seen))
        taken = taken_from(surplus, self._unavailable(there), sum(surplus.values()), spare)
        if not any(taken.values()):
            return Step(wait=self._budget_spent(seen, batch))
        return Step(
            tuple(
                self._scaled(one, self._asked(one) - taken[one.ref.name], takes_away=True)
                for one in there
                if taken[one.ref.name]
            )
        )

    def _settled(self, there: Iterable[Workload], before: Mapping[str, int]) -> Step:
        """Whether all are available as before, and the others gone."""
        for one in there:
            wanted, found = before.get(one.ref.name, 0), self._replicas(one)
            if self._existing(one) > wanted:
                return waiting(one, MoveCode.pods_left, pods=self._existing(one), goal=wanted)
            if not found.observed:
                return waiting(one, MoveCode.not_observed)
        return DONE

    def ready_pods(self, seen: Workloads) -> int:
        return self._replicas(seen.target).ready

    # Counting

    def _replicas(self, one: Workload) -> Replicas:
        return self.handler.replicas(one.obj) if one.obj is not None else Replicas(0)

    def _asked(self, one: Workload) -> int:
        """How many pods its spec asks for."""
        return self._replicas(one).desired

    def _existing(self, one: Workload) -> int:
        """How many pods there are or will be: those that go are still there, those that come are as good as there."""
        return max(count(one.obj or {}, "status", "replicas"), self._asked(one))

    def _pods(self, seen: Workloads) -> int:
        return sum(self._existing(one) for one in (seen.target, *seen.sources))

    def _available(self, seen: Workloads) -> int:
        """How many pods are available for certain. Of a workload that is to have fewer, only as many count."""
        every = (seen.target, *seen.sources)
        return sum(min(self._replicas(one).available, self._asked(one)) for one in every)

    def _unavailable(self, workloads: Iterable[Workload]) -> dict[str, int]:
        """How many pods of each are not available for certain: none of one whose status does not speak of its spec."""
        found = {one.ref.name: self._replicas(one) for one in workloads}
        return {name: max(0, one.desired - one.available) if one.observed else 0 for name, one in found.items()}

    def _scaled(self, one: Workload, replicas: int, *, takes_away: bool = False) -> Write:
        patch = self.handler.scale(replicas)
        assert patch is not None, "a kind that cannot be scaled has other moves"
        (write,) = patched(one, patch, takes_away=takes_away).writes
        return write


def _released(one: Workload, left_by: str | None, *, thawed: bool) -> tuple[Write, ...]:
    """Without the claim; without the note of who froze it, if it is as was asked for; else with one of who left it."""
    notes = annotation_patch(claim=None, frozen=None) if thawed else annotation_patch(claim=None)
    return patched(one, notes, _left_by_patch(one, left_by)).writes


def _left_by_patch(one: Workload, left_by: str | None) -> dict[str, Any]:
    """The patch of the note of who failed to move it and let go: whoever claims it next takes that away."""
    if text(one.obj, "metadata", "annotations", LEFT) == (left_by or ""):
        return {}
    return {"metadata": {"annotations": {LEFT: left_by}}}


def _is_forgotten(one: Workload, seen: Workloads) -> bool:
    """Whether it is an old revision of several that only the status knows, and that somebody has deleted."""
    return one.obj is None and bool(one.revision) and any(other.obj is not None for other in seen.sources)


def taken_from(surplus: Mapping[str, int], unavailable: Mapping[str, int], most: int, spare: int) -> dict[str, int]:
    """How many pods to take from each: first those that are not available, which is free, then spare ones.

    The last of them comes first: that is the newest of the old revisions.
    """
    newest_first = list(surplus)[::-1]
    taken = dict.fromkeys(surplus, 0)
    for name in newest_first:
        taken[name] = min(unavailable[name], surplus[name], most - sum(taken.values()))
    for name in newest_first:
        available = min(surplus[name] - taken[name], most - sum(taken.values()), spare)
        taken[name] += available
        spare -= available
    return taken
