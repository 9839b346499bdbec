"""Kills: SIGKILL for hub and agents in the middle of a step, at moments drawn from a seed.

A moment is a number of happenings, not of seconds: so it falls where something is being written, not where everybody
waits for pods. An agent is killed where something has just happened, to be hit while it works.
"""

from __future__ import annotations

import asyncio
from random import Random

from fleet.bed import Bed
from fleet.journey import Killed, Sight, Step
from fleet.role_processes import HUB, RoleProcesses
from fleet.watching import Happening
from kedge.api.coordination import Lease

MOST_HAPPENINGS = 15
"""Until the next kill; a step that updates one cluster has about as many."""
_LOOKS = 0.005
_PATIENCE = 60.0


async def no_kills(bed: Bed, seen: Sight, step: Step) -> list[Killed]:
    await step.change(bed)
    return []


class Kills:
    """What to do during the steps of a journey, instead of nothing."""

    def __init__(self, processes: RoleProcesses, rng: Random) -> None:
        self._processes = processes
        self._rng = rng

    async def __call__(self, bed: Bed, seen: Sight, step: Step) -> list[Killed]:
        killing = asyncio.create_task(self._kill_some(bed, seen, step))
        await step.change(bed)
        return await killing

    async def _kill_some(self, bed: Bed, seen: Sight, step: Step) -> list[Killed]:
        kills = []
        for _ in range(step.kills):
            after = self._rng.randint(1, MOST_HAPPENINGS)
            midway = await self._wait(bed, seen, step, seen.count + after)
            role = self._victim(seen.last)
            kills.append(asyncio.create_task(self._kill(bed, Killed(role, step.name, after, midway))))
        return list(await asyncio.gather(*kills))

    async def _wait(self, bed: Bed, seen: Sight, step: Step, count: int) -> bool:
        """Until so much has been seen, or the step is done: whether it was not."""
        loop = asyncio.get_running_loop()
        end, look = loop.time() + _PATIENCE, 0.0
        while seen.count < count:
            if loop.time() > look:
                if loop.time() > end or await step.is_done(bed, seen):
                    return False
                look = loop.time() + bed.ground.pause
            await asyncio.sleep(_LOOKS)
        return True

    def _victim(self, last: Happening) -> str:
        return self._rng.choice([HUB, last.member])

    async def _kill(self, bed: Bed, kill: Killed) -> Killed:
        loop, before = asyncio.get_running_loop(), await _leader(bed)
        await self._processes.roles[kill.role].kill()
        if kill.role != HUB:
            return kill
        begun = loop.time()
        await bed.until(lambda: _has_other_leader(bed, before), within=_PATIENCE)
        return Killed(kill.role, kill.step, kill.after, kill.midway, away=loop.time() - begun)


async def _leader(bed: Bed) -> str:
    return (await bed.hub.get(Lease, "kedge-hub", "fleet-system")).spec.holder_identity or ""


async def _has_other_leader(bed: Bed, before: str) -> bool:
    return await _leader(bed) not in ("", before)
