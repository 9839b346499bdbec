"""kill -9 of an operator in the middle of releases on a real control plane: zones keep every promise, and all arrives.

A moment is a number of changes of pods, drawn from a seed: so it falls where something happens. The promises are judged
by a watch of the pods, at every change. KEDGE_ZONE_KILLS says how many are killed, ten in each test.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from controlplane.cluster import Cluster
from fleet.role_processes import KILLED, Role
from real.zone_group import Group, ready_group
from simulate import seeds
from support.waiting import until, until_so

KILLS = 10
ROUNDS = -(-int(os.environ.get("KEDGE_ZONE_KILLS", KILLS)) // KILLS)
FIRST = seeds.first_seed(seeds.current_commit(), ROUNDS)
MOST_CHANGES = 40
"""Until the next kill: a pod that is replaced changes about seven times."""
RELEASE_MIDWAY = 0.2
"""How often there is a new release when the operator is back, though the last one has not arrived."""
pytestmark = pytest.mark.timeout(600)


class Killing:
    """Releases, and kills in the middle of them."""

    def __init__(self, group: Group, role: Role, rng: Random) -> None:
        self._group = group
        self._role = role
        self._rng = rng
        self._number = 1

    @property
    def image(self) -> str:
        """The image of the last release."""
        return f"app:{self._number}"

    async def kill(self) -> None:
        """Kill the operator once pods have changed so often; something is always being released meanwhile."""
        if self._rng.random() < RELEASE_MIDWAY:
            await self._release()
        moment = self._group.recorder.seen + self._rng.randint(1, MOST_CHANGES)
        while self._group.recorder.seen < moment:
            if self._group.recorder.all_run(self.image):
                await self._release()
            await asyncio.sleep(0.002)
        before = len(self._role.ends)
        await self._role.kill()
        await until(lambda: len(self._role.ends) > before)  # so that the next kill finds another process

    async def _release(self) -> None:
        self._number += 1
        await self._group.release(self.image)


@asynccontextmanager
async def kept_operator(cluster: Cluster, namespace: str, log: Path, rng: Random) -> AsyncIterator[Role]:
    """`kedge rollout-operator`, started again whenever it ends, as a kubelet does it."""
    told = {
        "kubernetes.config-file": cluster.kubeconfig,
        "kubernetes.api-url": cluster.url,
        "kubernetes.namespace": namespace,
        "server.port": 0,
    }
    role = Role("operator", ["rollout-operator", *(f"-{key}={value}" for key, value in told.items())], log, rng)
    keeping = asyncio.create_task(role.keep())
    try:
        yield role
    finally:
        role.stop()
        await keeping


@pytest.mark.core
@pytest.mark.parametrize("number", range(ROUNDS))
async def test_a_killed_operator_breaks_no_promise_and_loses_nothing(
    full_cluster: Cluster, tmp_path: Path, number: int
) -> None:
    seed = FIRST + number
    async with ready_group(full_cluster) as group:
        async with kept_operator(full_cluster, group.namespace, tmp_path / "operator.log", Random(seed)) as role:
            killing = Killing(group, role, Random(seed))
            for _ in range(KILLS):
                await killing.kill()
            await until(lambda: group.recorder.all_run(killing.image), within=120)
            await until_so(group.are_current)
        assert group.recorder.wrong == [], f"seed {seed}"
        assert role.ends == [KILLED] * KILLS, f"seed {seed}: see {role.log}"
