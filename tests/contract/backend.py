"""One API under contract: a client, a namespace of its own, and the few words the tests use.

Nothing here knows which server answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import Bookmark, Untyped, untyped
from kedge.kube.transport import JSON, Request

CONFIG_MAPS = untyped(Resource("", "v1", "ConfigMap", "configmaps"))
DEPLOYMENTS = untyped(Resource("apps", "v1", "Deployment", "deployments"))
LEASES = untyped(Resource("coordination.k8s.io", "v1", "Lease", "leases"))
NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
NO_RESOURCE = "the server could not find the requested resource"
NO_METHOD = "the server does not allow this method on the requested resource"
MODIFIED_MEANWHILE = "the object has been modified; please apply your changes to the latest version and try again"
HELD = ["contract.kedge.dev/hold"]


class Answer(Struct, frozen=True):
    """What came back."""

    code: int
    body: Any

    @property
    def metadata(self) -> Any:
        return self.body["metadata"]

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def refusal(self) -> tuple[int, str, str]:
        """Code, reason and message of a Status that says no."""
        assert self.body["kind"] == "Status"
        assert self.body["status"] == "Failure"
        assert self.body["code"] == self.code
        return self.code, self.body.get("reason", ""), self.body["message"]

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Reason and field of each cause of a refusal."""
        return [(cause["reason"], cause["field"]) for cause in self.body["details"]["causes"]]


class Api:
    """One server, and a namespace on it that nobody else uses."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.maps = CONFIG_MAPS.resource.path(namespace)
        self.deployments = DEPLOYMENTS.resource.path(namespace)
        self.leases = LEASES.resource.path(namespace)

    async def ask(
        self, method: str, path: str, body: object = b"", kind: str = JSON, *, accept: str = JSON, **query: str
    ) -> Answer:
        """Send a request as it is."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        request = Request(method, path, tuple(query.items()), raw, kind, accept)
        response = await self.client.transport.send(request, timeout=120.0)
        return Answer(response.status, _read(response.body))

    async def look(self, path: str) -> Untyped:
        """The object at a path, which is there."""
        answer = await self.ask("GET", path)
        assert answer.code == 200, answer
        found: Untyped = answer.body
        return found

    async def is_there(self, path: str) -> bool:
        return (await self.ask("GET", path)).code == 200

    async def make(self, name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Untyped:
        """A ConfigMap."""
        return await self._made(self.maps, {"metadata": {"name": name, **metadata}, "data": data or {"k": "v"}})

    async def make_deployment(self, name: str = "web", /, **metadata: Any) -> Untyped:
        return await self._made(self.deployments, deployment(name, **metadata))

    async def make_lease(self, name: str = "lead") -> Untyped:
        return await self._made(self.leases, {"metadata": {"name": name}, "spec": {"holderIdentity": "me"}})

    async def make_namespace(self, suffix: str = "other") -> str:
        """Another namespace of one's own. It stays: nothing here empties namespaces."""
        name = f"{self.namespace}-{suffix}"
        await self._made(NAMESPACES.resource.path(), {"metadata": {"name": name}})
        return name

    async def merge(self, path: str, patch: Mapping[str, Any], **query: str) -> Answer:
        return await self.ask("PATCH", path, patch, MERGE, **query)

    async def version(self) -> str:
        """The version of a list made now."""
        return str((await self.ask("GET", self.maps)).metadata["resourceVersion"])

    @asynccontextmanager
    async def events(self, namespace: str | None = "", **options: Any) -> AsyncIterator[AsyncIterator[Told]]:
        """What a watch of ConfigMaps tells; of the marks only the one after initial events, if these were asked for."""
        place = self.namespace if namespace == "" else namespace
        async with self.client.watch(CONFIG_MAPS, place, **options) as watch:
            yield _told(watch, marked=bool(options.get("initial_events")))

    async def _made(self, path: str, body: Untyped) -> Untyped:
        answer = await self.ask("POST", path, body)
        assert answer.code == 201, answer
        made: Untyped = answer.body
        return made


class Told(Struct, frozen=True):
    """One event of a watch; `END` is the mark after all that was there."""

    type: str
    object: Untyped

    @property
    def short(self) -> tuple[str, str]:
        return self.type, self.object["metadata"].get("name", "")


END = ("END", "")


async def _told(watch: AsyncIterator[Any], *, marked: bool) -> AsyncIterator[Told]:
    async for event in watch:
        if not isinstance(event, Bookmark):
            yield Told(event.type, event.object)
        elif marked and event.initial_events_end:
            yield Told("END", {"metadata": {"resourceVersion": event.resource_version}})


async def take(events: AsyncIterator[Told], count: int) -> list[tuple[str, str]]:
    """The next so many, in short."""
    return [(await anext(events)).short for _ in range(count)]


def config_map(name: str, **metadata: Any) -> Untyped:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def deployment(name: str = "web", /, **metadata: Any) -> Untyped:
    """A Deployment any server takes, of two replicas."""
    container = {"name": "web", "image": "web:1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **metadata}, "spec": spec}


def with_metadata(obj: Untyped, **metadata: Any) -> Untyped:
    """The object with other metadata; what is None is left out."""
    mixed = {**obj["metadata"], **metadata}
    return {**obj, "metadata": {key: value for key, value in mixed.items() if value is not None}}


def rv(obj: Untyped) -> int:
    """An object's version, as a number: both servers count upwards."""
    return int(obj["metadata"]["resourceVersion"])


def _read(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode()
