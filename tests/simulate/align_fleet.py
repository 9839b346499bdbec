"""A fleet with one workload, divided over its members: its users, outsiders, and what happens to members and pods."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment, ReplicaSet, StatefulSet
from kedge.api.core import Namespace
from kedge.api.crd import crd
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import LEDGER
from kedge.api.karmada.kinds import KARMADA_KINDS
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.kruise import KRUISE_KINDS, CloneSet
from kedge.api.pods import Pod
from kedge.embedded.workloads.clonesets import CloneSets
from kedge.embedded.workloads.deployment_revisions import DESIRED
from kedge.embedded.workloads.deployments import Deployments
from kedge.embedded.workloads.everything import Parts, Workloads
from kedge.embedded.workloads.kubelet import Kubelet
from kedge.embedded.workloads.nodes import Nodes, make_nodes
from kedge.embedded.workloads.replicas import ReplicaSets
from kedge.embedded.workloads.scheduler import Scheduler
from kedge.embedded.workloads.statefulsets import StatefulSets
from kedge.kube.errors import NotFound
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.simulate.faults import NONE
from kedge.simulate.simulation import InvariantViolated, Simulation
from simulate.align_decisions import HUB
from simulate.align_exposure import BAD
from simulate.align_facts import KINDS, NAME, NAMESPACE, OWN, pod_facts
from simulate.align_promises import AlignPromises
from simulate.pod_trouble import CRASH_LOOP, NEVER_READY, befall, mark

NODES = 2
TYPES: dict[str, type[Any]] = {"Deployment": Deployment, "CloneSet": CloneSet, "StatefulSet": StatefulSet}
PARTS: Parts = (
    ("deployment", Deployments),
    ("replicaset", ReplicaSets),
    ("statefulset", StatefulSets),
    ("cloneset", CloneSets),
    ("scheduler", Scheduler),
    ("kubelet", Kubelet),
    ("node", Nodes),
)
SINCE = "2030-01-01T00:00:00Z"
PATIENCE = 900.0  # seconds until somebody looks after a StatefulSet that does not get on
Edit = Callable[[], Awaitable[None]]


class AlignFleet:
    """One workload over several members, and all who act on it."""

    def __init__(
        self, simulation: Simulation, rng: Random | None = None, kind: str = "", *, calm: bool = False
    ) -> None:
        self.simulation = simulation
        self.rng = rng = rng or simulation.rng("fleet")
        self.names = [f"member-{number}" for number in range(1, rng.choice([2, 2, 3, 3, 4]) + 1)]
        drawn = rng.choice((*KINDS, "Deployment", "CloneSet"))
        self.kind = kind or drawn
        self.is_partitioned = self.kind != "Deployment"
        self.image = "app:1"
        self.images = ["app:1"]
        self.budget = self._drawn_budget()
        self.partition = 0
        self.is_paused = False
        self.replicas = self._drawn_replicas(self.names, rng.randint(len(self.names), 8))
        self.ready_after = rng.choice(["200ms", "2s", "8s"])
        self.troubles = [] if calm or rng.random() < 0.5 else rng.sample(["die", "crash", "never ready"], 2)
        self.has_cuts = not calm and rng.random() < 0.6
        is_prompt = simulation.faults == NONE and not self.has_cuts
        self.servers = {name: simulation.cluster(name).server for name in (HUB, *self.names)}
        self.clients = {name: simulation.client(name) for name in (HUB, *self.names)}
        self.promises = AlignPromises(simulation, self.kind, self.names, is_prompt=is_prompt)

    # Beginning

    async def open(self) -> None:
        await self._furnish(HUB, [crd(kind) for kind in (*KARMADA_KINDS, *KRUISE_KINDS)])
        for name in self.names:
            self.simulation.show_owners(f"{name} → {name}")  # its agent takes over what it has created
            await make_nodes(self.clients[name], NODES, self.simulation.clock)
            await self._furnish(name, [crd(kind) for kind in KRUISE_KINDS])
            await self.hub.create(Namespace, {"metadata": {"name": f"karmada-es-{name}"}})
            await self.hub.create(Cluster, {"metadata": {"name": name}, "spec": {}})
            await self.tell_ready(name, is_ready=True)
        self.simulation.loop.create_task(self._controllers(), name="workloads")
        await self._create()

    async def _furnish(self, name: str, definitions: list[Any]) -> None:
        for definition in definitions:
            await self.clients[name].create(CustomResourceDefinition, definition)
        await self.clients[name].create(Namespace, {"metadata": {"name": NAMESPACE}})

    async def _controllers(self) -> None:
        simulation = self.simulation
        async with Manager(component="kcm", clock=simulation.clock, rng=simulation.rng("kcm")) as manager:
            workloads = Workloads(manager, PARTS)
            for name in self.names:
                transport = simulation.client(name, "kcm").transport
                workloads.join(await manager.connect(name, transport))
            await manager.run(signals=False)

    async def _create(self) -> None:
        labels = {"app": NAME}
        template = {
            "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": self.ready_after}},
            "spec": {"containers": [{"name": "app", "image": self.image}]},
        }
        spec: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        if self.kind == "StatefulSet":
            spec |= {"serviceName": NAME, "podManagementPolicy": "Parallel"}
        body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {**spec, **self._strategy()}}
        await self.hub.create(TYPES[self.kind], body)
        resource = {"apiVersion": TYPES[self.kind].resource.api_version, "kind": self.kind, "name": NAME}
        binding = {"resource": {**resource, "namespace": NAMESPACE}, "clusters": self._clusters()}
        meta = {"name": self.binding, "namespace": NAMESPACE}
        await self.hub.create(ResourceBinding, {"metadata": meta, "spec": binding})

    @property
    def hub(self) -> Any:
        return self.clients[HUB]

    @property
    def binding(self) -> str:
        return f"{NAME}-{self.kind.lower()}"

    def _clusters(self) -> list[dict[str, Any]]:
        return [{"name": name, "replicas": number} for name, number in sorted(self.replicas.items())]

    def _drawn_budget(self) -> dict[str, Any]:
        choices: list[tuple[int | str, int | str]] = [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 1), ("25%", "25%")]
        unavailable, surge = self.rng.choice(choices)
        return {"maxUnavailable": unavailable, "maxSurge": surge}

    def _drawn_replicas(self, names: list[str], total: int) -> dict[str, int]:
        found = dict.fromkeys(names, 1)
        for _ in range(total - len(names)):
            found[self.rng.choice(names)] += 1
        return found

    def _strategy(self) -> dict[str, Any]:
        if self.kind == "Deployment":
            return {"strategy": {"type": "RollingUpdate", "rollingUpdate": self.budget}, "paused": self.is_paused}
        if self.kind == "CloneSet":
            return {"updateStrategy": {**self.budget, "partition": self.partition, "paused": self.is_paused}}
        return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": self.partition}}}

    # What users do

    async def users(self, number: int = 8) -> None:
        edits: list[Edit] = [self._good, self._good, self._bad, self._back, self._rebudget, self._move, self._rescale]
        edits += [self._join_or_leave, self._override, self._pause]
        edits += [self._move_partition, self._canary] if self.is_partitioned else []
        for _ in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 3.0), self.rng.uniform(5.0, 60.0)]))
            await self.rng.choice(edits)()

    async def release(self, image: str) -> None:
        self.image = image
        self.images = [*dict.fromkeys((*self.images, image))]
        container = {"name": "app", "image": image}
        await self._edit({"template": {"spec": {"containers": [container]}}, **self._strategy()})

    async def _good(self) -> None:
        await self.release(f"app:{len(self.images) + 1}")

    async def _bad(self) -> None:
        await self.release(BAD)

    async def _back(self) -> None:
        await self.release(self.rng.choice([image for image in self.images if image != BAD]))

    async def _rebudget(self) -> None:
        self.budget = self._drawn_budget()
        await self._edit(self._strategy())

    async def _pause(self) -> None:
        if self.kind != "StatefulSet":
            self.is_paused = self.rng.random() < 0.5
            await self._edit(self._strategy())

    async def _move_partition(self) -> None:
        self.partition = self.rng.choice([0, self.rng.randint(0, sum(self.replicas.values()))])
        await self._edit(self._strategy())

    async def _canary(self) -> None:
        self.partition = self.rng.randint(1, max(1, sum(self.replicas.values())))
        await self._good()

    async def _move(self) -> None:
        """Some replicas go from one cluster to another."""
        source, target = self.rng.choice([*self.replicas]), self.rng.choice([*self.replicas])
        number = self.rng.randint(0, self.replicas[source])
        self.replicas[source] -= number
        self.replicas[target] += number
        await self.rebind()

    async def _rescale(self) -> None:
        chosen = self.rng.choice([*self.replicas])
        self.replicas[chosen] = self.rng.randint(0, 4)
        await self.rebind()

    async def _join_or_leave(self) -> None:
        """A cluster is taken out, and others have its replicas; or it comes back, and has some of another's."""
        away = [name for name in self.names if name not in self.replicas]
        if away and (len(self.replicas) == 1 or self.rng.random() < 0.6):
            joining, source = self.rng.choice(away), self.rng.choice([*self.replicas])
            number = self.rng.randint(0, self.replicas[source])
            self.replicas[source] -= number
            self.replicas[joining] = number
        elif len(self.replicas) > 1:
            leaving = self.rng.choice([*self.replicas])
            number = self.replicas.pop(leaving)
            self.replicas[self.rng.choice([*self.replicas])] += number
        await self.rebind()

    async def _override(self) -> None:
        """Pods of one cluster have something of their own, or no more."""
        name, value = self.rng.choice(self.names), self.rng.choice(["a", "b"])
        with suppress(NotFound):
            await self.hub.delete(OverridePolicy, NAME, NAMESPACE)
            return
        change = {"path": f"/spec/template/metadata/annotations/{OWN}", "operator": "add", "value": value}
        rule = {"targetCluster": {"clusterNames": [name]}, "overriders": {"plaintext": [change]}}
        body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"overrideRules": [rule]}}
        await self.hub.create(OverridePolicy, body)

    async def ledger_losses(self, times: int = 3) -> None:
        """Somebody tidies up what they do not know, or puts back the ledger of some time ago."""
        rng = self.simulation.rng("ledger losses")
        for _ in range(times):
            await asyncio.sleep(rng.uniform(0.0, 60.0))
            kept = self._ledger()
            await asyncio.sleep(rng.choice([rng.uniform(0.0, 3.0), rng.uniform(3.0, 60.0)]))
            wanted = kept if rng.random() < 0.5 else None
            self.simulation.trace.remark("somebody", f"writes another ledger: {wanted}")
            change = MergePatch({"metadata": {"annotations": {LEDGER: wanted}}})
            await self.hub.patch(ResourceBinding, self.binding, change, NAMESPACE)

    def _ledger(self) -> str | None:
        found = self.objects(HUB, ResourceBinding)
        return found[0].metadata.annotations.get(LEDGER) if found else None

    async def _edit(self, spec: dict[str, Any]) -> None:
        await self.hub.patch(TYPES[self.kind], NAME, MergePatch({"spec": spec}), NAMESPACE)

    async def rebind(self) -> None:
        change = MergePatch({"spec": {"clusters": self._clusters()}})
        await self.hub.patch(ResourceBinding, self.binding, change, NAMESPACE)

    # What happens to members and pods

    async def tell_ready(self, name: str, *, is_ready: bool) -> None:
        """What the controller of clusters says of a member."""
        ready = {"type": "Ready", "status": "True" if is_ready else "False", "reason": "Heard", "message": ""}
        status = {"status": {"conditions": [{**ready, "lastTransitionTime": SINCE}]}}
        await self.hub.patch(Cluster, name, MergePatch(status), subresource="status")

    async def cuts(self, days: int = 4) -> None:
        """Members are cut off for minutes: what they do and report comes late."""
        rng = self.simulation.rng("cuts")
        for _ in range(days if self.has_cuts else 0):
            await asyncio.sleep(rng.uniform(0.0, 60.0))
            name, seconds = rng.choice(self.names), rng.choice([rng.uniform(1.0, 20.0), rng.uniform(60.0, 240.0)])
            agent = self.simulation.processes[name]
            if rng.random() < 0.3:
                agent.suspend()
                await asyncio.sleep(min(seconds, 60.0))
                agent.resume()
                continue
            agent.cut()
            await asyncio.sleep(min(seconds, 40.0))
            if seconds > 40.0:
                await self.tell_ready(name, is_ready=False)
                await asyncio.sleep(seconds - 40.0)
                await self.tell_ready(name, is_ready=True)
            agent.mend()

    async def trouble(self, days: int = 5, *, apart: float = 45.0, lasting: float = 60.0) -> None:
        """Pods die, crash, or are never ready, for a while. Seconds, at most: between two of them, and of each."""
        rng = self.simulation.rng("trouble")
        async with asyncio.TaskGroup() as group:
            for _ in range(days if self.troubles else 0):
                await asyncio.sleep(rng.uniform(0.0, apart))
                group.create_task(self._befall(rng, rng.choice(self.troubles), rng.uniform(1.0, lasting)))

    async def _befall(self, rng: Random, kind: str, seconds: float) -> None:
        member = rng.choice(self.names)
        pods = self.pods(member)
        if not pods:
            return
        chosen = rng.choice(pods).metadata.name
        await befall(self.simulation, self.clients[member], NAMESPACE, chosen, kind, seconds)

    # The end of trouble

    async def settle(self) -> None:
        """Nothing goes wrong any more: a bad release stops, one that is kept back rests, and the last one arrives."""
        self.simulation.end_faults()
        for process in self.simulation.processes.values():
            process.crash_no_more()
        for name in self.names:
            for pod in self.pods(name):
                for annotation in (CRASH_LOOP, NEVER_READY):
                    with suppress(NotFound):
                        await mark(self.clients[name], NAMESPACE, pod.metadata.name, annotation, None)
        self.is_paused = False
        if self.rng.random() < 0.4:
            await self.release(BAD)
            await asyncio.sleep(60.0)
        self.partition = 0
        await self.release("app:calm")
        await self.arrives("app:calm")
        if self.is_partitioned:
            await self._keep_back()
        await self.release("app:final")
        await self.arrives("app:final")
        await self.simulation.rest()

    async def _keep_back(self) -> None:
        """As many pods as the partition lets through have the next template, and then nothing moves."""
        total = sum(self.replicas.values())
        self.partition = self.rng.randint(0, total)
        await self.release("app:canary")
        await self.until("the canary has its pods", lambda: self._have("app:canary") == total - self.partition)
        await self.simulation.rest()
        await self.until("the canary has its pods", lambda: self._have("app:canary") == total - self.partition, 1.0)
        self.partition = 0

    async def arrives(self, image: str) -> None:
        sentence = "every pod runs the last release"
        if self.kind == "StatefulSet" and not await self._gets_there(sentence, image):
            await self._look_after(sentence, image)
        if self.kind == "Deployment" and not await self._gets_there(sentence, image):
            await self._correct_sizes()
        await self.until(sentence, lambda: self.all_run(image))

    async def _gets_there(self, sentence: str, image: str) -> bool:
        with suppress(InvariantViolated):
            await self.simulation.until(sentence, lambda: self.all_run(image), within=PATIENCE)
        return self.all_run(image)

    async def _look_after(self, sentence: str, image: str) -> None:
        """What the pages tell people to do about pods of an older release that do not work: a StatefulSet says that
        there are some, and not which. They are deleted; if that brings back what does not work, one more may be
        unavailable, and one more, until it gets on."""
        for name, pod in self._broken(image):
            self.simulation.counts["help", "a pod that does not work is deleted by hand", self.kind] += 1
            await self.clients[name].delete(Pod, pod.metadata.name, NAMESPACE)
        for number in range(2, sum(self.replicas.values()) + 1):
            if await self._gets_there(sentence, image) or not self._broken(image):
                break
            self.simulation.counts["help", "one more pod may be unavailable", self.kind] += 1
            await self._edit({"updateStrategy": {"rollingUpdate": {"maxUnavailable": number}}})
        await self._edit({"updateStrategy": {"rollingUpdate": {"maxUnavailable": None}}})

    async def _correct_sizes(self) -> None:
        """What the pages tell people to do about a Deployment that rolls no more since it was scaled while it rolled, a
        bug of Kubernetes: its ReplicaSet has the size it is to have, and says that it is to have another."""
        for name in self.names:
            for deployment in self.objects(name, Deployment):
                for one in self.objects(name, ReplicaSet):
                    wanted = str(deployment.spec.replicas)
                    is_stale = one.metadata.annotations.get(DESIRED) != wanted == str(one.spec.replicas)
                    if one.spec.replicas and is_stale:
                        self.simulation.counts["help", "a ReplicaSet is told its size by hand", self.kind] += 1
                        change = MergePatch({"metadata": {"annotations": {DESIRED: wanted}}})
                        await self.clients[name].patch(ReplicaSet, one.metadata.name, change, NAMESPACE)

    def _broken(self, image: str) -> list[tuple[str, Pod]]:
        """The pods of an older release that do not work, and whose they are."""
        found = [(name, pod, pod_facts(msgspec.to_builtins(pod))) for name in self.names for pod in self.pods(name)]
        return [
            (name, pod)
            for name, pod, facts in found
            if facts is not None and not facts.is_available and facts.template[0] != image
        ]

    async def until(self, sentence: str, condition: Callable[[], object], within: float = 1800.0) -> None:
        """Wait until this holds. If it does not, say how things are."""
        try:
            await self.simulation.until(sentence, condition, within=within)
        except InvariantViolated as error:
            raise InvariantViolated(f"{error}; {self.promises.told()}; {self.waits()}") from None

    # What there is

    def _have(self, image: str) -> int:
        pods = [pod for name in self.names for pod in self.pods(name)]
        if any(pod.metadata.deletion_timestamp is not None for pod in pods):
            return -1
        return sum(_runs(pod, image) for pod in pods)

    def all_run(self, image: str) -> bool:
        for name in self.names:
            pods = self.pods(name)
            if len(pods) != self.replicas.get(name, 0) or not all(_runs(pod, image) for pod in pods):
                return False
        return True

    def pods(self, member: str) -> list[Pod]:
        return self.objects(member, Pod)

    def waits(self) -> str:
        found = self.objects(HUB, ResourceBinding)
        return str([one.status.conditions for one in found])

    def end_state(self) -> list[str]:
        """How many pods of what each member has."""
        counts = Counter((name, (pod.spec.containers or ())[0].image) for name in self.names for pod in self.pods(name))
        return [f"{name} {image} {number}" for (name, image), number in sorted(counts.items())]

    def objects(self, server: str, of: type[Any]) -> list[Any]:
        there = self.servers[server]
        kind = next((kind for kind in there.registry.kinds() if kind.resource == of.resource), None)
        if kind is None:
            return []
        versions = there.store.all(kind).at(there.store.number).within(f"{NAMESPACE}/")
        return [msgspec.json.decode(version.body, type=of) for version in versions]


def _runs(pod: Pod, image: str) -> bool:
    facts = pod_facts(msgspec.to_builtins(pod))
    return facts is not None and facts.is_available and facts.template[0] == image
