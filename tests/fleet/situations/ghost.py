"""Ghost: a member whose agent is the test itself, which says on the hub what it likes, or nothing.

It is tainted, so that only placements that name it get there.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from fleet.situations.stage import INTERNAL, MEMBER_CLUSTERS, WORKS, Stage
from kedge.kube.codec import Untyped

GHOST: Final = "ghost"
ROOM: Final = f"fleet-member-{GHOST}"
_TAINT: Final = {"key": "ghost", "effect": "NoSchedule"}


class Ghost:
    """The agent of the member `ghost`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def comes(self) -> None:
        """A MemberCluster is made, and given its place on the hub."""
        identity = {"kind": "User", "name": GHOST}
        spec = {"identity": identity, "heartbeatPeriodSeconds": 15, "taints": [_TAINT]}
        await self._stage.make(MEMBER_CLUSTERS, {"metadata": {"name": GHOST}, "spec": spec})
        await self._stage.bed.until(self._has_room)
        self._stage.farewells.append(self._parts)

    async def _parts(self) -> None:
        """It says that it has left before it is told to, so that nobody has to wait for it."""
        if await self._has_room():
            await self.leaves()

    async def _has_room(self) -> bool:
        return not await self._stage.bed.is_gone(INTERNAL, GHOST, ROOM)

    async def joins(self) -> None:
        await self.comes()
        await self.says_of_itself(
            ("Joined", "True", "InternalMemberClusterJoined"), ("Healthy", "True", "InternalMemberClusterHealthy")
        )
        await self._stage.bed.until(partial(self._stage.bed.is_joined, GHOST))

    async def leaves(self) -> None:
        """It answers, as an agent does that was told to leave."""
        await self.says_of_itself(("Joined", "False", "InternalMemberClusterLeft"))

    async def says_of_itself(self, *words: tuple[str, str, str]) -> None:
        """A heartbeat, with these conditions."""
        internal = await self._stage.bed.get(INTERNAL, GHOST, ROOM)
        now = self._now()
        conditions = [_condition(one, internal["metadata"]["generation"], now) for one in words]
        agent = {"type": "MemberAgent", "conditions": conditions, "lastReceivedHeartbeat": now}
        await self._stage.say(INTERNAL, GHOST, {"agentStatus": [agent]}, ROOM)

    async def reports(self, *words: tuple[str, str, str]) -> None:
        """What it says of the Work of the placement, and of each manifest of it."""
        work = await self._stage.work(GHOST)
        now, generation = self._now(), work["metadata"]["generation"]
        conditions = [_condition(one, generation, now) for one in words]
        await self._stage.say(WORKS, work["metadata"]["name"], {"conditions": conditions}, ROOM)

    def _now(self) -> str:
        return f"{self._stage.bed.ground.clock.now():%Y-%m-%dT%H:%M:%SZ}"


def _condition(words: tuple[str, str, str], generation: int, now: str) -> Untyped:
    type_, status, reason = words
    said = {"type": type_, "status": status, "reason": reason, "message": "so says the ghost"}
    return {**said, "lastTransitionTime": now, "observedGeneration": generation}
