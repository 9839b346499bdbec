"""Rollout events: what happens to a rollout in batches, and what it waits for, as events of the rollout."""

from __future__ import annotations

import logging
from typing import Any, Final

from kedge.api.oam.rollout_status import RolloutStatus
from kedge.kube.events import Recorder
from kedge.plan.batching.moves import Write
from kedge.plan.batching.rollout_waits import sentence
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.batching.steps import Move, Note
from kedge.plan.moving.wait import Wait

_REASONS: Final = {
    RolloutEvent.verified: "RolloutVerified",
    RolloutEvent.initialized: "RolloutInitialized",
    RolloutEvent.batch_rolled: "BatchRollout",
    RolloutEvent.batch_available: "BatchAvailable",
    RolloutEvent.batch_finished: "BatchFinalized",
    RolloutEvent.all_batches_finished: "AllBatchesRolledOut",
    RolloutEvent.finalized: "RolloutFinalized",
    RolloutEvent.modified: "RolloutRestarted",
    RolloutEvent.retried: "RolloutRetried",
    RolloutEvent.deleted: "RolloutDeleted",
    RolloutEvent.adopted: "RolloutAdopted",
}
log = logging.getLogger(__name__)


class RolloutEvents:
    """Records what happens to rollouts."""

    def __init__(self, events: Recorder) -> None:
        self._events = events
        self._said: dict[str, str] = {}

    def moved(self, rollout: Any, move: Move, status: RolloutStatus) -> None:
        """An event led to another state."""
        if move.event in (RolloutEvent.failed, RolloutEvent.batch_failed):
            self._events.warning(rollout, "RolloutFailed", move.message)
            log.warning("%s: %s", rollout.metadata.name, move.message)
        elif move.event in _REASONS:
            self._events.normal(rollout, _REASONS[move.event], _text(move.event, status))

    def warned(self, rollout: Any, note: Note) -> None:
        """Something was left undone."""
        for text in note.warnings:
            self._events.warning(rollout, "RolloutIncomplete", text)
            log.warning("%s: %s", rollout.metadata.name, text)

    def wrote(self, rollout: Any, write: Write) -> None:
        """A workload was changed."""
        log.info("%s: wrote %s", rollout.metadata.name, write.ref)

    def waiting(self, rollout: Any, wait: Wait) -> None:
        """Something is waited for. Said once for each thing."""
        uid, text = rollout.metadata.uid, sentence(wait)
        if self._said.get(uid) == wait.code:
            return
        self._said[uid] = wait.code
        self._events.normal(rollout, f"WaitsFor{wait.code}", text)


def _text(event: RolloutEvent, status: RolloutStatus) -> str:
    batch = f"batch {status.current_batch} of {len(status.batches)}"
    match event:
        case RolloutEvent.verified:
            goals = ", ".join(str(one.goal) for one in status.batches)
            return f"{status.rollout_target_size} pods in {len(status.batches)} batches, to {goals}"
        case RolloutEvent.batch_rolled:
            return f"{batch}: {status.upgraded_replicas} pods are of the target"
        case RolloutEvent.batch_available | RolloutEvent.batch_finished:
            return f"{batch} is available"
        case RolloutEvent.adopted:
            return status.message
    return f"the rollout is in the state {status.rolling_state}"
