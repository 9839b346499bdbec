"""What alignment promises, judged from the pods of all members whenever a member's controller creates or deletes one.

* An available pod is taken away only if as many stay available, in all members together, as the budget asks for; those
  that others took away or broke are not held against it (`align_losses`), and one that a member had too many costs
  nothing.
* A pod is created only while there are no more pods, in all members together, than the budget allows.
* A release that never works gets to no more pods than the budget allows (`align_exposure`).
* A pod of the wanted template is created only while there are no more of them than the partition lets through.
* No available pod of the wanted template is replaced.
* No member is asked for something it could never do: nothing unavailable and nothing more at the same time.
* While the template is paused, no cluster is given another template or more of the budget, and what it is asked for is
  paused.
* A cluster is asked for nothing that the ledger does not have.

Of limits that were changed the loosest that somebody may yet go by counts (`align_limit`, `align_decisions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.simulation import Simulation
from simulate.align_decisions import HUB, Decisions, Granted, is_by_others
from simulate.align_exposure import BAD, EXPOSED, Exposure
from simulate.align_facts import (
    KINDS,
    NAME,
    NAMESPACE,
    Limits,
    PodFacts,
    Spec,
    WorkloadFacts,
    limits_of,
    pod_facts,
    workload_facts,
)
from simulate.align_limit import Limit
from simulate.align_losses import Losses
from simulate.align_seen import Seen

FLOOR = "enough pods stay available in all clusters together"
CEILING = "there are never more pods in all clusters together than may be"
PARTITION = "no more pods have the template than the partition lets through"
VALID = "no cluster is asked for what it cannot do"
PAUSED = "nobody gets more while the template is paused"
FORTH = "no pod goes back to an older template"
NOTED = "nothing is asked of a cluster before the ledger has it"


class AlignPromises:
    """Follows every write, and says at once when one breaks a promise."""

    def __init__(self, simulation: Simulation, kind: str, members: Sequence[str], *, is_prompt: bool) -> None:
        """`is_prompt`: whether nothing delays what members report."""
        self._simulation = simulation
        self._template: dict[str, Any] | None = None
        self._binding: dict[str, Any] | None = None
        self._own: dict[str, str] = {}
        self._seen = seen = Seen(kind, members)
        self._decisions = decisions = Decisions(simulation, seen)
        self._losses = Losses(simulation, seen, decisions, is_prompt=is_prompt)
        self._left: set[tuple[str, str]] = set()  # pods of the wanted template that no report tells of
        self._had: dict[str, int] = {}  # by member: how many pods it had, or was to have, when the limits last changed
        self._exposure = Exposure(seen.pods)
        limits, oldest = seen.limits, decisions.oldest
        self._floor = Limit(limits, oldest, 0, lambda limits: -limits.fewest, lambda: -seen.available)
        self._ceiling = Limit(limits, oldest, 1, lambda limits: limits.most, lambda: seen.number)
        self._partition = Limit(limits, oldest, 2, lambda limits: limits.most_updated, lambda: seen.updated)
        simulation.always("all clusters together keep one budget", self._changed)

    # Following

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
            self._seen.sets[server][name] = found["spec"]["replicas"] if found is not None else 0
        is_it = what == self._seen.kind and name == f"{NAMESPACE}/{NAME}"
        return self._note_workload(server, found) if is_it else ""

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
        seen, at = self._seen, self._simulation.loop.time()
        now = limits_of(at, seen.kind, self._template, self._binding, self._own)
        if seen.limits and replace(now, at=0.0) == replace(seen.limits[-1], at=0.0):
            return
        before = seen.limits[-1] if seen.limits else None
        seen.limits.append(now)
        self._had = {name: len(pods) for name, pods in seen.pods.items()}
        self._exposure.begin(now)
        self._losses.begin(now.total)
        if before is None or any(before.template(name) != now.template(name) for name in seen.members):
            self._left = {(name, pod) for name in seen.members for pod in self._left_over(name, now)}
            self._partition.begin(len(seen.limits) - 1, is_fresh=not seen.knows_wanted(now))

    def _left_over(self, member: str, now: Limits) -> Iterable[str]:
        """Pods that have the template from long ago, and were kept back when another one came. A member counts pods of
        the template that it is asked for, and no others: nobody who decides can know of these."""
        workload, wanted = self._seen.workloads.get(member), now.template(member)
        if workload is None or workload.template != wanted:
            yield from (name for name, pod in self._seen.pods[member].items() if pod.template == wanted)

    def _note_ledger(self, binding: dict[str, Any]) -> str:
        found = self._decisions.note_ledger(binding)
        for granted in found:
            for limit in (self._floor, self._ceiling, self._partition):
                limit.back_to(self._decisions.of(granted.member, granted.spec.seq))
        return next((wrong for granted in found if (wrong := self._judge_pause(granted))), "")

    def _note_work(self, member: str, work: dict[str, Any]) -> str:
        manifest = work["spec"]["workload"]["manifests"][0]
        found = workload_facts(self._seen.kind, {**manifest, "metadata": {**manifest["metadata"], "generation": 0}})
        if found is None or member not in self._seen.pods or "deletionTimestamp" in work["metadata"]:
            return ""
        self._count(NOTED, is_tight=True)
        if not self._decisions.note_work(member, found):
            return f"{NOTED}: {member} is asked for {found}, and the ledger has {self._decisions.ledger.get(member)}"
        carried = self._simulation.trace.carried()
        read = self._decisions.read_before(carried[1]) if carried is not None else 0.0
        is_wrong = self._seen.kind != "StatefulSet" and self._is_paused_since(read) and not found.is_paused
        return f"{PAUSED}: {member} is asked for {found}" if is_wrong and not self._is_lowered(member, found) else ""

    def _is_lowered(self, member: str, asked: WorkloadFacts) -> bool:
        """Whether a Deployment may have more pods than it is asked for: paused, it would give them up."""
        before = [one for one in self._decisions.ledger[member] if one.seq < asked.seq]
        most = max((one.replicas + one.surge for one in before if one.replicas <= asked.replicas), default=0)
        return self._seen.kind == "Deployment" and most > asked.replicas + asked.surge

    def _note_workload(self, member: str, found: dict[str, Any] | None) -> str:
        facts, before = workload_facts(self._seen.kind, found), self._seen.workloads.pop(member, None)
        self._decisions.note_workload(member, before, facts)
        if facts is None:
            return ""
        self._seen.workloads[member] = facts
        is_late = self._decisions.of(member, facts.seq).ceiling < self._seen.limits[-1].at
        if facts.is_observed and self._decisions.is_whole(member, facts) and is_late:
            self._had[member] = max(self._had.get(member, 0), facts.replicas)
        if before is not None and facts.seq < before.seq:
            self._simulation.counts["promise", "an older spec arrives", "asked"] += 1
        if self._seen.kind != "StatefulSet":
            self._count(VALID, is_tight=facts.unavailable == 0 or facts.surge == 0)
            if facts.unavailable == 0 and facts.surge == 0:
                return f"{VALID}: {member} has {facts}"
        wanted = self._seen.limits[-1].template(member)
        if before is not None and before.template == wanted != facts.template:  # it does what it was asked for long ago
            self._left |= {(member, name) for name, pod in self._seen.pods[member].items() if pod.template == wanted}
        self._losses.note_workload(member, before, facts)
        self._let_go()
        return ""

    def _note_pod(self, member: str, name: str, found: dict[str, Any] | None) -> str:
        before, after = self._seen.pods[member].pop(name, None), pod_facts(found)
        if after is not None:
            self._seen.pods[member][name] = after
        else:
            self._left.discard((member, name))
        was, is_ = before is not None and before.is_available, after is not None and after.is_available
        wrong, by_others = "", is_by_others(self._simulation)
        if before is not None and after is None and by_others:
            self._note_deletion(member, before)
        if before is None and after is not None:
            wrong = self._judge_creation(member, name, after)
        elif before is not None and was and after is None and not by_others:
            if self._losses.is_too_new(member, name):
                self._losses.miss(member, name)
            else:
                wrong = self._judge_return(member, before) or self._judge_deletion(member, before)
        elif was and not is_:
            self._losses.lose(member, name)
        elif is_ and not was:
            self._losses.find(member, name)
        self._let_go()
        return f"{wrong}; {self.told()}" if wrong else ""

    def _note_deletion(self, member: str, pod: PodFacts) -> None:
        workload = self._seen.workloads.get(member)
        if workload is not None and workload.template[0] == BAD != pod.template[0]:
            self._exposure.lose()

    def _let_go(self) -> None:
        """Forget what others did to pods that are all there, and limits that nobody goes by any more."""
        self._losses.let_go()
        self._decisions.let_go()
        for limit in (self._floor, self._ceiling, self._partition):
            limit.go_on()

    # Judging

    def _judge_pause(self, granted: Granted) -> str:
        name, before, after, read = granted
        if before is None:
            return ""
        is_paused = self._is_paused_since(read)
        self._count(PAUSED, is_tight=is_paused)
        asked = self._decisions.last.get(name, before)  # before it, if that was never written
        is_more = after.replicas > 0 and all(after.is_more_than(one) for one in (before, asked))
        is_wrong = is_paused and is_more and not self._keeps_pods(name, asked, after)
        return f"{PAUSED}: {name}: {before} → {after}" if is_wrong else ""

    def _keeps_pods(self, name: str, before: Spec, after: Spec) -> bool:
        """Whether a Deployment is only allowed the pods that it has: paused, it would give up any that are more."""
        if self._seen.kind != "Deployment" or replace(before, seq=after.seq, surge=after.surge) != after:
            return False
        return after.replicas + after.surge <= len(self._seen.pods[name])

    def _is_paused_since(self, read: float) -> bool:
        """Whether the template was paused when it was read, and all the time since."""
        since = [limits for limits in self._seen.limits if limits.at > read]
        then = next((limits for limits in reversed(self._seen.limits) if limits.at <= read), None)
        return then is not None and all(limits.is_paused for limits in (then, *since))

    def _judge_return(self, member: str, pod: PodFacts) -> str:
        workload = self._seen.workloads.get(member)
        if workload is None or not pod.template == workload.template == self._seen.limits[-1].template(member):
            return ""
        self._count(FORTH, is_tight=workload.partition > 0)
        # A ReplicaSet may be deleting what a release asked it to that was taken back in the same moment.
        is_settled = self._seen.kind != "Deployment" or sum(self._seen.sets[member].values()) == workload.replicas
        is_replaced = len(self._seen.pods[member]) < workload.replicas and workload.is_observed and is_settled
        return f"{FORTH}: one of {member} is replaced, by {workload}" if is_replaced else ""

    def _judge_deletion(self, member: str, pod: PodFacts) -> str:
        if self._losses.is_surplus(member):
            return ""
        reached = self._losses.reached_at(self._decisions.oldest_taking(member))
        floor, found = min(-self._floor.loosest, reached - self._floor.unavailable), self._seen.available
        excused = self._losses.excused(member, pod)
        self._count(FLOOR, is_tight=found == floor - excused)
        return (
            ""
            if found >= floor - excused
            else f"{FLOOR}: {found} after one of {member}, of at least {floor} - {excused}"
        )

    def _judge_creation(self, member: str, name: str, pod: PodFacts) -> str:
        seen, workload = self._seen, self._seen.workloads.get(member)
        strays = sum(len(seen.pods[name]) for name in self._decisions.strays)
        most, found = self._ceiling.loosest + self._surplus(member) + strays, seen.number
        self._count(CEILING, is_tight=found == most)
        if found > most:
            return f"{CEILING}: {found} with one of {member}, of at most {most}"
        if pod.template[0] == BAD and (wrong := self._judge_exposure(member)):
            return wrong
        if pod.template != seen.limits[-1].template(member) or seen.kind == "Deployment":
            return ""
        if seen.updated == found or self._knows_no_others():
            return ""  # there are no others to keep back
        if workload is not None and workload.template != pod.template:
            self._left.add((member, name))  # it is kept back itself, by a member that was asked for another template
            return ""
        most = self._partition.loosest
        known = seen.updated - len(self._left)
        self._count(PARTITION, is_tight=known == most)
        return "" if known <= most else f"{PARTITION}: {known} with one of {member}, of at most {most}"

    def _surplus(self, member: str) -> int:
        """How many pods there are yet to be given up, if a member only replaces what it had when less was wanted."""
        if len(self._seen.pods[member]) > self._had.get(member, 0):
            return 0
        wanted = self._seen.limits[-1].replicas
        return sum(max(0, len(pods) - wanted.get(name, 0)) for name, pods in self._seen.pods.items())

    def _knows_no_others(self) -> bool:
        """Whether pods differ only by an override that nobody who decides has heard of yet."""
        images = {pod.template[0] for pods in self._seen.pods.values() for pod in pods.values()}
        asked = {spec.template for specs in self._decisions.ledger.values() for spec in specs}
        return images == {self._seen.limits[-1].image} and len(asked) == 1

    def _judge_exposure(self, member: str) -> str:
        counting = max(self._floor.counting, self._ceiling.counting, key=len)
        found, most = self._exposure.bad, self._exposure.most(counting)
        self._count(EXPOSED, is_tight=found == most)
        return "" if found <= most else f"{EXPOSED}: {found} with one of {member}, of at most {most}"

    def _count(self, promise: str, *, is_tight: bool) -> None:
        self._simulation.counts["promise", promise, "tight" if is_tight else "asked"] += 1

    def told(self) -> str:
        """How things are, in a line."""
        seen = self._seen
        found = {
            name: (
                f"{len(pods)} pods, {seen.available_in(name)} available, {seen.updated_in(name)} updated,"
                f" {seen.workloads.get(name)}, {self._decisions.ledger.get(name)}"
            )
            for name, pods in seen.pods.items()
        }
        return f"{seen.kind} {seen.limits[-1]}: {found}, lost {self._losses.told()}"


def _own(policy: Mapping[str, Any] | None) -> dict[str, str]:
    if policy is None:
        return {}
    return {
        name: rule["overriders"]["plaintext"][0]["value"]
        for rule in policy["spec"]["overrideRules"]
        for name in rule["targetCluster"]["clusterNames"]
    }
