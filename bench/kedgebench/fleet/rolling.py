"""Rolling: an update over real members, beside a plain rollout on one of them."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from controlplane import Missing, find
from kedgebench.fleet import release
from kedgebench.fleet.real import HUB, RealFleet, real_fleet
from kedgebench.fleet.release import SHOP, WEB


async def measure(members: int, rounds: int, max_unavailable: str, collect: float | None = None) -> dict[str, Any]:
    """Task: from the new image on the hub until every member runs it."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    names = {f"cluster-{number}": dict[str, str]() for number in range(1, members + 1)}
    first = [release.placement(WEB, max_unavailable=max_unavailable)]
    async with real_fleet(binaries, names, first, collect) as fleet:
        found = await fleet.in_turns(rounds, lambda: _update(fleet))
    return {**found, "waves": math.ceil(members / max(1, _number_of(max_unavailable, members)))}


async def _update(fleet: RealFleet) -> dict[str, Any]:
    fleet.number += 1
    before = fleet.cpu()
    await fleet.set_image(HUB, SHOP)
    await fleet.arrived()
    found = fleet.since(fleet.witness.changed[HUB, SHOP, fleet.number])
    await asyncio.sleep(2.0)  # for the last statuses
    return {**found, "cpu": {name: spent - before[name] for name, spent in fleet.cpu().items()}}


def _number_of(percent: str, members: int) -> int:
    return math.ceil(int(percent.removesuffix("%")) * members / 100) if percent.endswith("%") else int(percent)
