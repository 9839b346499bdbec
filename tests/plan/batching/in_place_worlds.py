"""Worlds with one workload and a tiny model of its controller: StatefulSet (the embedded one's plan) and CloneSet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kedge.api.condition import FALSE, TRUE
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutStrategy
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.pods import Pod, PodCondition, PodStatus
from kedge.embedded.json_patch import merge_patch
from kedge.embedded.workloads import stateful_plan
from kedge.embedded.workloads.stateful_plan import OrdinalPod, Wanted
from kedge.plan.batching.moves import Batch, Step, Workload, WorkloadRef, Workloads, Write
from kedge.plan.moving.budget import Budget
from kedge.plan.workloads import template_hash

CLAIM = "Rollout/web/uid-1"


def template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}}


def batch(goal: int, total: int, *, tolerated: int = 0, before: int = 0, max_unavailable: int = 1) -> Batch:
    return Batch(
        index=0,
        goal=goal,
        before=before,
        total=total,
        spec=RolloutBatch(),
        strategy=RolloutStrategy.increase_first,
        tolerated=tolerated,
        budget=Budget(total, max_unavailable),
    )


def pod(name: str, revision: str, *, ready: bool = True, terminating: bool = False, owner: str = "u") -> Pod:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="shop",
            uid=f"uid-{name}-{revision}",
            resource_version="7",
            labels={"controller-revision-hash": revision},
            deletion_timestamp=when if terminating else None,
            owner_references=(
                OwnerReference(api_version="apps/v1", kind="Set", name="web", uid=owner, controller=True),
            ),
        ),
        status=PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status=TRUE if ready else FALSE),)),
    )


class World:
    """One object in a server: writes are merge patches; each one is a new version."""

    kind, api_version = "", ""

    def __init__(self, replicas: int, image: str = "web:1") -> None:
        self.ref = WorkloadRef(self.api_version, self.kind, "shop", "web")
        self.obj: dict[str, Any] = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1", "generation": 1},
            "spec": {"replicas": replicas, "template": template(image), "updateStrategy": {}},
            "status": {},
        }
        self.bad: set[str] = set()
        self.started = self.update
        self.version = 1

    @property
    def update(self) -> str:
        return template_hash(self.obj["spec"]["template"])

    @property
    def replicas(self) -> int:
        return int(self.obj["spec"]["replicas"])

    def manifest(self, image: str) -> dict[str, Any]:
        return {"metadata": {"labels": {"v": image}}, "spec": {"template": template(image)}}

    def patch(self, patch: Mapping[str, Any]) -> None:
        before = self.obj["spec"]
        self.obj = merge_patch(self.obj, patch)
        self.version += 1
        self.obj["metadata"]["resourceVersion"] = str(self.version)
        if self.obj["spec"] != before:
            self.obj["metadata"]["generation"] += 1

    def write(self, step: Step) -> None:
        for one in step.writes:
            self._write(one)

    def _write(self, one: Write) -> None:
        if one.patch is not None:
            assert one.resource_version == self.obj["metadata"]["resourceVersion"], "decided on what is there"
            self.patch(one.patch)
        for meta in one.delete_pods:
            self.delete(meta)

    def delete(self, meta: ObjectMeta) -> None:
        raise NotImplementedError

    def seen(self, target: str | None = None, source: str | None = None) -> Workloads:
        manifest = None if target is None else self.manifest(target)
        sources = () if source is None else (Workload(self.ref, manifest=self.manifest(source)),)
        return Workloads(Workload(self.ref, self.obj, manifest, self.pods()), sources, in_place=True, claim=CLAIM)

    def pods(self) -> tuple[Pod, ...]:
        return ()

    def act(self) -> None:
        """One step of the controller and the kubelet."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Report on what is there, without a step."""
        raise NotImplementedError

    def held(self) -> dict[str, int]:
        """How many pods there are of each revision."""
        raise NotImplementedError

    def available(self) -> int:
        raise NotImplementedError

    def report(self, **status: Any) -> None:
        generation = self.obj["metadata"]["generation"]
        self.obj = {**self.obj, "status": {"observedGeneration": generation, **status}}

    def settle(self, most: int = 60) -> None:
        for _ in range(most):
            self.act()


class StatefulWorld(World):
    """A StatefulSet, as the embedded controller decides."""

    kind, api_version = "StatefulSet", "apps/v1"

    def __init__(self, replicas: int, image: str = "web:1", *, parallel: bool = False, start: int = 0) -> None:
        super().__init__(replicas, image)
        if start:
            self.obj["spec"]["ordinals"] = {"start": start}
        self.start = start
        self.parallel = parallel
        self.current = self.update
        self.here = {at: OrdinalPod(start + at, self.update, ready=True, available=True) for at in range(replicas)}
        self.refresh()

    def wanted(self) -> Wanted:
        strategy = self.obj["spec"]["updateStrategy"]
        return Wanted(
            self.replicas,
            self.current,
            self.update,
            self.start,
            min((strategy.get("rollingUpdate") or {}).get("partition") or 0, self.replicas),
            self.parallel,
            strategy.get("type") == "OnDelete",
        )

    def act(self) -> None:
        wanted = self.wanted()
        plan = stateful_plan.plan(wanted, self.here.values())
        for one in plan.delete:
            del self.here[one.ordinal - self.start]
        for one in plan.create:
            works = one.revision not in self.bad
            self.here[one.ordinal - self.start] = OrdinalPod(one.ordinal, one.revision, ready=works, available=works)
        counted = stateful_plan.counts(self.here.values(), self.current, self.update)
        if stateful_plan.is_complete(wanted, counted):
            self.current = self.update
        self.refresh()

    def refresh(self) -> None:
        counted = stateful_plan.counts(self.here.values(), self.current, self.update)
        self.report(
            replicas=counted.replicas,
            readyReplicas=counted.ready,
            availableReplicas=counted.available,
            updatedReplicas=counted.updated,
            updateRevision=self.update,
            currentRevision=self.current,
        )

    def delete(self, meta: ObjectMeta) -> None:
        ordinal = int(meta.name.rpartition("-")[2])
        assert meta.uid
        assert meta.resource_version
        assert not self.here[ordinal - self.start].available, "only what does not work is deleted"
        del self.here[ordinal - self.start]

    def pods(self) -> tuple[Pod, ...]:
        return tuple(pod(f"web-{one.ordinal}", one.revision, ready=one.ready) for one in self.here.values())

    def held(self) -> dict[str, int]:
        return _counted(one.revision for one in self.here.values())

    def available(self) -> int:
        return sum(one.available for one in self.here.values())


class CloneWorld(World):
    """A CloneSet: as many pods as its partition keeps back stay; at most maxUnavailable are down. No surge."""

    kind, api_version = "CloneSet", "apps.kruise.io/v1alpha1"

    def __init__(self, replicas: int, image: str = "web:1", *, rolls_back: bool = False) -> None:
        super().__init__(replicas, image)
        self.obj["spec"]["updateStrategy"] = {"type": "ReCreate", "partition": 0, "maxUnavailable": 1}
        self.rolls_back = rolls_back
        self.current = self.update
        self.here = [(self.update, True)] * replicas
        self.refresh()

    def act(self) -> None:
        strategy = self.obj["spec"]["updateStrategy"]
        self.here = [(one, one not in self.bad) for one, _ in self.here]
        if not strategy.get("paused"):
            self._move(self._partition(strategy.get("partition") or 0), int(strategy["maxUnavailable"]))
        if all(one == self.update for one, _ in self.here):
            self.current = self.update
        self.refresh()

    def _partition(self, given: int | str) -> int:
        return self.replicas if given == "100%" else min(int(given), self.replicas)

    def _move(self, partition: int, limit: int) -> None:
        old = [at for at, (one, _) in enumerate(self.here) if one != self.update]
        new = [at for at, (one, _) in enumerate(self.here) if one == self.update]
        down = sum(not ready for _, ready in self.here)
        for at in sorted(old, key=lambda at: self.here[at][1])[: max(0, len(old) - partition)]:
            if self.here[at][1] and down >= limit:
                return
            down += self.here[at][1]
            self.here[at] = (self.update, False)
        if self.rolls_back and len(new) > self.replicas - partition and self.current != self.update:
            self.here[new[0]] = (self.current, False)

    def refresh(self) -> None:
        mine = [ready for one, ready in self.here if one == self.update]
        self.report(
            replicas=len(self.here),
            readyReplicas=self.available(),
            availableReplicas=self.available(),
            updatedReplicas=len(mine),
            updatedReadyReplicas=sum(mine),
            updatedAvailableReplicas=sum(mine),
            updateRevision=self.update,
            currentRevision=self.current,
        )

    def held(self) -> dict[str, int]:
        return _counted(one for one, _ in self.here)

    def available(self) -> int:
        return sum(ready for _, ready in self.here)


def _counted(revisions: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in revisions:
        found[one] = found.get(one, 0) + 1
    return found


def drive(world: World, ask: Callable[[], Step], watch: Callable[[], None] = lambda: None, most: int = 400) -> bool:
    """Ask for a move until it is done, the controller acting in between; False if it never is."""
    for _ in range(most):
        step = ask()
        assert not step.failure, step.failure
        if step.is_done:
            return True
        world.write(step)
        watch()
        world.act()
        watch()
    return False


STATUS = RolloutStatus()
