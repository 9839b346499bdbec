"""Rollout states: the words for where a rollout is, and where its current batch is."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RollingState(StrEnum):
    """Where a rollout is."""

    locating = "locatingTargetApp"
    verifying = "verifyingSpec"
    initializing = "initializing"
    rolling = "rollingInBatches"
    finalising = "finalising"
    failing = "rolloutFailing"
    succeeded = "rolloutSucceed"
    abandoning = "rolloutAbandoning"
    deleting = "RolloutDeletingState"
    failed = "rolloutFailed"

    @classmethod
    def _missing_(cls, value: object) -> RollingState | None:
        """The design document of KubeVela has another word than its code for a rollout that was given up."""
        return cls.abandoning if value == ABANDONED else None


ABANDONED: Final = "rolloutAbandoned"
"""What the design document calls `rolloutAbandoning`. It is read, and never written."""
BEFORE_BATCHES: Final = (RollingState.locating, RollingState.verifying)
"""The states in which no batch is fixed yet."""


class BatchState(StrEnum):
    """Where the current batch is."""

    initializing = "batchInitializing"
    rolling = "batchInRolling"
    verifying = "batchVerifying"
    verify_failed = "batchVerifyFailed"
    finalizing = "batchFinalizing"
    ready = "batchReady"
