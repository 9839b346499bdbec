"""kill -9 of an operator in the middle of rollouts in batches on a real control plane: no limit breaks, all arrives.

A moment is a number of changes of pods, drawn from a seed: so it falls where something happens. The limits are judged
by a watch of the pods, at every change. KEDGE_BATCH_KILLS says how many are killed, three in each test.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from controlplane.cluster import Cluster
from fleet.role_processes import KILLED, Role
from kedge.api.coordination import Lease
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.patches import MergePatch
from real.batch_operator import BatchBed, batch_bed, ref
from real.batch_pods import PodRecorder, recorded
from simulate import seeds
from support.waiting import until, until_so

KILLS = 3
ROUNDS = -(-int(os.environ.get("KEDGE_BATCH_KILLS", KILLS)) // KILLS)
FIRST = seeds.first_seed(seeds.current_commit(), ROUNDS)
PODS, BATCHES = 12, 4
MOST_CHANGES = 30
"""Until the next kill: a pod that is replaced changes about seven times."""
LEASE_SECONDS = 4
pytestmark = pytest.mark.timeout(600)


class Releases:
    """Rollouts to and fro between two Deployments, one after the other."""

    def __init__(self, bed: BatchBed) -> None:
        self._bed = bed
        self._has_begun = False
        self.target = "v1"

    async def begin(self) -> None:
        await self._bed.deployment("v1", PODS, "app:1")
        await self._bed.deployment("v2", 0, "app:2")

    async def go_on(self) -> None:
        """The next rollout, if the last one has succeeded."""
        if self._has_begun and not await self.has_arrived():
            return
        source, self.target = self.target, "v2" if self.target == "v1" else "v1"
        if not self._has_begun:
            self._has_begun = True
            await self._bed.trait("web", ref(self.target), ref(source), numBatches=BATCHES)
            return
        change = MergePatch({"spec": {"targetRef": ref(self.target), "sourceRef": [ref(source)]}})
        await self._bed.client.patch(RolloutTrait, "web", change, self._bed.namespace)

    async def has_arrived(self) -> bool:
        found = await self._bed.client.get(RolloutTrait, "web", self._bed.namespace)
        status = found.status
        is_meant = status.last_target.endswith(f"/{self.target}") and status.rolling_state == "rolloutSucceed"
        return is_meant and status.observed_generation == found.metadata.generation


@asynccontextmanager
async def kept(bed: BatchBed, name: str, rng: Random, *arguments: str) -> AsyncIterator[Role]:
    """`kedge operator --batches`, started again whenever it ends, as a kubelet does it."""
    told = ["operator", "--batches", "--kubeconfig", str(bed.cluster.kubeconfig), "--namespace", bed.namespace]
    role = Role(name, [*told, *arguments], bed.folder / f"{name}.log", rng)
    keeping = asyncio.create_task(role.keep())
    try:
        yield role
    finally:
        role.stop()
        await keeping


@asynccontextmanager
async def watched(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[BatchBed, PodRecorder]]:
    async with batch_bed(cluster, folder, "batch-kills") as bed:
        recorder = PodRecorder(floor=PODS, ceiling=PODS + PODS // BATCHES)
        async with recorded(bed.client, bed.namespace, recorder):
            yield bed, recorder


async def killed(role: Role, recorder: PodRecorder, releases: Releases, changes: int) -> None:
    """Kill the operator once pods have changed so often; something is always being rolled out meanwhile."""
    moment = recorder.seen + changes
    while recorder.seen < moment:
        await releases.go_on()
        await asyncio.sleep(0.02)
    before = len(role.ends)
    await role.kill()
    await until(lambda: len(role.ends) > before)


@pytest.mark.core
@pytest.mark.parametrize("number", range(ROUNDS))
async def test_a_killed_operator_breaks_no_limit_and_loses_nothing(
    full_cluster: Cluster, tmp_path: Path, number: int
) -> None:
    seed = FIRST + number
    rng = Random(seed)
    async with watched(full_cluster, tmp_path) as (bed, recorder):
        releases = Releases(bed)
        await releases.begin()
        await until(lambda: recorder.ready("app:1") == PODS)
        recorder.judges = True
        await releases.go_on()
        async with kept(bed, "operator", rng) as role:
            for _ in range(KILLS):
                await killed(role, recorder, releases, rng.randint(1, MOST_CHANGES))
            await until_so(releases.has_arrived, 180)
        image = f"app:{releases.target[1:]}"
        await until(lambda: recorder.ready(image) == PODS)
        assert recorder.wrong == [], f"seed {seed}"
        assert role.ends == [KILLED] * KILLS, f"seed {seed}: see {role.log}"


async def test_of_two_operators_one_acts_and_the_other_takes_over_when_it_is_killed(
    full_cluster: Cluster, tmp_path: Path
) -> None:
    leading = ("--lease", "--lease-duration", str(LEASE_SECONDS))
    async with watched(full_cluster, tmp_path) as (bed, recorder):
        releases = Releases(bed)
        await releases.begin()
        await until(lambda: recorder.ready("app:1") == PODS)
        recorder.judges = True
        async with kept(bed, "one", Random(1), *leading) as one, kept(bed, "two", Random(2), *leading) as two:
            first = await holder(bed)
            await releases.go_on()
            await until(lambda: recorder.ready("app:2") > 0, 90)
            idle = other(one, two, await leads(one))
            assert "wrote Deployment" not in await asyncio.to_thread(idle.log.read_text), "only the leader acts"
            acting = other(one, two, idle is one)
            await acting.kill()
            acting.stop()  # nobody starts it again
            await until_so(partial(is_other, bed, first), 60)
            await until_so(releases.has_arrived, 180)
            assert "wrote Deployment" in await asyncio.to_thread(idle.log.read_text), "the other one went on"
        assert recorder.ready("app:2") == PODS
        assert recorder.wrong == []


def other(one: Role, two: Role, is_first: bool) -> Role:
    return two if is_first else one


async def leads(role: Role) -> bool:
    return "wrote Deployment" in await asyncio.to_thread(role.log.read_text)


async def holder(bed: BatchBed) -> str:
    """Who holds the lease, once somebody does."""
    found: list[str] = []

    async def is_held() -> bool:
        leases = (await bed.client.list(Lease, bed.namespace)).items
        found[:] = [one.spec.holder_identity or "" for one in leases]
        return any(found)

    await until_so(is_held, 60)
    return found[0]


async def is_other(bed: BatchBed, first: str) -> bool:
    return await holder(bed) != first
