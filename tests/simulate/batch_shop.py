"""A shop: one workload of any kind, in one or several revisions; its users and outsiders, and what happens to its pods.

Users ask for releases as the kind wants it. Of Deployments every release is an object of its own, and the rollout is
pointed at it. A workload that changes in place gets another template, frozen, and another rollout. One that is only
scaled has another size each time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import DaemonSet, Deployment, StatefulSet
from kedge.api.core import Namespace
from kedge.api.crd import crd
from kedge.api.kruise import CloneSet
from kedge.api.metric_template import MetricTemplate
from kedge.api.oam.keys import RETRY
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.codec import untyped
from kedge.kube.errors import ApiError, Invalid, NotFound
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.simulate.faults import NONE
from kedge.simulate.simulation import InvariantViolated, Simulation
from simulate.batch_facts import BYSTANDER
from simulate.batch_promises import NAMESPACE, BatchPromises
from simulate.batch_services import Outside, metric_template, metrics, webhooks
from simulate.pod_trouble import CRASH_LOOP, NEVER_READY, befall, mark

SERVER, NAME = "cluster", "web"
BAD = "app:bad"
NODES = 3
PATIENCE = 400  # seconds that a user waits for a rollout that is being deleted
DEFINITIONS = tuple(crd(kind) for kind in (RolloutTrait, CloneSet, MetricTemplate))
IN_PLACE: dict[str, type[Any]] = {"CloneSet": CloneSet, "StatefulSet": StatefulSet, "DaemonSet": DaemonSet}
SCALED = "Scaled"
KINDS = ("Deployment", "Deployment", "Deployment", "CloneSet", "StatefulSet", "DaemonSet", SCALED)
HPA = untyped(Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"))


class Shop:
    """One workload in several revisions, and all who act on it."""

    def __init__(
        self, simulation: Simulation, rng: Random | None = None, operators: tuple[str, ...] = (), kind: str = ""
    ) -> None:
        self.simulation = simulation
        self.rng = rng = rng or simulation.rng("shop")
        self.sizes = simulation.rng("sizes")
        self.has_new_sizes = True
        drawn = rng.choice(KINDS)
        self.kind = kind or drawn
        self.operators = operators or rng.choice([("operator",), ("operator",), ("operator", "operator-2")])
        self.size = NODES if self.kind == "DaemonSet" else rng.choice([1, 2, 3, 4, 5])
        self.strategy = rng.choice(["IncreaseFirst", "IncreaseFirst", "DecreaseFirst"])
        self.tolerated = rng.choice([0, 0, 1])
        self.has_hooks = rng.random() < 0.3
        self.has_metrics = rng.random() < 0.2
        self.failure_limit = rng.choice([0, 100])
        self.has_autoscaler = rng.random() < 0.2 and self.kind in ("Deployment", SCALED)
        self.has_outsider = rng.random() < 0.2 and self.kind in ("Deployment", "CloneSet", "StatefulSet")
        self.policy = rng.choice(["Parallel", "OrderedReady"])
        self.ready_after = rng.choice(["200ms", "3s", "8s"])
        self.troubles = rng.sample(["die", "crash", "never ready"], rng.randint(0, 2))
        self.number = 1
        self.server = simulation.cluster(SERVER).server
        self.user = simulation.client(SERVER)
        self.outside = Outside(simulation.rng("outside"))
        BatchPromises(simulation, self.operators, SERVER, self.outside)

    async def open(self) -> None:
        await make_nodes(self.user, NODES, self.simulation.clock)
        for definition in DEFINITIONS:
            await self.user.create(CustomResourceDefinition, definition)
        self.simulation.loop.create_task(self._controllers(), name="workloads")
        await self.user.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self._create(self._name(1), "app:1", self.size)
        await self.user.create(Deployment, self._bystander())
        if self.has_metrics:
            await self.simulation.until("metric templates are served", self._serves_templates, within=60)
            await self.user.create(MetricTemplate, metric_template(NAMESPACE))
        if self.has_autoscaler:
            await self._create_autoscaler()
        await self.simulation.until("all pods are ready", lambda: self.all_run("app:1"), within=600)
        if self.simulation.faults != NONE:
            self.outside.failing, self.outside.refusing = 0.2, 0.03

    async def _controllers(self) -> None:
        simulation = self.simulation
        async with Manager(component="kcm", clock=simulation.clock, rng=simulation.rng("kcm")) as manager:
            add_workloads(manager, await manager.connect(SERVER, self.user.transport))
            await manager.run(signals=False)

    def _serves_templates(self) -> bool:
        return any(kind.resource == MetricTemplate.resource for kind in self.server.registry.kinds())

    # Objects

    @property
    def is_in_place(self) -> bool:
        return self.kind in IN_PLACE

    @property
    def of(self) -> type[Any]:
        return IN_PLACE.get(self.kind, Deployment)

    def _name(self, number: int) -> str:
        return f"v{number}" if self.kind == "Deployment" else NAME

    def _ref(self, name: str) -> dict[str, str]:
        api_version = "apps.kruise.io/v1alpha1" if self.kind == "CloneSet" else "apps/v1"
        return {"apiVersion": api_version, "kind": "Deployment" if self.kind == SCALED else self.kind, "name": name}

    async def _create(self, name: str, image: str, replicas: int) -> None:
        labels = {"app": NAME, "version": name}
        template = {
            "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": self.ready_after}},
            "spec": {"containers": [{"name": "app", "image": image}]},
        }
        spec: dict[str, Any] = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        if self.kind == "StatefulSet":
            spec |= {"serviceName": NAME, "podManagementPolicy": self.policy}
        if self.kind == "DaemonSet":
            del spec["replicas"]
        await self.user.create(self.of, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})

    def _bystander(self) -> dict[str, Any]:
        """A Deployment whose pods have the same labels as others', and one more."""
        labels = {"app": NAME, "version": self._name(1), BYSTANDER: "true"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "other:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return {"metadata": {"name": BYSTANDER, "namespace": NAMESPACE}, "spec": spec}

    async def _create_autoscaler(self) -> None:
        spec = {"scaleTargetRef": self._ref(self._name(1)), "minReplicas": 1, "maxReplicas": self.size + 2}
        await self.user.create(HPA, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})

    # Releases

    async def release(self, image: str, *, revert: bool = False, partition: int | None = None) -> bool:
        """Another revision, and a rollout to it; or another size. False: it was not possible to ask for it."""
        self.number += 1
        options: dict[str, Any] = {"revert": revert, "partition": partition}
        if self.kind == "Deployment":
            if self.has_new_sizes and self.sizes.random() < 0.3:
                self.size = self.sizes.randint(1, 5)
            await self._create(self._name(self.number), image, 0)
            return await self.ask(self._name(self.number), **options)
        if not await self._gone():
            return False
        if self.is_in_place:
            await self._freeze(image)
        else:
            self.size = self.rng.choice([1, 2, 3, 4, 5])
        return await self.ask(NAME, **options)

    async def _gone(self) -> bool:
        """A rollout works once: the same target again needs another one, when the old one is gone."""
        for waited in range(PATIENCE):
            if not self.rollouts():
                return True
            if waited == PATIENCE // 2:
                await self.edit({"revertOnDelete": False})
            await self.remove()
            await asyncio.sleep(1.0)
        return False

    async def _freeze(self, image: str) -> None:
        """A new template that moves no pods: what whoever changes a workload in place has to write."""
        frozen: dict[str, Any] = {"paused": True}
        if self.kind == "StatefulSet":
            frozen = {"type": "RollingUpdate", "rollingUpdate": {"partition": self.size}}
        if self.kind == "DaemonSet":
            frozen = {"type": "OnDelete", "rollingUpdate": None}
        template = {"spec": {"containers": [{"name": "app", "image": image}]}}
        await self._patch(self.of, NAME, {"spec": {"template": template, "updateStrategy": frozen}})

    async def ask(self, target: str, *, revert: bool = False, partition: int | None = None) -> bool:
        """Have what is there move to this target. A change that is not allowed is asked of another rollout."""
        for waited in range(PATIENCE):
            found = self.rollouts()
            spec = self._spec(target, revert=revert, partition=partition)
            try:
                if not found:
                    await self.user.create(
                        RolloutTrait, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}
                    )
                    return True
                if found[0].metadata.deletion_timestamp is None:
                    change = {"spec": spec, "metadata": {"annotations": {RETRY: str(self.number)}}}
                    await self._patch(RolloutTrait, NAME, change, uid=found[0].metadata.uid)
                    return True
            except Invalid:
                await self.remove()
            except ApiError:
                pass  # somebody else was faster
            if waited == PATIENCE // 2:
                await self.edit({"revertOnDelete": False})
            await asyncio.sleep(1.0)
        return False

    def _spec(self, target: str, *, revert: bool, partition: int | None) -> dict[str, Any]:
        sources = [] if self.kind == SCALED else [one for one in self.workloads() if self.is_in_place or one != target]
        found = self.rollouts()
        if self.kind == "Deployment" and (not found or found[0].status.desired_size == 0):
            pool = sum(replicas for name, replicas in self.workloads().items() if name != target)
            self.size = max(self.size, pool)  # a smaller size than that of its sources is refused
        plan: dict[str, Any] = {
            "rolloutStrategy": self.strategy,
            "rolloutBatches": self._batches(self.size),
            "revertOnDelete": revert,
            "batchPartition": partition,
            "paused": False,
            "targetSize": None if self.is_in_place else self.size,
            "onAutoscaler": "TakeOver",
            "rolloutWebhooks": webhooks() if self.has_hooks else None,
            "canaryMetric": metrics(self.failure_limit) if self.has_metrics else None,
        }
        return {
            "targetRef": self._ref(target),
            "sourceRef": [self._ref(one) for one in sources],
            "rolloutPlan": {name: value for name, value in plan.items() if value is not None or found},
        }

    def _batches(self, size: int) -> list[dict[str, Any]]:
        """The last one takes what is left."""
        if self.kind == SCALED:
            moves_several = abs(size - self.workloads()[NAME]) > 1
            first = {"replicas": 1, "maxUnavailable": self.tolerated}
            return [*([first] if moves_several else []), {"maxUnavailable": self.tolerated}]
        sizes: list[int] = []
        while (left := size - sum(sizes)) > 0:
            sizes.append(self.rng.randint(1, left))
        batches: list[dict[str, Any]] = [{"replicas": one, "maxUnavailable": self.tolerated} for one in sizes[:-1]]
        return [*batches, {"maxUnavailable": self.tolerated}]

    async def edit(self, plan: dict[str, Any]) -> None:
        with suppress(ApiError):  # a rollout that is gone or has ended may refuse it
            await self._patch(RolloutTrait, NAME, {"spec": {"rolloutPlan": plan}})

    async def remove(self) -> None:
        with suppress(NotFound):
            await self.user.delete(RolloutTrait, NAME, NAMESPACE)

    async def _patch(self, of: type[Any], name: str, body: dict[str, Any], uid: str | None = None) -> None:
        await self.user.patch(of, name, MergePatch(body), NAMESPACE, uid=uid)

    # What users and outsiders do

    async def users(self, number: int = 6) -> None:
        edits = [self._good, self._good, self._bad, self._pause, self._move_partition, self._rebatch, self.remove]
        if self.kind == "Deployment":
            edits += [self._back, self._delete_workload]
        if self.has_outsider:
            edits.append(self._scale_by_hand)
        for _ in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 3.0), self.rng.uniform(5.0, 60.0)]))
            await self.rng.choice(edits)()

    async def _good(self) -> None:
        revert, partition = self.rng.random() < 0.5, self.rng.choice([None, None, 0, 1])
        await self.release(f"app:{self.number + 1}", revert=revert, partition=partition)

    async def _bad(self) -> None:
        await self.release(BAD, revert=self.rng.random() < 0.5)

    async def _pause(self) -> None:
        await self.edit({"paused": self.rng.random() < 0.6})

    async def _move_partition(self) -> None:
        await self.edit({"batchPartition": self.rng.choice([None, 1, 2])})

    async def _rebatch(self) -> None:
        """Other batches from here on, one pod each."""
        for found in self.rollouts():
            plan = found.spec.rollout_plan
            kept = [one for one in (plan.rollout_batches or ()) if one.replicas is not None]
            kept = kept[: max(plan.batch_partition or 0, found.status.current_batch) + 1]
            batches = [{"replicas": one.replicas, "maxUnavailable": self.tolerated} for one in kept]
            left = self.size - sum(int(one.replicas or 0) for one in kept)
            batches += [{"replicas": 1, "maxUnavailable": self.tolerated}] * (left - 1)
            await self.edit({"rolloutBatches": [*batches, {"maxUnavailable": self.tolerated}]})

    async def _back(self) -> None:
        """To one of the revisions that are there."""
        known = sorted(self.workloads())
        if len(known) > 1:
            await self.ask(self.rng.choice(known), revert=self.rng.random() < 0.5)

    async def _delete_workload(self) -> None:
        """Somebody deletes one of several revisions, with its pods."""
        known = sorted(self.workloads())
        if len(known) > 1:
            chosen = self.rng.choice(known)
            self.simulation.trace.remark("outsider", f"deletes {chosen}")
            with suppress(NotFound):
                await self.user.delete(Deployment, chosen, NAMESPACE)

    async def _scale_by_hand(self) -> None:
        """Somebody else scales the workload, or one of several."""
        if known := sorted(self.workloads()):
            chosen, size = self.rng.choice(known), self.rng.randint(0 if self.kind == "Deployment" else 1, 5)
            with suppress(ApiError):
                await self._patch(self.of, chosen, {"spec": {"replicas": size}})
                self.size = size if self.is_in_place else self.size

    async def autoscale(self, times: int = 10) -> None:
        """An autoscaler sets the replicas of whatever it is told to."""
        rng = self.simulation.rng("autoscaler")
        for _ in range(times if self.has_autoscaler else 0):
            await asyncio.sleep(rng.uniform(1.0, 30.0))
            with suppress(ApiError):
                found = await self.user.get(HPA, NAME, NAMESPACE)
                target = found["spec"]["scaleTargetRef"]["name"]
                size = rng.randint(1, self.size + 1)
                if self.kind == SCALED:
                    size = self.size
                if self.workloads().get(target):
                    await self._patch(Deployment, target, {"spec": {"replicas": size}})

    # What happens to pods

    async def trouble(self, days: int = 5) -> None:
        """Pods die, crash, or are never ready, for a while."""
        rng = self.simulation.rng("trouble")
        async with asyncio.TaskGroup() as group:
            for _ in range(days if self.troubles else 0):
                await asyncio.sleep(rng.uniform(0.0, 45.0))
                group.create_task(self._befall(rng, rng.choice(self.troubles), rng.uniform(1.0, 60.0)))

    async def _befall(self, rng: Random, kind: str, seconds: float) -> None:
        pods = self.pods()
        if not pods:
            return
        chosen = rng.choice(pods).metadata.name
        await befall(self.simulation, self.user, NAMESPACE, chosen, kind, seconds)

    # The end of trouble

    async def settle(self) -> None:
        """Nothing goes wrong any more: a bad release stops, and the one that mends it arrives."""
        self.simulation.end_faults()
        self.outside.failing = self.outside.refusing = 0.0
        for process in self.simulation.processes.values():
            process.crash_no_more()
        for pod in self.pods():
            with suppress(NotFound):
                await mark(self.user, NAMESPACE, pod.metadata.name, CRASH_LOOP, None)
                await mark(self.user, NAMESPACE, pod.metadata.name, NEVER_READY, None)
        if self.kind != SCALED and self.rng.random() < 0.4:
            await self.must_release(BAD)
            await asyncio.sleep(60.0)
        await self.must_release("app:final")
        await self.arrives("app:final")
        if self.rng.random() < 0.5:
            await self._taken_back()
        if len(self.operators) == 1:  # others renew their lease
            await self.simulation.rest()

    async def must_release(self, image: str, *, revert: bool = False, partition: int | None = None) -> None:
        if not await self.release(image, revert=revert, partition=partition):
            raise InvariantViolated(f"a rollout that is deleted is gone within {PATIENCE} s; {self.told()}")

    async def arrives(self, image: str) -> None:
        image = "app:1" if self.kind == SCALED else image
        await self.until("every pod runs the last release", lambda: self.all_run(image))
        await self.until("the rollout has succeeded", lambda: self.state() == "rolloutSucceed")

    async def until(self, sentence: str, condition: Callable[[], object], within: float = 1200.0) -> None:
        """Wait until this holds. If it does not, say how things are."""
        try:
            await self.simulation.until(sentence, condition, within=within)
        except InvariantViolated as error:
            raise InvariantViolated(f"{error}; {self.told()}") from None

    def told(self) -> str:
        """How things are, in a line."""
        pods = Counter(f"{(pod.spec.containers or ())[0].image} {_is_ready(pod)}" for pod in self.pods())
        found = [
            f"{one.status.rolling_state} {one.status.batch_rolling_state}: {one.status.message}"
            for one in self.rollouts()
        ]
        return f"{self.kind} of {self.size}, {self.workloads()}, {dict(pods)}, {found}"

    async def _taken_back(self) -> None:
        """A rollout that is deleted midway leaves everything as before it."""
        size = self.size
        await self.must_release("app:extra", revert=True, partition=0)
        await asyncio.sleep(self.rng.uniform(0.0, 60.0))
        is_complete = self.state() == "rolloutSucceed"  # it may tolerate pods that are not ready
        await self.remove()
        await self.until("the rollout is gone", lambda: not self.rollouts())
        if is_complete or self.all_run("app:extra") or (self.kind == SCALED and self.all_run("app:1")):
            return  # it was complete: there was nothing to take back
        self.size = size
        image = "app:1" if self.kind == SCALED else "app:final"
        await self.until("everything is as before", lambda: self.all_run(image))

    # What there is

    def pods(self) -> list[Pod]:
        return [pod for pod in self.objects(Pod) if BYSTANDER not in pod.metadata.labels]

    def rollouts(self) -> list[RolloutTrait]:
        return self.objects(RolloutTrait)

    def workloads(self) -> dict[str, int]:
        """The workloads that are not on their way out, and how many pods they ask for."""
        found = [one for one in self.objects(self.of) if one.metadata.deletion_timestamp is None]
        return {
            one.metadata.name: getattr(one.spec, "replicas", 0) or 0 for one in found if one.metadata.name != BYSTANDER
        }

    def state(self) -> str:
        found = self.rollouts()
        return str(found[0].status.rolling_state) if found else ""

    def all_run(self, image: str) -> bool:
        pods = self.pods()
        ready = [pod for pod in pods if _is_ready(pod) and (pod.spec.containers or ())[0].image == image]
        return len(ready) == len(pods) == self.size

    def end_state(self) -> list[str]:
        """Every workload, without what is different each time."""
        return [f"{name} {replicas}" for name, replicas in self.workloads().items()]

    def objects(self, of: type[Any]) -> list[Any]:
        kind = next((kind for kind in self.server.registry.kinds() if kind.resource == of.resource), None)
        if kind is None:
            return []
        versions = self.server.store.all(kind).at(self.server.store.number).within(f"{NAMESPACE}/")
        return [msgspec.json.decode(version.body, type=of) for version in versions]


def _is_ready(pod: Pod) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None
