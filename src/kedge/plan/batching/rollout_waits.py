"""Rollout waits: what a rollout in batches waits for, beside what its workloads wait for, and how all that reads.

Nothing is decided on the sentences: status, events and commands show them, and programs read the wait itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from kedge.plan.batching.hooks import HookCode, hook_wait_text
from kedge.plan.batching.waits import sentence as moves_sentence
from kedge.plan.measuring.metric import MetricCode, metric_wait_text
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import listed
from kedge.plan.traffic.routes import TrafficCode
from kedge.plan.traffic.wait_text import wait_text as traffic_wait_text


class BatchCode(StrEnum):
    """What a rollout waits for."""

    invalid = "InvalidSpec"
    """The plan cannot be carried out; the blockers say what is wrong."""
    missing = "Missing"
    """Something that the rollout refers to is not there."""
    missing_source = "MissingSource"
    """A workload that the rollout is to move from is not there."""
    taken = "Taken"
    """Another rollout brings the Application in."""
    not_rendered = "NotRendered"
    """The Application has no revision of its present state yet."""
    autoscaler = "Autoscaler"
    """An autoscaler sets the replicas of the workload."""
    autoscaler_stopping = "AutoscalerStopping"
    """An autoscaler was told to stop, and has not yet."""
    proof_lost = "BatchProofLost"
    """Pods of earlier batches are not available any more."""
    ceiling = "CeilingReached"
    """There are as many pods as there may be."""
    floor = "FloorReached"
    """As many pods as may be unavailable are."""
    interval = "InstanceInterval"
    """The time between two pods of a batch has not passed."""
    paused = "Paused"
    last_batch = "Partition"
    """No later batch may roll yet."""
    refused = "WriteRefused"
    """The server does not take what was written; the blockers say why."""
    deadline = "DeadlineExceeded"
    """The batch takes longer than it may, and is held."""
    forbidden = "Forbidden"
    """The API server refuses something to the operator; the blockers say what."""


def sentence(wait: Wait) -> str:
    """What is waited for."""
    written = _SENTENCES.get(wait.code)
    if written is not None:
        return written.format_map(_Parts(wait))
    return _TEXTS.get(wait.code, moves_sentence)(wait)


_TEXTS: Mapping[str, Callable[[Wait], str]] = {
    **dict.fromkeys(HookCode, hook_wait_text),
    **dict.fromkeys(MetricCode, metric_wait_text),
    **dict.fromkeys(TrafficCode, traffic_wait_text),
}


_SENTENCES: Mapping[str, str] = {
    BatchCode.invalid: "{reported}",
    BatchCode.missing: "{unit} does not exist",
    BatchCode.missing_source: "{unit} does not exist: if nothing ran before, remove it from sourceRef",
    BatchCode.taken: "{unit} is being brought in by {reported}",
    BatchCode.not_rendered: "{unit} has no revision of its present state yet{why}",
    BatchCode.autoscaler: "{blockers} sets the replicas of {unit}: delete it, or set onAutoscaler to TakeOver",
    BatchCode.autoscaler_stopping: "{blockers} still sets the replicas of {unit}: KEDA has not stopped it yet",
    BatchCode.proof_lost: "earlier batches have to stay available, and {available} of {goal} pods of {unit} are{why}",
    BatchCode.ceiling: "there may be at most {most} pods, and there are {pods}",
    BatchCode.floor: "at least {floor} of {total} pods have to stay available, and {available} are{why}",
    BatchCode.interval: "{moved} of {size} pods of the batch have begun, one every {seconds} s",
    BatchCode.paused: "it is paused",
    BatchCode.last_batch: "batch {batch} is the last one that may roll, of {batches}: raise batchPartition to go on",
    BatchCode.refused: "{unit} cannot be written{why}",
    BatchCode.deadline: "the batch takes longer than {seconds} s{why}",
    BatchCode.forbidden: "the operator may not do what is needed, allow it: {reported}",
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


def waiting_for(unit: str, code: BatchCode, *reported: str, **numbers: int) -> Wait:
    """A wait of one unit, with what others report."""
    return Wait(unit, code, numbers, tuple(Blocker(unit, reported=one) for one in reported))
