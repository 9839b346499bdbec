"""Planted bugs: the same fleets with a part of their safety taken out, which the promises must notice.

PYTHONPATH=tests python -m kedge.simulate simulate.planted:without_preconditions --seed 1 --seeds 40
"""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from kedge.controllers.hub.run_writes import RunWrites
from kedge.controllers.zone.observed import GroupCaches
from kedge.kube.client import Client
from kedge.kube.expectations import WriteSet
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.gate import Open
from kedge.plan.staging.gates import Gates
from kedge.plan.zoning import group, zone
from kedge.plan.zoning.zone import Zone
from kedge.simulate.simulation import Simulation
from simulate.rolling import rolling
from simulate.staging import staging
from simulate.zoning import zoning

_patch = Client.patch
_passed = Gates.passed


async def without_preconditions(simulation: Simulation) -> None:
    """Nobody says which version of an object a patch is made for."""

    async def unconditional(self: Client, *arguments: Any, **options: Any) -> Any:
        return await _patch(self, *arguments, **{**options, "resource_version": None})

    with patch.object(Client, "patch", unconditional):
        await rolling(simulation)


async def without_own_writes(simulation: Simulation) -> None:
    """Nobody waits until a cache shows what they have just written."""
    with patch.object(WriteSet, "shown", lambda _: True):
        await rolling(simulation)


async def without_proof(simulation: Simulation) -> None:
    """A cluster that does not work is given whatever is wanted, though that works nowhere yet."""
    with patch.object(Exposure, "has_room", lambda *_: True):
        await rolling(simulation)


# In staged runs


async def without_looking_at_runs(simulation: Simulation) -> None:
    """A run says what it does some seconds after it was looked at, whatever has become of it since."""

    async def unconditional(self: RunWrites, run: Any, body: Any, subresource: str | None = None) -> Any:
        await asyncio.sleep(3.0)
        return await self._client.patch(
            self._kinds.run, run.metadata.name, MergePatch(body), manager="kedge-staged-runs", subresource=subresource
        )

    with patch.object(RunWrites, "_change_run", unconditional):
        await staging(simulation)


async def without_gates(simulation: Simulation) -> None:
    """A stage whose tasks are not done is passed now and then."""
    rng = simulation.rng("gates")

    def ajar(self: Gates, *arguments: Any, **options: Any) -> Any:
        tasks, gate = _passed(self, *arguments, **options)
        return tasks, Open() if rng.random() < 0.1 else gate

    with patch.object(Gates, "passed", ajar):
        await staging(simulation)


async def without_turns(simulation: Simulation) -> None:
    """No run waits for another."""
    with patch("kedge.plan.staging.run_observation.ahead_of", lambda *_: ""):
        await staging(simulation)


async def without_health(simulation: Simulation) -> None:
    """No gate looks at whether what is behind it still works."""
    with patch("kedge.plan.staging.stages.lost_proofs", lambda *_: []):
        await staging(simulation)


# In rollout groups


async def without_fresh_pods(simulation: Simulation) -> None:
    """Pods are deleted by what a cache shows, however old that is."""

    async def by_cache(self: GroupCaches, key: Key) -> Any:
        return self.zones(key)

    with patch.object(GroupCaches, "zones_now", by_cache):
        await zoning(simulation)


async def without_other_zones(simulation: Simulation) -> None:
    """A zone is rolled out whatever the others do."""
    with patch.object(group, "while_proven", lambda *_: Open()):
        await zoning(simulation)


async def without_proof_of_pods(simulation: Simulation) -> None:
    """A pod that does not work is given whatever is wanted, though that works nowhere yet."""
    with patch.object(Exposure, "has_room", lambda *_: True):
        await zoning(simulation)


async def by_the_status(simulation: Simulation) -> None:
    """Pods are counted by the status of their StatefulSet."""

    def unavailable(self: Zone) -> int:
        return self.stateful_set.status.replicas - self.stateful_set.status.ready_replicas

    with (
        patch.object(Zone, "unavailable", property(unavailable)),
        patch.object(zone, "is_running_and_ready", lambda _: True),
    ):
        await zoning(simulation)
