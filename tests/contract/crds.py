"""CRDs under contract: a kind of one's own for a test, gone with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from contract.backend import MERGE, Answer, Api
from kedge.kube.transport import JSON, Request
from support.waiting import until_so

Object = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Object = {"type": "string"}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def version(schema: Object | None = None, name: str = "v1", **more: Any) -> Object:
    """A version of a kind: served, and stored if it is v1."""
    found = {"openAPIV3Schema": ANYTHING if schema is None else schema}
    return {"name": name, "served": True, "storage": name == "v1", "schema": found, **more}


def spec_of(**members: Object) -> Object:
    """The schema of objects with these members in their spec."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": members}}}


def ruled(rule: str, /, schema: Object | None = None, **more: Any) -> Object:
    """A schema with one rule on the spec."""
    found = schema or spec_of(
        size={"type": "integer"},
        name={"type": "string", "maxLength": 20},
        names={"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {**TEXT, "maxLength": 9}},
    )
    inner = {**found["properties"]["spec"], "x-kubernetes-validations": [{"rule": rule, **more}]}
    return {**found, "properties": {**found["properties"], "spec": inner}}


class Own:
    """A kind of one's own: Widgets, in a group that nobody else uses."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.group = f"{api.namespace}.kedge.dev"
        self.name = f"widgets.{self.group}"
        self.crd = f"{CRDS}/{self.name}"

    def path(self, name: str = "", *, version: str = "v1", part: str = "") -> str:
        place = f"/apis/{self.group}/{version}/namespaces/{self.api.namespace}/widgets"
        return "/".join(one for one in (place, name, part) if one)

    def obj(self, name: str = "x", /, *, version: str = "v1", **content: Any) -> Object:
        metadata = {"name": name, **content.pop("metadata", {})}
        return {"apiVersion": f"{self.group}/{version}", "kind": "Widget", "metadata": metadata, **content}

    def definition(self, *versions: Object, **names: Any) -> Object:
        called = {"plural": "widgets", "kind": "Widget", **names}
        spec = {"group": self.group, "scope": "Namespaced", "names": called, "versions": list(versions or [version()])}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        return {**kind, "metadata": {"name": self.name}, "spec": spec}

    async def define(self, *versions: Object, **names: Any) -> Object:
        """Have the kind, and come back when it is served."""
        answer = await self.api.ask("POST", CRDS, self.definition(*versions, **names))
        assert answer.code == 201, answer
        await until_so(self.is_served)
        found: Object = answer.body
        return found

    async def redefine(self, *versions: Object, until: Any = None) -> Answer:
        """Give the kind other versions; come back when `until` holds."""
        there = await self.api.look(self.crd)
        answer = await self.api.ask("PUT", self.crd, {**there, "spec": {**there["spec"], "versions": list(versions)}})
        if until is not None:
            await until_so(until)
        return answer

    async def is_served(self) -> bool:
        """Whether its objects can be asked for: established, and no longer too young to be."""
        conditions = (await self.api.look(self.crd))["status"].get("conditions") or []
        if not any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
            return False
        return (await self.api.ask("GET", self.path())).code == 200

    async def condition(self, kind: str) -> tuple[str, str, str]:
        """A condition of the CRD, once it is there."""

        async def found() -> Object | None:
            conditions = (await self.api.look(self.crd))["status"].get("conditions") or []
            return next((one for one in conditions if one["type"] == kind), None)

        await until_so(found)
        one = await found()
        assert one is not None
        return one["status"], one["reason"], one["message"]

    async def make(self, name: str = "x", /, *, version: str = "v1", **content: Any) -> Object:
        answer = await self.api.ask("POST", self.path(version=version), self.obj(name, version=version, **content))
        assert answer.code == 201, answer
        found: Object = answer.body
        return found

    async def offer(self, name: str = "x", /, **content: Any) -> Answer:
        """What the server says to a new object; nothing is kept."""
        return await self.api.ask("POST", self.path(), self.obj(name, **content), dryRun="All")

    async def change(self, name: str = "x", /, **patch: Any) -> Answer:
        return await self.api.ask("PATCH", self.path(name), patch, MERGE)

    async def warned(self, method: str, path: str, body: object = b"") -> str:
        """The warnings an answer comes with."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        response = await self.api.client.transport.send(Request(method, path, (), raw, JSON, JSON), timeout=120.0)
        return response.headers.get("warning", "")


@asynccontextmanager
async def own(api: Api, *versions: Object, **names: Any) -> AsyncIterator[Own]:
    """A kind of one's own, for a while."""
    kind = Own(api)
    await kind.define(*versions, **names)
    try:
        yield kind
    finally:
        await api.ask("DELETE", kind.crd)


def causes(answer: Answer) -> list[tuple[str, str]]:
    """Field and message of each cause of a refusal, by field."""
    assert answer.code == 422, answer
    return sorted((cause["field"], cause["message"]) for cause in answer.body["details"]["causes"])
