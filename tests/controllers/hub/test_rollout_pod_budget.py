"""Rollouts with a podBudget on an embedded hub in virtual time; the tests play users, scheduler and members."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.hub.rolling import Rolling, placed_on, play
from kedge.api.fleet import POD_COUNTS, PODS_CHARGED, resource_snapshot_name
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from plan.rolling.making import AVAILABLE, BAD, NOT_AVAILABLE
from plan.rolling.test_pod_counts import rolling, workload

FOUR = ("cluster-1", "cluster-2", "cluster-3", "cluster-4")


def strategy(budget: int | str) -> dict[str, Any]:
    return {"strategy": {"rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 1, "podBudget": budget}}}


def given(*indexes: str) -> dict[str, str]:
    return {f"cluster-{number}": index for number, index in enumerate(indexes, 1)}


async def web(placed: Rolling, index: int, **spec: Any) -> None:
    how = {"replicas": 4, **rolling(2), **spec}
    await placed.snapshot(index, (workload(image=f"v{index}", **how),))


async def charges(placed: Rolling) -> list[str]:
    return [one.metadata.annotations.get(PODS_CHARGED, "") for _, one in sorted((await placed.all()).items())]


async def placed_with(placed: Rolling, budget: int | str) -> None:
    await placed_on(placed, *FOUR, **strategy(budget))
    await web(placed, 1)
    for _ in FOUR:
        await placed.rest(5)
        await placed.say(AVAILABLE, *FOUR)
    await placed.until_given(given("1", "1", "1", "1"))


@pytest.mark.parametrize("kinds", [CLUSTER, NAMESPACED])
def test_clusters_are_moved_while_the_pods_they_may_lack_are_within_the_budget(kinds: PlacementKinds) -> None:
    async def act(placed: Rolling) -> None:
        await placed_with(placed, 5)
        assert await charges(placed) == ["", "", "", ""]
        await web(placed, 2)
        await placed.until_given(given("2", "2", "1", "1"))
        assert await charges(placed) == ["2", "2", "", ""]
        await placed.say(NOT_AVAILABLE, "cluster-1")
        await placed.rest(600)
        assert await placed.given() == given("2", "2", "1", "1")
        assert await placed.waits_for("cluster-3") == (
            "cluster-3 waits: at most 5 of 16 pods of all clusters may be unavailable (podBudget), a change here may "
            f"take away 2, and cluster-1 is not available: {BAD} (2 pods); cluster-2 is being given its resources "
            "(2 pods)"
        )
        await placed.say(AVAILABLE, "cluster-2")
        await placed.until_given(given("2", "2", "2", "1"))
        assert await charges(placed) == ["2", "", "2", ""]
        await placed.say(AVAILABLE, "cluster-1", "cluster-3")
        await placed.until_given(given("2", "2", "2", "2"))
        await placed.say(AVAILABLE, "cluster-4")
        await placed.rest()
        assert await charges(placed) == ["", "", "", ""]

    play(act, kinds)


def test_a_budget_that_no_cluster_fits_into_is_reported_until_it_is_raised() -> None:
    async def act(placed: Rolling) -> None:
        await placed_with(placed, 2)
        await web(placed, 2, strategy={"type": "Recreate"})
        await placed.rest(600)
        assert await placed.given() == given("1", "1", "1", "1")
        assert "raise it to at least 4" in await placed.waits_for("cluster-1")
        await placed.edit(**strategy(4))
        await placed.until_given(given("2", "1", "1", "1"))
        assert await charges(placed) == ["4", "", "", ""]

    play(act)


def test_a_charge_outlives_a_further_release_midway() -> None:
    async def act(placed: Rolling) -> None:
        await placed_with(placed, 4)
        await web(placed, 2, strategy={"type": "Recreate"})
        await placed.until_given(given("2", "1", "1", "1"))
        await web(placed, 3)
        await placed.until_given(given("3", "1", "1", "1"))
        assert await charges(placed) == ["4", "", "", ""]
        await placed.say(AVAILABLE, "cluster-1")
        await placed.until_given(given("3", "3", "3", "1"))
        assert await charges(placed) == ["", "2", "2", ""]

    play(act)


def test_pods_are_counted_only_if_there_is_a_budget_of_pods() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *FOUR)
        await web(placed, 1)
        await placed.rest(5)
        assert await _counts(placed, 1) is None
        assert await charges(placed) == ["", "", "", ""]
        await placed.edit(**strategy(4))
        await placed.rest(5)
        found = await _counts(placed, 1)
        assert found is not None
        assert found.startswith('{"Deployment shop/web":[4,2,')

    play(act)


async def _counts(placed: Rolling, index: int) -> str | None:
    name = resource_snapshot_name(placed.name, index)
    found = await placed.client.get(placed.kinds.resource_snapshot, name, placed.namespace)
    return found.metadata.annotations.get(POD_COUNTS)
