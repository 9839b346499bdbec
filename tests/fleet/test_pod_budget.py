"""A podBudget on both backends, judged by a watch of the pods of all members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from fleet import kinds
from fleet.bed import MEMBERS, SECONDS, Backend, Bed
from fleet.seeds import placement
from fleet.story import deployment, is_so, set_image
from fleet.traces import Untyped
from fleet.watching import Happening, watched
from kedge.api.dialect import Dialect

pytestmark = pytest.mark.timeout(SECONDS)

PODS, TAKES = 4, 2
ALL = PODS * len(MEMBERS)


def placing(**budget: object) -> Untyped:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", **budget}}
    selector = {"group": "", "kind": "Namespace", "version": "v1", "name": "test-ns"}
    return placement({"resourceSelectors": [selector], "strategy": strategy})


def web(image: str) -> Untyped:
    found = deployment(image, replicas=PODS)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": TAKES, "maxSurge": 0}}
    return {**found, "spec": {**found["spec"], "strategy": strategy}}


async def release(bed: Bed, spec: Untyped) -> list[Happening]:
    """Place it, release another image, and watch all pods meanwhile."""
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}})
    await bed.apply(web("app:1"))
    await bed.apply(spec)
    await bed.until(lambda: is_so(bed, "Available"))
    async with watched(bed, kinds.PODS, *MEMBERS) as seen:
        await set_image(bed, "app:2")
        await bed.until(lambda: runs_everywhere(bed, "app:2"))
        await bed.until(lambda: is_so(bed, "Available"))
        return seen


async def runs_everywhere(bed: Bed, image: str) -> bool:
    found = [await bed.get(kinds.DEPLOYMENTS, "web", "test-ns", on=member) for member in MEMBERS]
    return all(one["spec"]["template"]["spec"]["containers"][0]["image"] == image for one in found)


def available(seen: Iterable[Happening]) -> Iterator[int]:
    """How many pods of all members are available, from when all were on."""
    pods: set[tuple[str, str]] = set()
    was_complete = False
    for one in seen:
        if one.obj["metadata"]["namespace"] != "test-ns":
            continue
        key = one.where, one.obj["metadata"]["name"]
        conditions = one.obj.get("status", {}).get("conditions", ())
        is_ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
        (pods.discard if one.is_removal or not is_ready else pods.add)(key)
        was_complete = was_complete or len(pods) == ALL
        if was_complete:
            yield len(pods)


def test_a_change_never_takes_away_more_pods_than_the_budget_of_all_clusters(backend: Backend) -> None:
    async def play(bed: Bed) -> list[Happening]:
        return await release(bed, placing(podBudget="30%"))

    seen = list(available(backend.play(play, Dialect.seed)))
    assert seen[-1] == ALL
    assert ALL - 2 * TAKES <= min(seen) < ALL  # 30 % of 16 are 4, which is two clusters at once


def test_without_it_every_cluster_takes_away_what_its_workloads_allow(backend: Backend) -> None:
    async def play(bed: Bed) -> list[Happening]:
        return await release(bed, placing())

    assert min(available(backend.play(play, Dialect.seed))) < ALL - 2 * TAKES
