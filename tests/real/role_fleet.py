"""Roles as processes on real clusters, each with exactly the rights that `kedge install` and `kedge join` give it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from controlplane.cluster import Cluster
from kedge.api.rbac import PolicyRule
from kedge.cli.hub_token import TokenPlace, saved_in_file, token_place
from kedge.kube.connect.service_tokens import ServiceToken, service_token
from support.tokens import token
from support.waiting import until_so

HOME = "fleet-system"
ENDS_AFTER = timedelta(seconds=45)
"""A token that began a minute ago and ends so soon is to be renewed at once."""
CREATED = 201
KEEPS_HOUSE = ("namespace-controller", "serviceaccount-controller", "garbage-collector-controller")


async def kedge(*arguments: str) -> str:
    """What a command of ours prints."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "kedge", *arguments, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@asynccontextmanager
async def running(log: Path, *arguments: str, **environ: str) -> AsyncIterator[Process]:
    """A role, until the context is left; it then ends in good order, unless it was killed."""
    command = [sys.executable, "-m", "kedge", *arguments]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(*command, stderr=errors, env={**os.environ, **environ})
    try:
        yield process
        if process.returncode == -signal.SIGKILL:
            return
        process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0, f"see {log}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def token_of(cluster: Cluster, account: str, namespace: str = HOME) -> str:
    """A token for a service account, one of the fleet's unless said otherwise."""
    return (await cluster.kubectl("create", "token", account, "--namespace", namespace, "--duration", "1h")).strip()


async def as_account(cluster: Cluster, account: str, folder: Path, namespace: str = HOME) -> Path:
    """A kubeconfig for a service account, with a token of its own."""
    shown = await token_of(cluster, account, namespace)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}}],
        "users": [{"name": account, "user": {"token": shown}}],
        "contexts": [{"name": account, "context": {"cluster": "c", "user": account}}],
        "current-context": account,
    }
    path = folder / f"{cluster.name}-{account}.kubeconfig"
    path.touch(0o600)
    path.write_text(yaml.safe_dump(content))
    return path


def asked_by(cluster: Cluster, account: str, namespace: str = HOME) -> list[dict[str, Any]]:
    name = f"system:serviceaccount:{namespace}:{account}"
    return [event for event in cluster.audit_events() if event["user"].get("username") == name]


def refused(events: Sequence[dict[str, Any]]) -> list[str]:
    """What was refused for want of a right."""
    return [
        f"{event['verb']} {event['requestURI']}: {event['responseStatus'].get('message')}"
        for event in events
        if event.get("responseStatus", {}).get("code") in (401, 403)
    ]


async def kept_token(file: Path) -> ServiceToken:
    """The token in a kubeconfig that nobody else can read."""
    return (await asyncio.to_thread(_kept, file))[1]


def _kept(file: Path) -> tuple[TokenPlace, ServiceToken]:
    assert file.stat().st_mode & 0o777 == 0o600
    place = token_place(file, None)
    assert place is not None
    kept = service_token(place.token())
    assert kept is not None
    return place, kept


class Fleet:
    """A hub and members, each with what `kedge install` prints, and their roles as processes of their own."""

    def __init__(
        self, hub: Cluster, members: dict[str, Cluster], folder: Path, narrowed: Mapping[str, Sequence[str]] = {}
    ) -> None:
        """`narrowed` are options of `kedge install member`, by member."""
        self._narrowed = narrowed
        self.hub = hub
        self.members = members
        self.folder = folder

    async def install(self) -> None:
        await self.hub.kubectl("apply", "-f", "-", input=await kedge("install", "hub"))
        for name, member in self.members.items():
            options = self._narrowed.get(name, ())
            await member.kubectl("apply", "-f", "-", input=await kedge("install", "member", name, *options))

    async def run(self, stack: AsyncExitStack) -> None:
        await self.run_hub(stack)
        for name, member in self.members.items():
            to_hub = await self.join(name)
            await self.age(to_hub)
            on_member = await as_account(member, "kedge-member", self.folder)
            files = ["--hub-kubeconfig", str(to_hub), "--kubeconfig", str(on_member)]
            await stack.enter_async_context(running(self.folder / f"{name}.log", "member", *files, "--member", name))

    async def run_hub(self, stack: AsyncExitStack) -> None:
        as_hub = await as_account(self.hub, "kedge-hub", self.folder)
        await stack.enter_async_context(running(self.folder / "hub.log", "hub", "--kubeconfig", str(as_hub)))

    async def join(self, name: str) -> Path:
        """As far as that is done on the hub; gives the kubeconfig of its agent."""
        file = self.agent_file(name)
        options = ["--kubeconfig", str(self.hub.kubeconfig), "--heartbeat", "5", "--agent-kubeconfig", str(file)]
        told = await kedge("join", name, *options)
        assert f"kedge install member {name}" in told
        await until_so(partial(self.is_so, name, "ReadyToJoin"), 60)
        return file

    def agent_file(self, name: str) -> Path:
        return self.folder / f"{name}-on-hub.kubeconfig"

    async def age(self, file: Path) -> None:
        """Have the token in a kubeconfig be one of which more than half is over, and which ends soon."""
        place, fresh = await asyncio.to_thread(_kept, file)
        await saved_in_file(place)(await token(self.hub, HOME, fresh.account, ENDS_AFTER))

    async def is_so(self, name: str, condition: str) -> bool:
        path = f"jsonpath={{.status.conditions[?(@.type=='{condition}')].status}}"
        return await self.hub.kubectl("get", "membercluster", name, "--output", path) == "True"

    def unused(self, account: str, granted: Sequence[PolicyRule]) -> set[str]:
        """What an account was allowed to do on the hub, and never did."""
        return allowed(granted) - did(asked_by(self.hub, account))

    def refusals(self) -> list[str]:
        found = refused(asked_by(self.hub, "kedge-hub"))
        for name, member in self.members.items():
            found += refused(asked_by(self.hub, f"fleet-member-agent-{name}")) + refused(
                asked_by(member, "kedge-member")
            )
        return found


def allowed(rules: Sequence[PolicyRule]) -> set[str]:
    """What rules allow, a verb on a kind each; those on everything left out."""
    return {
        f"{verb} {resource}"
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs or ()
        if "*" not in resource
    }


def did(events: Sequence[dict[str, Any]]) -> set[str]:
    """What was asked for, and not refused. An apply that makes a new object is asked for as patch, and as create."""
    found = set()
    for event in events:
        about = event.get("objectRef", {})
        resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
        code = event.get("responseStatus", {}).get("code", 200)
        if code < 400:
            found.add(f"{event['verb']} {resource}")
        if code == CREATED and event["verb"] == "patch":
            found.add(f"create {resource}")
    return found
