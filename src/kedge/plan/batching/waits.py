"""Waits: what a rollout in batches waits for, and how that reads.

Nothing is decided on the sentences: status, events and commands show them, and programs read the wait itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import listed


class BatchCode(StrEnum):
    """What a rollout waits for."""

    invalid = "InvalidSpec"
    """The plan cannot be carried out; the blockers say what is wrong."""
    missing = "Missing"
    """Something that the rollout refers to is not there."""
    not_stable = "NotStable"
    """A workload is still being scaled or updated by somebody else."""
    claimed = "Claimed"
    """Another rollout moves the workload."""
    autoscaler = "Autoscaler"
    """An autoscaler sets the replicas of the workload."""
    not_observed = "NotObserved"
    """The status of a workload does not speak of its spec yet."""
    not_available = "NotAvailable"
    """Pods of the target are not available yet."""
    proof_lost = "BatchProofLost"
    """Pods of earlier batches are not available any more."""
    scaling_down = "ScalingDown"
    """Pods of old revisions are still there."""
    no_room = "NoRoom"
    """There are as many pods as there may be."""
    budget_spent = "BudgetSpent"
    """As many pods as may be unavailable are."""
    interval = "InstanceInterval"
    """The time between two pods of a batch has not passed."""
    paused = "Paused"
    last_batch = "Partition"
    """No later batch may roll yet."""
    hook = "Webhook"
    """A webhook has not said yes yet."""
    metric = "Metric"
    """A metric is being measured."""
    traffic = "Traffic"
    """The traffic has not moved yet."""
    deadline = "DeadlineExceeded"
    """The batch takes longer than it may, and is held."""


def sentence(wait: Wait) -> str:
    """What is waited for."""
    written = _SENTENCES.get(wait.code)
    return written.format_map(_Parts(wait)) if written is not None else _plain(wait)


_SENTENCES: Mapping[str, str] = {
    BatchCode.invalid: "{reported}",
    BatchCode.missing: "{unit} does not exist",
    BatchCode.not_stable: "{unit} is still being scaled or updated{why}: it has to be paused or stable",
    BatchCode.claimed: "{unit} is being rolled out by {blockers}",
    BatchCode.autoscaler: "{blockers} sets the replicas of {unit}: delete it, or set onAutoscaler to TakeOver",
    BatchCode.not_observed: "the status of {unit} does not speak of its spec yet",
    BatchCode.not_available: "{available} of {goal} pods of {unit} are available{tolerated}{why}",
    BatchCode.proof_lost: "earlier batches have to stay available, and {available} of {goal} pods of {unit} are{why}",
    BatchCode.scaling_down: "old revisions still have {pods} pods, and are to have {goal}",
    BatchCode.no_room: "there may be at most {most} pods, and there are {pods}",
    BatchCode.budget_spent: "at least {floor} of {total} pods have to stay available, and {available} are{why}",
    BatchCode.interval: "{moved} of {size} pods of the batch have begun, one every {seconds} s",
    BatchCode.paused: "it is paused",
    BatchCode.last_batch: "batch {batch} is the last one that may roll, of {batches}: raise batchPartition to go on",
    BatchCode.hook: "webhook {unit} has not agreed yet{why}",
    BatchCode.metric: "metric {unit}: {successful} of {count} measurements were in range{why}",
    BatchCode.traffic: "traffic is not where it should be yet{why}",
    BatchCode.deadline: "the batch takes longer than {seconds} s{why}",
}


class _Parts(dict[str, str]):
    """The parts of a sentence, by name; a number that the wait does not have reads as a question mark."""

    def __init__(self, wait: Wait) -> None:
        super().__init__({name: str(number) for name, number in wait.numbers.items()})
        reported = [one.reported for one in wait.blockers if one.reported]
        self["unit"] = wait.unit
        self["blockers"] = listed([one.key for one in wait.blockers], 3)
        self["reported"] = "; ".join(reported)
        self["why"] = f": {'; '.join(reported)}" if reported else ""
        tolerated = wait.numbers.get("tolerated", 0)
        self["tolerated"] = f", and {tolerated} may be unavailable" if tolerated else ""

    def __missing__(self, name: str) -> str:
        return "?"


def _plain(wait: Wait) -> str:
    reported = "; ".join(one.reported or one.key for one in wait.blockers)
    return f"{wait.unit}: {wait.code}" + (f": {reported}" if reported else "")


def waiting_for(unit: str, code: BatchCode, *reported: str, **numbers: int) -> Wait:
    """A wait of one unit, with what others report."""
    return Wait(unit, code, numbers, tuple(Blocker(unit, reported=one) for one in reported))
