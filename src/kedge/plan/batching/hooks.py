"""Hooks: whom a rollout asks over HTTP at a point of it, and what it makes of the answers.

    found = next_call(plan, status, HookPoint(HookType.pre_batch_rollout, 0, "batchInitializing"), identity, now)

One after the other: the webhooks of the rollout, then those of the batch. Each has an id at each point, the same for
every attempt and after a restart; what came of it is in the status. A webhook that said yes is not called again.

| what came | means |
|---|---|
| a status that is expected: by default 200, 201, 202 | yes |
| no answer; 500 and above, even if expected; 408, 425, 429 if not | called again 1 s, 2 s … 60 s later |
| any other answer | no: the rollout fails |

Webhooks of `finalize-rollout` are told, not asked: no answer of theirs changes how a rollout ended. Nor may one that is
gone for good keep a rollout from ending, or from being deleted: it is called 8 times, for about two minutes.

A webhook is known by its name and URL: one with another URL is another one, and is called at once. The URL may hold a
secret, and is in no message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import HookType, RolloutPlan, RolloutWebhook
from kedge.api.oam.rollout_status import HookResult, RolloutStatus
from kedge.api.redacted import Redacted
from kedge.plan.digest import digest
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import counted, cut, moment

AnyStatus = TypeVar("AnyStatus", bound=RolloutStatus)

ACCEPTED_BY_DEFAULT: Final = (200, 201, 202)
FINAL_ATTEMPTS: Final = 8
"""How many times a webhook of `finalize-rollout` is called at most."""
_TRY_LATER: Final = frozenset({408, 425, 429})  # the other side asks for another attempt
_PAUSES: Final = tuple(timedelta(seconds=each) for each in (1, 2, 4, 8, 16, 32, 60))
"""How long a webhook that failed is left alone: the first time, the second, and so on; the last one from there on."""
_TIMEOUT: Final = 10
_LONGEST_MESSAGE: Final = 300
_KEPT_OF_OTHER_POINTS: Final = 20
_WHEN: Final = {
    HookType.initialize_rollout: "before the first batch",
    HookType.pre_batch_rollout: "before batch {batch}",
    HookType.post_batch_rollout: "after batch {batch}",
    HookType.finalize_rollout: "at the end",
}


class HookCode(StrEnum):
    """What a rollout waits for because of webhooks."""

    failed = "WebhookFailed"
    """There was no answer, or an error; it is called again."""
    under_way = "WebhookUnderWay"
    """It is being called."""


class HookState(StrEnum):
    """What came of a webhook: the values of `HookResult.state`."""

    accepted = "Accepted"
    refused = "Refused"
    failed = "Failed"


class HookPoint(Struct, frozen=True):
    """A point of a rollout at which webhooks are called. `phase` is the state that they are told."""

    type: HookType
    batch: int | None
    phase: str

    def __str__(self) -> str:
        return _WHEN[self.type].format(batch=self.batch)


class HookIdentity(Struct, frozen=True):
    """Which rollout asks. `target` is what it rolls out; while it gives that up for another target, still the old."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    target: str
    source: str = ""


class HookCall(Redacted, Struct, frozen=True):
    """One attempt of one call."""

    id: str
    name: str
    url: str
    method: str
    body: bytes
    expected: tuple[int, ...]
    timeout: float
    attempt: int = 1


class Answered(Struct, frozen=True):
    """There was an answer. `excerpt` is how its body begins."""

    status: int
    excerpt: str = ""


class Unanswered(Struct, frozen=True):
    """There was none."""

    reason: str


HookOutcome: TypeAlias = Answered | Unanswered


class HookStep(Struct, frozen=True):
    """What to do about the webhooks of a point. Nothing of all: everybody said yes."""

    call: HookCall | None = None
    wait: Wait | None = None
    refused: str = ""
    """Who said no, and how: the rollout fails."""
    until: datetime | None = None
    """When to look again, if it waits."""

    @property
    def is_done(self) -> bool:
        return self.call is None and self.wait is None and not self.refused


class _Asked(Struct, frozen=True):
    """One webhook at one point."""

    id: str
    hook: RolloutWebhook
    point: HookPoint

    @property
    def is_final(self) -> bool:
        return self.point.type is HookType.finalize_rollout


def next_call(
    plan: RolloutPlan, status: RolloutStatus, point: HookPoint, identity: HookIdentity, now: datetime
) -> HookStep:
    """Whom to call now at this point, or what to wait for, or who refused."""
    results = {result.id: result for result in status.hooks}
    for asked in _asked_at(plan, status, point, identity):
        before = results.get(asked.id)
        if before is None or not _is_settled(asked, before):
            return _asking(asked, before, status, identity, now)
    return HookStep()


def recorded(status: AnyStatus, call: HookCall, outcome: HookOutcome, now: datetime) -> AnyStatus:
    """The status with what came of a call. Of other points, only the latest results are kept."""
    before = next((one.attempts for one in status.hooks if one.id == call.id), 0)
    others = [one for one in status.hooks if one.id != call.id]
    here = [one for one in others if _point_of(one.id) == _point_of(call.id)]
    elsewhere = [one for one in others if _point_of(one.id) != _point_of(call.id)]
    result = HookResult(
        id=call.id,
        name=call.name,
        state=verdict(call.expected, outcome),
        attempts=before + 1,
        message=_message(outcome),
        time=now,
    )
    return replace(status, hooks=(*elsewhere[-_KEPT_OF_OTHER_POINTS:], *here, result))


def verdict(expected: tuple[int, ...], outcome: HookOutcome) -> HookState:
    """What an outcome means, given the statuses that mean yes."""
    if isinstance(outcome, Unanswered) or outcome.status >= 500:
        return HookState.failed
    if outcome.status in (expected or ACCEPTED_BY_DEFAULT):
        return HookState.accepted
    return HookState.failed if outcome.status in _TRY_LATER else HookState.refused


def under_way(call: HookCall, identity: HookIdentity) -> Wait:
    """The wait for a call that takes a while."""
    return Wait(identity.name, HookCode.under_way, {"attempts": call.attempt}, (Blocker(call.name),))


def hook_wait_text(wait: Wait) -> str:
    """A wait for a webhook, in a sentence."""
    hook, attempts = wait.blockers[0], wait.numbers["attempts"]
    if wait.code == HookCode.under_way:
        return f"webhook {hook.key} is being called (attempt {attempts})"
    again = "" if hook.until is None else f"; it is called again at {moment(hook.until)}"
    return f"webhook {hook.key} has failed {counted(attempts, 'time')}: {hook.reported}{again}"


# Which webhooks


def _asked_at(plan: RolloutPlan, status: RolloutStatus, point: HookPoint, identity: HookIdentity) -> Iterator[_Asked]:
    """The webhooks of a point, in order, with their ids."""
    run = [identity.uid, identity.target, status.runs]
    here = digest([*run, point.type, point.batch, point.phase])[:16]
    for scope, hooks in (("rollout", plan.rollout_webhooks), ("batch", _of_batch(plan, point.batch))):
        alike: Counter[tuple[str, str]] = Counter()
        for hook in hooks:
            if hook.type is point.type:
                nth = alike[hook.name, hook.url]
                alike[hook.name, hook.url] += 1
                yield _Asked(f"{here}-{digest([scope, hook.name, hook.url, nth])[:16]}", hook, point)


def _of_batch(plan: RolloutPlan, batch: int | None) -> tuple[RolloutWebhook, ...]:
    batches = plan.rollout_batches or ()
    return batches[batch].batch_rollout_webhooks if batch is not None and 0 <= batch < len(batches) else ()


def _point_of(call_id: str) -> str:
    return call_id.partition("-")[0]


# One webhook


def _is_settled(asked: _Asked, before: HookResult) -> bool:
    """Whether the next one may be called."""
    if before.state == HookState.accepted:
        return True
    gave_up = before.state == HookState.refused or before.attempts >= FINAL_ATTEMPTS
    return asked.is_final and gave_up


def _asking(
    asked: _Asked, before: HookResult | None, status: RolloutStatus, identity: HookIdentity, now: datetime
) -> HookStep:
    if before is None:
        return HookStep(_call(asked, status, identity, 1))
    if before.state == HookState.refused:
        return HookStep(refused=f"webhook {asked.hook.name} refused {asked.point}: it {before.message}")
    again = _again_at(before, now)
    if now >= again:
        return HookStep(_call(asked, status, identity, before.attempts + 1))
    blocker = Blocker(asked.hook.name, None, before.time, again, before.message)
    return HookStep(wait=Wait(identity.name, HookCode.failed, {"attempts": before.attempts}, (blocker,)), until=again)


def _again_at(before: HookResult, now: datetime) -> datetime:
    """When a webhook that failed is called again: at once if the clock has gone back since."""
    if before.time is None or before.time > now:
        return now
    return before.time + _PAUSES[max(1, min(before.attempts, len(_PAUSES))) - 1]


def _call(asked: _Asked, status: RolloutStatus, identity: HookIdentity, attempt: int) -> HookCall:
    hook = asked.hook
    return HookCall(
        id=asked.id,
        name=hook.name,
        url=hook.url,
        method=hook.method.upper() or "POST",
        body=_payload(asked, status, identity, attempt),
        expected=hook.expected_status,
        timeout=float(hook.timeout_seconds or _TIMEOUT),
        attempt=attempt,
    )


def _payload(asked: _Asked, status: RolloutStatus, identity: HookIdentity, attempt: int) -> bytes:
    """What is sent: KubeVela's four members first, then ours."""
    hook, point = asked.hook, asked.point
    metadata = {"metadata": dict(hook.metadata)} if hook.metadata else {}
    batch = {} if point.batch is None else {"batch": point.batch, "batches": len(status.batches)}
    source = {"source": identity.source} if identity.source else {}
    payload = {
        "name": identity.name,
        "namespace": identity.namespace,
        "phase": point.phase,
        **metadata,
        "id": asked.id,
        "attempt": attempt,
        "hook": hook.name,
        "type": point.type,
        **batch,
        "kind": identity.kind,
        "uid": identity.uid,
        "generation": identity.generation,
        "target": identity.target,
        **source,
    }
    return msgspec.json.encode(payload)


# Words


def _message(outcome: HookOutcome) -> str:
    if isinstance(outcome, Unanswered):
        return cut(outcome.reason, _LONGEST_MESSAGE)
    said = f": {outcome.excerpt}" if outcome.excerpt else ""
    return cut(f"answered with {outcome.status}{said}", _LONGEST_MESSAGE)
