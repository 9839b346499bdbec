"""Runs that are made before their placement, and runs that are rolled back, as users of kubectl have them."""

from __future__ import annotations

from typing import Any

import pytest

from fleet import kinds, seeds
from fleet.bed import MEMBERS, SECONDS, Backend, Bed
from fleet.test_staged_examples import deployment
from fleet.traces import Untyped
from kedge.api.dialect import Dialect
from kedge.api.fleet import ROLLBACK_OF

pytestmark = pytest.mark.timeout(SECONDS)

NAMESPACE = "test-namespace"
AT_ONCE = {"name": "all", "labelSelector": {}, "maxConcurrency": "100%"}


async def start(bed: Bed, name: str, **how: Any) -> None:
    manifest = seeds.staged()[2]
    spec = {key: value for key, value in manifest["spec"].items() if key != "resourceSnapshotIndex"}
    annotations = {ROLLBACK_OF: how.pop("rolls_back")} if "rolls_back" in how else {}
    meta = {"name": name, "annotations": annotations}
    await bed.apply({**manifest, "metadata": meta, "spec": {**spec, **how}})


async def says(bed: Bed, name: str, kind: str, what: str) -> bool:
    found = await bed.condition(kinds.RUNS, name, kind)
    return f"{found.get('status')}/{found.get('reason')}" == what


async def images(bed: Bed) -> list[str]:
    found = [await bed.get(kinds.DEPLOYMENTS, "web", NAMESPACE, on=where) for where in MEMBERS]
    return [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in found]


def test_a_run_waits_for_its_placement_and_one_that_is_rolled_back_never_moves_again(backend: Backend) -> None:
    async def play(bed: Bed) -> tuple[list[list[str]], Untyped]:
        strategy, placement, _ = seeds.staged()
        await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await bed.apply(deployment("app:1"))
        await bed.apply({**strategy, "spec": {"stages": [AT_ONCE]}})
        await start(bed, "first")
        await bed.until(lambda: says(bed, "first", "Initialized", "Unknown/UpdateRunWaiting"))
        await bed.wait_and_see()
        await bed.apply(placement)
        await bed.until(lambda: says(bed, "first", "Succeeded", "True/UpdateRunSucceeded"))
        seen = [await images(bed)]
        await bed.apply(deployment("app:2"))
        await start(bed, "second")
        await bed.until(lambda: says(bed, "second", "Succeeded", "True/UpdateRunSucceeded"))
        seen.append(await images(bed))
        await start(bed, "back", rolls_back="second", resourceSnapshotIndex="0")
        await bed.until(lambda: says(bed, "second", "RolledBack", "True/RollbackStarted"))
        await bed.until(lambda: says(bed, "back", "Succeeded", "True/UpdateRunSucceeded"))
        for state in ("Stop", "Run"):
            await bed.patch(kinds.RUNS, "second", {"spec": {"state": state}}, on="hub")
            await bed.wait_and_see()
        seen.append(await images(bed))
        return seen, await bed.get(kinds.RUNS, "second")

    seen, second = backend.play(play, Dialect.seed)
    assert seen == [["app:1"] * 4, ["app:2"] * 4, ["app:1"] * 4]
    generations = {one["observedGeneration"] for one in second["status"]["conditions"]}
    assert generations == {second["metadata"]["generation"]}
