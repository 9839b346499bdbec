"""Strategies for staged runs, drawn from a seed: two or three stages, with anything a user may ask of them."""

from __future__ import annotations

from random import Random
from typing import Any

RINGS = ("staging", "canary", "production")
_APPROVAL = {"type": "Approval"}
_LONG_WAIT = {"type": "TimedWait", "waitTime": "40s"}


def labels(rng: Random, rings: int) -> dict[str, str]:
    """What says where a member belongs, and its place there."""
    return {"ring": rng.choice(RINGS[:rings]), "order": rng.choice(["1", "2", "10", "last"])}


def strategy(rng: Random, rings: int) -> dict[str, Any]:
    """The spec of a strategy."""
    return {
        "stages": [_stage(rng, ring) for ring in RINGS[:rings]],
        "deleteStageTasks": rng.choice([[], [], [_APPROVAL], [_wait(rng)], [_wait(rng), _APPROVAL]]),
        "unmatchedClusters": rng.choice(["Fail", "Skip", "Wait"]),
        "unreachableClusters": rng.choice(["Wait", "Wait", "Skip", "Fail"]),
        "rollbackOnFailure": rng.random() < 0.4,
    }


def patient_strategy(rng: Random, rings: int) -> dict[str, Any]:
    """One with a gate after every stage, which stays closed for a while."""
    drawn = strategy(rng, rings)
    for stage in drawn["stages"]:
        stage["afterStageTasks"] = rng.choice([[_LONG_WAIT], [_LONG_WAIT], [_LONG_WAIT, _APPROVAL], [_APPROVAL]])
    return drawn


def _stage(rng: Random, ring: str) -> dict[str, Any]:
    stage: dict[str, Any] = {
        "name": ring,
        "labelSelector": {"matchLabels": {"ring": ring}},
        "maxConcurrency": rng.choice([1, 1, 2, "50%", "100%"]),
        "afterStageTasks": rng.choice([[], [], [_wait(rng)], [_APPROVAL], [_wait(rng), _APPROVAL]]),
    }
    if rng.random() < 0.25:
        stage["beforeStageTasks"] = [_APPROVAL]
    if rng.random() < 0.3:
        stage["maxFailures"] = rng.choice([0, 1, "50%"])
    if rng.random() < 0.5:
        stage["sortingLabelKey"] = "order"
    return stage


def _wait(rng: Random) -> dict[str, Any]:
    return {"type": "TimedWait", "waitTime": rng.choice(["2s", "10s", "40s"])}
