"""Planted bugs: the same fleets with a part of their safety taken out, which the promises must notice.

PYTHONPATH=tests python -m kedge.simulate simulate.planted:without_preconditions --seed 1 --seeds 40
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from kedge.kube.client import Client
from kedge.kube.writes import Footprint
from kedge.simulate.world import Simulation
from simulate.rolling import rolling

_patch = Client.patch


async def without_preconditions(simulation: Simulation) -> None:
    """Nobody says which version of an object a patch is made for."""

    async def unconditional(self: Client, *arguments: Any, **options: Any) -> Any:
        return await _patch(self, *arguments, **{**options, "resource_version": None})

    with patch.object(Client, "patch", unconditional):
        await rolling(simulation)


async def without_own_writes(simulation: Simulation) -> None:
    """Nobody waits until a cache shows what they have just written."""
    with patch.object(Footprint, "shown", lambda _: True):
        await rolling(simulation)
