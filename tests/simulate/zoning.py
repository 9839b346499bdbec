"""Rollout groups from seeds: StatefulSets in zones, their users, and an operator that has bad days.

    PYTHONPATH=tests python -m kedge.simulate simulate.zoning:zoning --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from kedge.api.admission import MutatingWebhookConfiguration
from kedge.api.apps import StatefulSet
from kedge.api.core import Namespace
from kedge.api.pods import Pod
from kedge.api.zones import (
    DOWNSCALE_LEADER,
    MAX_UNAVAILABLE,
    MIN_TIME_BETWEEN_ZONES,
    PAUSED,
    PREPARE_DOWNSCALE,
    PREPARE_DOWNSCALE_PATH,
    PREPARE_DOWNSCALE_PORT,
    ROLLOUT_GROUP,
)
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.crash import Crashed
from kedge.kube.errors import ApiError, NotFound
from kedge.kube.lease import Election
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Transport
from kedge.operator_role import Operator, OperatorOptions
from kedge.simulate.faults import NONE
from kedge.simulate.process import Process
from kedge.simulate.simulation import Simulation
from simulate.bad_days import bad_days, elected
from simulate.pod_trouble import CRASH_LOOP, NEVER_READY, befall, mark
from simulate.scaling_promises import MIN_TIME, ScalingPromises
from simulate.weather import weather
from simulate.zone_promises import NAMESPACE, ZonePromises
from simulate.zone_services import PREPARE, OperatorWebhooks, PodEndpoints

SERVER, GROUP = "cluster", "ingester"
BAD = "app:bad"
NODES = 3
Edit = Callable[[], Awaitable[None]]


async def zoning(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and every pod runs what it should."""
    is_network_fine = simulation.rng("network").random() < 0.3
    if simulation.faults == NONE and not is_network_fine:
        simulation.faults = weather(simulation.rng("weather"))
    zones = Zones(simulation)
    await zones.open()
    troubles = [bad_days(simulation, name, apart=100.0) for name in zones.operators]
    await asyncio.gather(zones.users(), zones.trouble(), *troubles)
    await zones.settle()


async def quiet(simulation: Simulation) -> None:
    """One good release, one bad one that is mended, and nobody disturbs."""
    zones = Zones(simulation)
    await zones.open()
    for image in ("app:2", BAD, "app:3"):
        await zones.release(image)
        await asyncio.sleep(60)
    await zones.settle()


async def operator_crashing(simulation: Simulation) -> None:
    """The same, and the operator crashes after its nth write, n being the seed. It must end as if it had not."""
    zones = Zones(simulation, Random(7), operators=("operator",))
    await zones.open()
    process = simulation.processes["operator"]
    process.crash_after_write(simulation.seed)
    began = process.writes
    for image in ("app:2", BAD, "app:3"):
        await zones.release(image)
        await asyncio.sleep(60)
    await simulation.until("every pod runs the last release", lambda: zones.all_run("app:3"))
    await simulation.until("the status names its revision", zones.all_named, within=120)
    simulation.counts["writes", "operator"] += process.writes - began
    for line in zones.end_state():
        simulation.counts["end", line] += 1


class Zones:
    """One rollout group, and all who act on it."""

    def __init__(self, simulation: Simulation, rng: Random | None = None, operators: tuple[str, ...] = ()) -> None:
        self.simulation = simulation
        self.rng = rng = rng or simulation.rng("zones")
        self.names = [f"{GROUP}-zone-{letter}" for letter in "abc"[: rng.choice([1, 2, 3, 3])]]
        self.operators = operators or rng.choice([("operator",), ("operator",), ("operator", "operator-2")])
        self.limits = [rng.choice(["1", "1", "2", "3"]) for _ in self.names]
        self.replicas = rng.choice([1, 2, 3, 4, 5])
        self.policy = rng.choice(["Parallel", "OrderedReady"])
        self.ready_after = rng.choice(["200ms", "3s", "8s"])
        self.image = "app:1"
        self.kinds = rng.sample(["die", "crash", "never ready", "pending"], rng.randint(0, 2))
        self.follows = rng.random() < 0.3
        self.prepares = rng.random() < 0.4
        self.webhooks = OperatorWebhooks(simulation.rng("webhooks"))
        self.server = simulation.cluster(SERVER, outbound=self.webhooks).server
        self.user = simulation.client(SERVER)
        self.endpoints = PodEndpoints(simulation.rng("endpoints"), simulation.clock, self._uid_of)
        self.trouble_share = 0.0 if simulation.faults == NONE else 0.1
        ZonePromises(simulation, self.operators, SERVER)
        if self.prepares:
            ScalingPromises(simulation, self.endpoints, SERVER)

    async def open(self) -> None:
        await make_nodes(self.user, NODES, self.simulation.clock)
        self.simulation.loop.create_task(self._workloads(), name="workloads")
        await self.user.create(Namespace, {"metadata": {"name": NAMESPACE}})
        if self.prepares:
            await self.user.create(MutatingWebhookConfiguration, _prepare_downscale())
        for name in self.names:
            await self.user.create(StatefulSet, self._stateful_set(name))
        for name in self.operators:
            self.simulation.start(name, self._operator, exits_on=(Crashed,))
        await self.simulation.until("all pods are ready", lambda: self.all_run("app:1"), within=3600)
        self.endpoints.failing = self.webhooks.failing = self.trouble_share

    async def _workloads(self) -> None:
        simulation = self.simulation
        async with Manager(component="kcm", clock=simulation.clock, rng=simulation.rng("kcm")) as manager:
            add_workloads(manager, await manager.connect(SERVER, self.user.transport))
            await manager.run(signals=False)

    def _stateful_set(self, name: str) -> dict[str, Any]:
        labels = {"name": name, "zone": name}
        annotations = {"kedge.dev/ready-after": self.ready_after}
        template = {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": self.image}]},
        }
        return {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {ROLLOUT_GROUP: GROUP, MIN_TIME_BETWEEN_ZONES: f"{MIN_TIME:g}s"}
                | ({PREPARE_DOWNSCALE: "true"} if self.prepares else {}),
                "annotations": {
                    MAX_UNAVAILABLE: self.limits[self.names.index(name)],
                    PREPARE_DOWNSCALE_PATH: PREPARE.removeprefix("/"),
                    PREPARE_DOWNSCALE_PORT: "80",
                    **self._leader(name),
                },
            },
            "spec": {
                "replicas": self.replicas,
                "serviceName": name,
                "podManagementPolicy": self.policy,
                "updateStrategy": {"type": "OnDelete"},
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }

    def _leader(self, name: str) -> dict[str, str]:
        index = self.names.index(name)
        return {DOWNSCALE_LEADER: self.names[index - 1]} if self.follows and index else {}

    def _uid_of(self, pod: str) -> str:
        return next((one.metadata.uid for one in self.pods() if one.metadata.name == pod), "")

    # What happens

    async def users(self, number: int = 8) -> None:
        edits: list[Edit] = [self._good, self._good, self._bad, self._scale, self._pause, self._limit, self._one_zone]
        for _ in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 2.0), self.rng.uniform(5.0, 60.0)]))
            await self.rng.choice(edits)()

    async def release(self, image: str, names: list[str] | None = None) -> None:
        self.image = image
        container = {"name": "app", "image": image}
        for name in names or self.names:
            await self._patch(name, {"spec": {"template": {"spec": {"containers": [container]}}}})

    async def _good(self) -> None:
        await self.release(f"app:{self.rng.randint(2, 9)}")

    async def _bad(self) -> None:
        await self.release(BAD)

    async def _one_zone(self) -> None:
        await self.release(f"app:{self.rng.randint(2, 9)}", [self.rng.choice(self.names)])

    async def _scale(self) -> None:
        name = self.names[0] if self.follows else self.rng.choice(self.names)
        with suppress(ApiError):  # a webhook may refuse it, or not answer
            await self._try_patch(name, {"spec": {"replicas": self.rng.randint(0, 5)}})

    async def _pause(self) -> None:
        await self._annotate(self.rng.choice(self.names), PAUSED, self.rng.choice(["true", None]))

    async def _limit(self) -> None:
        await self._annotate(self.rng.choice(self.names), MAX_UNAVAILABLE, self.rng.choice(["1", "2", "3", "x", None]))

    async def _annotate(self, name: str, key: str, value: str | None) -> None:
        await self._patch(name, {"metadata": {"annotations": {key: value}}})

    async def _patch(self, name: str, body: dict[str, Any]) -> None:
        """Edit a StatefulSet, as often as it takes: a webhook may not answer."""
        while True:
            with suppress(ApiError):
                return await self._try_patch(name, body)
            await asyncio.sleep(1.0)

    async def _try_patch(self, name: str, body: dict[str, Any]) -> None:
        await self.user.patch(StatefulSet, name, MergePatch(body), NAMESPACE)

    async def trouble(self, days: int = 8) -> None:
        """Pods die, crash, are never ready, or find no node, for a while."""
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
        await befall(self.simulation, self.user, NAMESPACE, chosen, kind, seconds)

    # The operator

    async def _operator(self, process: Process) -> None:
        operate = partial(self._operate, process)
        if len(self.operators) == 1:
            await operate(process.link(SERVER), None)
        else:
            await elected(process, SERVER, NAMESPACE, operate)

    async def _operate(self, process: Process, transport: Transport, election: Election | None) -> None:
        options = OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,))
        made: dict[str, Any] = {"component": "operator", "clock": process.clock, "rng": process.rng("manager")}
        async with Manager(**made, leader=election) as manager, Manager(**made) as serving:
            operator = Operator(
                await manager.connect(SERVER, transport),
                options,
                clock=process.clock,
                rng=process.rng("operator"),
                registry=CollectorRegistry(),
                outbound=self.endpoints,
                to_serve=await serving.connect(SERVER, process.link(SERVER)),
            )
            for controller in operator.acting:
                manager.add_controller(controller)
            starts = process.starts
            self.webhooks.serve(process.name, operator.rules, lambda: process.alive and process.starts == starts)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(serving.run(signals=False))
                tasks.create_task(manager.run(signals=False))

    # The end of trouble

    async def settle(self) -> None:
        """Nothing goes wrong any more: a bad release stops, and the one that mends it arrives."""
        self.simulation.end_faults()
        self.endpoints.failing = self.webhooks.failing = 0.0
        for process in self.simulation.processes.values():
            process.crash_no_more()
        for name in self.names:
            await self._annotate(name, PAUSED, None)
        for pod in self.pods():
            with suppress(NotFound):
                await mark(self.user, NAMESPACE, pod.metadata.name, CRASH_LOOP, None)
                await mark(self.user, NAMESPACE, pod.metadata.name, NEVER_READY, None)
        if self.rng.random() < 0.4:
            await self.release(BAD)
            await asyncio.sleep(120.0)
        await self.release("app:final")
        await self.simulation.until("every pod runs the last release", lambda: self.all_run("app:final"))
        await self.simulation.until("the status names its revision", self.all_named, within=120)
        if self.prepares:
            await self._scale_down()
        if self.follows:
            await self.simulation.until("followers have as many replicas as their leader", self._are_equal)
        await self.simulation.until("every pod runs the last release", lambda: self.all_run("app:final"))
        if len(self.operators) == 1:  # others renew their lease
            await self.simulation.rest()

    async def _scale_down(self) -> None:
        """All zones are scaled down: the first one by its user, the others as well unless they follow."""
        for name in self.names[:1] if self.follows else self.names:
            found = await self.user.get(StatefulSet, name, NAMESPACE)
            await self._patch(name, {"spec": {"replicas": max(0, (found.spec.replicas or 0) - 1)}})

    def pods(self) -> list[Pod]:
        return self._objects(Pod)

    def all_run(self, image: str) -> bool:
        pods = [pod for pod in self.pods() if _is_ready(pod) and (pod.spec.containers or ())[0].image == image]
        return len(pods) == len(self.pods()) == sum(one.spec.replicas or 0 for one in self._objects(StatefulSet))

    def _are_equal(self) -> bool:
        return len({one.spec.replicas for one in self._objects(StatefulSet)}) == 1

    def all_named(self) -> bool:
        statuses = [one.status for one in self._objects(StatefulSet)]
        return all(one.current_revision == one.update_revision for one in statuses)

    def end_state(self) -> list[str]:
        """Every StatefulSet and pod, without what is different each time."""
        pods = [f"{pod.metadata.name} {(pod.spec.containers or ())[0].image} {pod.status.phase}" for pod in self.pods()]
        return pods + [f"{one.metadata.name} {one.status}" for one in self._objects(StatefulSet)]

    def _objects(self, of: type[Any]) -> list[Any]:
        kind = next(kind for kind in self.server.registry.kinds() if kind.resource == of.resource)
        versions = self.server.store.all(kind).at(self.server.store.number).within(f"{NAMESPACE}/")
        return [msgspec.json.decode(version.body, type=of) for version in versions]


def _prepare_downscale() -> dict[str, Any]:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["statefulsets", "statefulsets/scale"],
        "scope": "Namespaced",
    }
    hook = {
        "name": "prepare-downscale.grafana.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://operator/admission/prepare-downscale"},
        "rules": [rule],
        "sideEffects": "NoneOnDryRun",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
    return {"metadata": {"name": "prepare-downscale"}, "webhooks": [hook]}


def _is_ready(pod: Pod) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None
