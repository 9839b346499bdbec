"""What a rollout in batches promises, judged from pods and specs in the store at every write to a workload.

* Pods are taken away only if enough others are ready then.
* The target is raised only while there are no more pods than may be.
* A batch begins only when as many pods of the target are ready as the batch before it asked for, and only up to the
  partition.
* Nothing moves while the rollout is paused, unless it is deleted or replaced.

A decision is judged by what was so between the moment its maker read the rollout and the moment its request left, and
shortly before: a workload's status follows its pods, and cannot be faster than they are.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry

NAMESPACE = "shop"
FLOOR = "enough pods stay available when others go"
CEILING = "there are never more pods than may be"
PROOF = "a batch begins when the one before it is available"
PARTITION = "no batch behind the partition rolls"
PAUSED = "nothing moves while it is paused"
_READS = re.compile(r"GET /apis/standard.oam.dev/v1alpha1/namespaces/[^/]+/rollouttraits/web$")
_WRITES = re.compile(r"PATCH /apis/apps(\.kruise\.io)?/v1(alpha1)?/namespaces/[^/]+/(\w+)/([^?/]+)\?")
_DELETES = re.compile(r"DELETE /api/v1/namespaces/[^/]+/pods/")
_KINDS = ("Deployment", "StatefulSet", "CloneSet", "DaemonSet")
LAG = 3.0  # seconds that a workload's status may be behind its pods
GIVEN_UP = 25.0
KEPT = 6000


class PodFacts(Struct, frozen=True, gc=False):
    """What a pod itself says."""

    image: str
    version: str
    is_ready: bool


class WorkloadFacts(Struct, frozen=True, gc=False):
    """What a workload's spec asks for."""

    replicas: int
    partition: int
    image: str


class RolloutFacts(Struct, frozen=True, gc=False):
    """What a rollout is asked for."""

    target: str
    goals: tuple[int, ...]
    tolerated: int
    decreases_first: bool
    last_batch: int
    is_paused: bool
    is_deleting: bool

    @property
    def total(self) -> int:
        return self.goals[-1]

    @property
    def largest(self) -> int:
        return max(goal - before for goal, before in zip(self.goals, (0, *self.goals), strict=False))

    @property
    def floor(self) -> int:
        return self.total - self.tolerated - (self.largest if self.decreases_first else 0)

    @property
    def ceiling(self) -> int:
        return self.total + (0 if self.decreases_first else self.largest)

    @property
    def allowed(self) -> int:
        """How many pods of the target the partition allows."""
        return self.goals[min(self.last_batch, len(self.goals) - 1)]


class State(Struct, frozen=True):
    """Everything, as of a moment."""

    at: float
    workloads: Mapping[str, WorkloadFacts]
    pods: Mapping[str, PodFacts]
    rollout: RolloutFacts | None

    def ready(self, version: str = "") -> int:
        return sum(pod.is_ready and version in ("", pod.version) for pod in self.pods.values())

    def there(self, version: str) -> int:
        return sum(pod.version == version for pod in self.pods.values())

    def ready_of(self, image: str) -> int:
        return sum(pod.is_ready and pod.image == image for pod in self.pods.values())


class BatchPromises:
    """Follows every write, and says at once when one breaks a promise."""

    def __init__(self, simulation: Simulation, operators: Iterable[str], server: str, *, has_outsider: bool) -> None:
        self._simulation = simulation
        self._server = server
        self._has_outsider = has_outsider
        self._workloads: dict[str, WorkloadFacts] = {}
        self._pods: dict[str, PodFacts] = {}
        self._rollout: RolloutFacts | None = None
        self._states: deque[State] = deque([State(0.0, {}, {}, None)], maxlen=KEPT)
        self._read: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._decided: dict[int, tuple[float, float]] = {}
        links = [f"{name} → {server}" for name in operators]
        self._links = set(links)
        simulation.trace.follow(self._heard, *links, *operators)
        simulation.always("a workload is moved only when it may be", self._changed)

    def _heard(self, entry: Entry) -> None:
        if entry.what == "starts":
            self._started[entry.who] = entry.at
        elif _READS.match(entry.what):
            self._read[entry.who] = entry.at
        elif _WRITES.match(entry.what) or _DELETES.match(entry.what):
            self._decided[entry.number] = (self._read.get(entry.who, entry.at), entry.at)

    def _changed(self, server: str, kind: Kind, change: Change) -> str:
        if server != self._server or not change.version.key.startswith(f"{NAMESPACE}/"):
            return ""
        name, wrong = change.version.key.partition("/")[2], ""
        found = None if change.type == "DELETED" else msgspec.json.decode(change.version.body)
        if kind.resource.kind in _KINDS:
            wrong = self._note_workload(name, kind.resource.kind, found)
        elif kind.resource.kind == "Pod":
            self._note(self._pods, name, _pod(found))
        elif kind.resource.kind == "RolloutTrait":
            self._rollout = _rollout(found)
        else:
            return ""
        self._states.append(State(self._simulation.loop.time(), dict(self._workloads), dict(self._pods), self._rollout))
        return wrong

    @staticmethod
    def _note(known: dict[str, Any], name: str, found: Any) -> None:
        if found is None:
            known.pop(name, None)
        else:
            known[name] = found

    def _note_workload(self, name: str, kind: str, found: dict[str, Any] | None) -> str:
        before, after = self._workloads.get(name), _workload(kind, found)
        self._note(self._workloads, name, after)
        if before is None or after is None or before == after:
            return ""
        return self._judge(name, before, after)

    # Judging

    def _judge(self, name: str, before: WorkloadFacts, after: WorkloadFacts) -> str:
        carried = self._simulation.trace.carried()
        if carried is None or carried[0] not in self._links or carried[1] not in self._decided:
            return ""
        read, sent = self._decided[carried[1]]
        if self._is_forgotten(carried[0], sent):
            return ""
        states = [state for state in self._states if state.at < read - LAG][-1:]
        states += [state for state in self._states if read - LAG <= state.at <= sent]
        last = [state for state in states if state.at <= read][-1:]
        asked = [state for state in states if state.at >= read]
        plans = [state.rollout for state in (*last, *asked) if state.rollout is not None]
        if not plans:
            return f"{name}: there is no rollout"
        verdicts = [self._wrong(name, before, after, state, plan) for state in states for plan in dict.fromkeys(plans)]
        return "" if "" in verdicts else f"{name}: {before} → {after}: {verdicts[-1]}"

    def _is_forgotten(self, link: str, sent: float) -> bool:
        """Whether it arrives so late that whoever acts now cannot know of it."""
        is_late = self._simulation.loop.time() - sent > GIVEN_UP
        return is_late and (len(self._links) > 1 or sent < self._started[link.partition(" ")[0]])

    def _wrong(self, name: str, before: WorkloadFacts, after: WorkloadFacts, state: State, plan: RolloutFacts) -> str:
        if after.replicas < before.replicas:
            return self._lowered(name, before.replicas - after.replicas, state, plan)
        if after.replicas > before.replicas:
            return self._raised(name, before, after, state, plan)
        if after.partition < before.partition and after.image == before.image:
            return self._begun(plan, after.replicas - after.partition, state.ready_of(after.image))
        return ""

    def _lowered(self, name: str, number: int, state: State, plan: RolloutFacts) -> str:
        """So many pods of a Deployment go; the ones that are not ready first."""
        spare = state.there(name) - state.ready(name)
        left = state.ready() - max(0, number - spare)
        self._count(FLOOR, is_tight=left == plan.floor)
        if plan.is_paused and not plan.is_deleting:
            return "it is paused"
        return "" if number <= spare or left >= plan.floor else f"{left} would be ready, and {plan.floor} have to be"

    def _raised(self, name: str, before: WorkloadFacts, after: WorkloadFacts, state: State, plan: RolloutFacts) -> str:
        others = [one for other, one in state.workloads.items() if other != name]
        most = after.replicas + sum(one.replicas for one in others)
        self._count(CEILING, is_tight=most == plan.ceiling)
        if most > plan.ceiling:
            return f"{most} pods are asked for, and at most {plan.ceiling} may be"
        if name != plan.target:
            return "" if plan.is_deleting else "it is not the target"
        if plan.is_deleting or self._has_outsider:
            return ""
        return self._begun(plan, after.replicas, state.ready(name))

    def _begun(self, plan: RolloutFacts, goal: int, ready: int) -> str:
        """Whether a batch may begin that makes so many pods of the target."""
        before = max((one for one in plan.goals if one < goal), default=0)
        self._count(PROOF, is_tight=before > 0)
        self._count(PARTITION, is_tight=goal == plan.allowed < plan.total)
        self._count(PAUSED, is_tight=False)
        if plan.is_deleting:
            return ""
        if plan.is_paused:
            return "it is paused"
        if goal > plan.allowed:
            return f"{goal} pods of the target, and the partition allows {plan.allowed}"
        if ready < before - plan.tolerated:
            return f"a batch begins, but {ready} of {before} pods of those before it are ready"
        return ""

    def _count(self, promise: str, *, is_tight: bool) -> None:
        self._simulation.counts["promise", promise, "tight" if is_tight else "asked"] += 1


def _pod(found: dict[str, Any] | None) -> PodFacts | None:
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    conditions = {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", ())}
    labels = found["metadata"].get("labels", {})
    return PodFacts(
        found["spec"]["containers"][0]["image"], labels.get("version", ""), conditions.get("Ready") == "True"
    )


def _workload(kind: str, found: dict[str, Any] | None) -> WorkloadFacts | None:
    if found is None:
        return None
    spec = found["spec"]
    replicas = spec.get("replicas", 0)
    image = spec["template"]["spec"]["containers"][0]["image"]
    strategy = spec.get("updateStrategy", {})
    rolling = strategy if kind == "CloneSet" else strategy.get("rollingUpdate", {})
    partition = replicas if strategy.get("paused") else (rolling or {}).get("partition", 0)
    return WorkloadFacts(replicas, partition if isinstance(partition, int) else replicas, image)


def _rollout(found: dict[str, Any] | None) -> RolloutFacts | None:
    if found is None:
        return None
    spec = found["spec"]
    plan = spec["rolloutPlan"]
    sizes = [one["replicas"] for one in plan["rolloutBatches"]]
    goals = tuple(sum(sizes[: index + 1]) for index in range(len(sizes)))
    return RolloutFacts(
        spec["targetRef"]["name"],
        goals,
        max(one.get("maxUnavailable", 0) for one in plan["rolloutBatches"]),
        plan.get("rolloutStrategy") == "DecreaseFirst",
        plan.get("batchPartition", len(sizes)),
        plan.get("paused", False),
        "deletionTimestamp" in found["metadata"],
    )
