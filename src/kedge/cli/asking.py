"""Asking a hub: one client for one command, and errors as sentences instead of tracebacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import click

from kedge.api.fleet import PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.twins import CLUSTER, NAMESPACED, Binding, Placement, Twins
from kedge.api.work import Work
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import KubeError, NotFound

T = TypeVar("T")


def ask(kubeconfig: Path | None, context: str | None, question: Callable[[Client], Coroutine[None, None, T]]) -> T:
    """What the hub answers to a question."""

    async def asked() -> T:
        async with _client(kubeconfig, context) as client:
            return await question(client)

    try:
        return asyncio.run(asked())
    except (KubeError, ConfigError) as error:
        raise click.ClickException(str(error)) from error


@asynccontextmanager
async def _client(kubeconfig: Path | None, context: str | None) -> AsyncIterator[Client]:
    connection = await asyncio.to_thread(load, [kubeconfig] if kubeconfig else None, context)
    client = Client(HttpsTransport(connection))
    try:
        yield client
    finally:
        await client.close()


def twins_of(name: str, namespace: str | None) -> tuple[Twins, str | None, str]:
    """Which kinds are meant by `crp`, by `shop/web`, or by a name and a namespace."""
    place, slash, rest = name.partition("/")
    if slash:
        return NAMESPACED, place, rest
    return (NAMESPACED, namespace, name) if namespace else (CLUSTER, None, name)


class Found:
    """A placement, and how to read what belongs to it."""

    def __init__(self, client: Client, twins: Twins, placement: Placement) -> None:
        self.client = client
        self.twins = twins
        self.placement = placement

    @property
    def namespace(self) -> str | None:
        return self.placement.metadata.namespace

    @property
    def _labels(self) -> dict[str, str]:
        return {PARENT_PLACEMENT: self.placement.metadata.name}

    async def again(self) -> Found:
        """The same placement as it is now."""
        return await find(self.client, self.placement.metadata.name, self.namespace)

    async def bindings(self) -> list[Binding]:
        page = await self.client.list(self.twins.binding, self.namespace, labels=self._labels)
        return sorted(page.items, key=lambda binding: binding.metadata.name)

    async def works(self) -> list[Work]:
        page = await self.client.list(Work, labels=self._labels)
        return list(page.items)

    async def snapshots(self) -> list[ObjectMeta]:
        kind = metadata_of(self.twins.resource_snapshot.resource)
        page = await self.client.list(kind, self.namespace, labels=self._labels)
        return [one.metadata for one in page.items]


async def find(client: Client, name: str, namespace: str | None) -> Found:
    """The placement that is meant, or a sentence that says what there is not."""
    twins, place, plain = twins_of(name, namespace)
    try:
        return Found(client, twins, await client.get(twins.placement, plain, place))
    except NotFound as error:
        where = f" in namespace {place}" if place else ""
        raise click.ClickException(f"there is no {twins.placement.resource.kind} {plain}{where}") from error
