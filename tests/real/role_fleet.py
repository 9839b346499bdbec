"""Roles as processes on real clusters, each with exactly the rights that `kedge install` and `kedge join` give it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from controlplane.cluster import Cluster
from support.waiting import until_so

HOME = "fleet-system"
KEEPS_HOUSE = ("namespace-controller", "serviceaccount-controller", "garbage-collector-controller")


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


async def token_of(cluster: Cluster, account: str) -> str:
    """A token for a service account of the fleet's."""
    return (await cluster.kubectl("create", "token", account, "--namespace", HOME, "--duration", "1h")).strip()


async def as_account(cluster: Cluster, account: str, folder: Path) -> Path:
    """A kubeconfig for a service account of the fleet's, with a token of its own."""
    token = await token_of(cluster, account)
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
        await self.run_hub(stack)
        for name, member in self.members.items():
            await self.join(name)
            to_hub = await as_account(self.hub, f"fleet-member-agent-{name}", self.folder)
            on_member = await as_account(member, "kedge-member", self.folder)
            files = ["--hub-kubeconfig", str(to_hub), "--kubeconfig", str(on_member)]
            await stack.enter_async_context(running(self.folder / f"{name}.log", "member", *files, "--member", name))

    async def run_hub(self, stack: AsyncExitStack) -> None:
        as_hub = await as_account(self.hub, "kedge-hub", self.folder)
        await stack.enter_async_context(running(self.folder / "hub.log", "hub", "--kubeconfig", str(as_hub)))

    async def join(self, name: str) -> None:
        """As far as that is done on the hub."""
        told = await kedge("join", name, "--kubeconfig", str(self.hub.kubeconfig), "--heartbeat", "5")
        assert f"create token fleet-member-agent-{name}" in told
        await until_so(partial(self.is_so, name, "ReadyToJoin"), 60)

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
