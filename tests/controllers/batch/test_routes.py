"""Routes on an embedded server: read, shifted, accepted, given back, and what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import msgspec
import pytest

from kedge.api.oam.rollout_plan import ObjectReference, Traffic, TrafficProvider
from kedge.controllers.batch.routes import Routes
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.errors import Conflict, KubeError
from kedge.kube.limits import Limiter, Retry
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response
from kedge.plan.traffic.routes import MANAGER, RouteProblem
from support.fleets import CRDS
from support.routes import (
    HTTP_ROUTES,
    INGRESSES,
    WEIGHT,
    canary,
    gateway_accepts,
    http_route,
    http_route_definition,
    traffic,
    weights,
)
from support.stage import LoopClock
from support.traffic_play import TrafficPlay
from support.virtual import run

NAMESPACE = "default"
GATEWAY, ISTIO, NGINX = TrafficProvider.gateway_api, TrafficProvider.istio, TrafficProvider.nginx
NOT_SEEN = (
    "HTTPRoute default/web is not in effect yet: Gateway front: it has not reported Accepted of the present weights yet"
)


class Api(InProcessTransport):
    """Notes requests, and refuses those of a method that a test names."""

    asked: list[str]
    refused: dict[str, tuple[int, str]]

    async def send(self, request: Request, *, timeout: float) -> Response:
        self.asked.append(f"{request.method} {request.path} {dict(request.query).get('fieldManager', '')}".rstrip())
        if request.method in self.refused:
            code, reason = self.refused[request.method]
            body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "denied"}
            return Response(code, msgspec.json.encode(body))
        return await super().send(request, timeout=timeout)


class Bed:
    """A server, the one who acts on it, and a user."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        server = Server(clock=self.clock, rng=Random(1))
        self.api = Api(server, rng=Random(2))
        self.api.asked, self.api.refused = [], {}
        self.client = Client(self.api, limiter=Limiter(rate=0), retry=Retry(attempts=1))
        self.user = Client(InProcessTransport(server, rng=Random(3)), limiter=Limiter(rate=0))

    def play(self, given: Traffic) -> TrafficPlay:
        return TrafficPlay(self.client, NAMESPACE, given, self.clock)

    async def define(self, *versions: str) -> None:
        await self.user.create(CRDS, http_route_definition(*versions))
        await asyncio.sleep(2)

    async def weights(self) -> list[list[int]]:
        return weights(await self.user.get(HTTP_ROUTES, "web", NAMESPACE))


def scene(play: Callable[[Bed], Awaitable[None]]) -> None:
    async def played() -> None:
        await play(Bed())

    run(played())


def test_an_http_route_is_shifted_accepted_and_given_back() -> None:
    async def play(bed: Bed) -> None:
        await bed.define("v1")
        await bed.user.create(HTTP_ROUTES, http_route(NAMESPACE))
        played = bed.play(traffic(GATEWAY, "web"))
        assert "it has not reported on the route yet" in await played.shift(30)
        assert await bed.weights() == [[70, 30], [100, 70, 30], [7]]
        await gateway_accepts(bed.user, NAMESPACE)
        assert await played.shift(30) == ""
        assert await played.shift(100) == NOT_SEEN
        assert await bed.weights() == [[0, 100], [100, 0, 100], [7]]
        await gateway_accepts(bed.user, NAMESPACE, "False")
        assert "Accepted is False: Accepted: told by the test" in await played.shift(100)
        assert await played.restore() == NOT_SEEN
        assert await bed.weights() == [[1, 0], [100, 100, 0], [7]]
        await gateway_accepts(bed.user, NAMESPACE)
        assert await played.restore() == ""
        writes = [one for one in bed.api.asked if not one.startswith("GET")]
        path = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/web"
        assert writes == [f"PATCH {path} {MANAGER}"] * 3

    scene(play)


def test_a_canary_ingress_is_shifted_and_given_back() -> None:
    async def play(bed: Bed) -> None:
        made = await bed.user.create(INGRESSES, canary(NAMESPACE))
        played = bed.play(traffic(NGINX, "web-canary"))
        assert await played.shift(30) == ""
        shifted = await bed.user.get(INGRESSES, "web-canary", NAMESPACE)
        assert shifted["metadata"]["annotations"] == {**made["metadata"]["annotations"], WEIGHT: "30"}
        assert await played.restore() == ""
        back = await bed.user.get(INGRESSES, "web-canary", NAMESPACE)
        assert (back["metadata"]["annotations"], back["spec"]) == (made["metadata"]["annotations"], made["spec"])

    scene(play)


@pytest.mark.parametrize(
    ("served", "asked"),
    [
        (("v1", "v1beta1"), "gateway.networking.k8s.io/v1beta1"),
        (("v1",), "gateway.networking.k8s.io/v1beta1"),
        (("v1beta1",), ""),
        (("v1",), "gateway.networking.k8s.io/v2"),
    ],
)
def test_a_route_is_read_in_any_version_that_is_served(served: tuple[str, ...], asked: str) -> None:
    async def play(bed: Bed) -> None:
        await bed.define(*served)
        kind = f"/apis/gateway.networking.k8s.io/{served[0]}/namespaces/default/httproutes"
        body = {"apiVersion": f"gateway.networking.k8s.io/{served[0]}", "kind": "HTTPRoute", **http_route(NAMESPACE)}
        made = await bed.api.send(Request("POST", kind, body=msgspec.json.encode(body)), timeout=1)
        assert made.status == 201
        played = bed.play(traffic(GATEWAY, "web", api_version=asked))
        assert "is not in effect yet" in await played.shift(30)
        wanted = asked.rpartition("/")[2] if asked.rpartition("/")[2] in served else served[0]
        patched = [one for one in bed.api.asked if one.startswith("PATCH")]
        assert patched == [
            f"PATCH /apis/gateway.networking.k8s.io/{wanted}/namespaces/default/httproutes/web {MANAGER}"
        ]

    scene(play)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            traffic(GATEWAY, "web"),
            "HTTPRoute web: httproutes.gateway.networking.k8s.io are not served: install what defines them",
        ),
        (
            traffic(ISTIO, "web"),
            "VirtualService web: virtualservices.networking.istio.io are not served: install what defines them",
        ),
        (traffic(NGINX, "nothing"), "there is no Ingress nothing: create it"),
        (
            traffic(NGINX, "web", namespace="infra"),
            "traffic.routeRef.namespace is infra: only routes of the rollout's own namespace may be changed",
        ),
        (
            traffic(NGINX, "web", kind="Service", api_version="v1"),
            "traffic.provider nginx is for Ingress of networking.k8s.io, but traffic.routeRef names Service of v1",
        ),
    ],
)
def test_a_route_that_is_not_there_is_said(given: Traffic, text: str) -> None:
    async def play(bed: Bed) -> None:
        assert await bed.play(given).shift(30) == text

    scene(play)


def test_a_route_that_is_made_later_or_deleted_midway_and_made_again_is_shifted() -> None:
    async def play(bed: Bed) -> None:
        played = bed.play(traffic(NGINX, "web-canary"))
        assert await played.shift(30) == "there is no Ingress web-canary: create it"
        await bed.user.create(INGRESSES, canary(NAMESPACE))
        assert await played.shift(30) == ""
        await bed.user.delete(INGRESSES, "web-canary", NAMESPACE)
        assert await played.shift(60) == "there is no Ingress web-canary: create it"
        await bed.user.create(INGRESSES, canary(NAMESPACE))
        assert await played.shift(60) == ""
        await bed.user.delete(INGRESSES, "web-canary", NAMESPACE)
        assert await played.restore() == ""

    scene(play)


def test_what_the_server_refuses_is_waited_for() -> None:
    async def play(bed: Bed) -> None:
        await bed.user.create(INGRESSES, canary(NAMESPACE))
        played = bed.play(traffic(NGINX, "web-canary"))
        bed.api.refused["GET"] = (403, "Forbidden")
        reading = "reading it is forbidden, allow get on ingresses.networking.k8s.io: denied"
        assert await played.shift(30) == f"Ingress web-canary: {reading}"
        bed.api.refused["GET"] = (500, "InternalError")
        assert await played.shift(30) == "Ingress web-canary: reading it failed: denied"
        bed.api.refused = {"PATCH": (403, "Forbidden")}
        writing = "changing its weights is forbidden, allow patch on ingresses.networking.k8s.io: denied"
        assert await played.shift(30) == f"Ingress default/web-canary: {writing}"
        bed.api.refused = {"PATCH": (422, "Invalid")}
        assert await played.shift(30) == "Ingress default/web-canary: its weights were refused: denied"
        bed.api.refused.clear()
        assert await played.shift(30) == ""

    scene(play)


@pytest.mark.parametrize("refusal", [(500, "InternalError"), (429, "TooManyRequests"), (409, "Conflict")])
def test_what_passes_by_itself_is_raised(refusal: tuple[int, str]) -> None:
    async def play(bed: Bed) -> None:
        await bed.user.create(INGRESSES, canary(NAMESPACE))
        played = bed.play(traffic(NGINX, "web-canary"))
        bed.api.refused["PATCH"] = refusal
        with pytest.raises(KubeError):
            await played.shift(30)

    scene(play)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_route_that_changed_after_it_was_read_is_not_overwritten(deleted: bool) -> None:
    async def play(bed: Bed) -> None:
        await bed.user.create(INGRESSES, canary(NAMESPACE))
        routes = Routes(bed.client)
        route = await routes.read(NAMESPACE, traffic(NGINX, "web-canary"))
        assert isinstance(route, dict)
        change = MergePatch({"metadata": {"annotations": {"team": "other"}}})
        await bed.user.patch(INGRESSES, "web-canary", change, NAMESPACE)
        if deleted:
            await bed.user.delete(INGRESSES, "web-canary", NAMESPACE)
        with pytest.raises(Conflict):
            await routes.write(route, {"metadata": {"annotations": {WEIGHT: "10"}}})

    scene(play)


def test_weights_that_somebody_else_keeps_changing_are_set_again_and_the_fight_is_said() -> None:
    async def play(bed: Bed) -> None:
        await bed.user.create(INGRESSES, canary(NAMESPACE))
        played = bed.play(traffic(NGINX, "web-canary"))
        assert await played.shift(30) == ""
        told = ""
        for _ in range(4):
            change = MergePatch({"metadata": {"annotations": {WEIGHT: "0"}}})
            await bed.user.patch(INGRESSES, "web-canary", change, NAMESPACE, manager="argocd-controller")
            told = await played.shift(30)
        assert "sets the weights of Ingress default/web-canary, too" in told
        assert "set to 30 percent again 3 times" in told
        await asyncio.sleep(5)
        assert (await played.step(30)).patch is not None
        await asyncio.sleep(10)
        assert await played.shift(30) == ""

    scene(play)


def test_a_record_of_something_that_is_no_route_is_refused() -> None:
    async def play(bed: Bed) -> None:
        ref = ObjectReference(api_version="v1", kind="Service", name="web")
        problem = RouteProblem("Service of v1 is no kind of route", is_final=True)
        assert await Routes(bed.client).read_recorded(NAMESPACE, ref) == problem
        assert bed.api.asked == []

    scene(play)
