"""A leader that was stopped for half a minute writes nothing once another leads; the API server's audit log is witness.

Each contender is a process of its own, and a user of its own, so that the log says who wrote. What counts is the order
in which the server took requests, so nothing here depends on how fast anything is.
"""

import asyncio
import logging
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from controlplane.audit import is_write
from controlplane.cluster import Cluster, User

pytestmark = pytest.mark.core

Events: TypeAlias = list[dict[str, Any]]

PROGRAM = Path(__file__).with_name("leader_program.py")
ENDED_BY_SWITCH = signal.SIGALRM
STANDSTILL = 30.0  # twice the duration of the lease
PERMISSIONS = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
]
log = logging.getLogger(__name__)


class Contender:
    """One process, as seen from outside."""

    def __init__(self, scene: "Scene", name: str, loop: str) -> None:
        self.name = name
        self.user = scene.cluster.user(f"{scene.namespace}-{name}")
        self.process: Process | None = None
        self._scene = scene
        self._loop = loop

    async def start(self) -> None:
        told = [str(self.user.kubeconfig), self._scene.namespace, self.name, self._loop]
        with (self._scene.folder / f"{self.name}.log").open("a") as errors:
            self.process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, *told, stderr=errors)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def end(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(30):
            return await self.process.wait()

    async def requests(self) -> Events:
        """What it asked and the server did, oldest first."""
        events = await asyncio.to_thread(self._scene.cluster.audit_events)
        done = [e for e in events if e["user"].get("username") == self.user.name and e["responseStatus"]["code"] < 300]
        return sorted(done, key=lambda event: str(event["requestReceivedTimestamp"]))

    async def writes(self) -> Events:
        return [event for event in await self.requests() if is_write(event)]

    async def marks(self) -> Events:
        """Its writes as a leader: all but those to the lease."""
        return [event for event in await self.writes() if event["objectRef"]["resource"] == "configmaps"]


class Scene:
    """A namespace with something to write to, and two who want to."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self.contenders = [Contender(self, "a", "asyncio"), Contender(self, "b", "uvloop")]

    async def prepare(self) -> None:
        await self._make("api/v1", "configmaps", {"metadata": {"name": "board"}})
        rbac = "apis/rbac.authorization.k8s.io/v1"
        await self._make(rbac, "roles", {"metadata": {"name": "contender"}, "rules": PERMISSIONS})
        subjects = [_subject(each.user) for each in self.contenders]
        role = {"kind": "Role", "name": "contender", "apiGroup": "rbac.authorization.k8s.io"}
        await self._make(rbac, "rolebindings", {"metadata": {"name": "all"}, "subjects": subjects, "roleRef": role})

    async def holder(self) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/leader"
        answer = await self.cluster.request("GET", path)
        return str(answer.json()["spec"]["holderIdentity"])

    async def _make(self, root: str, plural: str, body: object) -> None:
        answer = await self.cluster.request("POST", f"/{root}/namespaces/{self.namespace}/{plural}", body)
        assert answer.status == 201, answer.text


@pytest.fixture
async def scene(bare_cluster: Cluster, tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(bare_cluster, await bare_cluster.fresh_namespace("leader"), tmp_path)
    await made.prepare()
    try:
        yield made
    finally:
        for contender in made.contenders:
            if contender.process is not None and contender.process.returncode is None:
                contender.process.kill()
                await contender.end()


@pytest.mark.timeout(400)
async def test_a_leader_that_stood_still_writes_nothing_once_another_leads(scene: Scene) -> None:
    old, new = scene.contenders
    await old.start()
    await until_there_are(100, old.marks)
    for _ in range(2):
        await new.start()
        await until_there_are(2, new.requests)  # it stands by
        before = len(await new.marks())
        async with standing_still(old):
            await until_there_are(before + 100, new.marks)
        assert await old.end() == ENDED_BY_SWITCH
        written, first = await old.writes(), (await new.marks())[before]["requestReceivedTimestamp"]
        log.info("%s: %d writes, the last at %s", old.name, len(written), written[-1]["stageTimestamp"])
        log.info("%s: the first write after that at %s", new.name, first)
        assert [event for event in written if event["stageTimestamp"] >= first] == []
        old, new = new, old
    old.signal(signal.SIGTERM)
    assert await old.end() == 0
    assert await scene.holder() == ""


@asynccontextmanager
async def standing_still(contender: Contender) -> AsyncIterator[None]:
    """Stops a process, for the standstill at least; meanwhile time goes on for everyone else."""
    contender.signal(signal.SIGSTOP)
    enough = asyncio.create_task(asyncio.sleep(STANDSTILL))
    yield
    await enough
    contender.signal(signal.SIGCONT)


async def until_there_are(number: int, events: Callable[[], Awaitable[Events]]) -> None:
    async with asyncio.timeout(60):
        while len(await events()) < number:
            await asyncio.sleep(0.2)


def _subject(user: User) -> dict[str, str]:
    return {"kind": "User", "name": user.name, "apiGroup": "rbac.authorization.k8s.io"}
