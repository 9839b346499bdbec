"""What a rollout in batches promises, judged from pods and specs in the store whenever an operator writes.

* Old pods are taken away only if as many stay ready as the batch's budget asks for; pods that are not ready cost
  nothing.
* The target is raised only while there are no more pods than the batch's budget allows.
* A batch begins only when as many pods of the target are ready as the batch before it asked for, and not behind the
  partition; when its webhooks have agreed, and the metrics of the batch before it were in their range; and when the
  status says so, which was written before.
* Nothing moves while the rollout is paused, unless it is deleted.
* Only workloads of the rollout are written.

A decision is judged by what was so between the moment its maker read the rollout and the moment its request left, and
shortly before: the status of a workload follows its pods, and cannot be faster than they are.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry
from simulate.batch_facts import (
    BYSTANDER,
    IN_PLACE,
    PodFacts,
    RolloutFacts,
    State,
    WorkloadFacts,
    as_asked,
    pod_facts,
    rollout_facts,
    workload_facts,
)
from simulate.batch_services import Outside

NAMESPACE = "shop"
FLOOR = "enough pods stay available when others go"
CEILING = "there are never more pods than may be"
PROOF = "a batch begins when the one before it is available"
PARTITION = "no batch behind the partition rolls"
GATES = "no batch rolls before everybody has agreed"
PAUSED = "nothing moves while it is paused"
NOTED = "nothing moves before the status says so"
OWN = "only what the rollout names is written"
_READS = re.compile(r"GET /apis/standard.oam.dev/v1alpha1/namespaces/[^/]+/rollouttraits/web$")
_WRITES = re.compile(r"(PATCH|DELETE) /")
_KINDS = ("Deployment", *IN_PLACE)
LAG = 1.0  # seconds that a workload's status may be behind its pods
GIVEN_UP = 25.0
KEPT = 4000


class Window(NamedTuple):
    """What the maker of a decision could know."""

    states: list[State]
    plans: list[RolloutFacts]


class BatchPromises:
    """Follows every write, and says at once when one breaks a promise."""

    def __init__(self, simulation: Simulation, operators: Iterable[str], server: str, outside: Outside) -> None:
        self._simulation = simulation
        self._server = server
        self._outside = outside
        self._workloads: dict[str, WorkloadFacts] = {}
        self._pods: dict[str, PodFacts] = {}
        self._rollout: RolloutFacts | None = None
        self._states: deque[State] = deque([State(0.0, {}, {}, None)], maxlen=KEPT)
        self._read: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._decided: dict[int, tuple[float, float]] = {}
        self._ours: set[str] = set()  # workloads that an operator wrote last
        self._taken: deque[tuple[float, str]] = deque(maxlen=KEPT)  # when, uid: pods that operators deleted
        self._began: tuple[str, int, float] = ("", -1, 0.0)  # rollout, batch, since when
        links = [f"{name} → {server}" for name in operators]
        self._links = set(links)
        simulation.trace.follow(self._heard, *links, *operators)
        simulation.always("a workload is moved only when it may be", self._changed)

    def _heard(self, entry: Entry) -> None:
        if entry.what == "starts":
            self._started[entry.who] = entry.at
        elif _READS.match(entry.what):
            self._read[entry.who] = entry.at
        elif _WRITES.match(entry.what):
            self._decided[entry.number] = (self._read.get(entry.who, entry.at), entry.at)

    def _changed(self, server: str, kind: Kind, change: Change) -> str:
        if server != self._server or not change.version.key.startswith(f"{NAMESPACE}/"):
            return ""
        name, what = change.version.key.partition("/")[2], kind.resource.kind
        found = None if change.type == "DELETED" else msgspec.json.decode(change.version.body)
        if name.startswith(BYSTANDER) and what in (*_KINDS, "Pod"):
            return f"{what} {name} is none of the rollout's" if self._is_by_operator() else ""
        if what in _KINDS:
            wrong = self._note_workload(name, what, found)
        elif what == "Pod":
            wrong = self._note_pod(name, found)
        elif what == "RolloutTrait":
            wrong = self._note_rollout(found)
        else:
            return ""
        self._states.append(State(self._simulation.loop.time(), dict(self._workloads), dict(self._pods), self._rollout))
        return wrong

    def _note_workload(self, name: str, kind: str, found: dict[str, Any] | None) -> str:
        before, after = self._workloads.get(name), workload_facts(kind, found)
        wrong = ""
        if before != after:
            wrong = self._judge_workload(name, before, after)
            (self._ours.add if self._is_by_operator() else self._ours.discard)(name)
        _keep(self._workloads, name, after)
        return wrong

    def _note_pod(self, name: str, found: dict[str, Any] | None) -> str:
        before, after = self._pods.get(name), pod_facts(found)
        wrong = self._judge_deletion(name, before) if before is not None and after is None else ""
        _keep(self._pods, name, after)
        return wrong

    def _note_rollout(self, found: dict[str, Any] | None) -> str:
        before, after = self._rollout, rollout_facts(found)
        self._rollout = after
        if after is None or not after.is_rolling or (before is not None and before.is_rolling):
            return ""
        wrong = self._judge_beginning(after)
        self._began = (after.uid, after.current, self._simulation.loop.time())
        return wrong

    # What the maker of a decision could know

    def _is_by_operator(self) -> bool:
        carried = self._simulation.trace.carried()
        return carried is not None and carried[0] in self._links and carried[1] in self._decided

    def _window(self) -> Window | None:
        """None: nobody is to blame."""
        carried = self._simulation.trace.carried()
        if carried is None or not self._is_by_operator():
            return None
        read, sent = self._decided[carried[1]]
        if self._is_forgotten(carried[0], sent):
            return None
        states = [state for state in self._since(read - LAG) if state.at <= sent]
        # Of what happened in the very moment of the read, nobody can say whether it was before.
        last = next((state for state in reversed(states) if state.at < read), states[0])
        plans = [state.rollout for state in states if state is last or state.at >= read]
        return Window(states, list(dict.fromkeys(plan for plan in plans if plan is not None)))

    def _since(self, moment: float) -> list[State]:
        """All states since then, and the one before them."""
        found = []
        for state in reversed(self._states):
            found.append(state)
            if state.at < moment:
                break
        return found[::-1]

    def _is_forgotten(self, link: str, sent: float) -> bool:
        """Whether it arrives so late that whoever acts now cannot know of it: another one, or in another life."""
        is_late = self._simulation.loop.time() - sent > GIVEN_UP
        return is_late and (len(self._links) > 1 or sent < self._started[link.partition(" ")[0]])

    # Judging

    def _judge_workload(self, name: str, before: WorkloadFacts | None, after: WorkloadFacts | None) -> str:
        window = self._window()
        if window is None:
            return ""
        if before is None or after is None:
            return f"{name} is created or deleted by the rollout"
        if not window.plans:
            return f"{name}: there is no rollout"
        verdicts = [
            self._moved(name, before, after, state, plan)
            for state in reversed(window.states)
            for plan in window.plans
            if name in state.workloads
        ]
        if "" in verdicts:
            self._count(OWN, is_tight=True)
            self._count(PAUSED, is_tight=any(plan.is_paused for plan in (*window.plans, self._rollout) if plan))
            return ""
        return f"{name}: {before} → {after}: {', '.join(dict.fromkeys(verdicts))}"

    def _moved(self, name: str, before: WorkloadFacts, after: WorkloadFacts, state: State, plan: RolloutFacts) -> str:
        if after.image != before.image:
            return "" if plan.is_deleting and plan.reverts else "its template is not the rollout's to change"
        if after.replicas != before.replicas:
            return _first(self._scaled(name, before, after, state, plan))
        if after.partition < before.partition:
            return _first(self._uncovered(name, before, after, state, plan))
        return ""

    def _scaled(
        self, name: str, before: WorkloadFacts, after: WorkloadFacts, state: State, plan: RolloutFacts
    ) -> Iterator[str]:
        yield _forbidden(plan)
        if plan.is_scale:
            yield from self._resized(name, before, after, plan)
        elif after.replicas < before.replicas:
            yield from self._lowered(name, after, state, plan)
        else:
            yield from self._raised(name, after, state, plan)

    def _resized(self, name: str, before: WorkloadFacts, after: WorkloadFacts, plan: RolloutFacts) -> Iterator[str]:
        """There is nothing to move from: the target is scaled."""
        if plan.is_deleting:
            low, high = sorted((before.replicas, plan.original))
            is_back = low <= after.replicas <= high
            yield "" if is_back else f"it had {plan.original} pods"
            at_once, most = abs(after.replicas - before.replicas), max(1, plan.size(plan.largest()))
            yield "" if at_once <= most else f"{at_once} pods go back at once, of at most {most}"
            return
        is_towards = abs(after.replicas - plan.start) > abs(before.replicas - plan.start)
        yield from self._begun(plan, plan.batch_of(after.replicas)) if is_towards else ()
        yield "" if name == plan.target else "it is not the target"

    def _lowered(self, name: str, after: WorkloadFacts, state: State, plan: RolloutFacts) -> Iterator[str]:
        """So many pods of a Deployment go; those that are not ready first."""
        specs = as_asked(state, self._workloads, self._ours)
        kept = {other: min(state.ready(other), one.replicas) for other, one in specs.items()}
        left = sum(kept.values()) - kept[name] + min(kept[name], after.replicas)
        pool = sum(one.replicas for other, one in specs.items() if other not in (name, plan.target)) + after.replicas
        total = plan.total or 0
        batch = plan.batch_of(total - pool)
        floor = total if name == plan.target and not plan.is_deleting else _floor(plan, _budget_of(plan, batch))
        self._count(FLOOR, is_tight=left == floor)
        yield "" if left == sum(kept.values()) or left >= floor else f"{left} would be ready, of at least {floor}"
        if name != plan.target and not plan.is_deleting:
            yield from self._begun(plan, batch)

    def _raised(self, name: str, after: WorkloadFacts, state: State, plan: RolloutFacts) -> Iterator[str]:
        specs = as_asked(state, self._workloads, self._ours)
        others = {other: max(len(state.of(other)), one.replicas) for other, one in specs.items() if other != name}
        total = plan.total or 0
        batch = plan.batch_of(after.replicas)
        most = (max(total, plan.before) if plan.is_deleting else total) + (
            0 if plan.decreases_first else plan.size(_budget_of(plan, batch))
        )
        pods = after.replicas + sum(others.values())
        self._count(CEILING, is_tight=pods == most)
        yield "" if pods <= most else f"there would be {pods} pods, of at most {most}"
        if plan.is_deleting:
            return
        yield "" if name == plan.target else "it is not the target"
        lacking = total - sum(one.replicas for other, one in specs.items() if other != name)
        if after.replicas <= lacking and plan.state == "initializing":
            return  # what the old ones lack of all pods, the target has from the start
        yield from self._begun(plan, batch)

    def _uncovered(
        self, name: str, before: WorkloadFacts, after: WorkloadFacts, state: State, plan: RolloutFacts
    ) -> Iterator[str]:
        """A workload that changes in place may replace more pods."""
        asked, earlier = state.asked(name, after), state.asked(name, before)
        updated = len([pod for pod in state.of(name) if pod.image == after.image])
        if asked <= max(earlier, updated):
            return
        yield _forbidden(plan)
        if plan.is_deleting:
            coming = max(0, earlier - updated)
            if after.kind == "StatefulSet":
                free = state.without_work(name, range(after.partition, before.partition), after.image)
            else:
                broken = sum(pod.image != after.image and not pod.is_ready for pod in state.of(name))
                free = max(0, broken - coming)
            yield from self._walked_back(name, asked - earlier, coming, free, state, plan)
        elif plan.state != "finalising":
            yield from self._begun(plan, plan.batch_of(asked, after.replicas))

    def _walked_back(
        self, name: str, number: int, coming: int, free: int, state: State, plan: RolloutFacts
    ) -> Iterator[str]:
        """So many more pods go back, and others are on their way. Those that do not work go first, and are free."""
        whole = state.workloads[name].replicas
        floor = whole - _unavailable(plan, plan.largest(whole), whole)
        cost = max(0, number - free)
        left = state.ready(name) - coming - cost
        self._count(FLOOR, is_tight=left == floor)
        is_one = number <= 1 and not coming
        yield "" if not cost or is_one or left >= floor else f"{left} would be ready, of at least {floor}"

    def _begun(self, plan: RolloutFacts, batch: int) -> Iterator[str]:
        """Whether pods of this batch may move."""
        is_last = batch >= len(plan.sizes) - 1
        self._count(PARTITION, is_tight=batch == plan.last_batch and not is_last)
        self._count(GATES, is_tight=plan.has_hooks or plan.has_metrics)
        self._count(NOTED, is_tight=batch > 0)
        yield "" if batch <= plan.last_batch else f"batch {batch} rolls, and {plan.last_batch} is the last that may"
        yield "" if plan.is_rolling and plan.current >= batch else f"batch {batch} rolls, and the status says {plan}"
        if plan.has_hooks:
            said = self._outside.agreed
            yield "" if (plan.uid, plan.target, "pre-batch-rollout", batch) in said else "no webhook was asked before"
            is_after = batch == 0 or (plan.uid, plan.target, "post-batch-rollout", batch - 1) in said
            yield "" if is_after else "no webhook was asked after the batch before it"

    def _judge_beginning(self, plan: RolloutFacts) -> str:
        """Whether a batch may begin, as the status says now."""
        window = self._window()
        if window is None or plan.current == 0 or plan.is_deleting:
            return ""
        uid, batch, since = self._began
        if plan.has_metrics and (uid, batch) == (plan.uid, plan.current - 1) and self._outside.measured < since:
            return f"batch {plan.current} begins, and no metric was in its range since batch {batch} began"
        verdicts = [self._unproven(plan, state) for state in window.states if plan.target in state.workloads]
        self._count(PROOF, is_tight=True)
        return "" if "" in verdicts or not verdicts else verdicts[-1]

    @staticmethod
    def _unproven(plan: RolloutFacts, state: State) -> str:
        spec = state.workloads[plan.target]
        whole = len(state.of(plan.target)) if spec.kind == "DaemonSet" else spec.replicas
        if plan.is_scale and (plan.total or 0) < plan.original:
            return ""
        before = plan.goal(plan.current - 1, whole)
        ready = state.ready(plan.target, spec.image)
        if ready >= before - plan.tolerated[plan.current - 1]:
            return ""
        return f"batch {plan.current} begins, but {ready} of {before} pods of those before it are ready"

    # Pods that operators delete

    def _judge_deletion(self, name: str, pod: PodFacts) -> str:
        window = self._window()
        if window is None or not window.plans:
            return ""
        there = [state for state in window.states if name in state.pods and state.pods[name].uid == pod.uid]
        verdicts = [_first(self._deleted(name, state, plan)) for state in reversed(there) for plan in window.plans]
        if "" in verdicts:
            self._taken.append((self._simulation.loop.time(), pod.uid))
            return ""
        return f"{name} is deleted: {', '.join(dict.fromkeys(verdicts)) or 'it was never there'}"

    def _deleted(self, name: str, state: State, plan: RolloutFacts) -> Iterator[str]:
        pod = state.pods[name]
        spec = state.workloads.get(pod.workload)
        if spec is None:
            yield f"{pod.workload} is gone"
            return
        yield _forbidden(plan)
        yield "" if pod.image != spec.image else "it has the present template"
        if spec.kind == "StatefulSet":
            yield "" if not pod.is_ready else "it is ready"
            is_given_up = all(one.image != pod.image for one in state.of(pod.workload) if one.is_ready)
            yield "" if pod.ordinal >= spec.partition or is_given_up else "it is kept back"
            return
        mine = state.of(pod.workload)
        gone = {uid for at, uid in self._taken if at >= state.at and uid != pod.uid}
        whole = max(len(mine), 3)
        left = sum(one.is_ready and one.uid not in gone for one in mine) - pod.is_ready
        outdated = sum(one.image != spec.image and one.uid not in gone for one in mine) - 1
        batch = plan.batch_of(whole - outdated, whole)
        floor = whole - max(1, _unavailable(plan, _budget_of(plan, batch, whole), whole))
        self._count(FLOOR, is_tight=left == floor)
        yield "" if not pod.is_ready or left >= floor else f"{left} would be ready, of at least {floor}"
        if not plan.is_deleting:
            yield from self._begun(plan, batch)

    def _count(self, promise: str, *, is_tight: bool) -> None:
        self._simulation.counts["promise", promise, "tight" if is_tight else "asked"] += 1


def _keep(known: dict[str, Any], name: str, found: Any) -> None:
    if found is None:
        known.pop(name, None)
    else:
        known[name] = found


def _first(problems: Iterator[str]) -> str:
    return next(filter(None, problems), "")


def _forbidden(plan: RolloutFacts) -> str:
    """Whether nothing may move at all."""
    if plan.is_deleting:
        return "" if plan.reverts else "it is not to be taken back"
    return "it is paused" if plan.is_paused else ""


def _budget_of(plan: RolloutFacts, batch: int, whole: int = 0) -> int:
    """The batch whose budget counts while pods of this one move: the current one may still do what others left."""
    if plan.is_deleting:
        return plan.largest(whole)
    return min(max(batch, plan.current if plan.is_rolling else 0), len(plan.sizes) - 1)


def _unavailable(plan: RolloutFacts, batch: int, whole: int) -> int:
    """How many pods may be unavailable while a batch rolls."""
    index = min(batch, len(plan.sizes) - 1)
    size = plan.size(index, whole)
    return plan.tolerated[index] + (size if plan.decreases_first else 0)


def _floor(plan: RolloutFacts, batch: int) -> int:
    """On the way back to fewer pods than were asked for, as many as before are enough."""
    total = plan.total or 0
    needed = min(total, plan.before) if plan.is_deleting else total
    return needed - _unavailable(plan, batch, total)
