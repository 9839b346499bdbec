"""Decisions: what the hub has asked of each member, when that was decided, and what of it may be in effect still.

A cluster that no ledger tells of is asked once more for what it was asked for before: nothing is decided then. What the
ledger had when somebody removed it counts until a later one is observed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from kedge.plan.aligning.ledger import UNKNOWN
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry
from simulate.align_facts import NAME, NAMESPACE, Spec, WorkloadFacts, ledger_of
from simulate.align_limit import AT_FIRST, EVER, Decided
from simulate.align_seen import Seen

HUB = "hub"
_READS = re.compile(rf"GET /apis/apps[^ ]*/namespaces/{NAMESPACE}/[a-z]+/{NAME}$")
_WRITES = re.compile(r"(PATCH|POST|DELETE) /")


class Granted(NamedTuple):
    """What a member is asked for now, what before if that is known, and when the template was read for it."""

    member: str
    before: Spec | None
    spec: Spec
    read: float


class Decisions:
    """The ledgers of the hub, and what became of them."""

    def __init__(self, simulation: Simulation, seen: Seen) -> None:
        self._simulation = simulation
        self._seen = seen
        self.ledger: dict[str, list[Spec]] = {}
        self.last: dict[str, Spec] = {}  # by member: what its Work asks for
        self.strays: set[str] = set()  # members whose Work arrived long after they had been let go
        self._noted: set[tuple[str, int, int, int]] = set()  # all that was ever in the ledger, which may be lost
        self._all: dict[tuple[str, int], Spec] = {}
        self._forgotten: dict[str, list[Spec]] = defaultdict(list)  # by member: what somebody took out of the ledger
        self._decided: dict[tuple[str, int], Decided] = {}  # by member and number
        self._observed: dict[str, int] = {}
        self._before: dict[str, WorkloadFacts] = {}  # by member: what it acts on until it observes what is asked now
        self._read = 0.0
        self._sent: dict[int, float] = {}  # by request: the read before it
        simulation.trace.follow(self._heard, f"{HUB} → {HUB}")

    def _heard(self, entry: Entry) -> None:
        if _READS.match(entry.what):
            self._read = entry.at
        elif _WRITES.match(entry.what):
            self._sent[entry.number] = self._read

    # Following

    def note_ledger(self, binding: dict[str, Any]) -> list[Granted]:
        """What is decided with this ledger."""
        before, self.ledger = self.ledger, ledger_of(binding)
        self.strays -= {*self.ledger}
        entries = [(name, spec) for name, specs in self.ledger.items() for spec in specs]
        self._all |= {(name, spec.seq): spec for name, spec in entries}
        self._noted |= {(name, spec.seq, spec.replicas, spec.partition) for name, spec in entries}
        carried = self._simulation.trace.carried()
        if self.ledger == before or carried is None:
            return []
        if is_by_others(self._simulation):
            self._forget(before)
            return []
        found = [one for name in self.ledger for one in self._granted(name, before, self.read_before(carried[1]))]
        self._decided |= {(one.member, one.spec.seq): self._inherited(one) for one in found}
        return found

    def read_before(self, request: int) -> float:
        """When the template was read before the hub sent this request; 0 if it sent none such."""
        return self._sent.get(request, 0.0)

    def _granted(self, name: str, before: Mapping[str, Sequence[Spec]], read: float) -> Iterable[Granted]:
        specs = self.ledger[name]
        is_adopted = specs[0].template == UNKNOWN and specs[0] not in before.get(name, [])
        known = [self.last[name]] if is_adopted and name in self.last else before.get(name, [])
        for spec in specs:
            if spec not in known and spec.template != UNKNOWN:
                yield Granted(name, known[-1] if known else None, spec, read)

    def _forget(self, before: Mapping[str, Sequence[Spec]]) -> None:
        """Somebody wrote another ledger: what is in effect is what it was."""
        for name, specs in before.items():
            there = {spec.seq for spec in self.ledger.get(name, ())}
            self._forgotten[name] += [spec for spec in specs if spec.seq not in there]
        self._simulation.counts["promise", "a ledger is lost", "asked"] += 1

    def _inherited(self, granted: Granted) -> Decided:
        """When each part of it was decided: what is no more than before was decided then."""
        name, before, after, read = granted
        if before is None or (name, before.seq) not in self._decided:
            return Decided(read, read, read)
        then, wanted = self._decided[name, before.seq], self._seen.limits[-1].replicas.get(name, 0)
        if replace(after, seq=before.seq) == before:
            return then
        moved = after.replicas - after.partition, before.replicas - before.partition
        may_take = 0 < after.unavailable <= before.unavailable and after.replicas >= before.replicas
        may_add = after.surge <= before.surge and after.replicas <= before.replicas
        holds_more = after.surge > 0 or after.replicas > wanted
        return Decided(
            then.floor if may_take else read,
            then.ceiling if may_add and holds_more else read,
            then.partition if after.template == before.template and moved[0] <= moved[1] else read,
        )

    def note_work(self, member: str, found: WorkloadFacts) -> bool:
        """Whether the ledger ever had what a Work asks for."""
        if member not in self.ledger:
            self.strays.add(member)
        if not self.is_whole(member, found):
            return False
        self.last[member] = self._all[member, found.seq]
        return True

    def is_whole(self, member: str, found: WorkloadFacts) -> bool:
        """Whether a workload asks for what was in a ledger: it is created without replicas."""
        return (member, found.seq, found.replicas, found.partition) in self._noted

    def note_workload(self, member: str, before: WorkloadFacts | None, now: WorkloadFacts | None) -> None:
        if now is None:
            self._observed.pop(member, None)
            self._forgotten.pop(member, None)
            return
        if before is not None and before.is_observed and not now.is_observed:
            self._before[member] = before
        if now.is_observed and self.is_whole(member, now):
            self._observed[member] = now.seq
            self._forgotten[member] = [one for one in self._forgotten[member] if one.seq > now.seq]

    def let_go(self) -> None:
        """Forget what nothing follows any more."""
        self._before = {name: one for name, one in self._before.items() if not self._seen.has_let_go(name)}

    # When

    def of(self, member: str, seq: int) -> Decided:
        return self._decided.get((member, seq), AT_FIRST)

    def oldest(self, about: int) -> float:
        """When the oldest decision was made that members may yet act on, for a part of what is asked."""
        return min((at[about] for name in self._seen.members for at in self._outstanding(name)), default=EVER)

    def oldest_taking(self, member: str) -> float:
        """When the oldest decision was made by which pods may be taken away now, by this member among others."""
        acting = [name for name in self._seen.members if name == member or self._may_take(name)]
        return min(at.floor for name in acting for at in self._times(name))

    def _outstanding(self, member: str) -> Iterable[Decided]:
        """When what a member may yet act on was decided."""
        seen = self._observed.get(member, 0)
        for spec in (*self.ledger.get(member, ()), *self._forgotten[member]):
            if spec.seq > seen and spec.template != UNKNOWN:
                yield self._decided[member, spec.seq]
        for workload in (self._seen.workloads.get(member), self._before.get(member)):
            if workload is not None and not self._seen.is_done(member, workload):
                yield self.of(member, workload.seq)

    def _times(self, member: str) -> Iterable[Decided]:
        workload = self._seen.workloads.get(member)
        yield self.of(member, workload.seq) if workload else AT_FIRST
        yield from self._outstanding(member)

    def _may_take(self, member: str) -> bool:
        """Whether a member may yet take pods away."""
        workload = self._seen.workloads.get(member)
        if workload is None:
            return False
        pods = self._seen.pods[member].values()
        old = sum(pod.template != workload.template for pod in pods)
        is_last = all(spec.seq <= workload.seq for spec in self.ledger.get(member, ()))
        return not (is_last and workload.is_observed and old <= workload.partition and len(pods) <= workload.replicas)


def is_by_others(simulation: Simulation) -> bool:
    """Whether what is written now is written by a user, and by no controller."""
    carried = simulation.trace.carried()
    return carried is not None and carried[0].startswith("user")
