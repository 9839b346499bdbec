"""Pod calls: tells pods to prepare for a delayed downscale, or to forget that they did.

    answers = await calls.prepare(stateful_set, url, ordinals)

POST prepares: the answer has to be 2xx and to say since when the pod is prepared. DELETE cancels: 2xx or 409 (the pod
says that it cannot change that now) is success. Redirects are not followed, and are failures. Every call carries
`X-Cluster: NAMESPACE`, which pods with cluster validation check.

Promises that it never raises for what a pod does, and ends in bounded time: a call within the time-out, at most 32 at
the same time, all together within 15 seconds. Pods whose turn does not come until then count as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Final

from kedge.api.apps import StatefulSet
from kedge.controllers.gather import gather
from kedge.kube.cluster_validation import HEADER
from kedge.kube.connect.outbound import Answer, Call, Outbound, OutboundFailed, fetch_within
from kedge.plan.zoning.downscale_delay import endpoint, prepared_at
from kedge.plan.zoning.pod_hosts import CALL_TIMEOUT, CALLS_AT_ONCE, CLUSTER_DOMAIN, pod_name
from kedge.plan.zoning.scaling import PodAnswer

TOGETHER: Final = 15.0
"""Seconds for all pods of a StatefulSet; a whole time-out if that is longer."""
_LOCKED: Final = 409


class PodCalls:
    """Calls to the pods of StatefulSets."""

    def __init__(
        self, outbound: Outbound, *, timeout: float = CALL_TIMEOUT, cluster_domain: str = CLUSTER_DOMAIN
    ) -> None:
        self._outbound = outbound
        self._timeout = timeout
        self._cluster_domain = cluster_domain

    async def prepare(self, stateful_set: StatefulSet, url: str, ordinals: Iterable[int]) -> tuple[PodAnswer, ...]:
        """What these pods say to POST."""
        return await self._all("POST", stateful_set, url, ordinals)

    async def cancel(self, stateful_set: StatefulSet, url: str, ordinals: Iterable[int]) -> tuple[PodAnswer, ...]:
        """The pods that did not take DELETE, and why."""
        answers = await self._all("DELETE", stateful_set, url, ordinals)
        return tuple(one for one in answers if one.problem)

    async def _all(
        self, method: str, stateful_set: StatefulSet, url: str, ordinals: Iterable[int]
    ) -> tuple[PodAnswer, ...]:
        deadline = asyncio.get_running_loop().time() + max(TOGETHER, self._timeout)
        calls = [partial(self._one, method, stateful_set, url, ordinal, deadline) for ordinal in ordinals]
        return tuple(await gather(calls, at_most=CALLS_AT_ONCE))

    async def _one(self, method: str, stateful_set: StatefulSet, url: str, ordinal: int, deadline: float) -> PodAnswer:
        pod = pod_name(stateful_set, ordinal)
        target = endpoint(stateful_set, url, ordinal, self._cluster_domain)
        call = Call(method, target, {HEADER: stateful_set.metadata.namespace or ""})
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return PodAnswer(ordinal, problem="not called: calls to other pods took too long", pod=pod)
        try:
            answer = await fetch_within(self._outbound, call, min(self._timeout, left))
            body = _checked(answer, method)
            return PodAnswer(ordinal, prepared_at(body) if method == "POST" else None, pod=pod)
        except (OutboundFailed, ValueError) as error:
            return PodAnswer(ordinal, problem=str(error), pod=pod)


def _checked(answer: Answer, method: str) -> bytes:
    """The body of an answer, if it is success. ValueError says what else it is."""
    if 200 <= answer.status < 300 or (method == "DELETE" and answer.status == _LOCKED):
        return answer.body
    if 300 <= answer.status < 400:
        raise ValueError(f"{method} was answered with {answer.status}: redirects are not followed")
    raise ValueError(f"{method} was answered with {answer.status}")
