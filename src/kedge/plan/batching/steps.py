"""Steps: what a step of a rollout depends on, and what it may answer with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import CanaryMetric, ObjectReference, RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.app_control import ControlledApplication
from kedge.plan.batching.autoscalers import Autoscaler
from kedge.plan.batching.hooks import HookCall, HookIdentity
from kedge.plan.batching.moves import Moves, Step, Workloads, Write
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.batching.spec_rules import create_problems, remembered_problems
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.fields import Object
from kedge.plan.moving.wait import Wait
from kedge.plan.traffic.routes import ObservedRoute


class RolloutIdentity(Struct, frozen=True):
    """Which rollout."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int = 0

    @property
    def claim(self) -> str:
        """What it writes to the workloads that it moves."""
        return f"{self.kind}/{self.name}/{self.uid}"


class BatchRolloutInput(Struct, frozen=True):
    """A rollout, and all that a step depends on."""

    identity: RolloutIdentity
    plan: RolloutPlan
    status: RolloutStatus
    wanted: str
    """What it is asked to move to."""
    moving: str
    """What it moves to, or moved to last, by its status; empty if nothing yet."""
    workloads: Workloads | None = None
    """What moves; None if that is not known."""
    moves: Moves | None = None
    wait: Wait | None = None
    """What has to be there before it is known what moves."""
    problem: str = ""
    """Why it can never be known."""
    bad_references: tuple[str, ...] = ()
    """What is wrong with what it refers to, beside its plan."""
    route: ObservedRoute = None
    """The route that divides the traffic, if the plan names one."""
    autoscalers: tuple[Autoscaler, ...] = ()
    """Those of the namespace."""
    writes: tuple[Write, ...] = ()
    """What has to be written before it is known what moves."""
    applications: tuple[ControlledApplication, ...] = ()
    """The Applications that it takes over, and gives back at the end."""
    services: tuple[Object, ...] = ()
    """The Services of its traffic, if it is to tell them apart."""
    is_deleting: bool = False
    is_aborted: bool = False
    retry: str = ""
    """A request to start a failed rollout again."""

    @property
    def is_scale(self) -> bool:
        return self.workloads is not None and self.workloads.is_scale

    @property
    def caller(self) -> HookIdentity:
        """Who calls webhooks."""
        one = self.identity
        return HookIdentity(one.kind, one.namespace, one.name, one.uid, one.generation, self.moving)


class Move(Struct, frozen=True):
    """An event, and what it changes in the status beside the state."""

    event: RolloutEvent
    status: RolloutStatus
    message: str = ""


class Note(Struct, frozen=True):
    """Something to keep in the status before anything else is done."""

    status: RolloutStatus
    warnings: tuple[str, ...] = ()
    """What users should know: what was left alone, or could not be given back."""


class RouteWrite(Struct, frozen=True):
    """A patch of a route, in the version that was read."""

    ref: ObjectReference
    patch: dict[str, Any]
    status: RolloutStatus
    """What the status has to say before it is sent."""


class Query(Struct, frozen=True):
    """A metric to measure, of a batch that is available since then."""

    metric: CanaryMetric
    batch: int
    since: datetime


class Act(Struct, frozen=True):
    """Something to do: one of these."""

    writes: tuple[Write, ...] = ()
    call: HookCall | None = None
    query: Query | None = None
    route: RouteWrite | None = None


class Hold(Struct, frozen=True):
    """Something to wait for; `until` is when time alone may change something."""

    wait: Wait
    until: datetime | None = None


class Ended(Struct, frozen=True):
    """Nothing is left to do; a rollout that is being deleted may go."""


Next: TypeAlias = Move | Note | Act | Hold | Ended


def failed(seen: BatchRolloutInput, why: str, event: RolloutEvent = RolloutEvent.failed) -> Move:
    """The rollout fails, for this reason: as it is now, so that only a later edit can mend it."""
    return Move(event, replace(seen.status, failure=why, observed_generation=seen.identity.generation), why)


def answer(seen: BatchRolloutInput, found: Step, done: Callable[[], Next]) -> Next:
    """What the answer of a kind's moves comes to; `done` if there is nothing left to do."""
    if found.failure:
        return failed(seen, found.failure)
    if found.writes:
        return Act(found.writes)
    return holding(found.wait) if found.wait is not None else done()


def holding(wait: Wait) -> Hold:
    """Hold for a wait, at most until time alone may change something for one of its blockers."""
    return Hold(wait, min((one.until for one in wait.blockers if one.until is not None), default=None))


def known(seen: BatchRolloutInput) -> tuple[Workloads, Moves]:
    """What moves, and how, where that is known."""
    assert seen.workloads is not None
    assert seen.moves is not None
    return seen.workloads, seen.moves


def not_located(seen: BatchRolloutInput) -> Next | None:
    """What is referred to may vanish at any time: then there is something to wait for, or a failure."""
    if seen.workloads is not None and seen.moves is not None:
        return None
    if seen.problem:
        return failed(seen, seen.problem)
    return invalid_references(seen) or Hold(seen.wait or waiting_for("the target", BatchCode.missing))


def invalid_plan(seen: BatchRolloutInput) -> Next | None:
    """A plan that is not valid holds the rollout where it is, until somebody corrects it."""
    problems = [
        *create_problems(seen.plan, seen.identity.namespace),
        *remembered_problems(seen.plan, seen.status),
    ]
    if not problems:
        return invalid_references(seen)
    return Hold(waiting_for("the plan", BatchCode.invalid, *(f"{one.path}: {one.message}" for one in problems)))


def invalid_references(seen: BatchRolloutInput) -> Hold | None:
    """What refers to nothing that there can be holds the rollout where it is, until somebody corrects it."""
    if not seen.bad_references:
        return None
    return Hold(waiting_for("the rollout", BatchCode.invalid, *seen.bad_references))
