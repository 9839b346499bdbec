"""Heartbeats: remembers when the hub received the last one of each member.

It is all that is lost when a hub ends: the next one begins to listen anew (`plan.heartbeats`).
"""

from __future__ import annotations

import asyncio

from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.kube.clock import Clock
from kedge.plan.heartbeats import ReceivedHeartbeat, last_heartbeat


class Heartbeats:
    """Those of the members of one hub, shared by all who look at them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._receipts: dict[str, ReceivedHeartbeat] = {}  # by the member's uid

    def last(self, member: MemberCluster, said: InternalMemberCluster | None) -> ReceivedHeartbeat | None:
        """The last one of a member, given what its agent says now."""
        uid, moment = member.metadata.uid, asyncio.get_running_loop().time()
        found = last_heartbeat(self._receipts.get(uid), member, said, self._clock.now(), moment)
        if found is None:
            self._receipts.pop(uid, None)
        else:
            self._receipts[uid] = found
        return found

    def only(self, members: tuple[MemberCluster, ...]) -> None:
        """Forget all but these."""
        known = {member.metadata.uid for member in members}
        self._receipts = {uid: receipt for uid, receipt in self._receipts.items() if uid in known}
