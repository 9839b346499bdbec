"""Hub server: an embedded server full of members, placements and Works, behind its HTTPS door.

One placement is carried out by a hub in this process; the others are copies of it, object by object, which is quicker.
Its members only pretend to be there (`pretending`).
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.binding import ClusterResourceBinding
from kedge.api.cluster import MemberCluster
from kedge.api.core import ConfigMap, Namespace
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.snapshot import ClusterResourceSnapshot, ClusterSchedulingPolicySnapshot
from kedge.api.work import Work
from kedge.cli import kubeconfig
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import Caller
from kedge.embedded.store import Change
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.roles import HubOptions, add_hub
from kedgebench.fleet import release
from kedgebench.fleet.pretending import Pretended
from kedgebench.fleet.release import Body

HEARTBEAT = 60  # seconds
PATIENCE = 900.0
LATE = "late"
_COPIED = (ClusterSchedulingPolicySnapshot, ClusterResourceSnapshot, ClusterResourceBinding, Work)
_NOT_COPIED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


class HubServer:
    """The server, and what was written to it: `works` there were ever, `writes` by kind."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster("hub", clock=SystemClock(), rng=Random(1))
        self.client = Client(self.cluster.transport(), limiter=Limiter(rate=0))
        self.works: set[str] = set()
        self.available: dict[str, bool] = {}
        self.writes: Counter[str] = Counter()
        self._news = asyncio.Event()
        self.cluster.server.store.subscribe(self._see)

    def _see(self, kind: Kind, change: Change) -> None:
        plural, version = kind.resource.plural, change.version
        self.writes[plural] += 1
        if plural == "works":
            self.works.add(version.key)
        elif plural == "clusterresourceplacements":
            self.available[version.name] = release.is_available(version.decode())
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()

    # What users do

    async def install(self) -> None:
        """The fleet's kinds, and a namespace of its own."""
        await self.make(Namespace, release.namespace(SYSTEM_NAMESPACE))
        for definition in crds(Dialect.seed):
            await self.make(CustomResourceDefinition, dict(definition))

    async def fill(self, members: int, placements: int, say: Callable[[str], None]) -> None:
        """All members joined, all placements on all of them."""
        await self.install()
        for number in range(placements):
            await self.make(Namespace, release.namespace(shop(number)))
            await self.make(Deployment, release.deployment(1, where=shop(number)))
            await self.make(ConfigMap, _prices(number))
        async with self.served(by_a_hub=True):
            for number in range(members):
                await self.make(MemberCluster, release.member(f"cluster-{number}", HEARTBEAT))
            await self.make(ClusterResourcePlacement, release.placement(shop(0), shop(0)))
            await self.until(lambda: self.available.get(shop(0), False))
            say(f"{members} members have joined, and have the first placement")
        await self._copy_all(placements)
        say(f"{placements} placements and {len(self.works)} Works are there")

    async def place_late(self) -> None:
        """One more placement, on one member."""
        body = release.placement(LATE, shop(0))
        picked = {"placementType": "PickFixed", "clusterNames": ["cluster-0"]}
        await self.make(ClusterResourcePlacement, {**body, "spec": {**body["spec"], "policy": picked}})

    def has_late_work(self) -> bool:
        return any(key.rpartition("/")[2].startswith(LATE) for key in self.works)

    async def release(self, number: int, where: int = 0) -> None:
        """A new image in one of the placements."""
        patch = MergePatch({"spec": {"template": release.deployment(number)["spec"]["template"]}})
        await self.client.patch(untyped(Deployment.resource), release.WEB, patch, shop(where))

    # Who serves it

    @asynccontextmanager
    async def served(self, *, by_a_hub: bool = False, ready_after: float = 0.0) -> AsyncIterator[Pretended]:
        """With its members, and a hub in this process if there is no other."""
        async with Manager(component="members", grace=1.0) as manager:
            to_hub = await self._connected(manager, "hub")
            pretended = Pretended(manager, to_hub, heartbeat=HEARTBEAT, ready_after=ready_after)
            if by_a_hub:
                add_hub(manager, await self._connected(manager, "hub, for its role"), HubOptions())
            running = asyncio.create_task(manager.run(signals=False))
            yield pretended
            manager.stop()
            await running

    async def _connected(self, manager: Manager, name: str) -> Cluster:
        return await manager.connect(name, self.cluster.transport(), limiter=Limiter(rate=0))

    @asynccontextmanager
    async def open_door(self) -> AsyncIterator[Path]:
        """Open to other processes; gives the kubeconfig."""
        serving, token = ServingCertificate(SystemClock().now()), secrets.token_urlsafe(32)
        door = HttpsServer(self.cluster.server, tokens={token: Caller()}, tls=serving.context)
        async with AsyncExitStack() as stack:
            await door.open()
            stack.push_async_callback(door.close)
            file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "kubeconfig"
            kubeconfig.write(file, {"hub": door.url}, authority=serving.authority, token=token)
            yield file

    # Copies

    async def _copy_all(self, placements: int) -> None:
        placement = (await self._all(ClusterResourcePlacement))[0]
        around = {kind: await self._all(kind) for kind in _COPIED}
        for number in range(1, placements):
            uids = {placement["metadata"]["uid"]: await self._copy(ClusterResourcePlacement, placement, number, {})}
            for kind, bodies in around.items():
                for body in bodies:
                    uids[body["metadata"]["uid"]] = await self._copy(kind, body, number, uids)

    async def _copy(self, kind: Any, body: Body, number: int, uids: dict[str, str]) -> str:
        """The same for another placement, whose owners have other uids; gives its own."""
        copy = json.loads(json.dumps(body).replace(shop(0), shop(number)))
        meta = {key: value for key, value in copy["metadata"].items() if key not in _NOT_COPIED}
        meta["ownerReferences"] = [{**one, "uid": uids[one["uid"]]} for one in meta.get("ownerReferences", ())]
        status = copy.pop("status", None)
        made = await self.make(kind, {**copy, "metadata": meta})
        if status:
            was = copy["metadata"].get("generation", 1)
            text = json.dumps(status).replace(f'"observedGeneration": {was}', '"observedGeneration": 1')
            patch, where = MergePatch({"status": json.loads(text)}), meta.get("namespace")
            await self.client.patch(untyped(kind.resource), meta["name"], patch, where, subresource="status")
        return str(made["metadata"]["uid"])

    async def make(self, kind: Any, body: Body) -> Body:
        made: Body = await self.client.create(untyped(kind.resource), body)
        return made

    async def _all(self, kind: Any) -> list[Body]:
        return list((await self.client.list(untyped(kind.resource))).items)


def shop(number: int) -> str:
    """The name of a placement, and of the namespace it places."""
    return f"shop-{number:02}"


def _prices(number: int) -> Body:
    data = {f"product-{one}": f"{one}.99 EUR, in stock, ships in {one % 5} days" for one in range(40)}
    return {"metadata": {"name": "prices", "namespace": shop(number)}, "data": data}
