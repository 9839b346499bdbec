"""The kinds of rollout groups: what their schemas take and refuse, and the scale of a ReplicaTemplate."""

from __future__ import annotations

import pytest

from contract.backend import MERGE, Api
from contract.crds import Object
from contract.installed import served
from kedge.api.crds import zone_crds

REPLICA_TEMPLATE, BUDGET = zone_crds()  # here: it reads files
SELECTOR = {"matchLabels": {"rollout-group": "ingester"}}


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
