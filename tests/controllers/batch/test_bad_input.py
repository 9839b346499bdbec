"""Bad input to rollouts in batches: who refuses it, what a controller says that gets it all the same, how it goes on.

Each row of `bad_rows` is refused by an API server with the CRDs and by the webhook, or let in by both, as it says. Then
it is given to a controller on a server without rules, where neither stands before it. Nothing moves that should not,
another rollout goes on meanwhile, and the correction lets it go on. All on an embedded server, in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

import pytest

from controllers.batch.bad_rows import ROWS, Row, World, ref
from controllers.batch.batch_bed import DEFINITIONS, SHOP, Bed, bed
from kedge.admission.rollout_validation import validate_rollout
from kedge.api.admission import AdmissionRequest
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.codec import untyped
from kedge.kube.errors import Invalid
from kedge.kube.patches import MergePatch
from support.virtual import run

TRAITS = untyped(RolloutTrait.resource)
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _without_rules(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    found = cast("dict[str, Any]", deepcopy(definition))
    for version in found["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": ANYTHING}
    return found


OPEN = tuple(_without_rules(one) if "rollouttraits" in str(one["metadata"]) else one for one in DEFINITIONS)


def trait(row: Row) -> dict[str, Any]:
    said = {"numBatches": 2, **row.plan}
    plan = {key: value for key, value in said.items() if value is not None}
    spec = {"targetRef": ref(), "sourceRef": [ref("v1")], **row.spec, "rolloutPlan": plan}
    return {"metadata": {"name": row.name, "namespace": SHOP}, "spec": spec}


def test_there_are_enough_rows() -> None:
    assert len(ROWS) >= 50


def test_a_server_with_the_crds_refuses_what_it_can_and_lets_the_rest_in() -> None:
    async def body() -> None:
        async with bed() as here:
            said = {name: await _refusal(here, row) for name, row in ROWS.items()}
        wrong = {
            name: said[name]
            for name, row in ROWS.items()
            if row.refused not in said[name] or bool(row.refused) != bool(said[name])
        }
        assert wrong == {}

    run(body())


async def _refusal(here: Bed, row: Row) -> str:
    try:
        await here.client.create(TRAITS, trait(row), dry_run=True)
    except Invalid as error:
        return str(error)
    return ""


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_webhook_refuses_what_can_never_work_and_lets_the_rest_in(row: Row) -> None:
    async def body() -> None:
        found = {"apiVersion": RolloutTrait.resource.api_version, "kind": "RolloutTrait", **trait(row)}
        answer = await validate_rollout(AdmissionRequest(uid="1", operation="CREATE", object=found))
        said = answer.status.message if answer.status is not None else ""
        assert answer.allowed == (not row.webhook), said
        assert row.webhook in said

    run(body())


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_controller_moves_nothing_says_why_and_goes_on_when_it_is_corrected(row: Row) -> None:
    async def body() -> None:
        world = World(row.world) if row.world is not None else None
        outbound = row.outbound() if row.outbound is not None else world
        async with bed(outbound, definitions=OPEN) as here:
            await _prepare(here, row)
            await here.client.create(TRAITS, trait(row))
            await asyncio.sleep(20)
            await here.trait("other-v2", "other-v1", name="other", numBatches=2)
            await here.until_state("rolloutSucceed", name="other")
            await asyncio.sleep(100)
            await _stands(here, row)
            if row.is_mended:
                await _mend(here, row, world)
                await here.until_state(row.ends, name=row.name)

    run(body())


async def _prepare(here: Bed, row: Row) -> None:
    for app in ("", "other-"):
        await here.deployment(f"{app}v1", 4)
        await here.deployment(f"{app}v2", 0, "app:2")
    if row.first is not None:
        await row.first(here)


async def _stands(here: Bed, row: Row) -> None:
    status = (await here.get(row.name)).status
    said = status.failure or status.message
    assert (status.rolling_state, row.said in said) == (row.state, True), f"{status.rolling_state}: {said}"
    assert len(said) < 1000
    sizes = await here.sizes()
    assert {name: sizes[name] for name in ("v1", "v2")} == row.moved


async def _mend(here: Bed, row: Row, world: World | None) -> None:
    if row.better is not None:
        assert world is not None
        world.answers = row.better
    elif isinstance(row.mend, Mapping):
        await here.client.patch(TRAITS, row.name, MergePatch({"spec": row.mend}), SHOP)
    elif row.mend is not None:
        await row.mend(here)
