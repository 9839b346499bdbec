"""The kinds of rollout groups: what their schemas take and refuse, and the scale of a ReplicaTemplate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from contract.backend import MERGE, Answer, Api
from contract.crds import CRDS, Object
from kedge.api.crds import zone_crds
from support.waiting import until_so

REPLICA_TEMPLATE, BUDGET = zone_crds()  # here: it reads files
SELECTOR = {"matchLabels": {"rollout-group": "ingester"}}


class ZoneKind:
    """One of the kinds, in a group that nobody else uses."""

    def __init__(self, api: Api, definition: Object) -> None:
        self.api = api
        self.names = definition["spec"]["names"]
        self.group = f"{api.namespace}.kedge.dev"
        name = f"{self.names['plural']}.{self.group}"
        spec = {**definition["spec"], "group": self.group}
        self.definition = {**definition, "metadata": {"name": name}, "spec": spec}
        self.crd = f"{CRDS}/{name}"
        self.path = f"/apis/{self.group}/v1/namespaces/{api.namespace}/{self.names['plural']}"

    async def is_served(self) -> bool:
        conditions = (await self.api.look(self.crd))["status"].get("conditions") or []
        established = any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
        return established and (await self.api.ask("GET", self.path)).code == 200

    async def create(self, **content: Any) -> Answer:
        whole = {"apiVersion": f"{self.group}/v1", "kind": self.names["kind"], "metadata": {"name": "x"}, **content}
        return await self.api.ask("POST", self.path, whole, fieldValidation="Strict")


@asynccontextmanager
async def served(api: Api, definition: Object) -> AsyncIterator[ZoneKind]:
    """One of the kinds, for a while."""
    kind = ZoneKind(api, definition)
    answer = await api.ask("POST", CRDS, kind.definition, fieldValidation="Strict")
    assert answer.code == 201, answer
    await until_so(kind.is_served)
    try:
        yield kind
    finally:
        await api.ask("DELETE", kind.crd)


@pytest.mark.parametrize("definition", [REPLICA_TEMPLATE, BUDGET], ids=["ReplicaTemplate", "Budget"])
async def test_the_definition_is_taken_as_it_is(api: Api, definition: Object) -> None:
    async with served(api, definition) as kind:
        found = await api.look(kind.crd)
        assert found["spec"]["versions"] == kind.definition["spec"]["versions"]
        assert found["spec"]["names"] == kind.names


async def test_a_budget_with_every_field_is_kept(api: Api) -> None:
    spec = {
        "maxUnavailable": 0,
        "podNamePartitionRegex": "[a-z\\-]+-zone-[a-z]-([0-9]+)",
        "podNameRegexGroup": 1,
        "crossZoneEvictionDelay": "10m",
        "selector": SELECTOR,
    }
    async with served(api, BUDGET) as kind:
        made = await kind.create(spec=spec)
        assert (made.code, made.body["spec"]) == (201, spec)


REFUSED: list[tuple[Object, str]] = [
    ({"selector": SELECTOR, "maxUnavailable": -1}, "spec.maxUnavailable"),
    ({"selector": SELECTOR, "maxUnavailable": "1"}, "spec.maxUnavailable"),
    ({"selector": SELECTOR, "maxUnavailablePercentage": -1}, "spec.maxUnavailablePercentage"),
    ({"selector": SELECTOR, "maxUnavailablePercentage": 101}, "spec.maxUnavailablePercentage"),
    ({"selector": SELECTOR, "podNameRegexGroup": 0}, "spec.podNameRegexGroup"),
    ({"selector": SELECTOR, "podNamePartitionRegex": 5}, "spec.podNamePartitionRegex"),
    ({"selector": {}}, "spec.selector.matchLabels"),
    ({"selector": {"matchLabels": {"a": 1}}}, "spec.selector.matchLabels.a"),
    ({"maxUnavailable": 1}, "spec.selector"),
]


async def test_a_budget_that_makes_no_sense_is_refused(api: Api) -> None:
    async with served(api, BUDGET) as kind:
        for spec, field in REFUSED:
            answer = await kind.create(spec=spec)
            assert '"x" is invalid' in answer.refusal[2], spec
            assert [where for _, where in answer.fields] == [field]
        assert '"x" is invalid' in (await kind.create()).refusal[2]


async def test_a_replica_template_is_scaled(api: Api) -> None:
    async with served(api, REPLICA_TEMPLATE) as kind:
        made = await kind.create(spec={"labelSelector": "name=ingester"})
        assert made.body["spec"] == {"labelSelector": "name=ingester", "replicas": 1}
        scaled = await api.ask("PATCH", f"{kind.path}/x/scale", {"spec": {"replicas": 5}}, MERGE)
        assert scaled.body["spec"] == {"replicas": 5}
        await api.ask("PATCH", f"{kind.path}/x/status", {"status": {"replicas": 4}}, MERGE)
        seen = await api.look(f"{kind.path}/x/scale")
        assert (seen["spec"], seen["status"]) == ({"replicas": 5}, {"replicas": 4, "selector": "name=ingester"})


async def test_fewer_replicas_than_none_are_refused(api: Api) -> None:
    async with served(api, REPLICA_TEMPLATE) as kind:
        assert '"x" is invalid' in (await kind.create(spec={"replicas": -1})).refusal[2]
        await kind.create(spec={})
        assert (await api.ask("PATCH", f"{kind.path}/x/scale", {"spec": {"replicas": -1}}, MERGE)).code == 422
