"""Rivals: one module per client, each using its own ordinary, typed interface.

A rival is asked for objects and told where they are; it neither measures nor prints. A sync client's methods are
coroutines that never wait, which costs it nothing that can be seen here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Saw = Callable[[str], bool]
"""Told the name in each live event; True means that it was the last one wanted."""


@dataclass(frozen=True)
class Held:
    """Objects kept in memory: whatever keeps them there, and how many they are."""

    keeper: object
    count: int
    objects: Callable[[], object] | None = None
    """The objects alone, where they can be told from their keeper."""


class Rival(Protocol):
    """One client, connected to one API server."""

    async def get(self, name: str) -> object:
        """Read one Deployment."""

    async def list(self) -> Sequence[object]:
        """Read all Deployments."""

    async def watch(self, saw: Saw) -> None:
        """Follow changes until told that the last has come."""

    async def hold(self, namespace: str, copies: int) -> Held:
        """All Deployments of a namespace, so many times, kept as this client's users would."""


@dataclass(frozen=True)
class Entry:
    """What there is to know of a rival before it runs."""

    title: str
    where: str
    """module:class"""
    package: str
    loop: str = "uvloop"
    """Which event loop it runs on; sync clients run on none."""
    reads: bool = True
    lists: bool = True
    holds: bool = True
    pace: float = 1.0
    """Its share of a full run's changes; slow clients get fewer, so that a run ends."""
    copies: float = 1.0
    """Its share of a full run's copies to hold in memory."""

    def make(self, kubeconfig: str, namespace: str) -> Rival:
        module, _, name = self.where.partition(":")
        kind: Any = getattr(importlib.import_module(f"kedgebench.rivals.{module}"), name)
        rival: Rival = kind(kubeconfig, namespace)
        return rival


SYNC = "none"

RIVALS = {
    "kedge": Entry("Kedge", "kedge:Kedge", "kedge"),
    "kedge-asyncio": Entry("Kedge on plain asyncio", "kedge:Kedge", "kedge", loop="asyncio", holds=False),
    "aiohttp": Entry("floor: aiohttp, bytes thrown away", "aiohttp:Aiohttp", "aiohttp", holds=False),
    "bare": Entry("floor: bare protocol, bytes thrown away", "bare:Bare", "uvloop", lists=False, holds=False),
    "lightkube": Entry("lightkube (async)", "lightkube:LightkubeAsync", "lightkube"),
    "lightkube-sync": Entry("lightkube (sync)", "lightkube:LightkubeSync", "lightkube", loop=SYNC, holds=False),
    "official": Entry("kubernetes (sync)", "official:Official", "kubernetes", loop=SYNC, pace=0.4, copies=0.2),
    "official-aio": Entry("kubernetes.aio", "official_aio:OfficialAio", "kubernetes", pace=0.4, holds=False),
    "kubernetes-asyncio": Entry(
        "kubernetes_asyncio", "kubernetes_asyncio:KubernetesAsyncio", "kubernetes_asyncio", pace=0.4, copies=0.2
    ),
    "kr8s": Entry("kr8s", "kr8s:Kr8s", "kr8s", pace=0.2, copies=0.1),
    "kopf": Entry("kopf (on.event)", "kopf:Kopf", "kopf", reads=False, lists=False, pace=0.4, copies=0.1),
}
