"""The rollout of a group keeps to budgets, together with evictions."""

from __future__ import annotations

import asyncio
from random import Random

from prometheus_client import CollectorRegistry

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.controllers.zone.budget_guard import BudgetGuard
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import DisruptionBudgets
from kedge.kube.cluster import Cluster
from kedge.kube.patches import MergePatch
from kedge.plan.zoning.disruption import Allowed, Denied, SelectedZone, pods_of
from support.budget_bed import NAMESPACE, NUMBERED, BudgetBed, play
from support.stage import LoopClock

STORAGE = {"metadata": {"labels": {"tier": "storage"}}}
OF_ANOTHER_GROUP = {"metadata": {"labels": {"rollout-group": "store-gateway", "tier": "storage"}}}


async def zone(here: BudgetBed, letter: str) -> SelectedZone:
    """A zone as it is now."""
    pods = (await here.client.list(Pod, NAMESPACE)).items
    found = await here.client.get(StatefulSet, f"ingester-zone-{letter}", NAMESPACE)
    return SelectedZone(found, pods_of(found, pods))


async def rolls(here: BudgetBed, short: str, most: int = 2) -> str:
    """What a rollout is told of a pod."""
    own, pod = await zone(here, short[0]), await here.pod(short)
    found = (await here.guard.decide(own, [pod], max_unavailable=most))[pod.metadata.name]
    return "allowed" if isinstance(found, Allowed) else f"{found.status} {found.message}"


def test_without_a_budget_a_rollout_may_delete_what_it_plans() -> None:
    async def scene(here: BudgetBed) -> None:
        assert [await rolls(here, short) for short in ("a-0", "a-1")] == ["allowed"] * 2
        assert here.recent.uids() == frozenset()

    play(scene)


def test_a_rollout_takes_no_more_than_the_budget_allows() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=1)
        assert await rolls(here, "a-0") == "allowed"
        assert await rolls(here, "a-1") == "429 1 pod not ready in ingester-zone-a"
        assert here.counted("eviction_requests_total", reason="allowed", status="200") == 1

    play(scene)


def test_an_eviction_waits_for_a_rollout_and_a_rollout_for_an_eviction() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=2)
        assert await rolls(here, "a-0") == "allowed"
        assert await here.said("b-0") == "429 1 pod not ready in ingester-zone-a"
        assert await here.said("a-1") == "allowed"
        assert await rolls(here, "a-2") == "429 2 pods not ready in ingester-zone-a"

    play(scene)


def test_a_rollout_goes_on_where_evictions_are_switched_off() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=0)
        assert await here.said("a-0") == "403 max unavailable = 0"
        assert await rolls(here, "a-0") == "allowed"
        assert await rolls(here, "a-1") == "allowed"
        assert await rolls(here, "a-2") == "429 2 pods not ready in ingester-zone-a"

    play(scene)


def test_a_rollout_that_waits_for_its_turn_is_counted_as_one_in_flight() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=1)
        (budget,) = here.budgets.in_namespace(NAMESPACE)
        async with here.turns.of(budget):
            asked = asyncio.create_task(rolls(here, "a-0"))
            await here.rest()
            assert here.counted("inflight_eviction_requests") == 1
        assert await asked == "allowed"
        assert here.counted("inflight_eviction_requests") == 0

    play(scene)


def test_with_partitions_and_a_budget_of_0_a_rollout_takes_one_of_each() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=0, podNamePartitionRegex=NUMBERED)
        assert await rolls(here, "a-0") == "allowed"
        assert await rolls(here, "b-0") == "429 1 pod not ready in partition 0"
        assert await rolls(here, "b-1") == "allowed"

    play(scene)


def test_a_pod_that_could_not_be_deleted_does_not_count_as_gone() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=1)
        assert await rolls(here, "a-0") == "allowed"
        here.guard.stays((await here.pod("a-0")).metadata)
        assert await rolls(here, "b-0") == "allowed"

    play(scene)


def test_a_zone_of_another_group_counts_if_the_budget_selects_it() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.client.patch(StatefulSet, "ingester-zone-b", MergePatch(OF_ANOTHER_GROUP), NAMESPACE)
        for short in ("b-0", "b-1", "b-2"):
            await here.client.patch(Pod, f"ingester-zone-{short}", MergePatch(OF_ANOTHER_GROUP), NAMESPACE)
            await here.say_of_pod(short, ready=False)
        await here.set_budget(selector={"matchLabels": {"tier": "storage"}})
        for letter in "ac":
            await here.client.patch(StatefulSet, f"ingester-zone-{letter}", MergePatch(STORAGE), NAMESPACE)
        await here.client.patch(Pod, "ingester-zone-a-0", MergePatch(STORAGE), NAMESPACE)
        assert await rolls(here, "a-0") == await here.said("a-0") == "429 3 pods not ready in ingester-zone-b"

    play(scene)


def test_a_rollout_and_an_eviction_are_decided_one_after_the_other() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=1)
        both = await asyncio.gather(rolls(here, "a-0"), here.said("b-0"), rolls(here, "c-0"), here.said("a-1"))
        assert max(both) == "allowed"
        assert both.count("allowed") == 1

    play(scene)


def test_before_budgets_are_known_nothing_is_deleted() -> None:
    async def scene(here: BudgetBed) -> None:
        metrics, clock = BudgetMetrics(CollectorRegistry()), LoopClock()
        unread = DisruptionBudgets(Cluster("unread", here.client, clock=clock, rng=Random(1)), metrics=metrics)
        guard = BudgetGuard(unread, here.selected, here.recent, clock, turns=here.turns, metrics=metrics)
        asked = [await here.pod("a-0")]
        (found,) = (await guard.decide(await zone(here, "a"), asked, max_unavailable=1)).values()
        assert isinstance(found, Denied)
        assert found.message == "it is not known yet which ZoneAwarePodDisruptionBudgets there are"

    play(scene)
