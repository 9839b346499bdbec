"""External calls: what a rollout asks beside its workloads: webhooks, metrics, and the route of its traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.controllers.batch.autoscalers import AutoscalerAccess
from kedge.controllers.batch.hook_calls import HookCalls
from kedge.controllers.batch.routes import Routes
from kedge.controllers.metric_queries import MetricQueries
from kedge.kube.clock import Clock
from kedge.plan.batching import hooks
from kedge.plan.batching.steps import Act, BatchRolloutInput, Query, RouteWrite
from kedge.plan.batching.traffic import problem_wait, remembered_ref
from kedge.plan.measuring import metric as metrics
from kedge.plan.measuring.query import MetricSubject
from kedge.plan.moving.wait import Wait
from kedge.plan.traffic.routes import ObservedRoute


class ExternalCalls:
    """Asks, and gives the status with what was answered."""

    def __init__(
        self,
        calls: HookCalls,
        queries: MetricQueries,
        routes: Routes,
        autoscalers: AutoscalerAccess,
        *,
        clock: Clock,
    ) -> None:
        self.autoscalers = autoscalers
        self._calls = calls
        self._queries = queries
        self._routes = routes
        self._clock = clock

    async def answered(self, seen: BatchRolloutInput, act: Act, wake: Callable[[], None]) -> RolloutStatus | Wait:
        """The status with the answer to a webhook call or a query; a wait if it takes longer, and `wake` then."""
        if act.call is not None:
            outcome = await self._calls.call(act.call, wake)
            if outcome is None:
                return hooks.under_way(act.call, seen.caller)
            return hooks.recorded(seen.status, act.call, outcome, self._clock.now())
        assert act.query is not None
        return await self._measured(seen, act.query, wake)

    async def _measured(self, seen: BatchRolloutInput, query: Query, wake: Callable[[], None]) -> RolloutStatus | Wait:
        one, status = seen.identity, seen.status
        target = seen.workloads.target.ref.name if seen.workloads is not None else ""
        key = (one.uid, query.batch, query.since)
        found = await self._queries.measure(query.metric, MetricSubject(one.name, one.namespace, target), wake, key=key)
        if found is None:
            return metrics.under_way(query.metric, one.name)
        results = metrics.recorded(status.metrics, query.metric, query.batch, found, query.since, self._clock.now())
        return replace(status, metrics=results)

    async def route(self, namespace: str, plan: RolloutPlan, status: RolloutStatus) -> ObservedRoute:
        """The route of a rollout; the one whose weights were recorded, if there is one."""
        if (ref := remembered_ref(status)) is not None:
            return await self._routes.read_recorded(namespace, ref)
        return await self._routes.read(namespace, plan.traffic) if plan.traffic is not None else None

    async def write_route(self, route: ObservedRoute, shift: RouteWrite) -> Wait | None:
        """Change the weights of a route; or what to wait for, if the server does not take them."""
        assert isinstance(route, Mapping), "only a route that was read is changed"
        problem = await self._routes.write(route, shift.patch)
        return problem_wait(shift.ref, problem) if problem is not None else None
