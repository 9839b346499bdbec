"""Traffic: weights that follow the batches of a rollout, and are given back if it does not get to its end.

    step = traffic_step(plan, status, route, wanted_percent(plan, goal, total, is_last_batch), now)

What the caller does:

* asks when the pods of the target that the share is for are available, and takes pods of the source away only when a
  step is done (`is_done`): capacity, weight, in effect, and only then less capacity. While later batches roll it asks
  again with the share of the last finished one, so that a change by others is noticed.
* stores `remembered` in the rollout's status (`with_remembered`). The first step only records the weights and waits
  for that; no weight is changed before they can be given back.
* sends `patch` as a merge patch; it is for the version that was read. A conflict is no failure: read and ask again.
  What the server refuses is something to wait for, too (`problem_wait`).
* looks again at `look_again`. Nothing else tells that a gateway has accepted a route, since routes are not watched.

On failure, abandonment and deletion it asks `restore_step` first, with the route of `remembered_ref`, takes pods of
the target away only when that is done, and then forgets the record (`without_remembered`). All traffic goes to the
source then: where batches have taken its pods away, they have to be back and available before. A rollout that is being
deleted has to come to its end, so that its steps are `bounded`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference, RolloutPlan, Traffic, TrafficProvider
from kedge.api.oam.rollout_status import Remembered, RolloutStatus
from kedge.plan.fields import Object, at, text
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import object_name
from kedge.plan.traffic.providers import PROVIDERS, route_ref, traffic_problem
from kedge.plan.traffic.routes import MANAGER, ObservedRoute, RouteProblem, TrafficCode
from kedge.plan.traffic.shifting import WeightsBefore, left_alone, recorded, restore, shift
from kedge.plan.traffic.split import WHOLE, Pair, Unreadable
from kedge.plan.traffic.wait_text import wait_text

LOOK_AGAIN: Final = timedelta(seconds=5)
"""How soon a route is read again while something is waited for."""
AT_ONCE: Final = 3
"""How many times weights that somebody else has changed are set again at once."""
PAUSES: Final = tuple(timedelta(seconds=each) for each in (5, 10, 20, 40, 80, 120))
"""How long they are left alone then: the first time, the second, and so on; the last one from there on."""

GIVE_UP: Final = timedelta(minutes=5)
"""How long a rollout that is being deleted tries to change weights, the first time that it does not work."""


class TrafficStep(Struct, frozen=True):
    """What to do now."""

    patch: dict[str, Any] | None = None
    remembered: Remembered | None = None
    wait: Wait | None = None
    failure: str = ""
    look_again: datetime | None = None
    notes: tuple[str, ...] = ()
    """What users should know: rules that are left alone; why there was nothing to give back."""

    @property
    def is_done(self) -> bool:
        """Whether the weights are as wanted and in effect."""
        return self.patch is None and self.wait is None and not self.failure


class TrafficRecord(Struct, frozen=True, tag_field="of", tag="traffic"):
    """What a rollout has to know of a route, as `Remembered.value` has it."""

    provider: TrafficProvider
    source: str
    target: str
    before: WeightsBefore
    percent: int | None = None
    """What was written last."""
    corrections: int = 0
    """How many times it was written again because somebody else had changed it."""
    corrected_at: datetime | None = None
    aim: int | None = None
    """The share that is tried while the rollout is being deleted; None: what was before."""
    tried_since: datetime | None = None
    gave_up: bool = False
    """Whether that was given up once."""

    @property
    def pair(self) -> Pair:
        return Pair(self.source, self.target)

    @property
    def free_at(self) -> datetime | None:
        """When weights that somebody else keeps changing may be set again, or trusted; None: at any time."""
        if self.corrected_at is None or self.corrections < AT_ONCE:
            return None
        return self.corrected_at + PAUSES[min(self.corrections - AT_ONCE, len(PAUSES) - 1)]


def wanted_percent(plan: RolloutPlan, goal: int, total: int, is_last_batch: bool) -> int:
    """The target's share when it has `goal` of `total` pods: as many percent, rounded down, but at least 1 if any.

    Before the last batch is done it is at most `maxWeight`, then all.
    """
    if is_last_batch:
        return WHOLE
    most = plan.traffic.max_weight if plan.traffic is not None and plan.traffic.max_weight is not None else WHOLE
    if goal <= 0 or total <= 0:
        return 0
    return min(most, WHOLE, max(1, goal * WHOLE // total))


def traffic_step(
    plan: RolloutPlan, status: RolloutStatus, route: ObservedRoute, wanted: int, now: datetime
) -> TrafficStep:
    """Towards `wanted` percent for the target. Done at once if the plan has no traffic."""
    if plan.traffic is None:
        return TrafficStep()
    namespace = plan.traffic.route_ref.namespace or _namespace_of(route)
    problem = traffic_problem(plan.traffic, namespace) or _final_problem(route)
    if problem:
        return TrafficStep(failure=problem)
    ref = route_ref(plan.traffic, namespace)
    if route is None or isinstance(route, RouteProblem):
        return _unread(ref, route, now)
    found = _record_in(status)
    if found is None:
        return _first_step(plan.traffic, ref, route, now)
    if not _is_about(found, plan.traffic, ref):
        return TrafficStep(failure=_changed_midway(found))
    return _shift_step(found, route, wanted, now)


def restore_step(status: RolloutStatus, route: ObservedRoute, now: datetime) -> TrafficStep:
    """Back to the weights of before the first change. Done if there was none, or nothing is left to give them to."""
    found = _record_in(status)
    if found is None:
        return TrafficStep()
    ref, record = found
    if route is None:
        return TrafficStep(notes=(f"{_name(ref)} is gone: its weights are not given back",))
    if isinstance(route, RouteProblem):
        return _unread(ref, route, now)
    patch = restore(PROVIDERS[record.provider], route, record.pair, record.before)
    if isinstance(patch, Unreadable):
        return TrafficStep(notes=(f"the weights of before are not given back: {patch.reason}",))
    if patch is not None:
        return TrafficStep(patch, look_again=now)
    return _accepted(record, route, now)


def bounded(status: RolloutStatus, aim: int | None, found: TrafficStep, now: datetime) -> TrafficStep:
    """The step of a rollout that is being deleted: what does not work is given up at last, and that is said once."""
    known = _record_in(status)
    if known is None or found.is_done:
        return found
    ref, record = known
    if record.aim != aim or record.tried_since is None:
        return _recording(ref, replace(record, aim=aim, tried_since=now), now)
    if now < record.tried_since + (LOOK_AGAIN if record.gave_up else GIVE_UP):
        return _unread(ref, RouteProblem(found.failure), now) if found.failure else found
    if record.gave_up:
        return TrafficStep()
    return _recording(ref, replace(record, gave_up=True), now, (_given_up(ref, found),))


def problem_wait(ref: ObjectReference, problem: RouteProblem) -> Wait:
    """What to wait for while a route cannot be read, or the server refuses a patch of it."""
    return Wait(_name(ref), TrafficCode.route_unread, {}, (Blocker(_name(ref), reported=problem.text),))


def remembered_ref(status: RolloutStatus) -> ObjectReference | None:
    """The route whose weights were recorded, to be read for `restore_step`; None if there is none."""
    found = _record_in(status)
    return found[0] if found is not None else None


def with_remembered(status: RolloutStatus, remembered: Remembered) -> RolloutStatus:
    """The status with this record of traffic, in the place of an older one."""
    return replace(status, remembered=(*without_remembered(status).remembered, remembered))


def without_remembered(status: RolloutStatus) -> RolloutStatus:
    """The status without its record of traffic."""
    return replace(status, remembered=tuple(one for one in status.remembered if _read_record(one) is None))


# Steps


def _first_step(traffic: Traffic, ref: ObjectReference, route: Object, now: datetime) -> TrafficStep:
    """Record the weights, and change nothing yet."""
    routes, pair = PROVIDERS[traffic.provider], Pair(traffic.source_service, traffic.target_service)
    before = recorded(routes, route, pair)
    if isinstance(before, Unreadable):
        return _unreadable(ref, before, now)
    record = TrafficRecord(traffic.provider, pair.source, pair.target, before)
    return _recording(ref, record, now, left_alone(routes, route, pair))


def _recording(ref: ObjectReference, record: TrafficRecord, now: datetime, notes: tuple[str, ...] = ()) -> TrafficStep:
    wait = Wait(_name(ref), TrafficCode.recording)
    return TrafficStep(remembered=_remember(ref, record), wait=wait, look_again=now, notes=notes)


def _shift_step(found: tuple[ObjectReference, TrafficRecord], route: Object, wanted: int, now: datetime) -> TrafficStep:
    ref, record = found
    patch = shift(PROVIDERS[record.provider], route, record.pair, wanted)
    if isinstance(patch, Unreadable):
        return _unreadable(ref, patch, now)
    if record.percent == wanted and record.free_at is not None and now < record.free_at:
        return TrafficStep(wait=_contested(ref, record, route), look_again=min(record.free_at, now + LOOK_AGAIN))
    if patch is None:
        return _accepted(record, route, now)
    return TrafficStep(patch, _remember(ref, _written(record, wanted, now)), look_again=now)


def _written(record: TrafficRecord, wanted: int, now: datetime) -> TrafficRecord:
    """The record of a write. That it was written before means that somebody else has changed it since."""
    if record.percent != wanted:
        return replace(record, percent=wanted, corrections=0, corrected_at=None)
    return replace(record, corrections=record.corrections + 1, corrected_at=now)


def _accepted(record: TrafficRecord, route: Object, now: datetime) -> TrafficStep:
    wait = PROVIDERS[record.provider].accepted(route)
    return TrafficStep(wait=wait, look_again=now + LOOK_AGAIN if wait is not None else None)


# Waits


def _unread(ref: ObjectReference, problem: RouteProblem | None, now: datetime) -> TrafficStep:
    if problem is None:
        return TrafficStep(wait=Wait(_name(ref), TrafficCode.route_missing), look_again=now + LOOK_AGAIN)
    return TrafficStep(wait=problem_wait(ref, problem), look_again=now + LOOK_AGAIN)


def _unreadable(ref: ObjectReference, problem: Unreadable, now: datetime) -> TrafficStep:
    blocker = Blocker(_name(ref), reported=problem.reason)
    wait = Wait(_name(ref), TrafficCode.route_unreadable, {}, (blocker,))
    return TrafficStep(wait=wait, look_again=now + LOOK_AGAIN)


def _contested(ref: ObjectReference, record: TrafficRecord, route: Object) -> Wait:
    who = _other_writer(route)
    blockers = (Blocker(who, since=record.corrected_at, until=record.free_at),) if who else ()
    numbers = {"percent": record.percent or 0, "corrections": record.corrections}
    return Wait(_name(ref), TrafficCode.contested, numbers, blockers)


def _given_up(ref: ObjectReference, found: TrafficStep) -> str:
    why = found.failure or (wait_text(found.wait) if found.wait is not None else "the server refuses the change")
    return f"the weights of {_name(ref)} are left as they are, since the rollout is being deleted: {why}"


def _other_writer(route: Object) -> str:
    """The field manager that wrote the route last, beside us; empty if the server does not tell."""
    entries = at(route, "metadata", "managedFields")
    others = [one for one in entries if text(one, "manager") != MANAGER] if isinstance(entries, list) else []
    spec = [one for one in others if not text(one, "subresource")]
    return text(max(spec, key=lambda one: text(one, "time"), default=None), "manager")


# Records


def _remember(ref: ObjectReference, record: TrafficRecord) -> Remembered:
    return Remembered(ref, msgspec.json.encode(record).decode())


def _record_in(status: RolloutStatus) -> tuple[ObjectReference, TrafficRecord] | None:
    found = ((one.ref, _read_record(one)) for one in status.remembered)
    return next(((ref, record) for ref, record in found if record is not None), None)


def _read_record(remembered: Remembered) -> TrafficRecord | None:
    """None: it is about something else."""
    try:
        return msgspec.json.decode(remembered.value, type=TrafficRecord)
    except msgspec.DecodeError:
        return None


def _is_about(found: tuple[ObjectReference, TrafficRecord], traffic: Traffic, ref: ObjectReference) -> bool:
    old, record = found
    wanted = (traffic.provider, traffic.source_service, traffic.target_service, ref.name)
    return (record.provider, record.source, record.target, old.name) == wanted


def _changed_midway(found: tuple[ObjectReference, TrafficRecord]) -> str:
    ref, record = found
    return (
        f"traffic was changed in the plan while {_name(ref)} divides it between {record.source} and {record.target}: "
        "that can only be changed between rollouts"
    )


def _final_problem(route: ObservedRoute) -> str:
    return route.text if isinstance(route, RouteProblem) and route.is_final else ""


def _namespace_of(route: ObservedRoute) -> str:
    return text(route, "metadata", "namespace")


def _name(ref: ObjectReference) -> str:
    return object_name(ref.kind, ref.namespace, ref.name)
