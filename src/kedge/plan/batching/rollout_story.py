"""Rollout story: where a rollout in batches stands, batch by batch, each with the reason; from its own status alone.

What a rollout waits for is in its status as a sentence, written by whoever decided it: it is repeated here, with the
time since when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, to_builtins

from kedge.api.oam.keys import ABORT, RETRY
from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollout_status import BatchState, HookResult, MetricResult, RollingState, RolloutStatus
from kedge.api.oam.rollouts import AnyRollout, ApplicationDeployment, AppRollout, Rollout, RolloutTrait
from kedge.api.pods import Pod
from kedge.plan.availability.pod_trouble import trouble_of
from kedge.plan.batching.states import ENDED
from kedge.plan.state import State
from kedge.plan.text import age, counted, moment, of_all, path_of

NOT_NOTICED: Final = "its controller has not taken note of the last change yet: is `kedge operator --batches` running?"
_R, _B = RollingState, BatchState
_WORDS: Final[Mapping[RollingState, str]] = {
    _R.locating: "looks for its workloads",
    _R.verifying: "is being verified",
    _R.initializing: "takes its workloads over",
    _R.rolling: "is rolling",
    _R.finalising: "is ending",
    _R.failing: "is failing",
    _R.succeeded: "has succeeded",
    _R.abandoning: "gives up its old target",
    _R.deleting: "is being deleted",
    _R.failed: "has failed",
}
_BATCH_WORDS: Final[Mapping[BatchState, str]] = {
    _B.initializing: "about to begin",
    _B.rolling: "pods are moving",
    _B.verifying: "waits for its pods and metrics",
    _B.verify_failed: "failed",
    _B.finalizing: "pods are available",
    _B.ready: "done",
}
_OVER: Final = (_R.finalising, _R.succeeded)
_BROKEN: Final = (_R.failing, _R.failed)
_STATES: Final[Mapping[RollingState, State]] = {
    _R.failing: State.failed,
    _R.failed: State.failed,
    _R.succeeded: State.available,
    _R.deleting: State.leaving,
}
_NAMED: Final = 10
"""Pods whose trouble is told."""


class BatchStory(Struct, frozen=True):
    """Where one batch stands."""

    index: int
    state: State
    pods: int
    """How many pods it moves."""
    goal: int
    """How many pods of the target there are when it is done."""
    word: str
    """What it does, in a few words."""
    ready: int | None = None
    """How many pods of the target are ready, of the current batch."""
    why: str = ""
    since: datetime | None = None
    """Since when it waits for that."""
    gates: tuple[str, ...] = ()
    """What its webhooks and metrics said so far."""

    @property
    def is_done(self) -> bool:
        return self.state is State.available


class RolloutStory(Struct, frozen=True):
    """Where a rollout stands."""

    kind: str
    namespace: str
    name: str
    state: State
    word: str
    target: str
    """What it moves to."""
    size: int | None
    """How many pods there are to be in the end; None before that is known."""
    ready: int
    """How many pods of the target are ready."""
    current: int
    """The current batch, counted from 0."""
    has_ended: bool
    why: str = ""
    """What it waits for, or why it failed."""
    since: datetime | None = None
    doubt: str = ""
    """Why this may be outdated."""
    batches: tuple[BatchStory, ...] = ()
    troubles: tuple[str, ...] = ()
    """What is wrong with pods of the target."""

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.path} to {self.target}"

    @property
    def is_done(self) -> bool:
        return self.has_ended and self.state is State.available

    @property
    def batch(self) -> str:
        """Which batch of how many it is at; nothing before that is known."""
        return f"{self.current + 1}/{len(self.batches)}" if self.batches else ""

    def as_json(self) -> dict[str, Any]:
        """The story for programs."""
        return {**to_builtins(self), "done": self.is_done}


def tell_rollout(rollout: AnyRollout, pods: Iterable[Pod] = ()) -> RolloutStory:
    """Where a rollout stands. `pods` are those of its target, if somebody has read them."""
    meta, status = rollout.metadata, rollout.status
    plan = rollout.spec.rollout_plan
    doubt = NOT_NOTICED if is_unnoticed(rollout) else ""
    state = State.unknown if doubt else _state(plan, status)
    why = status.failure if status.rolling_state in _BROKEN else status.message
    return RolloutStory(
        kind=rollout.resource.kind,
        namespace=meta.namespace or "",
        name=meta.name,
        state=state,
        word="waits for its controller" if doubt else _word(plan, status),
        target=target_text(rollout),
        size=status.rollout_target_size if status.batches else None,
        ready=status.upgraded_ready_replicas,
        current=min(status.current_batch, max(0, len(status.batches) - 1)),
        has_ended=status.rolling_state in ENDED and not doubt and meta.deletion_timestamp is None,
        why="" if status.rolling_state is _R.succeeded else why,
        since=None if status.rolling_state in ENDED else status.waiting_since,
        doubt=doubt,
        batches=tuple(_batch(plan, status, index) for index in range(len(status.batches))),
        troubles=tuple(_troubles(pods)),
    )


def is_unnoticed(rollout: AnyRollout) -> bool:
    """Whether the status does not speak of what the rollout asks for now."""
    meta, status = rollout.metadata, rollout.status
    if status.rolling_state is None or status.observed_generation < meta.generation:
        return True
    if status.rolling_state is _R.failed:
        return meta.annotations.get(RETRY, "") not in ("", status.retried)
    is_aborted = meta.annotations.get(ABORT) == "true"
    return is_aborted and status.rolling_state not in (*ENDED, _R.failing, _R.abandoning, _R.deleting)


def target_text(rollout: AnyRollout) -> str:
    """What a rollout is asked to move to."""
    match rollout:
        case RolloutTrait():
            ref = rollout.spec.target_ref
            return f"{ref.kind} {ref.name}"
        case Rollout():
            return f"revision {rollout.spec.target_revision_name}"
        case AppRollout():
            return f"application revision {rollout.spec.target_app_revision_name}"
        case ApplicationDeployment():
            return f"Application {rollout.spec.target_application_name}"


def _word(plan: RolloutPlan, status: RolloutStatus) -> str:
    if status.rolling_state is _R.rolling and plan.paused:
        return "is paused"
    return _WORDS[status.rolling_state or _R.locating]


def _state(plan: RolloutPlan, status: RolloutStatus) -> State:
    rolling = status.rolling_state or _R.locating
    if rolling in _STATES:
        return _STATES[rolling]
    if plan.paused:
        return State.paused
    holds = rolling in (_R.locating, _R.verifying) or _is_held(plan, status)
    return State.waiting if holds and status.message else State.moving


def _is_held(plan: RolloutPlan, status: RolloutStatus) -> bool:
    """Whether the next batch is behind the partition."""
    is_ready = status.rolling_state is _R.rolling and status.batch_rolling_state is _B.ready
    return is_ready and plan.last_batch is not None and plan.last_batch <= status.current_batch


# Batches


def _batch(plan: RolloutPlan, status: RolloutStatus, index: int) -> BatchStory:
    found = status.batches[index]
    if index > status.current_batch:
        return BatchStory(
            index, State.waiting, found.replicas, found.goal, "not begun", why=_later(plan, status, index)
        )
    if index < status.current_batch or status.rolling_state in _OVER:
        return BatchStory(
            index, State.available, found.replicas, found.goal, "done", gates=tuple(_metrics(status, index))
        )
    return _current(plan, status)


def _current(plan: RolloutPlan, status: RolloutStatus) -> BatchStory:
    index, found = status.current_batch, status.batches[status.current_batch]
    is_broken = status.rolling_state in _BROKEN
    is_ready = status.rolling_state is _R.rolling and status.batch_rolling_state is _B.ready
    state = State.failed if is_broken else State.available if is_ready else _state(plan, status)
    return BatchStory(
        index,
        state,
        found.replicas,
        found.goal,
        _current_word(status),
        ready=status.upgraded_ready_replicas,
        why="" if is_ready else status.failure if is_broken else status.message,
        since=None if is_ready or is_broken else status.waiting_since,
        gates=(*_hooks(status.hooks), *_metrics(status, index)),
    )


def _current_word(status: RolloutStatus) -> str:
    if status.rolling_state in _BROKEN:
        return "stopped"
    if status.rolling_state is not _R.rolling:
        return "not begun" if status.batch_started_at is None else "stopped"
    return _BATCH_WORDS[status.batch_rolling_state or _B.initializing]


def _later(plan: RolloutPlan, status: RolloutStatus, index: int) -> str:
    """What a batch waits for that has not begun."""
    if status.rolling_state in _BROKEN:
        return "the rollout has failed"
    if plan.last_batch is not None and index > plan.last_batch:
        return f"batch {plan.last_batch} is the last one that may roll: raise batchPartition to go on"
    return f"batch {index - 1} comes first"


def _hooks(results: Iterable[HookResult]) -> Iterator[str]:
    for one in results:
        said = f": {one.message}" if one.message else ""
        yield f"webhook {one.name}: {one.state} after {counted(one.attempts, 'call')}{said}"


def _metrics(status: RolloutStatus, index: int) -> Iterator[str]:
    for one in status.metrics:
        if one.batch == index:
            yield f"metric {one.name}: {_measured(one)}"


def _measured(one: MetricResult) -> str:
    told = [f"{counted(one.successful, 'measurement')} in its range", f"{one.failed} out of it"]
    told += [f"{one.inconclusive} without an answer"] if one.inconclusive else []
    told += [f"the last one {one.value}"] if one.value else []
    return ", ".join(told) + (f": {one.message}" if one.message else "")


def _troubles(pods: Iterable[Pod]) -> Iterator[str]:
    found = (trouble_of(pod.metadata, pod.status) for pod in pods)
    told = sorted(str(one) for one in found if one is not None)
    yield from told[:_NAMED]
    if len(told) > _NAMED:
        yield f"and {len(told) - _NAMED} more pods"


# In sentences


def rollout_line(story: RolloutStory, now: datetime) -> str:
    """A rollout in a line."""
    parts = [story.word]
    if story.size is not None:
        parts += [f"batch {story.current} of {len(story.batches)}", f"{of_all(story.ready, story.size, 'pod')} ready"]
    why = story.doubt or (f"{story.why}{_since(story.since, now)}" if story.why else "")
    return ": ".join(part for part in (", ".join(parts), why) if part)


def batch_line(story: RolloutStory, batch: BatchStory, now: datetime) -> str:
    """A batch in a line: what it moves, its goal, what is observed and what it waits for."""
    goal = f"{counted(batch.pods, 'pod')}, goal {batch.goal} of {story.size}"
    ready = f", {batch.ready} ready" if batch.ready is not None and not batch.is_done else ""
    why = f": {batch.why}{_since(batch.since, now)}" if batch.why else ""
    return f"{goal}{ready}, {batch.word}{why}"


def explained_rollout(story: RolloutStory, now: datetime) -> list[str]:
    """Why a rollout is where it is."""
    lines = [f"{story.title} {rollout_line(story, now)}"]
    if story.since is not None and story.why and not story.doubt:
        lines.append(f"it waits for that since {moment(story.since)}")
    if not story.batches:
        lines.append("its batches are not known yet: they are fixed when its workloads are found and verified")
    for batch in story.batches:
        lines += explained_batch(story, batch, now)
    return [*lines, *story.troubles, *_what_to_do(story)]


def explained_batch(story: RolloutStory, batch: BatchStory, now: datetime) -> list[str]:
    """Why a batch is where it is."""
    gates = [f"  {gate}" for gate in batch.gates]
    return [f"batch {batch.index}: {batch_line(story, batch, now)}", *gates]


def _what_to_do(story: RolloutStory) -> Iterator[str]:
    name = f"{story.kind.lower()}/{story.name} -n {story.namespace}"
    if story.state is State.failed and story.has_ended:
        yield "what has moved stays where it is"
        yield f"`kedge retry {name}` starts it again, `kedge rollback {name}` goes back"
    if story.state is State.paused:
        yield f"`kedge resume {name}` lets it go on"


def _since(since: datetime | None, now: datetime) -> str:
    return f" (for {age(now - since)})" if since is not None else ""
