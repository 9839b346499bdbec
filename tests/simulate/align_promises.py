"""What alignment promises, judged from the pods of all members whenever a member's controller creates or deletes one.

* An available pod is taken away only if as many stay available, in all members together, as the budget asks for; those
  that others took away or broke are not held against it, and one that a member had too many costs nothing.
* A pod is created only while there are no more pods, in all members together, than the budget allows.
* A release that never works gets to no more pods than the budget allows (`align_exposure`).
* A pod of the wanted template is created only while there are no more of them than the partition lets through.
* No available pod of the wanted template is replaced.
* No member is asked for something it could never do: nothing unavailable and nothing more at the same time.
* While the template is paused, no cluster is given another template or more of the budget.
* A cluster is asked for nothing that the ledger does not have.

A cluster that no ledger tells of is asked once more for what it was asked for before: nothing is decided then. What the
ledger had when somebody removed it counts until a later one is observed.

Of limits that were changed the loosest that somebody may yet go by counts (`align_limit`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.plan.aligning.ledger import UNKNOWN
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry
from simulate.align_exposure import BAD, EXPOSED, Exposure
from simulate.align_facts import (
    KINDS,
    NAME,
    NAMESPACE,
    Limits,
    PodFacts,
    Spec,
    WorkloadFacts,
    ledger_of,
    limits_of,
    pod_facts,
    workload_facts,
)
from simulate.align_limit import AT_FIRST, EVER, Decided, Limit

HUB = "hub"
FLOOR = "enough pods stay available in all clusters together"
CEILING = "there are never more pods in all clusters together than may be"
PARTITION = "no more pods have the template than the partition lets through"
VALID = "no cluster is asked for what it cannot do"
PAUSED = "nobody gets more while the template is paused"
FORTH = "no pod goes back to an older template"
NOTED = "nothing is asked of a cluster before the ledger has it"
_READS = re.compile(rf"GET /apis/apps[^ ]*/namespaces/{NAMESPACE}/[a-z]+/{NAME}$")
_WRITES = re.compile(r"(PATCH|POST|DELETE) /")
REPORTED_AFTER = 5.0  # seconds after which a report of a pod that works has arrived, if nothing delays it
KNOWN_AFTER = 90.0  # seconds after which the hub knows of a pod, if nothing delays that


class AlignPromises:
    """Follows every write, and says at once when one breaks a promise."""

    def __init__(self, simulation: Simulation, kind: str, members: Sequence[str], *, is_prompt: bool) -> None:
        """`is_prompt`: whether nothing delays what members report."""
        self._simulation = simulation
        self._kind = kind
        self._members = members
        self._is_prompt = is_prompt
        self._template: dict[str, Any] | None = None
        self._binding: dict[str, Any] | None = None
        self._own: dict[str, str] = {}
        self._pods: dict[str, dict[str, PodFacts]] = {name: {} for name in members}
        self._workloads: dict[str, WorkloadFacts] = {}
        self._lost: dict[str, list[tuple[str, float]]] = defaultdict(list)  # by member: pods others broke, and when
        self._working: dict[tuple[str, str], float] = {}  # by member and pod: since when it is available
        self._halted: set[str] = set()  # members that were told to replace no more, and may have begun with one
        self._left: set[tuple[str, str]] = set()  # pods of the wanted template that no report tells of
        self._ledger: dict[str, list[Spec]] = {}
        self._noted: set[tuple[str, int, int, int]] = set()  # all that was ever in the ledger, which may be lost
        self._all: dict[tuple[str, int], Spec] = {}
        self._forgotten: dict[str, list[Spec]] = defaultdict(list)  # by member: what somebody took out of the ledger
        self._last: dict[str, Spec] = {}  # by member: what its Work asks for
        self._strays: set[str] = set()  # members whose Work arrived long after they had been let go
        self._decided: dict[tuple[str, int], Decided] = {}  # by member and number
        self._kept: dict[str, int] = defaultdict(int)  # by member: how many pods it has had to have
        self._observed: dict[str, int] = {}
        self._before: dict[str, WorkloadFacts] = {}  # by member: what it acts on until it observes what is asked now
        self._sets: dict[str, dict[str, int]] = {name: {} for name in members}  # pods of each ReplicaSet, as asked for
        self._had: dict[str, int] = {}  # by member: how many pods it had, or was to have, when the limits last changed
        self._reached: list[tuple[float, int]] = [
            (0.0, 0)
        ]  # how many of the wanted pods have been available, and since
        self._read = 0.0
        self._sent: dict[int, float] = {}  # by request: the read before it
        self.limits: list[Limits] = []
        self._floor = Limit(self.limits, self.decided, 0, lambda limits: -limits.fewest, lambda: -self.available)
        self._ceiling = Limit(self.limits, self.decided, 1, lambda limits: limits.most, lambda: self.number)
        self._exposure = Exposure(self._pods)
        self._partition = Limit(self.limits, self.decided, 2, lambda limits: limits.most_updated, lambda: self.updated)
        simulation.trace.follow(self._heard, f"{HUB} → {HUB}")
        simulation.always("all clusters together keep one budget", self._changed)

    # What there is

    @property
    def number(self) -> int:
        """But for pods that their ReplicaSets are to delete: a Deployment counts those that these are asked for."""
        return sum(len(pods) - self._to_be_deleted(name) for name, pods in self._pods.items())

    def _to_be_deleted(self, member: str) -> int:
        pods = self._pods[member]
        asked = self._sets[member].items()
        return sum(max(0, sum(pod.startswith(f"{name}-") for pod in pods) - number) for name, number in asked)

    @property
    def available(self) -> int:
        return sum(pod.is_available for pods in self._pods.values() for pod in pods.values())

    @property
    def updated(self) -> int:
        """Pods of the template that is wanted now."""
        return sum(len(self._of_template(member)) for member in self._members)

    def _of_template(self, member: str) -> list[PodFacts]:
        wanted = self.limits[-1].template(member)
        return [pod for pod in self._pods[member].values() if pod.template == wanted]

    def decided(self, about: int) -> float:
        """When the oldest decision was made that members may yet act on."""
        return min((at[about] for name in self._members for at in self._outstanding(name)), default=EVER)

    def _outstanding(self, member: str) -> Iterable[Decided]:
        """When what a member may yet act on was decided."""
        seen = self._observed.get(member, 0)
        for spec in (*self._ledger.get(member, ()), *self._forgotten[member]):
            if spec.seq > seen and spec.template != UNKNOWN:
                yield self._decided[member, spec.seq]
        for workload in (self._workloads.get(member), self._before.get(member)):
            if workload is not None and not self._is_done(member, workload):
                yield self._decided.get((member, workload.seq), AT_FIRST)

    def _has_let_go(self, member: str) -> bool:
        """Whether nothing follows any more of what a member was asked for before.

        When a Deployment has observed what is asked now, its ReplicaSets may still create what it asked of them before.
        """
        workload = self._workloads.get(member)
        is_settled = sum(self._sets[member].values()) == len(self._pods[member])
        return workload is None or (workload.is_observed and (self._kind != "Deployment" or is_settled))

    def _is_done(self, member: str, workload: WorkloadFacts) -> bool:
        pods = self._pods[member].values()
        old = sum(pod.template != workload.template for pod in pods)
        is_settled = self._kind != "Deployment" or sum(self._sets[member].values()) == workload.replicas
        return workload.is_observed and old <= workload.partition and len(pods) == workload.replicas and is_settled

    def may_take(self, member: str) -> bool:
        """Whether a member may yet take pods away."""
        workload = self._workloads.get(member)
        if workload is None:
            return False
        pods = self._pods[member].values()
        old = sum(pod.template != workload.template for pod in pods)
        is_last = all(spec.seq <= workload.seq for spec in self._ledger.get(member, ()))
        return not (is_last and workload.is_observed and old <= workload.partition and len(pods) <= workload.replicas)

    # Following

    def _heard(self, entry: Entry) -> None:
        if _READS.match(entry.what):
            self._read = entry.at
        elif _WRITES.match(entry.what):
            self._sent[entry.number] = self._read

    def _changed(self, server: str, kind: Kind, change: Change) -> str:
        name, what = change.version.key, kind.resource.kind
        found = None if change.type == "DELETED" else msgspec.json.decode(change.version.body)
        if server == HUB:
            return self._on_hub(name, what, found)
        if not name.startswith(f"{NAMESPACE}/"):
            return ""
        if what == "Pod":
            return self._note_pod(server, name, found)
        if what == "ReplicaSet":
            self._sets[server][name] = found["spec"]["replicas"] if found is not None else 0
        return self._note_workload(server, found) if what == self._kind and name == f"{NAMESPACE}/{NAME}" else ""

    def _on_hub(self, name: str, what: str, found: dict[str, Any] | None) -> str:
        if what in KINDS:
            self._template = found
        elif what == "OverridePolicy":
            self._own = _own(found)
        elif what == "ResourceBinding":
            self._binding = found
            if found is not None and (wrong := self._note_ledger(found)):
                return wrong
        elif what == "Work" and found is not None:
            return self._note_work(name.partition("/")[0].removeprefix("karmada-es-"), found)
        if what in (*KINDS, "OverridePolicy", "ResourceBinding"):
            self._note_limits()
        return ""

    def _note_limits(self) -> None:
        if self._template is None or self._binding is None:
            return
        at = self._simulation.loop.time()
        now = limits_of(at, self._kind, self._template, self._binding, self._own)
        if self.limits and msgspec.structs.replace(now, at=0.0) == msgspec.structs.replace(self.limits[-1], at=0.0):
            return
        before = self.limits[-1] if self.limits else None
        self.limits.append(now)
        self._had = {name: len(pods) for name, pods in self._pods.items()}
        self._exposure.begin(now)
        self._reached = [(since, min(number, now.total)) for since, number in self._reached]
        is_other = before is None or any(before.template(name) != now.template(name) for name in self._members)
        if is_other:
            self._left = {(name, pod) for name in self._members for pod in self._left_over(name, now)}
            self._partition.begin(len(self.limits) - 1, is_fresh=not self._is_known(now))

    def _left_over(self, member: str, now: Limits) -> Iterable[str]:
        """Pods that have the template from long ago, and were kept back when another one came. A member counts pods of
        the template that it is asked for, and no others: nobody who decides can know of these."""
        workload = self._workloads.get(member)
        if workload is None or workload.template != now.template(member):
            yield from (name for name, pod in self._pods[member].items() if pod.template == now.template(member))

    def _is_known(self, now: Limits) -> bool:
        """Whether something of the template that is wanted now is under way from before."""
        works = any(now.template(name) == one.template for name, one in self._workloads.items())
        pods = any(pod.template == now.template(name) for name, pods in self._pods.items() for pod in pods.values())
        return works or pods or now.image in {one.image for one in self.limits[:-1]}

    def _note_ledger(self, binding: dict[str, Any]) -> str:
        before, self._ledger = self._ledger, ledger_of(binding)
        self._strays -= {*self._ledger}
        entries = [(name, spec) for name, specs in self._ledger.items() for spec in specs]
        self._all |= {(name, spec.seq): spec for name, spec in entries}
        self._noted |= {(name, spec.seq, spec.replicas, spec.partition) for name, spec in entries}
        carried = self._simulation.trace.carried()
        if self._ledger == before or carried is None:
            return ""
        if self._is_by_others():
            self._forget(before)
            return ""
        read = self._sent.get(carried[1], 0.0)
        for name, specs in self._ledger.items():
            is_adopted = specs[0].template == UNKNOWN and specs[0] not in before.get(name, [])
            known = [self._last[name]] if is_adopted and name in self._last else before.get(name, [])
            for spec in specs:
                if spec not in known and spec.template != UNKNOWN:
                    self._decided[name, spec.seq] = self._inherited(name, known[-1] if known else None, spec, read)
                    for limit in (self._floor, self._ceiling, self._partition):
                        limit.back_to(self._decided[name, spec.seq])
                    if known and (wrong := self._judge_pause(name, known[-1], spec, read)):
                        return wrong
        return ""

    def _forget(self, before: Mapping[str, Sequence[Spec]]) -> None:
        """Somebody wrote another ledger: what is in effect is what it was."""
        for name, specs in before.items():
            there = {spec.seq for spec in self._ledger.get(name, ())}
            self._forgotten[name] += [spec for spec in specs if spec.seq not in there]
        self._simulation.counts["promise", "a ledger is lost", "asked"] += 1

    def _inherited(self, name: str, before: Spec | None, after: Spec, read: float) -> Decided:
        """When each part of it was decided: what is no more than before was decided then."""
        if before is None or (name, before.seq) not in self._decided:
            return Decided(read, read, read)
        then, wanted = self._decided[name, before.seq], self.limits[-1].replicas.get(name, 0)
        if msgspec.structs.replace(after, seq=before.seq) == before:
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

    def _judge_pause(self, name: str, before: Spec, after: Spec, read: float) -> str:
        since = [limits for limits in self.limits if limits.at > read]
        then = next((limits for limits in reversed(self.limits) if limits.at <= read), None)
        is_paused = then is not None and all(limits.is_paused for limits in (then, *since))
        self._count(PAUSED, is_tight=is_paused)
        asked = self._last.get(name, before)  # before it, if that was never written
        is_more = after.replicas > 0 and all(after.is_more_than(one) for one in (before, asked))
        return f"{PAUSED}: {name}: {before} → {after}" if is_paused and is_more else ""

    def _note_work(self, member: str, work: dict[str, Any]) -> str:
        manifests = work["spec"]["workload"]["manifests"]
        found = workload_facts(self._kind, {**manifests[0], "metadata": {**manifests[0]["metadata"], "generation": 0}})
        if found is None or member not in self._pods or "deletionTimestamp" in work["metadata"]:
            return ""
        if member not in self._ledger:
            self._strays.add(member)
        self._count(NOTED, is_tight=True)
        if (member, found.seq, found.replicas, found.partition) in self._noted:
            self._last[member] = self._all[member, found.seq]
            return ""
        return f"{NOTED}: {member} is asked for {found}, and the ledger has {self._ledger.get(member)}"

    def _note_workload(self, member: str, found: dict[str, Any] | None) -> str:
        facts = workload_facts(self._kind, found)
        if facts is None:
            self._workloads.pop(member, None)
            self._observed.pop(member, None)
            self._forgotten.pop(member, None)
            return ""
        before = self._workloads.get(member)
        self._workloads[member] = facts
        if before is not None and before.is_observed and not facts.is_observed:
            self._before[member] = before
        if before is not None and before.template == facts.template and before.partition < facts.partition:
            self._halted.add(member)
        is_whole = (member, facts.seq, facts.replicas, facts.partition) in self._noted  # it is created without replicas
        if facts.is_observed and is_whole:
            self._observed[member] = facts.seq
            if self._decided.get((member, facts.seq), AT_FIRST).ceiling < self.limits[-1].at:
                self._had[member] = max(self._had.get(member, 0), facts.replicas)  # it arrives only now
            self._forgotten[member] = [one for one in self._forgotten[member] if one.seq > facts.seq]
        if before is not None and facts.seq < before.seq:
            self._simulation.counts["promise", "an older spec arrives", "asked"] += 1
        if self._kind != "StatefulSet":
            self._count(VALID, is_tight=facts.unavailable == 0 or facts.surge == 0)
            if facts.unavailable == 0 and facts.surge == 0:
                return f"{VALID}: {member} has {facts}"
        self._kept[member] = max(self._kept[member], facts.replicas)
        self._let_go()
        return ""

    # Judging

    def _note_pod(self, member: str, name: str, found: dict[str, Any] | None) -> str:
        before, after = self._pods[member].get(name), pod_facts(found)
        if after is None:
            self._pods[member].pop(name, None)
            self._left.discard((member, name))
        else:
            self._pods[member][name] = after
        was, is_ = before is not None and before.is_available, after is not None and after.is_available
        wrong = ""
        if before is not None and after is None and self._is_by_others():
            self._note_deletion(member, before)
        if before is None and after is not None:
            wrong = self._judge_creation(member, after)
        elif before is not None and was and after is None and not self._is_by_others():
            is_surplus = self._available(member) >= self._kept[member]
            wrong = self._judge_return(member, before) or (
                "" if is_surplus else self._judge_deletion(member, name, before)
            )
        elif was and not is_:
            self._lost[member].append((name, self._simulation.loop.time()))
        elif is_ and not was:
            self._working[member, name] = self._simulation.loop.time()
            self._note_return(member, name)
        self._let_go()
        return f"{wrong}; {self.told()}" if wrong else ""

    def _note_deletion(self, member: str, pod: PodFacts) -> None:
        workload = self._workloads.get(member)
        if workload is not None and workload.template[0] == BAD != pod.template[0]:
            self._exposure.lose()

    def _note_return(self, member: str, name: str) -> None:
        """One that others broke is made up for by any other one; where pods have an order, only by the one in its
        place: it may have come back with a release that never works, and one that was replaced tells nothing of it."""
        lost = self._lost[member]
        found = [one for one in lost if one[0] == name] if self._kind == "StatefulSet" else lost
        if found:
            lost.remove(found[0])

    def _available(self, member: str) -> int:
        return sum(pod.is_available for pod in self._pods[member].values())

    def _is_by_others(self) -> bool:
        carried = self._simulation.trace.carried()
        return carried is not None and carried[0].startswith("user")

    def _judge_return(self, member: str, pod: PodFacts) -> str:
        workload = self._workloads.get(member)
        if workload is None or not pod.template == workload.template == self.limits[-1].template(member):
            return ""
        self._count(FORTH, is_tight=workload.partition > 0)
        is_replaced = len(self._pods[member]) < workload.replicas and workload.is_observed
        return f"{FORTH}: one of {member} is replaced, by {workload}" if is_replaced else ""

    def _judge_deletion(self, member: str, name: str, pod: PodFacts) -> str:
        floor = min(-self._floor.loosest, self._reached_at(self._oldest(member)) - self._floor.unavailable)
        excused = self._excused(member) + self._mistaken(member, pod) + self._come_back(member, name)
        self._count(FLOOR, is_tight=self.available == floor - excused)
        is_kept = self.available >= floor - excused
        return "" if is_kept else f"{FLOOR}: {self.available} after one of {member}, of at least {floor} - {excused}"

    def _excused(self, member: str) -> int:
        """How many pods others took away or broke that nobody who decided could know of."""
        losses = [at for lost in self._lost.values() for _, at in lost]
        if not self._is_prompt:
            return len(losses)
        since = self._oldest(member)
        return sum(at >= since - KNOWN_AFTER for at in losses)

    def _oldest(self, member: str) -> float:
        """When the oldest decision was made by which pods may be taken away now."""
        acting = [name for name in self._members if name == member or self.may_take(name)]
        return min(at.floor for name in acting for at in self._times(name))

    def _reached_at(self, moment: float) -> int:
        """How many of the wanted pods were known to have been available: those that never were count for nobody."""
        known = moment - (REPORTED_AFTER if self._is_prompt else KNOWN_AFTER)
        return next((number for since, number in reversed(self._reached) if since <= known), 0)

    def _mistaken(self, member: str, pod: PodFacts) -> int:
        """How many pods work that look as if they did not, when one is taken away: a StatefulSet says how many do not
        work, and not which. If others broke, or it had begun with one more when it was told to stop, and as many do not
        work as it had replaced, it is taken for those."""
        if self._kind != "StatefulSet" or not (self._lost[member] or member in self._halted):
            return 0
        pods = [*self._pods[member].values(), pod]
        replaced = [one for one in pods if one.template == pod.template]
        missing = sum(not one.is_available for one in pods)
        return sum(one.is_available for one in replaced) if missing >= len(replaced) else 0

    def _come_back(self, member: str, taken: str) -> int:
        """How many pods of a member work only since it was told to give some up. With no room for others, those that do
        not work are given up; that one of them works again by then, nobody who decides can know."""
        workload = self._workloads.get(member)
        is_replaced = workload is None or len(self._pods[member]) < workload.replicas
        if is_replaced or self.number + 1 < self.limits[-1].most:
            return 0
        known = self._oldest(member) - (REPORTED_AFTER if self._is_prompt else KNOWN_AFTER)
        return sum(self._working.get((member, name), 0.0) > known for name in (*self._pods[member], taken))

    def _times(self, member: str) -> Iterable[Decided]:
        workload = self._workloads.get(member)
        yield self._decided.get((member, workload.seq), AT_FIRST) if workload else AT_FIRST
        yield from self._outstanding(member)

    def _surplus(self, member: str) -> int:
        """How many pods there are yet to be given up, if a member only replaces what it had when less was wanted."""
        if len(self._pods[member]) > self._had.get(member, 0):
            return 0
        wanted = self.limits[-1].replicas
        return sum(max(0, len(pods) - wanted.get(name, 0)) for name, pods in self._pods.items())

    def _judge_creation(self, member: str, pod: PodFacts) -> str:
        most = self._ceiling.loosest + self._surplus(member) + sum(len(self._pods[name]) for name in self._strays)
        self._count(CEILING, is_tight=self.number == most)
        if self.number > most:
            return f"{CEILING}: {self.number} with one of {member}, of at most {most}"
        if pod.template[0] == BAD and (wrong := self._judge_exposure(member)):
            return wrong
        if pod.template != self.limits[-1].template(member) or self._kind == "Deployment":
            return ""
        if self.updated == self.number or self._knows_no_others():
            return ""  # there are no others to keep back
        most = self._partition.loosest
        known = self.updated - len(self._left)
        self._count(PARTITION, is_tight=known == most)
        return "" if known <= most else f"{PARTITION}: {known} with one of {member}, of at most {most}"

    def _knows_no_others(self) -> bool:
        """Whether pods differ only by an override that nobody who decides has heard of yet."""
        images = {pod.template[0] for pods in self._pods.values() for pod in pods.values()}
        asked = {spec.template for specs in self._ledger.values() for spec in specs}
        return images == {self.limits[-1].image} and len(asked) == 1

    def _judge_exposure(self, member: str) -> str:
        counting = max(self._floor.counting, self._ceiling.counting, key=len)
        found, most = self._exposure.bad, self._exposure.most(counting)
        self._count(EXPOSED, is_tight=found == most)
        return "" if found <= most else f"{EXPOSED}: {found} with one of {member}, of at most {most}"

    def _let_go(self) -> None:
        """Forget what others did to pods of members that have all of them, and limits that nobody goes by any more."""
        for member, workload in self._workloads.items():
            pods = self._pods[member].values()
            if len(pods) <= workload.replicas:
                self._kept[member] = workload.replicas
            if len(pods) >= workload.replicas and all(pod.is_available for pod in pods):
                self._lost[member].clear()
                self._halted -= {member} if workload.is_observed else set()
        kept = sum(min(self._available(name), self._kept[name]) for name in self._members)
        reached = min(kept, self.limits[-1].total)
        if reached > self._reached[-1][1]:
            self._reached.append((self._simulation.loop.time(), reached))
        for member in [*self._before]:
            if self._has_let_go(member):
                del self._before[member]
        for limit in (self._floor, self._ceiling, self._partition):
            limit.go_on()

    def _count(self, promise: str, *, is_tight: bool) -> None:
        self._simulation.counts["promise", promise, "tight" if is_tight else "asked"] += 1

    def told(self) -> str:
        """How things are, in a line."""
        found = {
            name: (
                f"{len(pods)} pods, {sum(pod.is_available for pod in pods.values())} available,"
                f" {len(self._of_template(name))} updated, {self._workloads.get(name)},"
                f" {self._ledger.get(name)}"
            )
            for name, pods in self._pods.items()
        }
        return f"{self._kind} {self.limits[-1]}: {found}, lost {dict(self._lost)}"


def _own(policy: Mapping[str, Any] | None) -> dict[str, str]:
    if policy is None:
        return {}
    return {
        name: rule["overriders"]["plaintext"][0]["value"]
        for rule in policy["spec"]["overrideRules"]
        for name in rule["targetCluster"]["clusterNames"]
    }
