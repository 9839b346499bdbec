"""The budgets there are, and the times at which pods became ready, on an embedded server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kedge.api.pods import Pod
from kedge.api.zones import READY_TIME
from kedge.controllers.zone.disruption_budgets import BUDGETS
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request
from support.budget_bed import CRDS, DEFINITION, NAMESPACE, NUMBERED, BudgetBed, play, refuses_budgets, refuses_none


def lax(definition: dict[str, Any]) -> dict[str, Any]:
    """The same kind as somebody else defines it: whatever is in a spec is taken."""
    version = definition["spec"]["versions"][0]
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {**definition, "spec": {**definition["spec"], "versions": [{**version, "schema": schema}]}}


def observed(here: BudgetBed) -> dict[str, float]:
    results = ("updated", "ignored", "invalid", "deleted", "delete-ignored")
    found = {result: here.counted("configurations_observed_total", result=result) for result in results}
    return {result: count for result, count in found.items() if count}


def maxima(here: BudgetBed) -> list[int]:
    return [budget.max_unavailable for budget in here.budgets.in_namespace(NAMESPACE)]


def test_a_budget_counts_from_when_it_is_there_until_it_is_deleted() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=2)
        assert maxima(here) == [2]
        await here.set_budget(maxUnavailable=3)
        assert maxima(here) == [3]
        await here.client.delete(BUDGETS, "ingester", NAMESPACE)
        await here.rest()
        assert maxima(here) == []
        assert observed(here) == {"updated": 2, "deleted": 1}

    play(scene)


def test_a_change_of_labels_is_no_new_generation() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
        await here.client.patch(BUDGETS, "ingester", patch, NAMESPACE)
        await here.rest()
        assert observed(here) == {"updated": 1, "ignored": 1}

    play(scene)


def test_an_invalid_change_leaves_the_last_valid_one() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=2)
        for spec in ({"maxUnavailable": -1}, {"maxUnavailable": "many"}, {"maxUnavailable": None}):
            await here.set_budget(**spec)
        assert maxima(here) == [2]
        assert observed(here) == {"updated": 1, "invalid": 3}
        await here.set_budget(maxUnavailable=4)
        assert maxima(here) == [4]

    play(scene, definition=lax(DEFINITION))


def test_one_that_was_never_valid_protects_nothing() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=-1)
        assert maxima(here) == []
        await here.client.delete(BUDGETS, "ingester", NAMESPACE)
        await here.rest()
        assert observed(here) == {"invalid": 1, "delete-ignored": 1}

    play(scene, definition=lax(DEFINITION))


def test_an_alert_on_the_rate_of_invalid_budgets_sees_the_first_and_lasts() -> None:
    async def scene(here: BudgetBed) -> None:
        invalid = here.registry.get_sample_value(
            "rollout_operator_zpdb_configurations_observed_total", {"result": "invalid"}
        )
        assert invalid == 0
        await here.set_budget(maxUnavailable=-1)
        assert observed(here) == {"invalid": 1}
        for _ in range(3):  # each window of five minutes
            before = observed(here)["invalid"]
            await here.rest(300)
            assert observed(here)["invalid"] >= before + 1
        await here.set_budget(maxUnavailable=1)
        mended = observed(here)
        await here.rest(300)
        assert observed(here) == mended
        await here.set_budget(maxUnavailable=-1)
        await here.client.delete(BUDGETS, "ingester", NAMESPACE)
        await here.rest()
        gone = observed(here)
        await here.rest(300)
        assert observed(here) == gone

    play(scene, definition=lax(DEFINITION))


def test_a_budget_that_is_made_anew_counts_though_its_generation_is_lower() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=2)
        await here.set_budget(maxUnavailable=3)
        await here.client.delete(BUDGETS, "ingester", NAMESPACE)
        await here.set_budget(maxUnavailable=1)
        assert maxima(here) == [1]

    play(scene)


def test_without_the_kind_all_goes_on_and_begins_when_it_is_there() -> None:
    async def scene(here: BudgetBed) -> None:
        assert here.budgets.is_known
        assert maxima(here) == []
        await here.client.create(CRDS, DEFINITION)
        await here.rest(30)
        await here.set_budget(maxUnavailable=0)
        assert await here.said("a-0") == "403 max unavailable = 0"

    play(scene, definition=None)


def test_who_may_not_read_budgets_goes_on_without_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=0)
        await here.rest(60)
        assert here.budgets.is_known
        assert await here.said("a-0") == "allowed"
        here.transport.refuses = refuses_none
        await here.rest(60)
        assert await here.said("a-0") == "403 max unavailable = 0"

    play(scene, refuses=refuses_budgets)
    told = [one.getMessage() for one in caplog.records if "going on without" in one.getMessage()]
    assert told == ["going on without ZoneAwarePodDisruptionBudgets, until they can be read: 403 Forbidden: no"]


def test_while_the_server_fails_it_is_not_known_which_budgets_there_are() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=0)
        await here.rest(60)
        assert not here.budgets.is_known
        asked = asyncio.create_task(here.said("a-0"))
        await here.rest(5)
        assert not asked.done()
        here.transport.refuses = refuses_none
        assert await asked == "403 max unavailable = 0"

    play(scene, refuses=refuses_budgets, code=500)


# When pods became ready


async def ready_time(here: BudgetBed, short: str) -> str | None:
    return (await here.pod(short)).metadata.annotations.get(READY_TIME)


def test_pods_of_a_budget_say_since_when_they_are_ready() -> None:
    async def scene(here: BudgetBed) -> None:
        assert await ready_time(here, "a-0") is None
        await here.set_budget(podNamePartitionRegex=NUMBERED, crossZoneEvictionDelay="10m")
        first = await ready_time(here, "a-0")
        assert first is not None
        assert first.startswith("2030-01-01T00:00:")
        assert first.endswith("Z")
        await here.rest(60)
        await here.say_of_pod("a-0", ready=False)
        await here.rest()
        assert await ready_time(here, "a-0") is None
        await here.say_of_pod("a-0")
        await here.rest()
        assert (await ready_time(here, "a-0") or "") > first

    play(scene)


def test_a_time_that_stands_there_stays_and_one_that_cannot_be_read_is_replaced() -> None:
    async def scene(here: BudgetBed) -> None:
        for short, said in (("a-0", "2029-01-01T00:00:00Z"), ("b-0", "soon")):
            patch = MergePatch({"metadata": {"annotations": {READY_TIME: said}}})
            await here.client.patch(Pod, f"ingester-zone-{short}", patch, NAMESPACE)
        await here.set_budget()
        assert await ready_time(here, "a-0") == "2029-01-01T00:00:00Z"
        assert (await ready_time(here, "b-0") or "").startswith("2030-")

    play(scene)


def test_a_pod_of_the_same_partition_goes_only_after_the_delay() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(podNamePartitionRegex=NUMBERED, crossZoneEvictionDelay="10m")
        assert await here.said("a-0") == "429 2 pods not ready in partition 0"
        await here.rest(601)
        assert await here.said("a-0") == "allowed"

    play(scene)


def test_who_may_not_patch_pods_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(here: BudgetBed) -> None:
        def refused(request: Request) -> bool:
            return request.method == "PATCH"

        here.transport.refuses = refused
        await here.set_budget(podNamePartitionRegex=NUMBERED, crossZoneEvictionDelay="10m")
        await here.say_of_pod("a-0", ready=False)
        await here.say_of_pod("a-0")
        await here.rest(30)
        assert await ready_time(here, "a-0") is None
        assert await here.said("a-0") == "429 2 pods not ready in partition 0"

    play(scene)
    told = [one.getMessage() for one in caplog.records if "cannot write grafana.com/ready-time" in one.getMessage()]
    assert len(told) == 1
    assert not [one for one in caplog.records if "reconcile failed" in one.getMessage()]


def test_pods_of_no_budget_are_left_alone() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(selector={"matchLabels": {"rollout-group": "store-gateway"}})
        await here.rest(10)
        assert await ready_time(here, "a-0") is None

    play(scene)
