"""Zone services: what answers beside the API server: endpoints of pods, and the operator's own webhooks.

Both fail now and then, until trouble ends. A pod remembers what it was asked to prepare for as long as it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random

import msgspec
from yarl import URL

from kedge.admission import review
from kedge.admission.server import Rule
from kedge.kube.clock import Clock
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.errors import KubeError

PREPARE, DELAYED = "/prepare-shutdown", "/prepare-delayed-downscale"


class PodEndpoints:
    """Answers for all pods. `failing` is the share of calls that go wrong."""

    def __init__(self, rng: Random, clock: Clock, uid_of: Callable[[str], str]) -> None:
        self._rng = rng
        self._clock = clock
        self._uid_of = uid_of
        self.failing = 0.0
        self.prepared: dict[str, float] = {}  # by uid: since when

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        url = URL(call.url)
        uid = self._uid_of((url.host or "").partition(".")[0])
        fault = self._rng.choice(["refused", "lost", "hangs", "500", "late"]) if self._goes_wrong() else ""
        if fault == "refused" or not uid:
            raise OutboundFailed(f"{call}: connection refused")
        if fault == "hangs":
            await asyncio.sleep(timeout)
            raise OutboundFailed(f"{call}: no answer within {timeout:g} s")
        if fault == "500":
            return Answer(500, b"no")
        await asyncio.sleep(self._rng.uniform(0.0, timeout * 0.9) if fault == "late" else 0.001)
        answer = self._done(call, uid)
        if fault == "lost":
            raise OutboundFailed(f"{call}: connection reset")
        return answer

    async def close(self) -> None:
        """There is nothing to close."""

    def _goes_wrong(self) -> bool:
        return self._rng.random() < self.failing

    def _done(self, call: Call, uid: str) -> Answer:
        if call.method == "DELETE":
            self.prepared.pop(uid, None)
            return Answer(200)
        since = self.prepared.setdefault(uid, self._clock.now().timestamp())
        return Answer(200, msgspec.json.encode({"timestamp": int(since)}))


class OperatorWebhooks:
    """Leads an API server's webhook calls to the operators that run."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.failing = 0.0
        self._rules: dict[str, tuple[Mapping[str, Rule], Callable[[], bool]]] = {}

    def serve(self, operator: str, rules: Mapping[str, Rule], is_alive: Callable[[], bool]) -> None:
        """From now on this operator answers, as long as it is alive."""
        self._rules[operator] = (rules, is_alive)

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        alive = [rules for rules, is_alive in self._rules.values() if is_alive()]
        if not alive or self._rng.random() < self.failing:
            raise OutboundFailed(f"{call}: connection refused")
        question = review.decode("application/json", call.body)
        try:
            async with asyncio.timeout(timeout):
                response = await self._rng.choice(alive)[URL(call.url).path](question.request)
        except TimeoutError:
            raise OutboundFailed(f"{call}: no answer within {timeout:g} s") from None
        except KubeError as error:  # as the webhook server does
            return Answer(500, str(error).encode())
        return Answer(200, review.encode(question, response))

    async def close(self) -> None:
        """There is nothing to close."""
