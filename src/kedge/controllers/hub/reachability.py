"""Reachability: says of a member that has been silent for too long that it cannot be reached, and since when.

The condition is `Healthy`=False with reason MemberClusterUnreachable and the last heartbeat in its message; it is taken
away when the member is heard again. Placements read it: of a cluster that cannot be reached, nobody knows how it is.
While a member is heard, nothing is written: one timer per member is all it costs.
Members' clocks play no part: what counts is when a heartbeat was last_heartbeat (`plan.heartbeats`).
"""

from __future__ import annotations

import asyncio

from msgspec import to_builtins

from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.fleet import member_namespace
from kedge.controllers.hub import wakes
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.heartbeats import (
    HeartbeatState,
    ReceivedHeartbeat,
    heartbeat_state,
    last_heartbeat,
    with_unreachable_condition,
)

MANAGER = "kedge-reachability"


class Reachability:
    """Listens for the members of one hub."""

    def __init__(self, hub: Cluster, *, clock: Clock, heartbeats: Heartbeats | None = None) -> None:
        """`heartbeats` are shared with those who show them, if they run in this process."""
        self._heartbeats = heartbeats or Heartbeats(clock)
        self._client = hub.client
        self._events = hub.events.signed("membercluster-controller")
        self._clock = clock
        self._members = hub.cache(MemberCluster)
        self._internals = hub.cache(InternalMemberCluster)
        # A hub that comes back has not shown yet what agents said meanwhile: theirs is the newest word.
        sources: list[Source] = [hub.watch(self._members), hub.watch(self._internals, to=wakes.by_namespace)]
        self.controller = Controller("reachability", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        member = self._members.get(key.name)
        if member is None:
            self._heartbeats.only(self._members.all())
            return Outcome.done
        if member.metadata.deletion_timestamp is not None:
            return Outcome.done
        said = self._internals.get(key.name, member_namespace(key.name))
        last = self._heartbeats.last(member, said)
        heard = heartbeat_state(member, said, last, asyncio.get_running_loop().time())
        conditions = with_unreachable_condition(member, heard, self._clock.now())
        if conditions != member.status.conditions:
            await self._write(member, heard, conditions)
        if heard.last is None or heard.is_silent:
            return Outcome.done
        return Outcome.again(after=heard.seconds_left)

    async def _write(self, member: MemberCluster, heard: HeartbeatState, conditions: tuple[object, ...]) -> None:
        meta = member.metadata
        await self._client.amend(
            MemberCluster,
            meta,
            {"status": {"conditions": to_builtins(conditions)}},
            subresource="status",
            manager=MANAGER,
        )
        if heard.is_silent:
            self._events.warning(member, "MemberClusterUnreachable", f"no heartbeat since {heard.last}")
        else:
            self._events.normal(member, "MemberClusterReachable", "its heartbeats come again")


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
