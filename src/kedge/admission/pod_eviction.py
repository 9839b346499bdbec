"""Pod eviction: whether a pod may be evicted now, by the ZoneAwarePodDisruptionBudget of its zones.

    rules = eviction_rules(client, budgets, selected, recent, clock, turns=turns, metrics=metrics)      # by path

The pod, its StatefulSets and their pods are read from the server each time: a cache may show a pod that has gone.
What is asked about one budget is decided one after another, for rollouts too, and an allowed pod is remembered before
the next is looked at.
What a dry run asks is decided in the same way, and not remembered.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Final, Protocol

from kedge.admission import budget_validation
from kedge.admission.review import allow, deny
from kedge.admission.server import Rule
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.apps import StatefulSet
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import ApiError, KubeError
from kedge.plan.zoning.budget_spec import ZoneBudget
from kedge.plan.zoning.disruption import (
    BAD_REQUEST,
    Allowed,
    Decision,
    Denied,
    Disruption,
    SelectedZone,
    budget_for,
    decide_in_zones,
    no_allowance,
    owner_missing,
    owner_reference,
)

PATH: Final = "/admission/pod-eviction"
log = logging.getLogger(__name__)


class Budgets(Protocol):
    """The valid budgets there are."""

    async def known(self) -> None: ...

    def in_namespace(self, namespace: str) -> tuple[ZoneBudget, ...]: ...


class SelectedSets(Protocol):
    """Reads the StatefulSets that a budget selects."""

    async def read(self, budget: ZoneBudget) -> tuple[SelectedZone, ...] | Denied: ...


class Turns(Protocol):
    """Has decisions by one budget made one after another."""

    def of(self, budget: ZoneBudget) -> AbstractAsyncContextManager[None]: ...


class Recent(Protocol):
    """The pods that were allowed to go a moment ago."""

    def record(self, pod: ObjectMeta) -> None: ...

    def uids(self) -> Collection[str]: ...


class EvictionMetrics(Protocol):
    """What is counted of decisions."""

    def decided(self, decision: Decision) -> None: ...

    def deciding(self) -> AbstractContextManager[None]: ...


def eviction_rules(
    client: Client,
    budgets: Budgets,
    selected: SelectedSets,
    recent: Recent,
    clock: Clock,
    *,
    turns: Turns,
    metrics: EvictionMetrics,
) -> Mapping[str, Rule]:
    """The rules about disruption budgets, by path."""
    evictions = PodEviction(client, budgets, selected, recent, clock, turns=turns, metrics=metrics)
    return {PATH: evictions.answer, budget_validation.PATH: budget_validation.validate_budget}


class PodEviction:
    """Decides on evictions."""

    def __init__(
        self,
        client: Client,
        budgets: Budgets,
        selected: SelectedSets,
        recent: Recent,
        clock: Clock,
        *,
        turns: Turns,
        metrics: EvictionMetrics,
    ) -> None:
        self._client = client
        self._budgets = budgets
        self._selected = selected
        self._recent = recent
        self._clock = clock
        self._turns = turns
        self._metrics = metrics

    async def answer(self, request: AdmissionRequest) -> AdmissionResponse:
        """Whether the pod of this request may be evicted."""
        with self._metrics.deciding():
            decision = await self._decide(request)
        self._metrics.decided(decision)
        if isinstance(decision, Denied):
            log.info("eviction denied: %s", decision.message, extra={"reason": decision.reason})
            return deny(request, decision.message, code=decision.status)
        log.info("eviction allowed", extra={"reason": decision.reason})
        return allow(request, warnings=(decision.warning,) if decision.warning else ())

    async def _decide(self, request: AdmissionRequest) -> Decision:
        if problem := request_problem(request):
            return Denied(BAD_REQUEST, problem, "invalid-request")
        try:
            pod = await self._client.get(Pod, request.name, request.namespace)
        except KubeError as error:
            return Denied(BAD_REQUEST, _words(error), "pod-not-found")
        await self._budgets.known()
        budget = budget_for(pod, self._budgets.in_namespace(request.namespace))
        if not isinstance(budget, ZoneBudget):
            return budget
        owner = await self._owner(pod, request.namespace)
        if isinstance(owner, Denied):
            return owner
        async with self._turns.of(budget):
            return await self._decide_by(budget, pod, owner, request)

    async def _decide_by(self, budget: ZoneBudget, pod: Pod, owner: StatefulSet, request: AdmissionRequest) -> Decision:
        """The decision by one budget; nobody else decides by it meanwhile."""
        if denied := no_allowance(budget, owner):
            return denied
        asked = Disruption(
            pod=pod,
            budgets=(budget,),
            owner=owner,
            zones=await self._selected.read(budget),
            recent=self._recent.uids(),
            now=self._clock.now(),
        )
        decision = decide_in_zones(asked, budget, owner)
        if isinstance(decision, Allowed) and decision.counts and not request.dry_run:
            self._recent.record(pod.metadata)
        return decision

    # Reading from the server

    async def _owner(self, pod: Pod, namespace: str) -> StatefulSet | Denied:
        reference = owner_reference(pod)
        if isinstance(reference, Denied):
            return reference
        try:
            return await self._client.get(StatefulSet, reference.name, namespace)
        except KubeError as error:
            return owner_missing(reference.name, _words(error))


def request_problem(request: AdmissionRequest) -> str:
    """What is wrong with a request that does not ask for the eviction of one pod; else empty."""
    if request.operation != "CREATE":
        return f"request operation is not create, got: {request.operation}"
    if request.sub_resource != "eviction":
        return f"request SubResource is not eviction, got: {request.sub_resource}"
    if not (request.namespace and request.name):
        return "request did not include both a namespace and a name"
    return ""


def _words(error: KubeError) -> str:
    """What the server said; or that it said nothing."""
    return error.message if isinstance(error, ApiError) else str(error)
