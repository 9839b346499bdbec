"""Disruption budgets on a real cluster: StatefulSets in three zones, whose pods are evicted and come back."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from controlplane.cluster import Cluster
from controlplane.pytest_plugin import SECONDS_FOR_A_REAL_TEST
from kedge.admission import budget_validation
from kedge.admission.pod_eviction import PATH, eviction_rules
from kedge.admission.server import Rule, WebhookServer
from kedge.api.admission import AdmissionRequest, ValidatingWebhookConfiguration
from kedge.api.apps import StatefulSet
from kedge.api.crds import zone_crds
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.zones import READY_TIME
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import BUDGETS, DisruptionBudgets
from kedge.controllers.zone.ready_times import ReadyTimes
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.controllers.zone.selected_zones import BudgetTurns, SelectedZones
from kedge.embedded.certificates import ServingCertificate
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import Untyped, untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import ApiError, TooManyRequests
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.plan.zoning.pods import is_running_and_ready
from support.fleets import CRDS
from support.waiting import until_so

pytestmark = [pytest.mark.real, pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST)]

DEFINITIONS = zone_crds()
PODS = untyped(Resource("", "v1", "Pod", "pods"))
CONFIGURATIONS = untyped(ValidatingWebhookConfiguration.resource)
ASKED = {
    PATH: ("", "pods/eviction"),
    budget_validation.PATH: (BUDGETS.resource.group, BUDGETS.resource.plural),
}
LABELS = {"rollout-group": "ingester"}
REPLICAS = 2


class Zones:
    """A namespace with three zones, and the rules that are asked about budgets."""

    def __init__(self, client: Client, namespace: str, rules: Mapping[str, Rule], budgets: DisruptionBudgets) -> None:
        self.client = client
        self.namespace = namespace
        self.rules = rules
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
        found = await self.rules[PATH](request)
        return "allowed" if found.status is None else f"{found.status.code} {found.status.message}"

    async def evict(self, short: str, *, dry_run: bool = False) -> None:
        name = f"ingester-zone-{short}"
        body = {"metadata": {"name": name, "namespace": self.namespace}}
        whole = {"apiVersion": "policy/v1", "kind": "Eviction", **body}
        once = self.client.without_retry()
        await once.create(PODS, whole, self.namespace, name=name, subresource="eviction", dry_run=dry_run)


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
        selected, turns = SelectedZones(here.client), BudgetTurns()
        rules = eviction_rules(here.client, budgets, selected, recent, clock, turns=turns, metrics=metrics)
        running = asyncio.create_task(manager.run(signals=False))
        try:
            zones = Zones(client, namespace, rules, budgets)
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


@asynccontextmanager
async def webhooks(zones: Zones, certificate: ServingCertificate) -> AsyncIterator[None]:
    """The rules behind HTTPS on loopback, and the server told to ask them."""
    runner = web.AppRunner(WebhookServer(zones.rules).application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.context).start()
    port = runner.addresses[0][1]
    bundle = base64.b64encode(certificate.authority).decode()
    hooks = [_webhook(zones.namespace, path, f"https://127.0.0.1:{port}{path}", bundle) for path in ASKED]
    name = f"budgets-{zones.namespace}"
    await zones.client.create(CONFIGURATIONS, {"metadata": {"name": name}, "webhooks": hooks})
    try:
        yield
    finally:
        await zones.client.delete(CONFIGURATIONS, name)
        await runner.cleanup()


def _webhook(namespace: str, path: str, url: str, bundle: str) -> Untyped:
    group, resource = ASKED[path]
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    return {
        "name": f"{path.rpartition('/')[2]}.grafana.com",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


@pytest.fixture
def certificate() -> ServingCertificate:
    return ServingCertificate(SystemClock().now())  # not in the loop: it writes a file


async def test_the_server_asks_about_evictions_and_budgets(
    full_cluster: Cluster, certificate: ServingCertificate
) -> None:
    bad = {"selector": {"matchLabels": LABELS}, "podNamePartitionRegex": "x"}
    async with zones_on(full_cluster) as zones, webhooks(zones, certificate):

        async def refused_budget() -> str:
            body = {"metadata": {"name": "bad", "namespace": zones.namespace}, "spec": bad}
            try:
                await zones.client.create(BUDGETS, body, dry_run=True)
            except ApiError as error:
                return f"{error.code} {error.message}"
            return ""

        await until_so(refused_budget)  # once the server has noticed the configuration
        assert await refused_budget() == (
            '400 admission webhook "zpdb-validation.grafana.com" denied the request: '
            "invalid value: regex is not valid, got regular expression requires at least one subexpression"
        )
        await zones.evict("b-0", dry_run=True)
        await zones.evict("a-0")
        with pytest.raises(
            TooManyRequests, match=r'"pod-eviction.grafana.com" denied the request: 1 pod .* in ingester'
        ):
            await zones.evict("b-0")
