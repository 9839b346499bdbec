"""Disruption budgets on a real cluster: StatefulSets in three zones, whose pods are evicted and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from controlplane.cluster import Cluster
from controlplane.pytest_plugin import SECONDS_FOR_A_REAL_TEST
from kedge.admission.pod_eviction import PATH, Rule, eviction_rules
from kedge.api.admission import AdmissionRequest
from kedge.api.apps import StatefulSet
from kedge.api.crds import zone_crds
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.zones import READY_TIME
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import BUDGETS, DisruptionBudgets
from kedge.controllers.zone.ready_times import ReadyTimes
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.plan.zoning.pods import is_running_and_ready
from support.fleets import CRDS
from support.waiting import until_so

pytestmark = [pytest.mark.real, pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST)]

DEFINITIONS = zone_crds()
LABELS = {"rollout-group": "ingester"}
REPLICAS = 2


class Zones:
    """A namespace with three zones, and the rule that is asked about evictions."""

    def __init__(self, client: Client, namespace: str, rule: Rule, budgets: DisruptionBudgets) -> None:
        self.client = client
        self.namespace = namespace
        self._rule = rule
        self._budgets = budgets

    async def prepare(self) -> None:
        for letter in "abc":
            await self._add_zone(f"ingester-zone-{letter}")
        await until_so(self.all_are_ready)
        body = {"metadata": {"name": "ingester", "namespace": self.namespace}}
        await self.client.create(BUDGETS, body | {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}})

        async def is_known() -> bool:
            return bool(self._budgets.in_namespace(self.namespace))

        await until_so(is_known)

    async def _add_zone(self, name: str) -> None:
        labels = {"name": name, **LABELS}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
        spec = {
            "replicas": REPLICAS,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"name": name}},
            "template": template,
            "updateStrategy": {"type": "OnDelete"},
        }
        meta = {"name": name, "namespace": self.namespace, "labels": LABELS}
        await self.client.create(StatefulSet, {"metadata": meta, "spec": spec})

    async def pods(self) -> tuple[Pod, ...]:
        return (await self.client.list(Pod, self.namespace, labels=LABELS)).items

    async def all_are_ready(self) -> bool:
        pods = await self.pods()
        return len(pods) == 3 * REPLICAS and all(map(is_running_and_ready, pods))

    async def asked(self, short: str, *, dry_run: bool = False) -> str:
        request = AdmissionRequest(
            uid="u",
            name=f"ingester-zone-{short}",
            namespace=self.namespace,
            operation="CREATE",
            sub_resource="eviction",
            dry_run=dry_run,
        )
        found = await self._rule(request)
        return "allowed" if found.status is None else f"{found.status.code} {found.status.message}"

    async def evict(self, short: str) -> None:
        name = f"ingester-zone-{short}"
        body = {"metadata": {"name": name, "namespace": self.namespace}}
        path = untyped(Resource("", "v1", "Pod", "pods"))
        whole = {"apiVersion": "policy/v1", "kind": "Eviction", **body}
        await self.client.create(path, whole, self.namespace, name=name, subresource="eviction")


@asynccontextmanager
async def zones_on(cluster: Cluster) -> AsyncIterator[Zones]:
    config = await asyncio.to_thread(load, [cluster.kubeconfig])
    client = Client(HttpsTransport(config), limiter=Limiter(rate=0))
    for definition in DEFINITIONS:
        await client.apply(CRDS, definition, manager="test", force=True)
    namespace = await cluster.fresh_namespace("budgets")
    clock, metrics = SystemClock(), BudgetMetrics(CollectorRegistry())
    async with Manager(clock=clock, rng=Random(1), grace=1.0) as manager:
        here = await manager.connect("here", HttpsTransport(config))
        pods = here.cache(Pod, namespace)
        budgets = DisruptionBudgets(here, [namespace], metrics=metrics)
        recent = RecentEvictions(asyncio.get_running_loop().time)
        recent.follow(pods)
        manager.add_controller(ReadyTimes(here, [pods], budgets, clock=clock).controller)
        rules = eviction_rules(here.client, budgets, recent, clock, metrics=metrics)
        running = asyncio.create_task(manager.run(signals=False))
        try:
            zones = Zones(client, namespace, rules[PATH], budgets)
            await zones.prepare()
            yield zones
        finally:
            manager.stop()
            await running
            await client.close()


async def test_one_zone_is_disrupted_at_a_time(full_cluster: Cluster) -> None:
    async with zones_on(full_cluster) as zones:
        assert await zones.asked("b-0", dry_run=True) == "allowed"
        assert await zones.asked("a-0") == "allowed"
        assert await zones.asked("b-0") == "429 1 pod not ready in ingester-zone-a"
        before = {pod.metadata.uid for pod in await zones.pods()}
        await zones.evict("a-0")
        assert (await zones.asked("b-0")).startswith("429 1 pod ")

        async def is_back() -> bool:
            uids = {pod.metadata.uid for pod in await zones.pods()}
            return await zones.all_are_ready() and uids != before

        await until_so(is_back)

        async def may_go() -> bool:  # once the cache shows the new pod
            return await zones.asked("b-0") == "allowed"

        await until_so(may_go, 30)


async def test_pods_of_a_budget_say_since_when_they_are_ready(full_cluster: Cluster) -> None:
    async with zones_on(full_cluster) as zones:

        async def all_say_so() -> bool:
            return all(READY_TIME in pod.metadata.annotations for pod in await zones.pods())

        await until_so(all_say_so)
        before = {pod.metadata.uid for pod in await zones.pods()}
        await zones.evict("a-0")

        async def the_new_one_says_so() -> bool:
            new = [pod for pod in await zones.pods() if pod.metadata.uid not in before]
            return any(READY_TIME in pod.metadata.annotations for pod in new)

        await until_so(the_new_one_says_so)
