"""Role processes: `kedge hub` and `kedge member` for a real fleet, each a process of its own that can be killed.

A process that ends, for whatever reason, is started again after a moment, as a kubelet does it. Each role has an
identity of its own on each cluster, so that the audit logs say who did what.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from controlplane import processes
from controlplane.cluster import Cluster
from controlplane.processes import Process
from fleet.bed import MEMBERS, Ground
from kedge.api.dialect import Dialect

HUB = "hub"
KILLED = -9
LEASE_SECONDS = 6
"""Short, since it is waited for after every kill; on a busy machine it may be lost, and the hub then ends by itself."""
_ADMINS = ["system:masters"]  # with which rights a role has enough is shown elsewhere (tests/real/test_roles.py)
_LOOKS = 0.02


class Role:
    """One role: its process of the moment, and how those before it ended."""

    def __init__(self, name: str, arguments: list[str], log: Path, rng: Random) -> None:
        self.name = name
        self.ends: list[int] = []
        self.log = log
        self._command = [sys.executable, "-m", "kedge", *arguments]
        self._rng = rng
        self._process: Process | None = None
        self._stopping = asyncio.Event()

    async def keep(self) -> None:
        """Run it, and again when it has ended, until told to stop."""
        while not self._stopping.is_set():
            process = self._process = await asyncio.to_thread(Process, f"kedge {self.name}", self._command, self.log)
            while (code := process.exit_code) is None and not self._stopping.is_set():
                await asyncio.sleep(_LOOKS)
            if code is not None:
                self.ends.append(code)
                await asyncio.sleep(self._rng.uniform(0.0, 1.0))
        if self._process is not None:
            await asyncio.to_thread(processes.stop, [self._process], deadline=20.0)

    def stop(self) -> None:
        """SIGTERM, and never again."""
        self._stopping.set()

    async def kill(self) -> None:
        """SIGKILL, as soon as there is something to kill."""
        while self._process is None or self._process.exit_code is not None:
            await asyncio.sleep(_LOOKS)
        self._process.send(signal.SIGKILL)


class RoleProcesses:
    """Every role of a fleet."""

    def __init__(self, clusters: Mapping[str, Cluster], folder: Path, rng: Random) -> None:
        self._clusters = clusters
        self._folder = folder
        self._rng = rng
        self.roles: dict[str, Role] = {}

    async def run(self, stack: AsyncExitStack, ground: Ground, dialect: Dialect) -> None:
        """Run them all until the stack ends."""
        self.roles = {HUB: self._hub(dialect), **{name: self._member(name) for name in MEMBERS}}
        keeping = [asyncio.create_task(role.keep(), name=role.name) for role in self.roles.values()]
        stack.push_async_callback(self._end, keeping)

    def unexpected_ends(self) -> list[str]:
        """Which processes ended though nobody had killed them, and no lease was lost."""
        return [
            f"{role.name} ended with {code}: see {role.log}"
            for role in self.roles.values()
            for code in role.ends
            if code != KILLED and "LeadershipLost" not in role.log.read_text()
        ]

    async def _end(self, keeping: list[asyncio.Task[None]]) -> None:
        for role in self.roles.values():
            role.stop()
        await asyncio.gather(*keeping)

    def _hub(self, dialect: Dialect) -> Role:
        options = ["--dialect", dialect.value, "--lease-duration", str(LEASE_SECONDS)]
        return self._role(HUB, "hub", "--kubeconfig", self._as("kedge-hub", HUB), *options)

    def _member(self, name: str) -> Role:
        to_hub, to_member = self._as(f"agent-of-{name}", HUB), self._as("kedge-member", name)
        return self._role(name, "member", "--hub-kubeconfig", to_hub, "--kubeconfig", to_member, "--member", name)

    def _role(self, name: str, *arguments: str) -> Role:
        rng = Random(self._rng.getrandbits(64))
        return Role(name, [*arguments, "--log-format", "text"], self._folder / f"{name}.log", rng)

    def _as(self, user: str, cluster: str) -> str:
        return str(self._clusters[cluster].user(user, _ADMINS).kubeconfig)
