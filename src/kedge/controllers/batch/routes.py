"""Routes: reads the route of a rollout and changes its weights.

    route = await routes.read("shop", traffic)                  # for `traffic_step`
    route = await routes.read_recorded("shop", ref)             # for `restore_step`
    problem = await routes.write(route, step.patch)

Routes are not watched: a rollout reads its own when it takes a step, and every five seconds while it waits for it. So
get and patch on three kinds is all that is needed of rights, and none of them has to be installed. A route is read in
the version that the rollout names, or else in the newest one that is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.api.oam.rollout_plan import ObjectReference, Traffic
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import ApiError, Conflict, Forbidden, KubeError, NotFound, ServerError, TooManyRequests
from kedge.plan.fields import Object, text
from kedge.plan.traffic.providers import kind_of, route_ref, traffic_problem
from kedge.plan.traffic.routes import MANAGER, ObservedRoute, RouteKind, RouteProblem


class Routes:
    """The routes of one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, namespace: str, traffic: Traffic) -> ObservedRoute:
        """The route that a rollout in this namespace refers to. Never raises for what the server answers."""
        problem = traffic_problem(traffic, namespace)
        if problem:
            return RouteProblem(problem, is_final=True)
        return await self.read_recorded(namespace, route_ref(traffic, namespace))

    async def read_recorded(self, namespace: str, ref: ObjectReference) -> ObservedRoute:
        """The route of a complete reference, in this namespace whatever the reference says."""
        kind = kind_of(ref)
        if kind is None:
            return RouteProblem(f"{ref.kind} of {ref.api_version} is no kind of route", is_final=True)
        for version in _versions(kind, ref):
            resource = Resource(kind.group, version, kind.kind, kind.plural)
            try:
                return await self._client.get(untyped(resource), ref.name, namespace)
            except NotFound as error:
                if error.status.details is not None and error.status.details.name == ref.name:
                    return None
                # The kind is not served in this version.
            except KubeError as error:
                return RouteProblem(_why_unread(error, resource))
        return RouteProblem(f"{kind.plural}.{kind.group} are not served: install what defines them")

    async def write(self, route: Object, patch: Mapping[str, Any]) -> RouteProblem | None:
        """Merge the patch into the very version that was read; or why the server does not take it.

        Raises `Conflict` if the route has changed or is gone, and other `KubeError`s that pass by themselves.
        """
        ref = ObjectReference(api_version=text(route, "apiVersion"), kind=text(route, "kind"))
        kind = kind_of(ref)
        assert kind is not None, "only routes are read"
        resource = Resource(kind.group, ref.api_version.rpartition("/")[2], kind.kind, kind.plural)
        form = untyped(resource)
        try:
            await self._client.amend(form, form.meta(dict(route)), patch, manager=MANAGER)
        except (Conflict, ServerError, TooManyRequests):
            raise
        except ApiError as error:
            return RouteProblem(_why_unwritten(error, resource))
        return None


def _versions(kind: RouteKind, ref: ObjectReference) -> tuple[str, ...]:
    """The version that is asked for first."""
    return tuple(dict.fromkeys((ref.api_version.rpartition("/")[2], *kind.versions)))


def _why_unread(error: KubeError, resource: Resource) -> str:
    if isinstance(error, Forbidden):
        return f"reading it is forbidden, allow get on {resource}: {error.message}"
    return f"reading it failed: {error.message if isinstance(error, ApiError) else error}"


def _why_unwritten(error: ApiError, resource: Resource) -> str:
    if isinstance(error, Forbidden):
        return f"changing its weights is forbidden, allow patch on {resource}: {error.message}"
    return f"its weights were refused: {error.message}"
