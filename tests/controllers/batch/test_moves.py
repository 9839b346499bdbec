"""Moves in place on the embedded server, with its simulated controllers and kubelet, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from embedded.workloads.test_other_workloads import template
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import ControllerRevision
from kedge.api.crds import kruise_crds
from kedge.api.oam.keys import FROZEN
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.embedded.workloads.everything import EVERYTHING
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.codec import untyped
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.batching.moves import Batch, Moves, Step, Verified, Workload, WorkloadRef, Workloads, Write
from kedge.plan.batching.registry import moves_for
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.batching.set_revisions import with_revisions
from kedge.plan.moving.budget import Budget
from support.stage import PODS, Stage, embedded_stage, is_ready
from support.virtual import run

DEFINITIONS = kruise_crds()  # here: it reads files
CRDS = untyped(CustomResourceDefinition.resource)
RESOURCES = {
    "StatefulSet": Resource("apps", "v1", "StatefulSet", "statefulsets"),
    "DaemonSet": Resource("apps", "v1", "DaemonSet", "daemonsets"),
    "CloneSet": Resource("apps.kruise.io", "v1alpha1", "CloneSet", "clonesets"),
}
SIZE = 5
CLAIM = "Rollout/web/uid-1"
STATUS = RolloutStatus(target_before=1)  # it was there
KINDS = ("StatefulSet", "Parallel", "DaemonSet", "CloneSet")
SPECS: dict[str, dict[str, Any]] = {
    "StatefulSet": {"replicas": SIZE, "serviceName": ""},
    "Parallel": {"replicas": SIZE, "serviceName": "", "podManagementPolicy": "Parallel"},
    "DaemonSet": {},
    "CloneSet": {"replicas": SIZE},
}


def batch(goal: int, *, unavailable: int = 1) -> Batch:
    return Batch(
        index=0,
        goal=goal,
        before=0,
        total=SIZE,
        spec=RolloutBatch(),
        strategy=RolloutStrategy.increase_first,
        tolerated=0,
        budget=Budget(SIZE, unavailable),
    )


class Bed:
    """One workload, and somebody who asks for moves and makes their writes."""

    def __init__(self, stage: Stage, kind: str) -> None:
        self.stage = stage
        resource = RESOURCES["StatefulSet" if kind == "Parallel" else kind]
        self.resource = untyped(resource)
        self.ref = WorkloadRef(f"{resource.group}/{resource.version}", resource.kind, stage.namespace, "web")
        self.least = SIZE
        self.most_new = 0

    async def observe(self, target: str, source: str = "") -> Workloads:
        """What there is; an empty target is what the user has written already."""
        obj = await self.stage.client.get(self.resource, "web", self.stage.namespace)
        pods = msgspec.convert(await self.stage.all(PODS), tuple[Pod, ...])
        revisions = (await self.stage.client.list(ControllerRevision, self.stage.namespace)).items
        workload = Workload(self.ref, obj, {"spec": {"template": template(target)}} if target else None, pods)
        sources = (Workload(self.ref, manifest={"spec": {"template": template(source)}}),) if source else ()
        seen = Workloads(workload, sources, in_place=True, claim=CLAIM, now=self.stage.clock.now())
        return with_revisions(seen, revisions)

    async def until_done(
        self, ask: Callable[[Moves, Workloads], Step], target: str, source: str = "", within: float = 300
    ) -> bool:
        """Ask until the move is done; False if that takes too long."""
        for _ in range(int(within / 0.25)):
            seen = await self.observe(target, source)
            moves = moves_for(seen, ScaleMoves)
            assert not isinstance(moves, str)
            step = ask(moves, seen)
            assert not step.failure, step.failure
            if step.is_done:
                return True
            for write in step.writes:
                await self.write(write)
            await asyncio.sleep(0.25)
            await self.look(target)
        return False

    async def write(self, write: Write) -> None:
        """A write that was decided on what is there no more is made again later."""
        client, namespace = self.stage.client, self.stage.namespace
        try:
            if write.patch is not None:
                body = {**write.patch, "metadata": {**write.patch.get("metadata", {})}}
                patch = MergePatch(body)
                await client.patch(
                    self.resource, "web", patch, namespace, uid=write.uid, resource_version=write.resource_version
                )
            for meta in write.delete_pods:
                await client.remove(PODS, meta)
        except (Conflict, NotFound):
            return

    async def look(self, target: str) -> None:
        found = await self.images()
        self.least = min(self.least, len(found))
        self.most_new = max(self.most_new, found.count(target))

    async def images(self) -> list[str]:
        """What runs and is ready."""
        pods = [pod for pod in await self.stage.all(PODS) if "deletionTimestamp" not in pod["metadata"]]
        return sorted(pod["spec"]["containers"][0]["image"] for pod in pods if is_ready(pod))

    async def take_over(self, target: str) -> None:
        assert await self.until_done(lambda moves, seen: moves.initialize(seen, STATUS, CLAIM), target)

    async def roll(self, target: str, goal: int, within: float = 300) -> bool:
        return await self.until_done(lambda moves, seen: moves.roll(seen, STATUS, batch(goal)), target, within=within)

    async def let_go(self, target: str, *, succeeded: bool) -> None:
        assert await self.until_done(lambda moves, seen: moves.finalize(seen, STATUS, succeeded=succeeded), target)

    async def revert(self, target: str, source: str) -> bool:
        return await self.until_done(lambda moves, seen: moves.revert(seen, STATUS, batch(0)), target, source)

    async def rest(self) -> None:
        await asyncio.sleep(60)


@asynccontextmanager
async def bed(kind: str) -> AsyncIterator[Bed]:
    async with embedded_stage(EVERYTHING) as stage:
        await make_nodes(stage.client, SIZE, stage.clock)
        for definition in DEFINITIONS:
            await stage.client.create(CRDS, definition)
        await asyncio.sleep(2)
        found = Bed(stage, kind)
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **SPECS[kind]}
        await stage.client.create(found.resource, {"metadata": {"name": "web"}, "spec": spec}, stage.namespace)
        await found.rest()
        assert await found.images() == ["web:1"] * SIZE
        yield found


def mixed(**wanted: int) -> list[str]:
    return sorted(f"web:{image[1:]}" for image, number in wanted.items() for _ in range(number))


@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_moves_batch_by_batch_and_gets_its_strategy_back(kind: str) -> None:
    async def main() -> None:
        async with bed(kind) as town:
            seen = await town.observe("web:2")
            before = (seen.target.obj or {})["spec"].get("updateStrategy")
            moves = moves_for(seen, ScaleMoves)
            assert not isinstance(moves, str)
            assert isinstance(moves.verify(seen, RolloutPlan(), STATUS), Verified)
            await town.take_over("web:2")
            await town.rest()
            assert await town.images() == mixed(v1=5)
            for goal in (1, 3, 5):
                assert await town.roll("web:2", goal)
                await town.rest()
                await town.look("web:2")
                assert await town.images() == mixed(v1=5 - goal, v2=goal)
                assert town.most_new == goal
            await town.let_go("web:2", succeeded=True)
            await town.rest()
            assert await town.images() == mixed(v2=5)
            assert town.least >= SIZE - 1
            after = ((await town.observe("web:2")).target.obj or {})["spec"].get("updateStrategy")
            assert _without_zero(after) == _without_zero(before)

    run(main())


def _without_zero(strategy: Any) -> Any:
    """A partition of 0 is as none; a rolling update without numbers is as none."""
    if not isinstance(strategy, dict):
        return strategy or {}
    kept = {name: _without_zero(value) if isinstance(value, dict) else value for name, value in strategy.items()}
    return {name: value for name, value in kept.items() if value not in ({}, 0, None, "RollingUpdate")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_third_revision_midway_takes_all_old_pods_as_one_pool(kind: str) -> None:
    async def main() -> None:
        async with bed(kind) as town:
            await town.take_over("web:2")
            assert await town.roll("web:2", 2)
            await town.let_go("web:2", succeeded=False)
            await town.take_over("web:3")
            await town.rest()
            assert await town.images() == mixed(v1=3, v2=2)
            for goal in (2, 3, 5):
                assert await town.roll("web:3", goal)
                await town.rest()
                assert (await town.images()).count("web:3") == goal
            assert town.least >= SIZE - 1

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_back_midway_does_not_touch_pods_that_never_left(kind: str) -> None:
    async def main() -> None:
        async with bed(kind) as town:
            await town.take_over("web:2")
            assert await town.roll("web:2", 2)
            await town.let_go("web:2", succeeded=False)
            stayed = await _uids(town, "web:1")
            await town.take_over("web:1")
            for goal, there in ((3, 3), (4, 4), (5, 5)):
                assert await town.roll("web:1", goal)
                await town.rest()
                assert (await town.images()).count("web:1") == there
            assert stayed <= await _uids(town, "web:1")
            assert town.least >= SIZE - 1

    run(main())


async def _uids(town: Bed, image: str) -> set[str]:
    pods = await town.stage.all(PODS)
    return {pod["metadata"]["uid"] for pod in pods if pod["spec"]["containers"][0]["image"] == image}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["web:2", "web:bad"])
def test_revert_ends_as_it_was_and_within_the_budget(kind: str, target: str) -> None:
    async def main() -> None:
        async with bed(kind) as town:
            before = ((await town.observe(target)).target.obj or {})["spec"].get("updateStrategy")
            await town.take_over(target)
            assert await town.roll(target, 3, within=60) == (target == "web:2")
            stayed = await _uids(town, "web:1")
            assert await town.revert(target, "web:1")
            await town.rest()
            assert await town.images() == mixed(v1=5)
            assert stayed <= await _uids(town, "web:1")
            assert town.least >= SIZE - 1
            found = (await town.observe(target)).target.obj or {}
            assert _without_zero(found["spec"].get("updateStrategy")) == _without_zero(before)
            assert FROZEN not in found["metadata"].get("annotations", {})

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_fix_reaches_a_bad_revision(kind: str) -> None:
    async def main() -> None:
        async with bed(kind) as town:
            await town.take_over("web:bad")
            assert not await town.roll("web:bad", 2, within=60)
            await town.let_go("web:bad", succeeded=False)
            await town.take_over("web:3")
            assert await town.roll("web:3", 5)
            assert await town.images() == mixed(v3=5)
            assert town.least >= SIZE - 1

    run(main())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_pods_that_are_deleted_meanwhile_do_not_move_early(kind: str, seed: int) -> None:
    """A pod that somebody deletes comes back; a numbered one below the partition as an old one."""

    async def main() -> None:
        rng = Random(seed)
        async with bed(kind) as town:
            await town.take_over("web:2")
            for goal in (2, 4, 5):
                assert await town.roll("web:2", goal)
                victim = rng.choice(await town.stage.all(PODS))
                await town.stage.client.delete(PODS, victim["metadata"]["name"], town.stage.namespace)
                await town.rest()
                new = (await town.images()).count("web:2")
                assert new in ((goal, goal + 1) if kind == "DaemonSet" else (goal,))
            await town.let_go("web:2", succeeded=True)
            await town.rest()
            assert await town.images() == mixed(v2=5)

    run(main())


HELD: dict[str, dict[str, Any]] = {
    "StatefulSet": {"type": "RollingUpdate", "rollingUpdate": {"partition": SIZE}},
    "Parallel": {"type": "OnDelete", "rollingUpdate": None},
    "DaemonSet": {"type": "OnDelete", "rollingUpdate": None},
    "CloneSet": {"paused": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", [0, 3, 5])
def test_a_template_that_a_user_wrote_is_rolled_out_and_taken_back(kind: str, goal: int) -> None:
    async def main() -> None:
        async with bed(kind) as town:
            spec = {"template": {"spec": template("web:2")["spec"]}, "updateStrategy": HELD[kind]}
            await town.stage.client.patch(town.resource, "web", MergePatch({"spec": spec}), town.stage.namespace)
            await town.rest()
            before = ((await town.observe("")).target.obj or {})["spec"]["updateStrategy"]
            await town.take_over("")
            assert await town.roll("", goal)
            await town.rest()
            assert await town.images() == mixed(v1=5 - goal, v2=goal)
            assert await town.revert("", "")
            await town.rest()
            assert await town.images() == mixed(v1=5)
            assert town.least >= SIZE - 1
            assert ((await town.observe("")).target.obj or {})["spec"]["updateStrategy"] == before

    run(main())
