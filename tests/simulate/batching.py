"""Rollouts in batches from seeds: workloads, their users, outsiders, and an operator that has bad days.

    PYTHONPATH=tests python -m kedge.simulate simulate.batching:batching --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment, StatefulSet
from kedge.api.core import Namespace
from kedge.api.crd import crd
from kedge.api.kruise import KRUISE_KINDS, CloneSet
from kedge.api.oam.keys import RETRY
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.pods import Pod
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.crash import Crashed
from kedge.kube.errors import ApiError, Conflict, Invalid, NotFound
from kedge.kube.fencing import FencedTransport
from kedge.kube.lease import Election
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Transport
from kedge.operator_role import Operator, OperatorOptions
from kedge.simulate.faults import NONE
from kedge.simulate.process import Process
from kedge.simulate.simulation import Simulation
from simulate.batch_promises import NAMESPACE, BatchPromises
from simulate.weather import weather

SERVER, NAME = "cluster", "web"
BAD = "app:bad"
NODES = 3
LEASE_SECONDS = 30
DEFINITIONS = tuple(crd(kind) for kind in (RolloutTrait, *KRUISE_KINDS))
IN_PLACE: dict[str, type[Any]] = {"CloneSet": CloneSet, "StatefulSet": StatefulSet}
Edit = Callable[[], Awaitable[None]]


async def batching(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and every pod runs what it should."""
    is_network_fine = simulation.rng("network").random() < 0.3
    if simulation.faults == NONE and not is_network_fine:
        simulation.faults = weather(simulation.rng("weather"))
    shop = Shop(simulation)
    await shop.open()
    await asyncio.gather(shop.users(), shop.trouble(), *(shop.bad_days(name) for name in shop.operators))
    await shop.settle()


async def operator_crashing(simulation: Simulation) -> None:
    """A release, one midway and back, and the operator crashes after its nth write, n being the seed."""
    shop = Shop(simulation, Random(7), operators=("operator",), kind="Deployment")
    await shop.open()
    process = simulation.processes["operator"]
    process.crash_after_write(simulation.seed)
    began = process.writes
    await shop.release("app:2")
    await asyncio.sleep(40)
    await shop.release("app:3", revert=True)
    await asyncio.sleep(20)
    await shop.remove()
    await simulation.until("the rollout is gone", lambda: not shop.rollouts(), within=1800)
    await shop.release("app:4")
    await simulation.until("every pod runs the last release", lambda: shop.all_run("app:4"), within=1800)
    await simulation.until("the rollout has succeeded", lambda: shop.state() == "rolloutSucceed", within=600)
    simulation.counts["writes", "operator"] += process.writes - began
    for line in shop.end_state():
        simulation.counts["end", line] += 1


class Hooks:
    """Webhooks that agree, unless trouble has them fail."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.failing = 0.0

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        await asyncio.sleep(self._rng.choice([0.0, 0.01, 2.0]))
        if self._rng.random() < self.failing:
            if self._rng.random() < 0.5:
                raise OutboundFailed(f"{call}: no answer within {timeout:g} s")
            return Answer(500, b"later")
        return Answer(200, b"ok")

    async def close(self) -> None:
        """There is nothing to close."""


class Shop:
    """One workload in several revisions, and all who act on it."""

    def __init__(
        self, simulation: Simulation, rng: Random | None = None, operators: tuple[str, ...] = (), kind: str = ""
    ) -> None:
        self.simulation = simulation
        self.rng = rng = rng or simulation.rng("shop")
        drawn = rng.choice(["Deployment", "Deployment", "CloneSet", "StatefulSet"])
        self.kind = kind or drawn
        self.operators = operators or rng.choice([("operator",), ("operator",), ("operator", "operator-2")])
        self.size = rng.choice([1, 2, 4, 6, 9])
        self.strategy = rng.choice(["IncreaseFirst", "IncreaseFirst", "DecreaseFirst"])
        self.tolerated = rng.choice([0, 0, 1])
        self.has_hooks = rng.random() < 0.3
        self.has_outsider = rng.random() < 0.2 and self.kind == "Deployment"
        self.ready_after = rng.choice(["200ms", "3s", "8s"])
        self.kinds = rng.sample(["die", "crash", "never ready"], rng.randint(0, 2))
        self.number = 1
        self.image = "app:1"
        self.server = simulation.cluster(SERVER).server
        self.user = simulation.client(SERVER)
        self.hooks = Hooks(simulation.rng("hooks"))
        BatchPromises(simulation, self.operators, SERVER, has_outsider=self.has_outsider)

    async def open(self) -> None:
        await make_nodes(self.user, NODES, self.simulation.clock)
        for definition in DEFINITIONS:
            await self.user.create(CustomResourceDefinition, definition)
        self.simulation.loop.create_task(self._controllers(), name="workloads")
        await self.user.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self._create("v1", self.image, self.size)
        for name in self.operators:
            self.simulation.start(name, self._operator, exits_on=(Crashed,))
        await self.simulation.until("all pods are ready", lambda: self.all_run("app:1"), within=3600)
        self.hooks.failing = 0.3 if self.simulation.faults != NONE else 0.0

    async def _controllers(self) -> None:
        simulation = self.simulation
        async with Manager(component="kcm", clock=simulation.clock, rng=simulation.rng("kcm")) as manager:
            add_workloads(manager, await manager.connect(SERVER, self.user.transport))
            await manager.run(signals=False)

    async def _create(self, version: str, image: str, replicas: int) -> None:
        """A workload; of kinds that change in place there is one only."""
        in_place = self.kind in IN_PLACE
        labels = {"app": NAME} | ({} if in_place else {"version": version})
        annotations = {"kedge.dev/ready-after": self.ready_after}
        template = {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": image}]},
        }
        spec: dict[str, Any] = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        if self.kind == "StatefulSet":
            policy = self.rng.choice(["Parallel", "OrderedReady"])
            spec |= {"serviceName": NAME, "podManagementPolicy": policy}
        await self.user.create(
            self._of, {"metadata": {"name": self._name(version), "namespace": NAMESPACE}, "spec": spec}
        )

    @property
    def _of(self) -> type[Any]:
        return IN_PLACE.get(self.kind, Deployment)

    def _name(self, version: str) -> str:
        return NAME if self.kind in IN_PLACE else version

    def _ref(self, version: str) -> dict[str, str]:
        api_version = "apps.kruise.io/v1alpha1" if self.kind == "CloneSet" else "apps/v1"
        return {"apiVersion": api_version, "kind": self.kind, "name": self._name(version)}

    # What happens

    async def users(self, number: int = 8) -> None:
        edits: list[Edit] = [self._good, self._good, self._bad, self._pause, self._partition, self._back, self._remove]
        if self.has_outsider:
            edits.append(self._outsider)
        for _ in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 3.0), self.rng.uniform(5.0, 60.0)]))
            await self.rng.choice(edits)()

    async def release(self, image: str, *, revert: bool = False, partition: int | None = None) -> None:
        """Another revision, and a rollout to it."""
        self.image = image
        self.number += 1
        version = f"v{self.number}"
        if self.kind in IN_PLACE:
            await self._freeze(image)
        else:
            await self._create(version, image, 0)
        await self._ask(version, revert=revert, partition=partition)

    async def _freeze(self, image: str) -> None:
        """A new template that moves no pods: what whoever changes a workload in place has to write."""
        frozen: dict[str, Any] = {"paused": True}
        if self.kind == "StatefulSet":
            frozen = {"type": "RollingUpdate", "rollingUpdate": {"partition": self.size}}
        template = {"spec": {"containers": [{"name": "app", "image": image}]}}
        body = {"spec": {"template": template, "updateStrategy": frozen}}
        await self.user.patch(self._of, NAME, MergePatch(body), NAMESPACE)

    async def _ask(self, version: str, *, revert: bool, partition: int | None) -> None:
        known = [one.metadata.name for one in self._objects(self._of)]
        sources = known if self.kind in IN_PLACE else [one for one in known if one != version]
        spec = {
            "targetRef": self._ref(version),
            "sourceRef": [self._ref(one) for one in sources],
            "rolloutPlan": self._plan(revert=revert, partition=partition),
        }
        while True:
            if self.kind in IN_PLACE:
                await self.remove()  # a rollout works once: the same target again needs another one
            with suppress(Conflict, NotFound):
                if self.rollouts():
                    current = await self.user.get(RolloutTrait, NAME, NAMESPACE)
                    if current.metadata.deletion_timestamp is None:
                        change = {"spec": spec, "metadata": {"annotations": {RETRY: str(self.number)}}}
                        await self.user.patch(
                            RolloutTrait, NAME, MergePatch(change), NAMESPACE, uid=current.metadata.uid
                        )
                        return
                else:
                    await self.user.create(
                        RolloutTrait, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}
                    )
                    return
            await asyncio.sleep(1.0)

    def _plan(self, *, revert: bool, partition: int | None) -> dict[str, Any]:
        batches = self._batches()
        for one in batches:
            one["maxUnavailable"] = self.tolerated
        plan: dict[str, Any] = {
            "rolloutStrategy": self.strategy,
            "rolloutBatches": batches,
            "revertOnDelete": revert,
            "batchPartition": partition,
            "paused": False,
        }
        if self.kind not in IN_PLACE:
            plan["targetSize"] = self.size
        if self.has_hooks:
            types = ("initialize-rollout", "pre-batch-rollout", "post-batch-rollout", "finalize-rollout")
            plan["rolloutWebhooks"] = [{"type": one, "name": one, "url": "https://hooks.example.com"} for one in types]
        return plan

    def _batches(self) -> list[dict[str, Any]]:
        sizes: list[int] = []
        while (left := self.size - sum(sizes)) > 0:
            sizes.append(self.rng.randint(1, left))
        return [{"replicas": size} for size in sizes]

    async def _good(self) -> None:
        await self.release(
            f"app:{self.number + 1}", revert=self.rng.random() < 0.5, partition=self.rng.choice([None, 0])
        )

    async def _bad(self) -> None:
        await self.release(BAD, revert=self.rng.random() < 0.5)

    async def _pause(self) -> None:
        await self._edit({"paused": self.rng.random() < 0.5})

    async def _partition(self) -> None:
        await self._edit({"batchPartition": self.rng.choice([None, 1, 2])})

    async def _back(self) -> None:
        """To one of the revisions that are there."""
        if self.kind in IN_PLACE:
            await self._good()
            return
        known = [one.metadata.name for one in self._objects(Deployment)]
        await self._ask(self.rng.choice(known), revert=False, partition=None)

    async def _remove(self) -> None:
        await self.remove()

    async def remove(self) -> None:
        with suppress(NotFound):
            await self.user.delete(RolloutTrait, NAME, NAMESPACE)

    async def _outsider(self) -> None:
        """Somebody else scales a Deployment."""
        chosen = self.rng.choice(self._objects(Deployment)).metadata.name
        with suppress(ApiError):
            body = {"spec": {"replicas": self.rng.randint(0, self.size + 2)}}
            await self.user.patch(Deployment, chosen, MergePatch(body), NAMESPACE)

    async def _edit(self, plan: dict[str, Any]) -> None:
        with suppress(NotFound, Conflict, Invalid):  # a rollout that has ended may refuse it
            await self.user.patch(RolloutTrait, NAME, MergePatch({"spec": {"rolloutPlan": plan}}), NAMESPACE)

    async def trouble(self, days: int = 6) -> None:
        """Pods die, crash, or are never ready, for a while."""
        rng = self.simulation.rng("trouble")
        async with asyncio.TaskGroup() as group:
            for _ in range(days if self.kinds else 0):
                await asyncio.sleep(rng.uniform(0.0, 45.0))
                group.create_task(self._befall(rng.choice(self.kinds), rng.uniform(1.0, 60.0)))

    async def _befall(self, kind: str, seconds: float) -> None:
        pods = self.pods()
        if not pods:
            return
        chosen = self.rng.choice(pods).metadata.name
        self.simulation.trace.remark("trouble", f"{kind}: {chosen}")
        mark = {"crash": "kedge.dev/crash-loop", "never ready": "kedge.dev/never-ready"}.get(kind)
        with suppress(NotFound):
            if mark:
                await self._mark(chosen, mark, "true")
            else:
                await self.user.delete(Pod, chosen, NAMESPACE)
        await asyncio.sleep(seconds)
        if mark:
            with suppress(NotFound):
                await self._mark(chosen, mark, None)

    async def _mark(self, pod: str, mark: str, value: str | None) -> None:
        await self.user.patch(Pod, pod, MergePatch({"metadata": {"annotations": {mark: value}}}), NAMESPACE)

    async def bad_days(self, name: str, days: int = 3) -> None:
        """The operator crashes, or stands still, now and then."""
        rng, process = self.simulation.rng("bad days", name), self.simulation.processes[name]
        for _ in range(days):
            await asyncio.sleep(rng.uniform(0.0, 100.0))
            if rng.random() < 0.3:
                process.suspend()
                await asyncio.sleep(rng.uniform(0.0, 30.0))
                process.resume()
            elif rng.random() < 0.5:
                process.crash_after_write(rng.randint(1, 10))
            else:
                process.crash()
                await asyncio.sleep(rng.uniform(0.0, 10.0))
                if not process.alive:
                    process.start()

    # The operator

    async def _operator(self, process: Process) -> None:
        link = process.link(SERVER)
        if len(self.operators) == 1:
            await self._operate(process, link, None)
            return
        election = Election(
            Client(link, rng=process.rng("lease client")),
            "kedge-operator",
            NAMESPACE,
            f"{process.name}-{process.starts}",
            clock=process.clock,
            rng=process.rng("lease"),
            duration=LEASE_SECONDS,
            renew_deadline=LEASE_SECONDS * 2 / 3,
            retry=LEASE_SECONDS / 6,
        )
        await self._operate(process, FencedTransport(link, election), election)

    async def _operate(self, process: Process, transport: Transport, election: Election | None) -> None:
        options = OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,), batches=True)
        manager = Manager(component="operator", clock=process.clock, rng=process.rng("manager"), leader=election)
        async with manager:
            operator = Operator(
                await manager.connect(SERVER, transport),
                options,
                clock=process.clock,
                rng=process.rng("operator"),
                registry=CollectorRegistry(),
                outbound=self.hooks,
            )
            for controller in operator.acting:
                manager.add_controller(controller)
            await manager.run(signals=False)

    # The end of trouble

    async def settle(self) -> None:
        """Nothing goes wrong any more: a bad release stops, and the one that mends it arrives."""
        self.simulation.end_faults()
        self.hooks.failing = 0.0
        for process in self.simulation.processes.values():
            process.crash_no_more()
        for pod in self.pods():
            with suppress(NotFound):
                await self._mark(pod.metadata.name, "kedge.dev/crash-loop", None)
                await self._mark(pod.metadata.name, "kedge.dev/never-ready", None)
        if self.rng.random() < 0.4:
            await self.release(BAD)
            await asyncio.sleep(120.0)
        await self.release("app:final")
        await self.simulation.until("every pod runs the last release", lambda: self.all_run("app:final"))
        await self.simulation.until("the rollout has succeeded", lambda: self.state() == "rolloutSucceed", within=600)
        if self.rng.random() < 0.5:
            await self._taken_back()
        if len(self.operators) == 1:  # others renew their lease
            await self.simulation.rest()

    async def _taken_back(self) -> None:
        """A rollout that is deleted midway leaves everything as before it."""
        if self.kind in IN_PLACE:
            return  # what it was before is not known: whoever wrote the template overwrote it
        await self.release("app:extra", revert=True, partition=0)
        await asyncio.sleep(self.rng.uniform(0.0, 60.0))
        await self.remove()
        await self.simulation.until("the rollout is gone", lambda: not self.rollouts())
        await self.simulation.until("every pod runs the last release", lambda: self.all_run("app:final"))

    def pods(self) -> list[Pod]:
        return self._objects(Pod)

    def rollouts(self) -> list[RolloutTrait]:
        return self._objects(RolloutTrait)

    def state(self) -> str:
        found = self.rollouts()
        return str(found[0].status.rolling_state) if found else ""

    def all_run(self, image: str) -> bool:
        pods = self.pods()
        ready = [pod for pod in pods if _is_ready(pod) and (pod.spec.containers or ())[0].image == image]
        return len(ready) == len(pods) == self.size

    def end_state(self) -> list[str]:
        """Every workload, without what is different each time."""
        return [f"{one.metadata.name} {one.spec.replicas}" for one in self._objects(self._of)]

    def _objects(self, of: type[Any]) -> list[Any]:
        kind = next(kind for kind in self.server.registry.kinds() if kind.resource == of.resource)
        versions = self.server.store.all(kind).at(self.server.store.number).within(f"{NAMESPACE}/")
        return [msgspec.json.decode(version.body, type=of) for version in versions]


def _is_ready(pod: Pod) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None
