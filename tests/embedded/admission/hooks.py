"""A cluster whose webhooks a test answers itself, in virtual time."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeAlias

import msgspec

from kedge.api.resource import Resource
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.limits import Limiter, Retry
from support.stage import LoopClock

MAPS = untyped(Resource("", "v1", "ConfigMap", "configmaps"))
VALIDATING = untyped(
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
    )
)
MUTATING = untyped(
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        namespaced=False,
    )
)
ALLOWED: Untyped = {"allowed": True}
DENIED: Untyped = {"allowed": False, "status": {"message": "no"}}
NAME = "hook.kedge.dev.test"

Answers: TypeAlias = Callable[[Untyped], Awaitable[Untyped]]


class Webhook:
    """Answers every call by a function of the `request` that was sent."""

    def __init__(self, answers: Answers | None = None) -> None:
        self.answers = answers or allow
        self.calls: list[Call] = []

    @property
    def asked(self) -> list[Untyped]:
        return [msgspec.json.decode(call.body)["request"] for call in self.calls]

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        self.calls.append(call)
        review = msgspec.json.decode(call.body)
        response = await self.answers(review["request"])
        said = {"uid": review["request"]["uid"], **response}
        whole = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": said}
        return Answer(200, msgspec.json.encode(whole))

    async def close(self) -> None: ...


async def allow(_: Untyped) -> Untyped:
    return ALLOWED


async def deny(_: Untyped) -> Untyped:
    return DENIED


async def fail(_: Untyped) -> Untyped:
    raise OutboundFailed("nobody is there")


def patched(*operations: Untyped) -> Untyped:
    raw = base64.b64encode(msgspec.json.encode(operations)).decode()
    return {"allowed": True, "patch": raw, "patchType": "JSONPatch"}


def hook(*resources: str, operations: tuple[str, ...] = ("*",), **fields: Any) -> Untyped:
    """A webhook for resources of any group and version."""
    rule = {"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources}
    return {
        "name": NAME,
        "clientConfig": {"url": "https://hooks.example.com/ask"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


@asynccontextmanager
async def hooked_cluster(webhook: Webhook, **options: Any) -> AsyncIterator[tuple[EmbeddedCluster, Client]]:
    cluster = EmbeddedCluster("here", clock=LoopClock(), rng=Random(1), outbound=webhook, **options)
    cluster.start()
    client = Client(cluster.transport(), limiter=Limiter(rate=0), retry=Retry(attempts=1))
    yield cluster, client
    await client.close()
    cluster.stop()
    await asyncio.sleep(0.01)  # background requests are cancelled


async def configure(client: Client, *hooks: Untyped, mutating: bool = False) -> None:
    """Ask these webhooks from now on."""
    await client.create(MUTATING if mutating else VALIDATING, {"metadata": {"name": "hooks"}, "webhooks": list(hooks)})


async def make(client: Client, name: str = "a", **metadata: Any) -> Untyped:
    found: Untyped = await client.create(MAPS, {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}, "default")
    return found
