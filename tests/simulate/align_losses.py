"""Losses: available pods that nobody who decides could know to be missing, or to be there again.

Those that others took away or broke are not held against what was decided before anybody could know; nor are pods that
have never been available.
"""

from __future__ import annotations

from collections import defaultdict

from kedge.simulate.simulation import Simulation
from simulate.align_decisions import Decisions
from simulate.align_facts import PodFacts, WorkloadFacts
from simulate.align_seen import Seen

REPORTED_AFTER = 5.0  # seconds after which a report of a pod that works has arrived, if nothing delays it
UNSEEN_FOR = 0.1  # seconds, at most, that a member's own controllers do not know of a pod that works
KNOWN_AFTER = 90.0  # seconds after which the hub knows of a pod, if nothing delays that


class Losses:
    """What became of available pods, by member."""

    def __init__(self, simulation: Simulation, seen: Seen, decisions: Decisions, *, is_prompt: bool) -> None:
        """`is_prompt`: whether nothing delays what members report."""
        self._simulation = simulation
        self._seen = seen
        self._decisions = decisions
        self._is_prompt = is_prompt
        self._lost: dict[str, list[tuple[str, float]]] = defaultdict(list)  # pods others broke, and when
        self._found: dict[tuple[str, str], tuple[float, tuple[str, float] | None]] = {}  # since when pods are available
        self._halted: set[str] = set()  # members that were told to replace no more, and may have begun with one
        self._kept: dict[str, int] = defaultdict(int)  # how many pods a member has had to have
        self._reached = [(0.0, 0)]  # how many of the wanted pods have been available, and since

    # Following

    def begin(self, total: int) -> None:
        """So many pods are wanted now."""
        self._reached = [(since, min(number, total)) for since, number in self._reached]

    def note_workload(self, member: str, before: WorkloadFacts | None, now: WorkloadFacts) -> None:
        if before is not None and before.template == now.template and before.partition < now.partition:
            self._halted.add(member)
        self._kept[member] = max(self._kept[member], now.replicas)

    def lose(self, member: str, name: str) -> None:
        self._lost[member].append((name, self._simulation.loop.time()))

    def find(self, member: str, name: str) -> None:
        """A pod is available. One that others broke is made up for by any other one; where pods have an order, only by
        the one in its place: it may have come back with a release that never works, and one that was replaced tells
        nothing of it."""
        lost = self._lost[member]
        found = [one for one in lost if one[0] == name] if self._seen.kind == "StatefulSet" else lost
        if found:
            lost.remove(found[0])
        self._found[member, name] = self._simulation.loop.time(), found[0] if found else None

    def is_too_new(self, member: str, name: str) -> bool:
        """Whether a pod is available since so short a time that nobody who took it away could know."""
        since, _ = self._found.get((member, name), (-1.0, None))
        return self._simulation.loop.time() - since < UNSEEN_FOR

    def miss(self, member: str, name: str) -> None:
        """Such a pod was taken away: it has made up for none."""
        _, made_up_for = self._found.pop((member, name))
        if made_up_for is not None:
            self._lost[member].append(made_up_for)

    def let_go(self) -> None:
        """Forget what others did to pods of members that have all of them."""
        seen = self._seen
        for member, workload in seen.workloads.items():
            pods = seen.pods[member].values()
            if len(pods) <= workload.replicas:
                self._kept[member] = workload.replicas
            if len(pods) >= workload.replicas and all(pod.is_available for pod in pods):
                self._lost[member].clear()
                self._halted -= {member} if workload.is_observed else set()
        kept = sum(min(seen.available_in(name), self._kept[name]) for name in seen.members)
        reached = min(kept, seen.limits[-1].total)
        if reached > self._reached[-1][1]:
            self._reached.append((self._simulation.loop.time(), reached))

    # Judging

    def is_surplus(self, member: str) -> bool:
        """Whether a member has as many available pods as it has to have, also without one that is taken away."""
        return self._seen.available_in(member) >= self._kept[member]

    def excused(self, member: str, pod: PodFacts) -> int:
        """How many pods may be missing when a member takes this one away."""
        return self._lost_lately(member) + self._mistaken(member, pod)

    def reached_at(self, moment: float) -> int:
        """How many of the wanted pods were known to have been available: those that never were count for nobody."""
        known = moment - (REPORTED_AFTER if self._is_prompt else KNOWN_AFTER)
        return next((number for since, number in reversed(self._reached) if since <= known), 0)

    def _lost_lately(self, member: str) -> int:
        """How many pods others took away or broke that nobody who decided could know of."""
        losses = [at for lost in self._lost.values() for _, at in lost]
        if not self._is_prompt:
            return len(losses)
        since = self._decisions.oldest_taking(member)
        return sum(at >= since - KNOWN_AFTER for at in losses)

    def _mistaken(self, member: str, pod: PodFacts) -> int:
        """How many pods work that look as if they did not, when one is taken away: a StatefulSet says how many do not
        work, and not which. If others broke, or it had begun with one more when it was told to stop, and as many do not
        work as it had replaced, it is taken for those."""
        if self._seen.kind != "StatefulSet" or not (self._lost[member] or member in self._halted):
            return 0
        pods = [*self._seen.pods[member].values(), pod]
        replaced = [one for one in pods if one.template == pod.template]
        missing = sum(not one.is_available for one in pods)
        return sum(one.is_available for one in replaced) if missing >= len(replaced) else 0

    def told(self) -> str:
        return str(dict(self._lost))
