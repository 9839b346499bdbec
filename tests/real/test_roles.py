"""`kedge hub` and `kedge member` as processes, each with exactly the rights that `kedge install` prints for it.

The API servers' audit logs are the witness: nothing was refused for want of a right, and nobody was an admin.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from support.waiting import until_so

HOME = "fleet-system"
KEEPS_HOUSE = ("namespace-controller", "serviceaccount-controller", "garbage-collector-controller")
MEMBERS = ("cluster-1", "cluster-2")
SHOP = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: shop}
data: {tea: "2"}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: shop}
  policy: {placementType: PickAll}
"""


async def kedge(*arguments: str) -> str:
    """What a command of ours prints."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "kedge", *arguments, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@asynccontextmanager
async def running(log: Path, *arguments: str) -> AsyncIterator[Process]:
    """A role, until the context is left; it then ends in good order."""
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "kedge", *arguments, stderr=errors)
    try:
        yield process
        process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0, f"see {log}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def as_account(cluster: Cluster, account: str, folder: Path) -> Path:
    """A kubeconfig for a service account of the fleet's, with a token of its own."""
    token = (await cluster.kubectl("create", "token", account, "--namespace", HOME, "--duration", "1h")).strip()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": account, "context": {"cluster": "c", "user": account}}],
        "current-context": account,
    }
    path = folder / f"{cluster.name}-{account}.kubeconfig"
    path.touch(0o600)
    path.write_text(yaml.safe_dump(content))
    return path


def asked_by(cluster: Cluster, account: str) -> list[dict[str, Any]]:
    name = f"system:serviceaccount:{HOME}:{account}"
    return [event for event in cluster.audit_events() if event["user"].get("username") == name]


def refused(events: Sequence[dict[str, Any]]) -> list[str]:
    """What was refused for want of a right."""
    return [
        f"{event['verb']} {event['requestURI']}: {event['responseStatus'].get('message')}"
        for event in events
        if event.get("responseStatus", {}).get("code") in (401, 403)
    ]


class Fleet:
    """A hub and members, each with what `kedge install` prints, and their roles as processes of their own."""

    def __init__(self, hub: Cluster, members: dict[str, Cluster], folder: Path) -> None:
        self.hub = hub
        self.members = members
        self.folder = folder

    async def install(self) -> None:
        await self.hub.kubectl("apply", "-f", "-", input=await kedge("install", "hub"))
        for name, member in self.members.items():
            await member.kubectl("apply", "-f", "-", input=await kedge("install", "member", name))

    async def run(self, stack: AsyncExitStack) -> None:
        as_hub = await as_account(self.hub, "kedge-hub", self.folder)
        await stack.enter_async_context(running(self.folder / "hub.log", "hub", "--kubeconfig", str(as_hub)))
        for name, member in self.members.items():
            told = await kedge("join", name, "--kubeconfig", str(self.hub.kubeconfig), "--heartbeat", "5")
            assert f"create token fleet-member-agent-{name}" in told
            await until_so(partial(self.is_so, name, "ReadyToJoin"), 60)
            to_hub = await as_account(self.hub, f"fleet-member-agent-{name}", self.folder)
            on_member = await as_account(member, "kedge-member", self.folder)
            files = ["--hub-kubeconfig", str(to_hub), "--kubeconfig", str(on_member)]
            await stack.enter_async_context(running(self.folder / f"{name}.log", "member", *files, "--member", name))

    async def is_so(self, name: str, condition: str) -> bool:
        path = f"jsonpath={{.status.conditions[?(@.type=='{condition}')].status}}"
        return await self.hub.kubectl("get", "membercluster", name, "--output", path) == "True"

    def refusals(self) -> list[str]:
        found = refused(asked_by(self.hub, "kedge-hub"))
        for name, member in self.members.items():
            found += refused(asked_by(self.hub, f"fleet-member-agent-{name}")) + refused(
                asked_by(member, "kedge-member")
            )
        return found


@pytest.fixture
async def fleet(own_plane: ControlPlane, tmp_path: Path) -> Fleet:
    hub = await own_plane.start("hub", only=KEEPS_HOUSE)
    members = [await own_plane.start(name, only=KEEPS_HOUSE) for name in MEMBERS]
    made = Fleet(hub, dict(zip(MEMBERS, members, strict=True)), tmp_path)
    await made.install()
    return made


async def _there(cluster: Cluster, *what: str) -> bool:
    return bool(await cluster.kubectl("get", *what, "--ignore-not-found", "--output", "name"))


async def _gone(cluster: Cluster, *what: str) -> bool:
    return not await _there(cluster, *what)


@pytest.mark.timeout(400)
async def test_every_role_does_its_work_with_exactly_the_rights_that_are_printed(fleet: Fleet) -> None:
    hub, (leaving, leaver) = fleet.hub, list(fleet.members.items())[1]
    async with AsyncExitStack() as stack:
        await fleet.run(stack)
        for name in fleet.members:
            await until_so(partial(fleet.is_so, name, "Joined"), 60)
        await hub.kubectl("apply", "-f", "-", input=SHOP)
        for member in fleet.members.values():
            await until_so(partial(_there, member, "configmap", "prices", "--namespace", "shop"), 60)
        await hub.kubectl("delete", "membercluster", leaving, "--wait=false")
        await until_so(lambda: _gone(hub, "membercluster", leaving), 90)
        assert await _there(leaver, "configmap", "prices", "--namespace", "shop"), "what was placed stays"
        assert await _gone(hub, "namespace", f"fleet-member-{leaving}")
        assert fleet.refusals() == []
        await hub.kubectl("delete", "clusterresourceplacement", "shop", "--wait=false")
        staying = fleet.members[MEMBERS[0]]
        await until_so(lambda: _gone(staying, "configmap", "prices", "--namespace", "shop"), 60)
        await until_so(lambda: _gone(hub, "clusterresourceplacement", "shop"), 60)
    still = [line for line in fleet.refusals() if f"fleet-member-{leaving}" not in line]
    assert still == []
    assert asked_by(hub, "kedge-hub")
