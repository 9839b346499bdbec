"""Waits of moves: what a workload waits for while a rollout moves it, beside the codes of the kernel.

A wait is data; `sentence` says it in words, last.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kedge.plan.moving.wait import Blocker, Code, Wait
from kedge.plan.text import first_few


class MoveCode(StrEnum):
    """What a move waits for."""

    not_found = "NotFound"
    """There is no such workload."""
    leaving = "Leaving"
    """The workload is being deleted."""
    not_observed = "NotObserved"
    """The workload's status does not speak of its spec yet."""
    scaling = "Scaling"
    """The workload does not have as many pods as it asks for."""
    updating = "Updating"
    """The workload still replaces pods by itself."""
    claimed = "Claimed"
    """Another rollout moves the workload."""
    paused = "WorkloadPaused"
    """Somebody paused the workload while it was moved."""
    not_available = "NotAvailable"
    """Not enough pods of the target are available."""
    pods_left = "PodsLeft"
    """There are more pods than there should be."""
    strategy_changed = "StrategyChanged"
    """Somebody gave the workload another update strategy while it was moved."""


SENTENCES: Final[Mapping[str, str]] = {
    MoveCode.not_found: "{unit} does not exist",
    MoveCode.leaving: "{unit} is being deleted",
    MoveCode.not_observed: "{unit} has changed, and its controller has not reported on that yet",
    MoveCode.scaling: "{unit} is still scaling: it has {pods} of {desired} pods",
    MoveCode.updating: "{unit} is still updating: {updated} of {desired} pods are updated, {available} are available",
    MoveCode.claimed: "{unit} is being moved by another rollout",
    MoveCode.paused: "{unit} was paused by somebody else",
    MoveCode.not_available: "{available} of {goal} pods of {unit} are available, {tolerated} may be unavailable",
    MoveCode.pods_left: "{unit} has {pods} pods and is to have {goal}",
    MoveCode.strategy_changed: "the update strategy of {unit} was changed by somebody else",
    Code.budget_spent: "{unit} waits: {available} of {desired} pods are available, at most {maxUnavailable} may not be",
    Code.revision_unproven: "{unit} waits: of the new revision {holding} pods are not available yet",
}


def sentence(wait: Wait) -> str:
    """What is waited for, in words, with what the blockers say of themselves."""
    said = SENTENCES.get(wait.code, "{unit} waits: " + wait.code).format(unit=wait.unit, **wait.numbers)
    blockers = [_blocker(one) for one in wait.blockers]
    return f"{said}: {first_few(blockers)}" if blockers else said


def _blocker(one: Blocker) -> str:
    return f"{one.key} ({one.reported})" if one.reported else one.key
