"""The seed's staged update, to the letter, on both backends: its manifests, its tables, its approval, its status."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from fleet import kinds, seeds
from fleet.bed import MEMBERS, SECONDS, Backend, Bed
from fleet.masks import masked_table
from fleet.traces import Table, Untyped, table
from kedge.api.dialect import Dialect
from kedge.kube.patches import MergePatch

pytestmark = pytest.mark.timeout(SECONDS)

RUN, REQUEST = "example-staged-update-run", "example-staged-update-run-canary"
HOUR = 3600.0
SHORT = "3s"  # a real cluster's time is ours


def deployment(image: str) -> Untyped:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "test-namespace"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


async def begin(bed: Bed, strategy: Untyped) -> None:
    """Everything but the run, with resources 0 and 1 to choose from."""
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-namespace"}})
    await bed.apply(deployment("app:1"))
    await bed.apply(in_time(bed, strategy))
    await bed.apply(seeds.staged()[1])
    await bed.until(lambda: has_snapshot(bed, "0"))
    await bed.apply(deployment("app:2"))
    await bed.until(lambda: has_snapshot(bed, "1"))


def in_time(bed: Bed, strategy: Untyped) -> Untyped:
    """With a wait that passes while we look, where time is real."""
    if bed.ground.apply is None:
        return strategy
    return {**strategy, "spec": _replaced(strategy["spec"], "1h", SHORT)}


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, old, new) for one in value]
    return new if value == old else value


async def has_snapshot(bed: Bed, index: str) -> bool:
    found = await bed.all(kinds.SNAPSHOTS)
    return any(one["metadata"]["labels"]["kubernetes-fleet.io/resource-index"] == index for one in found)


async def run(bed: Bed) -> Untyped:
    return await bed.get(kinds.RUNS, RUN)


async def says(bed: Bed, kind: str) -> str:
    found = await bed.condition(kinds.RUNS, RUN, kind)
    return f"{found.get('status')}/{found.get('reason')}"


async def is_asked(bed: Bed) -> bool:
    return not await bed.is_gone(kinds.APPROVALS, REQUEST)


async def approve(bed: Bed) -> None:
    await bed.hub.patch(kinds.APPROVALS, REQUEST, MergePatch(seeds.approval()), subresource="status")


def cells(printed: Table) -> list[tuple[str, str]]:
    masked = masked_table("", printed)
    return [pair for row in masked.rows for pair in zip(masked.columns, row, strict=True)]


@pytest.mark.core
def test_the_seeds_manifests_move_stage_by_stage_and_print_its_tables(backend: Backend) -> None:
    async def play(bed: Bed) -> tuple[list[list[str]], list[Table], list[float]]:
        strategy, _, manifest = seeds.staged()
        await begin(bed, strategy)
        await bed.wait_and_see()
        placed = [await placed_on(bed)]
        await bed.apply(manifest)
        await bed.until(lambda: says_so(bed, "Progressing", "False/UpdateRunWaiting"))
        times, printed = [bed.ground.clock.now().timestamp()], [await bed.table("clusterstagedupdateruns")]
        placed.append(await placed_on(bed))
        await sit_out_the_wait(bed)
        await bed.until(lambda: is_asked(bed))
        times.append(bed.ground.clock.now().timestamp())
        printed.append(await bed.table("clusterapprovalrequests"))
        await bed.wait_and_see()
        placed.append(await placed_on(bed))
        await approve(bed)
        await bed.until(lambda: says_so(bed, "Succeeded", "True/UpdateRunSucceeded"))
        printed.append(await bed.table("clusterapprovalrequests"))
        placed.append(await placed_on(bed))
        return placed, printed, times

    placed, printed, times = backend.play(play, Dialect.seed)
    # "When you submit the CRP to your Fleet hub cluster no placement is undertaken."
    assert placed == [[], ["cluster-1"], ["cluster-1", "cluster-2"], [*MEMBERS]]
    assert [cells(one) for one in printed] == [cells(table(one)) for one in seeds.tables()]
    if backend.real is None:
        assert HOUR <= times[1] - times[0] < HOUR + 10


async def placed_on(bed: Bed) -> list[str]:
    return [where for where in MEMBERS if not await bed.is_gone(kinds.DEPLOYMENTS, "web", "test-namespace", on=where)]


async def sit_out_the_wait(bed: Bed) -> None:
    """Most of the hour, without looking ten times a second."""
    if bed.ground.apply is None:
        await asyncio.sleep(HOUR - 5)


async def says_so(bed: Bed, kind: str, what: str) -> bool:
    return await says(bed, kind) == what


@pytest.mark.core
def test_the_seeds_status_is_reproduced_from_the_strategy_in_its_own_snapshot(backend: Backend) -> None:
    wanted = seeds.staged_status()
    strategy = {**seeds.staged()[0], "spec": wanted["status"]["stagedUpdateStrategySnapshot"]}

    async def play(bed: Bed) -> Untyped:
        labels = {"cluster-2": ("staging", "0"), "cluster-3": ("canary", "1"), "cluster-1": ("canary", "2")}
        for name, (stage, order) in labels.items():
            body = {"metadata": {"labels": {"environment": stage, "order": order, "name": name}}}
            await bed.patch(kinds.MEMBERS, name, body, on="hub")
        taint = {"key": "out-of-this", "effect": "NoSchedule"}
        await bed.patch(kinds.MEMBERS, "cluster-4", {"spec": {"taints": [taint]}}, on="hub")
        await begin(bed, strategy)
        await bed.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": True}}, on="cluster-1")
        await bed.apply(seeds.staged()[2])
        await sit_out_the_wait(bed)
        await bed.until(lambda: has_begun(bed, "cluster-1"))
        found = await run(bed)
        await bed.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": None}}, on="cluster-1")
        return {**found, "status": _replaced(found["status"], SHORT, "1h")}

    shown = backend.play(play, Dialect.seed)
    missing = list(differences("", wanted, shown))
    assert missing == []


async def has_begun(bed: Bed, cluster: str) -> bool:
    stages = (await run(bed)).get("status", {}).get("stagesStatus", [])
    return any(one["clusterName"] == cluster and one.get("conditions") for stage in stages for one in stage["clusters"])


def differences(path: str, wanted: Any, shown: Any) -> Iterator[str]:
    """What the seed shows and ours does not; ours may show more: what today's KubeFleet has, and when a stage began."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if key != "apiVersion":
                yield from differences(f"{path}.{key}", value, shown.get(key) if isinstance(shown, dict) else None)
    elif isinstance(wanted, list):
        if not isinstance(shown, list) or len(wanted) != len(shown):
            yield f"{path}: {wanted} is shown as {shown}"
            return
        for number, (one, other) in enumerate(zip(wanted, shown, strict=True)):
            yield from differences(f"{path}[{number}]", one, other)
    elif isinstance(wanted, str) and wanted.startswith("member-cluster-0"):
        yield from differences(path, wanted.replace("member-cluster-0", "cluster-"), shown)
    elif wanted != shown:
        yield f"{path}: {wanted!r} is shown as {shown!r}"


def test_a_run_that_ends_well_shows_it_everywhere(backend: Backend) -> None:
    async def play(bed: Bed) -> tuple[Untyped, Untyped]:
        strategy, placement, manifest = seeds.staged()
        await begin(bed, strategy)
        await bed.apply(manifest)
        await sit_out_the_wait(bed)
        await bed.until(lambda: is_asked(bed))
        await bed.until(lambda: rollout_says(bed, "2 of 4 clusters resources 1, and is in stage canary (2 of 3)"))
        midway = await bed.get(kinds.PLACEMENTS, placement["metadata"]["name"])
        await approve(bed)
        await bed.until(lambda: says_so(bed, "Succeeded", "True/UpdateRunSucceeded"))
        await bed.until(lambda: is_available(bed, placement["metadata"]["name"]))
        return midway, await run(bed)

    midway, found = backend.play(play, Dialect.seed)
    status = found["status"]
    for stage in (*status["stagesStatus"], status["deletionStageStatus"]):
        assert "startTime" in stage
        assert "endTime" in stage
        assert [one["type"] for one in stage["conditions"]] == ["Progressing", "Succeeded"]
    (rollout,) = (one for one in midway["status"]["conditions"] if one["type"].endswith("RolloutStarted"))
    assert (rollout["status"], rollout["reason"]) == ("Unknown", "RolloutControlledByExternalController")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_run_without_an_index_moves_what_was_changed_a_moment_before(backend: Backend, dialect: Dialect) -> None:
    async def play(bed: Bed) -> tuple[str, str]:
        await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-namespace"}})
        await bed.apply(deployment("app:1"))
        strategy, placement, manifest = seeds.staged()
        await bed.apply(strategy if dialect is Dialect.seed else {**strategy, "spec": {"stages": [EVERYWHERE]}})
        await bed.apply(placement)
        await bed.at_rest()
        spec = {**manifest["spec"], "state": "Run"}
        del spec["resourceSnapshotIndex"]
        await bed.apply(deployment("app:2"))
        await bed.apply({**manifest, "spec": spec})
        await bed.until(lambda: says_so(bed, "Initialized", "True/UpdateRunInitializedSuccessfully"))
        index = (await run(bed))["status"]["resourceSnapshotIndexUsed"]
        found = await bed.get(kinds.SNAPSHOTS, f"{placement['metadata']['name']}-{index}-snapshot")
        (moved,) = (one for one in found["spec"]["selectedResources"] if one["kind"] == "Deployment")
        return index, moved["spec"]["template"]["spec"]["containers"][0]["image"]

    index, image = backend.play(play, dialect)
    assert image == "app:2"
    assert index == ("1" if dialect is Dialect.seed else "0")


def test_a_run_that_names_the_resources_of_a_change_made_a_moment_before_moves_them(backend: Backend) -> None:
    async def play(bed: Bed) -> str:
        await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-namespace"}})
        await bed.apply(deployment("app:1"))
        strategy, placement, manifest = seeds.staged()
        await bed.apply({**strategy, "spec": {"stages": [EVERYWHERE]}})
        await bed.apply(placement)
        await bed.until(lambda: has_snapshot(bed, "0"))
        await bed.at_rest()
        await bed.apply(deployment("app:2"))
        await bed.apply(manifest)  # which names resources 1
        await bed.until(lambda: says_so(bed, "Succeeded", "True/UpdateRunSucceeded"))
        found = await bed.get(kinds.DEPLOYMENTS, "web", "test-namespace", on=MEMBERS[-1])
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    assert backend.play(play, Dialect.seed) == "app:2"


def test_a_gate_that_is_added_right_before_a_run_is_not_passed(backend: Backend) -> None:
    async def play(bed: Bed) -> list[str]:
        await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-namespace"}})
        await bed.apply(deployment("app:1"))
        strategy, placement, manifest = seeds.staged()
        await bed.apply({**strategy, "spec": {"stages": [EVERYWHERE]}})
        await bed.apply(placement)
        await bed.until(lambda: has_snapshot(bed, "0"))
        await bed.at_rest()
        await bed.apply({**strategy, "spec": {"stages": [{**EVERYWHERE, "beforeStageTasks": [{"type": "Approval"}]}]}})
        await bed.apply({**manifest, "spec": {**manifest["spec"], "resourceSnapshotIndex": "0"}})
        await bed.until(lambda: says_so(bed, "Progressing", "False/UpdateRunWaiting"))
        await bed.wait_and_see()
        return await placed_on(bed)

    assert backend.play(play, Dialect.seed) == []


EVERYWHERE = {"name": "everywhere", "labelSelector": {}}


async def rollout_says(bed: Bed, words: str) -> bool:
    name = seeds.staged()[1]["metadata"]["name"]
    found = await bed.condition(kinds.PLACEMENTS, name, "ClusterResourcePlacementRolloutStarted")
    return words in found.get("message", "")


async def is_available(bed: Bed, name: str) -> bool:
    found = await bed.condition(kinds.PLACEMENTS, name, "ClusterResourcePlacementAvailable")
    return bool(found.get("status") == "True")
