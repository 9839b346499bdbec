"""Planted bugs in batches: the same rollouts with a part of their safety taken out, which the promises must notice.

PYTHONPATH=tests python -m kedge.simulate simulate.planted_in_batches:without_floor --seed 1 --seeds 40
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kedge.api.oam.rollout_status import BatchState
from kedge.controllers.batch.rollouts import Rollouts
from kedge.plan.batching import batch_step, ending, in_place, rollout
from kedge.plan.batching.batches import back
from kedge.plan.batching.moves import Workload
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.batching.steps import Act, BatchRolloutInput, Move
from kedge.plan.moving.budget import Budget
from kedge.simulate.simulation import Simulation
from simulate.batching import batching

_back = back
_step = rollout.step
_ready = batch_step._BATCH_STATES[BatchState.ready]
_write = Rollouts._write


async def without_floor(simulation: Simulation) -> None:
    """Pods are taken away however few others are available."""
    with patch.object(Budget, "may_take_down", lambda self, _: self.desired):
        await batching(simulation)


async def without_ceiling(simulation: Simulation) -> None:
    """Pods are added however many there are."""
    with patch.object(Budget, "may_add", lambda self, _: self.desired):
        await batching(simulation)


async def one_batch_too_many(simulation: Simulation) -> None:
    """The partition is taken for the number of batches before it."""

    def ready(seen: BatchRolloutInput, batch: Any, now: Any) -> Any:
        last = seen.plan.last_batch
        plan = seen.plan if last is None else replace(seen.plan, batch_partition=last + 1, last_batch_to_rollout=None)
        return _ready(replace(seen, plan=plan), batch, now)

    with patch.dict(batch_step._BATCH_STATES, {BatchState.ready: ready}):
        await batching(simulation)


async def without_webhooks(simulation: Simulation) -> None:
    """Nobody is asked before a batch."""
    with patch.object(rollout, "hooks", lambda *_: None), patch.object(batch_step, "hooks", lambda *_: None):
        await batching(simulation)


async def without_proof_of_batches(simulation: Simulation) -> None:
    """A batch begins whatever has become of those before it."""
    verifying = BatchState.verifying

    def verified(seen: BatchRolloutInput, *_: Any) -> Any:
        return Move(RolloutEvent.batch_available, seen.status)

    with (
        patch.object(batch_step, "_lost", lambda *_: None),
        patch.dict(batch_step._BATCH_STATES, {verifying: verified}),
    ):
        await batching(simulation)


async def acts_before_it_notes(simulation: Simulation) -> None:
    """What is to be done is done before the status says so."""

    async def written(self: Rollouts, current: Any, seen: Any, wait: Any) -> Any:
        found = _step(seen, self._clock.now()) if seen is not None and wait is None else None
        if isinstance(found, Act) and found.writes:
            await self._act(current, found)
        return await _write(self, current, seen, wait)

    with patch.object(Rollouts, "_write", written):
        await batching(simulation)


async def takes_back_at_once(simulation: Simulation) -> None:
    """A rollout that is taken back has no budget to keep."""

    def unbounded(*arguments: Any, **options: Any) -> Any:
        batch = _back(*arguments, **options)
        return replace(batch, budget=Budget(batch.total, max_unavailable=batch.total, max_surge=batch.total))

    with patch.object(ending, "back", unbounded):
        await batching(simulation)


async def pods_of_others(simulation: Simulation) -> None:
    """Whatever has the labels of a workload is taken for its own."""

    def labelled(workload: Workload) -> Any:
        return workload.pods

    with (
        patch.object(in_place, "own_pods", labelled),
        patch("kedge.plan.batching.daemon_pods.own_pods", labelled),
    ):
        await batching(simulation)
