"""What pods, workloads and rollouts say of themselves, as far as promises of rollouts in batches are judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from msgspec import Struct

BYSTANDER = "bystander"
IN_PLACE = ("CloneSet", "StatefulSet", "DaemonSet")


class PodFacts(Struct, frozen=True, gc=False):
    """One pod that is not on its way out."""

    uid: str
    workload: str
    image: str
    is_ready: bool
    ordinal: int


class WorkloadFacts(Struct, frozen=True, gc=False):
    """What the spec of a workload asks for."""

    kind: str
    replicas: int
    partition: int
    """How many pods are kept back of one that changes in place."""
    image: str


class RolloutFacts(Struct, frozen=True, gc=False):
    """What a rollout is asked for, and what it has noted."""

    uid: str
    target: str
    sources: frozenset[str]
    sizes: tuple[int | None, ...]
    tolerated: tuple[int, ...]
    total: int | None
    original: int
    last_batch: int
    state: str
    batch_state: str
    current: int
    decreases_first: bool
    is_paused: bool
    is_deleting: bool
    reverts: bool
    has_hooks: bool
    has_metrics: bool
    before: int = 0
    """How many pods there were before the first of its rollouts."""

    @property
    def is_scale(self) -> bool:
        return not self.sources

    @property
    def is_rolling(self) -> bool:
        return (self.state, self.batch_state) == ("rollingInBatches", "batchInRolling")

    def largest(self, whole: int = 0) -> int:
        """The batch with the most pods."""
        sizes = [self.size(index, whole) for index in range(len(self.sizes))]
        return sizes.index(max(sizes))

    def size(self, index: int, whole: int = 0) -> int:
        return abs(self.goal(index, whole) - (self.goal(index - 1, whole) if index else self.start))

    @property
    def start(self) -> int:
        return self.original if self.is_scale else 0

    def goal(self, index: int, whole: int = 0) -> int:
        """How many pods of the target there are after a batch; `whole` is how many there are, if no size is asked."""
        total = whole if self.total is None else self.total
        if index >= len(self.sizes) - 1:
            return total
        moved = sum(size or 0 for size in self.sizes[: index + 1])
        goal = self.start + (moved if total >= self.start else -moved)
        return goal if self.total is not None else min(goal, total)

    def batch_of(self, pods: int, whole: int = 0) -> int:
        """The batch that makes so many pods of the target."""
        is_up = self.goal(len(self.sizes), whole) >= self.start
        goals = [self.goal(index, whole) for index in range(len(self.sizes))]
        return next((at for at, goal in enumerate(goals) if (pods <= goal if is_up else pods >= goal)), len(goals))


class State(Struct, frozen=True):
    """Everything, as of a moment."""

    at: float
    workloads: Mapping[str, WorkloadFacts]
    pods: Mapping[str, PodFacts]
    rollout: RolloutFacts | None

    def of(self, workload: str) -> list[PodFacts]:
        return [pod for pod in self.pods.values() if pod.workload == workload]

    def ready(self, workload: str, image: str = "") -> int:
        return sum(pod.is_ready and image in ("", pod.image) for pod in self.of(workload))

    def updated(self, workload: str) -> list[PodFacts]:
        """The pods of the present template."""
        return [pod for pod in self.of(workload) if pod.image == self.workloads[workload].image]

    def without_work(self, workload: str, places: Iterable[int], image: str) -> int:
        """How many of these numbers have no pod, or one that is neither ready nor of this image."""
        working = {pod.ordinal for pod in self.of(workload) if pod.is_ready or pod.image == image}
        return sum(place not in working for place in places)

    def asked(self, name: str, spec: WorkloadFacts) -> int:
        """How many pods of the present template there are to be, of a workload that changes in place."""
        updated = [pod for pod in self.of(name) if pod.image == spec.image]
        if spec.kind != "StatefulSet":
            return max(spec.replicas - spec.partition, len(updated))
        return spec.replicas - spec.partition + sum(pod.ordinal < spec.partition for pod in updated)


def pod_facts(found: dict[str, Any] | None) -> PodFacts | None:
    """None also of one that is on its way out, or of a bystander."""
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    meta, labels = found["metadata"], found["metadata"].get("labels", {})
    if BYSTANDER in labels:
        return None
    conditions = {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", ())}
    ordinal = meta["name"].rpartition("-")[2]
    return PodFacts(
        meta["uid"],
        labels.get("version", ""),
        found["spec"]["containers"][0]["image"],
        conditions.get("Ready") == "True",
        int(ordinal) if ordinal.isdecimal() else -1,
    )


def workload_facts(kind: str, found: dict[str, Any] | None) -> WorkloadFacts | None:
    if found is None:
        return None
    spec = found["spec"]
    replicas = spec.get("replicas", 0)
    strategy = spec.get("updateStrategy", {})
    rolling = strategy if kind == "CloneSet" else strategy.get("rollingUpdate") or {}
    partition = replicas if strategy.get("paused") else rolling.get("partition", 0)
    image = spec["template"]["spec"]["containers"][0]["image"]
    return WorkloadFacts(kind, replicas, min(partition, replicas), image)


def rollout_facts(found: dict[str, Any] | None) -> RolloutFacts | None:
    if found is None:
        return None
    spec, status = found["spec"], found.get("status", {})
    plan = spec["rolloutPlan"]
    batches = plan["rolloutBatches"]
    partition = plan.get("batchPartition")
    return RolloutFacts(
        found["metadata"]["uid"],
        spec["targetRef"]["name"],
        frozenset(one["name"] for one in spec.get("sourceRef", ())),
        tuple(one.get("replicas") for one in batches),
        tuple(one.get("maxUnavailable", 0) for one in batches),
        plan.get("targetSize"),
        status.get("rolloutOriginalSize", 0),
        len(batches) - 1 if partition is None else min(partition, len(batches) - 1),
        status.get("rollingState", ""),
        status.get("batchRollingState", ""),
        status.get("currentBatch", 0),
        plan.get("rolloutStrategy") == "DecreaseFirst",
        plan.get("paused", False),
        "deletionTimestamp" in found["metadata"],
        plan.get("revertOnDelete", False),
        bool(plan.get("rolloutWebhooks")),
        bool(plan.get("canaryMetric")),
        sum(one.get("replicas", 0) for one in status.get("sources", ())) + status.get("targetBefore", 0),
    )


def as_asked(state: State, now: Mapping[str, WorkloadFacts], ours: Set[str]) -> dict[str, WorkloadFacts]:
    """The specs of a moment, with what the operator has written since."""
    return {name: now.get(name, one) if name in ours else one for name, one in state.workloads.items()}
