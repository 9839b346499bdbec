"""kopf: an operator embedded in our event loop, with a handler of raw events; what it holds, it holds in an index."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import kopf

from kedgebench.rivals import Held, Saw

KIND = ("apps", "v1", "deployments")
SETTLED = 0.5
"""Seconds without another object, after which an index counts as filled: an operator does not say."""


class Kopf:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        os.environ["KUBECONFIG"] = kubeconfig
        self._namespace = namespace

    async def get(self, name: str) -> object:
        raise NotImplementedError

    async def list(self) -> Sequence[object]:
        raise NotImplementedError

    async def watch(self, saw: Saw) -> None:
        registry = _registry()
        last = asyncio.Event()

        @kopf.on.event(*KIND, registry=registry)
        async def changed(type: str | None, name: str, **_: Any) -> None:  # noqa: A002  # kopf's name for it
            if type == "MODIFIED" and saw(name):
                last.set()

        await _operate(registry, self._namespace, last)

    async def hold(self, namespace: str, copies: int) -> Held:  # noqa: ARG002
        """In an index, and once only: an operator watches a kind once."""
        registry = _registry()
        held = 0

        @kopf.index(*KIND, registry=registry)
        async def deployments(name: str, body: kopf.Body, **_: Any) -> dict[str, kopf.Body]:
            nonlocal held
            held += 1
            return {name: body}

        running = asyncio.create_task(_operate(registry, namespace, asyncio.Event()))
        before = -1
        while not held or held != before:
            before = held
            await asyncio.sleep(SETTLED)
        return Held(running, held)


async def _operate(registry: kopf.OperatorRegistry, namespace: str, stop: asyncio.Event) -> None:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    await kopf.operator(registry=registry, settings=settings, standalone=True, namespaces=[namespace], stop_flag=stop)


def _registry() -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    return registry
