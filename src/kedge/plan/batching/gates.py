"""Gates: what stands between two batches beside the pods: webhooks, metrics, traffic.

Each answers with what to do next, or with None: then it is open.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from kedge.api.oam.keys import NAME_LABEL
from kedge.api.oam.rollout_plan import HookType
from kedge.api.oam.rollout_status import RollingState
from kedge.plan.batching.app_control import release
from kedge.plan.batching.autoscalers import autoscaler_step, give_back
from kedge.plan.batching.batch_metrics import metrics_after
from kedge.plan.batching.hooks import HookPoint, next_call
from kedge.plan.batching.moves import Batch
from kedge.plan.batching.services import narrowed, widened
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.batching.steps import (
    Act,
    BatchRolloutInput,
    Ended,
    Hold,
    Next,
    Note,
    Query,
    RouteWrite,
    answer,
    failed,
    known,
)
from kedge.plan.batching.traffic import (
    TrafficStep,
    bounded,
    remembered_ref,
    restore_step,
    traffic_step,
    wanted_percent,
    with_remembered,
    without_remembered,
)
from kedge.plan.fields import text
from kedge.plan.measuring.metric import next_measurement


def autoscalers(seen: BatchRolloutInput) -> Next | None:
    """Whoever else sets the replicas of the workloads has to stop, by itself or by us."""
    workloads, _ = known(seen)
    refs = [one.ref for one in (workloads.target, *workloads.sources)]
    found = autoscaler_step(seen.autoscalers, refs, seen.plan.on_autoscaler, seen.identity.claim)
    kept = tuple(one for one in found.remembered if one not in seen.status.remembered)
    if kept:
        return Note(replace(seen.status, remembered=(*seen.status.remembered, *kept)))
    return None if found.step.is_done else answer(seen, found.step, Ended)


def autoscalers_given_back(seen: BatchRolloutInput, *, succeeded: bool) -> Next | None:
    """What was stopped goes on: after a success with the target, else as before."""
    target = seen.workloads.target if succeeded and seen.workloads is not None else None
    writes = give_back(
        seen.autoscalers,
        seen.identity.claim,
        target.ref if target is not None else None,
        seen.status.remembered,
        text(target.obj, "metadata", "labels", NAME_LABEL) if target is not None else "",
    )
    return Act(writes) if writes else None


def services(seen: BatchRolloutInput) -> Next | None:
    """The Services of old and new pods, told apart so that traffic can move from one to the other."""
    if seen.plan.traffic is None:
        return None
    found = narrowed(seen.services, seen.plan.traffic, known(seen)[0])
    return None if found.is_done else Act(found.writes)


def services_given_back(seen: BatchRolloutInput) -> Next | None:
    """The selectors of before."""
    writes = widened(seen.services, seen.identity.claim)
    return Act(writes) if writes else None


def applications_released(seen: BatchRolloutInput, *, succeeded: bool, reverted: bool = False) -> Next | None:
    """The Applications are their controllers' again, as far as nothing moves that should not."""
    uid = seen.identity.uid
    found = (release(one, uid, succeeded=succeeded, reverted=reverted) for one in seen.applications)
    writes = tuple(one for one in found if one is not None)
    return Act(writes) if writes else None


def hooks(seen: BatchRolloutInput, type_: HookType, phase: str, now: datetime, batch: int | None = None) -> Next | None:
    """The webhooks of a point of the rollout."""
    found = next_call(seen.plan, seen.status, HookPoint(type_, batch, phase), seen.caller, now)
    if found.refused:
        return failed(seen, found.refused)
    if found.call is not None:
        return Act(call=found.call)
    return Hold(found.wait, found.until) if found.wait is not None else None


def final_hooks(seen: BatchRolloutInput, now: datetime) -> Next | None:
    """The webhooks at the end."""
    return hooks(seen, HookType.finalize_rollout, seen.status.rolling_state or RollingState.locating, now)


def metrics(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next | None:
    """The metrics of a batch, from when it is available."""
    wanted, since = metrics_after(seen.plan, batch.index), seen.status.batch_available_at
    if since is None:
        return Note(replace(seen.status, batch_available_at=now))
    found = next_measurement(wanted, seen.status.metrics, batch.index, since, now, unit=seen.identity.name)
    if found.failed:
        return failed(seen, found.failed, RolloutEvent.batch_failed)
    if found.query is not None:
        return Act(query=Query(found.query, batch.index, since))
    return Hold(found.wait, found.until) if found.wait is not None else None


def traffic(seen: BatchRolloutInput, goal: int, batch: Batch, now: datetime) -> Next | None:
    """The share of the traffic that so many pods of the target are for."""
    is_last = batch.index + 1 >= len(seen.status.batches) and goal >= batch.goal
    wanted = wanted_percent(seen.plan, goal, batch.total, is_last)
    return _routed(seen, _ending(seen, wanted, traffic_step(seen.plan, seen.status, seen.route, wanted, now), now))


def route_recorded(seen: BatchRolloutInput, now: datetime) -> Next | None:
    """The weights of before, from a route that can be read: no pod is added for traffic that cannot be led there."""
    if seen.plan.traffic is None or seen.is_scale or remembered_ref(seen.status) is not None:
        return None
    return _routed(seen, traffic_step(seen.plan, seen.status, seen.route, 0, now))


def traffic_restored(seen: BatchRolloutInput, now: datetime) -> Next | None:
    """The weights of before, if they were changed."""
    if remembered_ref(seen.status) is None:
        return None
    found = _ending(seen, None, restore_step(seen.status, seen.route, now), now)
    return _routed(seen, found) or Note(without_remembered(seen.status), found.notes)


def _ending(seen: BatchRolloutInput, aim: int | None, found: TrafficStep, now: datetime) -> TrafficStep:
    """A rollout that is being deleted does not wait for ever."""
    return bounded(seen.status, aim, found, now) if seen.is_deleting else found


def _routed(seen: BatchRolloutInput, found: TrafficStep) -> Next | None:
    if found.failure:
        return failed(seen, found.failure)
    status = with_remembered(seen.status, found.remembered) if found.remembered is not None else seen.status
    if found.patch is not None:
        ref = remembered_ref(status)
        assert ref is not None, "weights are recorded before they are changed"
        return Act(route=RouteWrite(ref, found.patch, status))
    if status != seen.status:
        return Note(status, found.notes)
    return Hold(found.wait, found.look_again) if found.wait is not None else None
