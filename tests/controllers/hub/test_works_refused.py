"""Works that a hub does not take: said in the server's words, tried again later, and nobody else is held up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from kedge.api.core import Namespace
from kedge.api.fleet import member_namespace
from kedge.api.placement_kinds import CLUSTER
from kedge.api.reasons import SYNC_FAILED, WORK_SYNCED, WORK_SYNCHRONIZED
from kedge.controllers.hub.works import Works
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response
from support.fleets import client_of, fleet_cluster, managed
from support.placed import Placed
from support.stage import LoopClock
from support.virtual import run

NS = member_namespace("a")


class Refusing:
    """A way to an API that takes no Works for member `a`, as long as it refuses."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.code, self.reason, self.message = 0, "", ""
        self.asked = 0

    def refuse(self, code: int, reason: str, message: str) -> None:
        self.code, self.reason, self.message = code, reason, message

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.code and request.method == "POST" and request.path.endswith(f"{NS}/works"):
            self.asked += 1
            body = {"code": self.code, "reason": self.reason, "message": self.message}
            return Response(self.code, msgspec.json.encode(body))
        return await self._inner.send(request, timeout=timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def play(act: Callable[[Placed, Refusing], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            way = Refusing(cluster.transport())
            hub = await manager.connect("hub", way)
            manager.add_controller(Works(hub, CLUSTER, clock=LoopClock()).controller)
            placed = Placed(client)
            await placed.join("a")
            await placed.join("b")
            await placed.place()
            await act(placed, way)

    run(main())


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (413, "RequestEntityTooLarge", "limit is 3145728"),
        (500, "InternalError", "etcdserver: request is too large"),
        (422, "Invalid", "spec.workload: Too many"),
        (403, "Forbidden", "exceeded quota"),
    ],
)
def test_a_work_that_is_refused_is_said_in_the_servers_words_and_tried_again_later(
    code: int, reason: str, message: str
) -> None:
    async def act(placed: Placed, way: Refusing) -> None:
        way.refuse(code, reason, message)
        snapshot = await placed.snapshot(0)
        refused, other = await placed.bind("a"), await placed.bind("b")
        await placed.point(refused, snapshot)
        await placed.point(other, snapshot)
        found = await placed.until_binding(refused, WORK_SYNCHRONIZED, SYNC_FAILED)
        assert found is not None
        assert found.message == f"The hub refused Work {NS}/crp-work: {message}"
        await placed.until_binding(other, WORK_SYNCHRONIZED, WORK_SYNCED)
        before = way.asked
        await asyncio.sleep(300)
        assert 5 <= way.asked - before <= 15
        way.refuse(0, "", "")
        await placed.until_binding(refused, WORK_SYNCHRONIZED, WORK_SYNCED, within=60)

    play(act)


def test_a_member_that_is_leaving_gets_no_new_works() -> None:
    async def act(placed: Placed, way: Refusing) -> None:
        await placed.client.patch(Namespace, NS, MergePatch({"metadata": {"finalizers": ["kedge.dev/stay"]}}))
        await placed.client.delete(Namespace, NS)
        await asyncio.sleep(1)
        name = await placed.bind("a")
        await placed.point(name, await placed.snapshot(0))
        found = await placed.until_binding(name, WORK_SYNCHRONIZED, SYNC_FAILED)
        assert found is not None
        assert found.message == f"a is leaving the fleet: its namespace {NS} is being deleted"
        assert way.asked == 0

    play(act)
