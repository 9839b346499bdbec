"""Headroom: how much of the budget one cluster may have now, beside what all of them hold.

Promises:

* what is free for a cluster is free of what all of them may yet come to, and within the part that it may hold;
* to take away pods that do not work anyway costs nothing;
* a cluster that has begun may go on: it keeps what it holds, as far as the budget of now goes, and one pod in any case;
* a pod is given up for another one only if nobody gives anything back.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.bounds import Bounds, fewest_in_effect, scaled_away
from kedge.plan.aligning.ledger import Member


class Headroom(Struct, frozen=True):
    """One cluster, and what is left for it."""

    aim: Aim
    member: Member
    held: Bounds
    """What the cluster may come to."""
    total: Bounds
    """What all clusters together may come to, this one among them."""
    fair: Bounds
    """How much of the budget the cluster may hold."""
    is_idle: bool
    """Whether nobody gives anything back: no cluster holds any of the budget or has anything yet to acknowledge."""

    @property
    def is_stuck(self) -> bool:
        """Whether there is no room, and nobody has begun anything that would give some back."""
        return self.total.most >= self.aim.most and self.is_idle

    @property
    def kept(self) -> tuple[int, int]:
        """What it goes on with of what it holds: no more than there is now, but for one pod if that is all it has."""
        held, aim = self.held, self.aim
        kept = min(held.unavailable, aim.unavailable), min(held.surge, aim.surge)
        return kept if any(kept) else (min(held.unavailable, 1), min(held.surge, 1))

    def broken(self, replicas: int) -> int:
        """How many of its pods do not work, and not because they are replaced or on their way out: to take those away
        costs nothing."""
        member, last = self.member, self.member.last
        fewest = fewest_in_effect(member) if member.lingering else self.held.fewest
        going = scaled_away(member, last, member.in_effect) if last is not None else 0
        return max(0, replicas - self.held.unavailable - fewest - going)

    def free_unavailable(self, replicas: int) -> int:
        """How many pods more the cluster may take away; those that do not work anyway cost nothing."""
        spare = max(0, self.total.fewest - self.aim.fewest)
        free, broken = self.aim.unavailable - self.total.unavailable, self.broken(replicas)
        fair = self.fair.unavailable - self.held.unavailable
        return max(0, min(free, spare + broken, fair + broken))

    def free_surge(self, replicas: int) -> int:
        """How many pods more than its replicas the cluster may have, beyond what it holds."""
        grown = max(0, replicas - self.member.replicas)
        fair = self.fair.surge - self.held.surge
        return max(0, min(self.aim.surge - self.total.surge, self.aim.most - self.total.most - grown, fair))

    def may_trade(self, replicas: int) -> bool:
        """Whether a pod that does not work may make room for one of the wanted template, if nothing else does."""
        has_broken = 0 < replicas <= self.member.replicas and self.broken(replicas) > 0
        has_room = self.total.most <= self.aim.most  # with too many pods, none is created
        return has_broken and has_room and self.aim.surge > 0 and self.is_stuck
