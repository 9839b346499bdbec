"""An operator rolls out in batches with exactly the rights that `kedge install operator` prints.

The API server's audit log is the witness: nothing was refused for want of a right, and what is granted is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from controlplane.cluster import Cluster
from kedge import rights
from kedge.api.apps import DaemonSet, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.pods import Pod
from kedge.api.rbac import PolicyRule
from kedge.embedded.workloads.clonesets import CloneSets
from kedge.embedded.workloads.everything import add_workloads
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from real.app_flows import (
    KRUISE,
    by_an_app_rollout,
    by_an_application_deployment,
    by_its_own_plan,
    of_a_component,
    of_a_configuration,
    of_a_web_service,
    run_only,
)
from real.batch_operator import BatchBed, Manifest, batch_bed, ref, template
from real.role_fleet import allowed, did
from support.routes import canary, http_route
from support.waiting import until, until_so

pytestmark = pytest.mark.timeout(600)
_FOLLOWED = ("applications", "applicationrevisions", "applicationconfigurations", "components")
_ROLLOUTS = ("rollouttraits", "rollouts", "approllouts", "applicationdeployments")
SELDOM = {f"list {kind}" for kind in (*_FOLLOWED, *_ROLLOUTS, "daemonsets", "clonesets")}
"""Where a server cannot stream lists, a cache begins with these."""
NOT_SHOWN = {"delete applications", "update applications/finalizers", "update components/finalizers"}
"""What the API server itself asks for when owners are named, so that no request shows it: a test below does."""
SECRET = "prometheus"
TRAFFIC = {"sourceService": "web-v1", "targetService": "web-v2"}
APPLICATIONS = (
    by_its_own_plan,
    by_an_app_rollout,
    by_an_application_deployment,
    of_a_web_service,
    of_a_component,
    of_a_configuration,
)


@pytest.fixture
async def bed(strict_cluster: Cluster, tmp_path: Path) -> AsyncIterator[BatchBed]:
    async with batch_bed(strict_cluster, tmp_path, "batch-rights") as bed, clone_set_controller(strict_cluster):
        yield bed


@asynccontextmanager
async def clone_set_controller(cluster: Cluster) -> AsyncIterator[None]:
    """What OpenKruise would bring."""
    transport = HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))
    async with Manager(rng=Random(1)) as manager:
        add_workloads(
            manager, await manager.connect("c", transport, limiter=Limiter(rate=0)), [("cloneset", CloneSets)]
        )
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running


@pytest.mark.core
async def test_nothing_is_missing_and_nothing_is_granted_in_vain(bed: BatchBed) -> None:
    roles = await bed.install("--metric-secrets", SECRET)
    async with bed.operator("operator", "--log-level", "debug"):
        await asyncio.gather(
            by_http_route_with_everything(bed), by_ingress_with_chosen_pods(bed), by_virtual_service_and_back(bed)
        )
        await asyncio.gather(*(in_place(bed, kind) for kind in (StatefulSet, DaemonSet, CloneSet)))
        await asyncio.gather(*(flow(bed) for flow in APPLICATIONS))
    assert bed.refusals() == []
    granted, used = allowed(rules_of(roles)), did(bed.asked())
    assert used - granted <= {"get "}, "besides discovery, which everybody may read"
    assert of_batches() - used - NOT_SHOWN == SELDOM
    assert ("/hook", "") in bed.outside.asked
    assert ("/api/v1/query", "Bearer secret-token") in bed.outside.asked


@pytest.mark.parametrize(
    ("right", "flow", "said"),
    [
        ("delete applications", by_an_application_deployment, "cannot set an ownerRef on a resource you can't delete"),
        ("update applications/finalizers", by_its_own_plan, "cannot set blockOwnerDeletion"),
        ("update components/finalizers", of_a_component, "cannot set blockOwnerDeletion"),
    ],
)
async def test_rights_about_owners_are_needed_where_owners_are_checked(
    bed: BatchBed, right: str, flow: Callable[[BatchBed], Awaitable[None]], said: str
) -> None:
    await bed.apply(*(without(right, role) for role in await bed.install()))
    async with bed.operator():
        going = asyncio.ensure_future(flow(bed))
        await until(lambda: any(said in one for one in bed.refusals()), within=60)
        going.cancel()


async def test_a_secret_that_was_not_named_at_installation_is_not_read_and_holds_the_rollout(bed: BatchBed) -> None:
    await bed.install()
    await metric(bed)
    async with bed.operator():
        await two_revisions(bed, "web")
        await bed.trait("web", ref("web-v2"), ref("web-v1"), numBatches=2, canaryMetric=[wanted_metric()])

        async def says_so() -> bool:
            said = f"MetricTemplate {bed.namespace}/success: Secret {SECRET}: reading it is not allowed"
            return said in await bed.status("web")

        await until_so(says_so)
    assert all("/secrets/" in one for one in bed.refusals())
    assert bed.outside.asked == []


async def test_what_is_forbidden_is_said_and_done_when_it_is_allowed(bed: BatchBed) -> None:
    role = next(one for one in await bed.install() if one["metadata"]["name"] == "rollout-operator-role")
    narrow = {**role, "rules": [rule for rule in role["rules"] if "deployments" not in rule["resources"]]}
    await bed.apply(narrow)
    async with bed.operator():
        await two_revisions(bed, "web")
        await bed.trait("web", ref("web-v2"), ref("web-v1"), numBatches=2)

        async def says_so() -> bool:
            said = await bed.status("web")
            return "the operator may not do what is needed, allow it: deployments.apps" in said

        await until_so(says_so)
        await bed.apply(role)
        await bed.until_state("web", "rolloutSucceed")


def without(right: str, role: Manifest) -> Manifest:
    """A role without one verb on one kind."""
    verb, kind = right.split()
    left = [
        {**rule, "verbs": [one for one in rule["verbs"] if one != verb]} if kind in rule.get("resources", ()) else rule
        for rule in role["rules"]
    ]
    assert left != role["rules"] or "applications" not in str(role["rules"]), f"no role allows to {right}"
    return {**role, "rules": [rule for rule in left if rule["verbs"]]}


def rules_of(roles: Sequence[Manifest]) -> list[PolicyRule]:
    return msgspec.convert([rule for one in roles for rule in one["rules"]], list[PolicyRule])


def of_batches() -> set[str]:
    """What is granted for batches; pods and StatefulSets are granted for zones already."""
    here = {f"{verb} statefulsets" for verb in ("get", "patch")} | {f"{verb} pods" for verb in ("patch", "delete")}
    return allowed((*rights.BATCHES, *rights.metric_secrets([SECRET]))) | here


# Whole rollouts


async def two_revisions(bed: BatchBed, app: str) -> None:
    await bed.deployment(f"{app}-v1", 4, "app:1", app)
    await bed.deployment(f"{app}-v2", 0, "app:2", app)
    await until_so(lambda: available(bed, f"{app}-v1", 4))


async def available(bed: BatchBed, name: str, number: int) -> bool:
    path = "jsonpath={.status.availableReplicas}"
    found = await bed.cluster.kubectl("get", "deployment", name, "--namespace", bed.namespace, "--output", path)
    return found == str(number)


async def metric(bed: BatchBed) -> None:
    await bed.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET},
            "stringData": {"token": "secret-token"},
        },
        {
            "apiVersion": "flagger.app/v1beta1",
            "kind": "MetricTemplate",
            "metadata": {"name": "success"},
            "spec": {
                "provider": {"type": "prometheus", "address": bed.outside.url, "secretRef": {"name": SECRET}},
                "query": 'rate(requests{app="{{ target }}"}[{{ interval }}])',
            },
        },
    )


def wanted_metric() -> Manifest:
    return {
        "name": "success",
        "interval": "1s",
        "metricsRange": {"min": 1},
        "templateRef": {"apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate", "name": "success"},
    }


async def by_http_route_with_everything(bed: BatchBed) -> None:
    """Webhooks, metrics, an HTTPRoute, and two autoscalers that are stopped and go on afterwards."""
    route = http_route(bed.namespace)
    route["metadata"]["annotations"] = {"kedge.dev/assume-accepted": "true"}
    await metric(bed)
    await bed.apply({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", **route}, *autoscalers())
    await two_revisions(bed, "web")
    hooks = [
        {"type": kind, "name": kind, "url": f"{bed.outside.url}/hook"}
        for kind in ("initialize-rollout", "pre-batch-rollout", "post-batch-rollout", "finalize-rollout")
    ]
    await bed.trait(
        "web",
        ref("web-v2"),
        ref("web-v1"),
        numBatches=2,
        onAutoscaler="TakeOver",
        rolloutWebhooks=hooks,
        canaryMetric=[wanted_metric()],
        traffic={"provider": "gateway-api", "routeRef": {"name": "web"}, **TRAFFIC},
    )
    await bed.until_state("web", "rolloutSucceed")


def autoscalers() -> tuple[Manifest, Manifest]:
    hpa = {"scaleTargetRef": ref("web-v1"), "minReplicas": 4, "maxReplicas": 8}
    return (
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": hpa,
        },
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": {"name": "web-v1"}},
        },
    )


async def by_ingress_with_chosen_pods(bed: BatchBed) -> None:
    """An Ingress, and pods that are named."""
    await bed.apply({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", **canary(bed.namespace)})
    await two_revisions(bed, "named")
    pods = (await bed.client.list(Pod, bed.namespace, labels={"version": "named-v1"})).items
    named = [pod.metadata.name for pod in pods[:2]]
    await bed.trait(
        "named",
        ref("named-v2"),
        ref("named-v1"),
        rolloutBatches=[{"podList": named}, {"replicas": 2}],
        traffic={"provider": "nginx", "routeRef": {"name": "web-canary"}, **TRAFFIC},
    )
    await bed.until_state("named", "rolloutSucceed")


async def by_virtual_service_and_back(bed: BatchBed) -> None:
    """A VirtualService; deleted midway, everything is taken back."""
    routes = [{"destination": {"host": host}, "weight": weight} for host, weight in (("web-v1", 100), ("web-v2", 0))]
    await bed.apply(
        {
            "apiVersion": "networking.istio.io/v1",
            "kind": "VirtualService",
            "metadata": {"name": "back"},
            "spec": {"hosts": ["shop.example.com"], "http": [{"route": routes}]},
        }
    )
    await two_revisions(bed, "back")
    await bed.trait(
        "back",
        ref("back-v2"),
        ref("back-v1"),
        numBatches=2,
        batchPartition=0,
        revertOnDelete=True,
        traffic={"provider": "istio", "routeRef": {"name": "back"}, **TRAFFIC},
    )
    await bed.until_state("back", "rollingInBatches batchReady")
    assert await weights(bed, "back") == "50 50"
    await bed.client.delete(RolloutTrait, "back", bed.namespace)
    await bed.until_gone("back")
    assert await weights(bed, "back") == "100 0"
    await until_so(lambda: available(bed, "back-v1", 4))


async def weights(bed: BatchBed, name: str) -> str:
    path = "jsonpath={.spec.http[0].route[*].weight}"
    return await bed.cluster.kubectl("get", "virtualservice", name, "--namespace", bed.namespace, "--output", path)


async def in_place(bed: BatchBed, kind: type[Any]) -> None:
    """A workload that changes in place."""
    name = kind.resource.kind.lower()
    labels = {"app": name}
    sized = {} if kind is DaemonSet else {"replicas": 2}
    strategies: dict[str, dict[str, Any]] = {
        "StatefulSet": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
        "DaemonSet": {"type": "OnDelete"},
        "CloneSet": {"partition": 2},
    }
    frozen = {"updateStrategy": strategies[kind.resource.kind]}
    set_only = {"serviceName": name, "podManagementPolicy": "Parallel"} if kind is StatefulSet else {}
    spec = {"selector": {"matchLabels": labels}, "template": template(labels, "app:1"), **sized, **set_only, **frozen}
    await bed.client.create(kind, {"metadata": {"name": name, "namespace": bed.namespace}, "spec": spec})
    await until_so(lambda: run_only(bed, name, "app:1"))
    change = {"spec": {"template": template(labels, "app:2")}}
    await bed.client.patch(kind, name, MergePatch(change), bed.namespace)
    where = ref(name, kind.resource.kind, KRUISE if kind is CloneSet else "apps/v1")
    await bed.trait(name, where, where, numBatches=2)
    await bed.until_state(name, "rolloutSucceed")
    await until_so(lambda: run_only(bed, name, "app:2"))
