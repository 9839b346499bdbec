"""Kinds that Kedge installs, under contract: one of them for a test, gone with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from contract.backend import Answer, Api
from contract.crds import CRDS, Object
from support.waiting import until_so


class Installed:
    """One of the kinds, in a group that nobody else uses."""

    def __init__(self, api: Api, definition: Object) -> None:
        self.api = api
        self.names = definition["spec"]["names"]
        self.version = next(one["name"] for one in definition["spec"]["versions"] if one["storage"])
        self.group = f"{api.namespace}.kedge.dev"
        name = f"{self.names['plural']}.{self.group}"
        spec = {**definition["spec"], "group": self.group}
        self.definition = {**definition, "metadata": {"name": name}, "spec": spec}
        self.crd = f"{CRDS}/{name}"
        self.path = f"/apis/{self.group}/{self.version}/namespaces/{api.namespace}/{self.names['plural']}"

    async def is_served(self) -> bool:
        return (await self.api.ask("GET", self.path)).code == 200

    async def create(self, name: str = "x", **content: Any) -> Answer:
        kind = {"apiVersion": f"{self.group}/{self.version}", "kind": self.names["kind"]}
        whole = {**kind, "metadata": {"name": name}, **content}
        return await self.api.ask("POST", self.path, whole, fieldValidation="Strict")


@asynccontextmanager
async def served(api: Api, definition: Object) -> AsyncIterator[Installed]:
    """One of the kinds, for a while."""
    kind = Installed(api, definition)
    answer = await api.ask("POST", CRDS, kind.definition, fieldValidation="Strict")
    assert answer.code == 201, answer
    await until_so(kind.is_served)
    try:
        yield kind
    finally:
        await api.ask("DELETE", kind.crd)
