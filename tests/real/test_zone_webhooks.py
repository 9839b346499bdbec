"""The documented manifests of Grafana's rollout-operator, applied as they are; an operator with exactly their rights.

A real kube-apiserver calls the webhooks over TLS, by the address of the Service.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import yaml

from controlplane.cluster import Cluster
from controlplane.pytest_plugin import Clusters
from real.zone_operator import (
    SECRET,
    OperatorBed,
    documented,
    documented_rights,
    only,
    stateful_set,
    zone_cluster,
)
from support.waiting import until_so

GUARDED = {"grafana.com/no-downscale": "true"}
PREPARED = {"grafana.com/prepare-downscale": "true", "grafana.com/min-time-between-zones-downscale": "12h"}
A, B = "ingester-zone-a", "ingester-zone-b"
DOCUMENTED = documented()  # here: it reads a file
RIGHTS = list(documented_rights())
SERVICE = only(DOCUMENTED, "Service")
VALIDATING = only(DOCUMENTED, "ValidatingWebhookConfiguration")
MUTATING = only(DOCUMENTED, "MutatingWebhookConfiguration")
MORE_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: more}
rules:
- {apiGroups: [apps], resources: [statefulsets], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: more}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: more}
subjects: [{kind: ServiceAccount, name: rollout-operator, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: more}
rules:
- {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [list, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: more}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: more}
subjects: [{kind: ServiceAccount, name: rollout-operator, namespace: default}]
"""
"""What the page describes and its example leaves out: to write an annotation, and to trust the second webhook."""


@pytest.fixture(scope="module")
def cluster(clusters: Clusters) -> Cluster:
    return clusters("documented-zones", zone_cluster())


@pytest.fixture
async def bed(cluster: Cluster, tmp_path: Path) -> AsyncIterator[OperatorBed]:
    bed = OperatorBed(cluster, "default", tmp_path)
    async with bed.prepared(*RIGHTS, *SERVICE), bed.service_address():
        yield bed
    await bed.kubectl("delete", "statefulsets,deployments", "--all", "--cascade=background")
    await bed.kubectl("delete", "--ignore-not-found", "role/more", "rolebinding/more", f"secret/{SECRET}")
    await bed.cluster.kubectl("delete", "--ignore-not-found", "clusterrole/more", "clusterrolebinding/more")


def denied(name: str, old: int, new: int, resource: str = "statefulsets") -> str:
    return (
        f"downscale of {resource}/{name} in default from {old} to {new} replicas is not allowed "
        "because it has the label 'grafana.com/no-downscale=true'"
    )


@pytest.mark.core
async def test_a_downscale_of_a_protected_statefulset_is_refused(bed: OperatorBed) -> None:
    await bed.apply(stateful_set("mock", 2, GUARDED), *VALIDATING)
    async with bed.operator():
        await bed.trusted("validatingwebhookconfiguration", "no-downscale-default")
        said = await bed.refused("scale", "statefulset", "mock", "--replicas=1")
        assert denied("mock", 2, 1) in said
        assert 'admission webhook "no-downscale-default.grafana.com" denied the request' in said
        await bed.scale("mock", 3)
        at_once = '{"metadata":{"labels":{"grafana.com/no-downscale":null}},"spec":{"replicas":1}}'
        assert denied("mock", 3, 1) in await bed.refused("patch", "statefulset", "mock", "--patch", at_once)
        assert denied("mock", 3, 2) in await bed.refused(
            *("scale", "statefulset", "mock", "--replicas=2", "--dry-run=server")
        )
        await bed.kubectl("label", "statefulset", "mock", "grafana.com/no-downscale-")
        await bed.scale("mock", 1)
        assert await bed.get("statefulset", "mock", "{.spec.replicas}") == "1"


async def test_the_documented_rights_suffice_for_a_rollout_and_for_webhooks_that_come_later(bed: OperatorBed) -> None:
    await bed.apply(stateful_set(A), stateful_set(B), DEPLOYMENT)
    async with bed.operator() as operator:
        await bed.apply(*VALIDATING)
        await bed.trusted("validatingwebhookconfiguration", "no-downscale-default")
        await bed.ready(A, B)
        for zone in (A, B):
            await bed.kubectl("set", "image", f"statefulset/{zone}", "app=app:2")
        await until_so(partial(_all_run, bed, "app:2"), 60)
        for zone in (A, B):
            await until_so(partial(_is_current, bed, zone), 30)

        # The page says: grant get on Deployments to have them guarded. Without it, a scale is allowed, with a warning.
        said = await bed.refused("scale", "deployment", "web", "--replicas=1", "--warnings-as-errors")
        assert "can't get deployments/web in namespace default, allowing the change" in said
        assert await bed.get("deployment", "web", "{.spec.replicas}") == "1"
        at_once = '{"spec":{"replicas":0}}'
        assert denied("web", 1, 0, "deployments") in await bed.refused("patch", "deployment", "web", "-p", at_once)
        assert (
            'rollout_operator_group_reconciles_failed_total{rollout_group="ingester"} 0.0' in await operator.metrics()
        )
    refused = bed.refusals()
    assert {re.split(r"[?:]", line)[0] for line in refused} == NOT_DOCUMENTED
    assert len(refused) < 40, "what is refused is not asked for again and again"
    lines = (await asyncio.to_thread(operator.log.read_text)).splitlines()
    assert len([line for line in lines if "level=warn" in line and "events may not be written" in line]) == 1


DEPLOYMENT = yaml.safe_load("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {grafana.com/no-downscale: "true"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "app:1"}]}}
""")
NOT_DOCUMENTED = {
    "create /api/v1/namespaces/default/events",
    "watch /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "watch /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "list /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "watch /apis/rollout-operator.grafana.com/v1/namespaces/default/zoneawarepoddisruptionbudgets",
    "get /apis/apps/v1/namespaces/default/deployments/web",
}
"""What an operator tries and goes on without."""


async def _all_run(bed: OperatorBed, image: str) -> bool:
    found = await bed.kubectl("get", "pods", "--selector", "rollout-group", "-o", "jsonpath={..containers[0].image}")
    return found.split() == [image] * 6


async def _is_current(bed: OperatorBed, zone: str) -> bool:
    found = await bed.get("statefulset", zone, "{.status.currentRevision} {.status.updateRevision}")
    return len(set(found.split())) == 1


def not_allowed(name: str, old: int, new: int, why: str) -> str:
    return f"downscale of statefulsets/{name} in default from {old} to {new} replicas is not allowed because {why}"


def endpoints(zone: str, *ordinals: int) -> list[str]:
    return [f"http://{zone}-{i}.{zone}.default.svc.cluster.local/ingester/prepare-shutdown" for i in ordinals]


@pytest.mark.core
async def test_pods_are_told_before_they_go_and_told_again_if_one_of_them_cannot(bed: OperatorBed) -> None:
    await bed.apply(stateful_set(A, labels=PREPARED), stateful_set(B, labels=PREPARED), *MUTATING)
    await bed.apply(*yaml.safe_load_all(MORE_RIGHTS))
    async with bed.operator():
        await bed.trusted("mutatingwebhookconfiguration", "prepare-downscale-default")
        await bed.ready(A, B)
        await bed.scale(A, 1, "--dry-run=server")
        assert bed.pods.asked == []

        bed.pods.failing = {f"{A}-1"}
        said = await bed.refused("scale", "statefulset", A, "--replicas=1")
        assert not_allowed(A, 3, 1, "one or more pods failed to prepare for shutdown.") in said
        assert bed.pods.told("DELETE") == endpoints(A, 1, 2)
        assert set(bed.pods.told("POST")) <= set(endpoints(A, 1, 2))
        assert await bed.get("statefulset", A, LAST_DOWNSCALE) == ""

        bed.pods.failing = set()
        bed.pods.asked.clear()
        await bed.scale(A, 1)
        assert sorted(set(bed.pods.told("POST"))) == endpoints(A, 1, 2)
        assert bed.pods.told("DELETE") == []
        at = datetime.fromisoformat(await bed.get("statefulset", A, LAST_DOWNSCALE))
        assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)
        await bed.ready(A)

        bed.pods.asked.clear()
        said = await bed.refused("scale", "statefulset", B, "--replicas=2")
        waits = f"statefulset {A} was downscaled at {at:%Y-%m-%d %H:%M:%S} +0000 UTC and is labelled to wait 12h0m0s"
        assert not_allowed(B, 3, 2, f"{waits} between zone downscales") in said
        await bed.scale(A, 3)
        assert bed.pods.asked == []


LAST_DOWNSCALE = r"{.metadata.annotations.grafana\.com/last-downscale}"


async def test_a_zone_waits_for_others_and_without_the_right_to_write_the_time_pods_are_told_again(
    bed: OperatorBed,
) -> None:
    more = [one for one in yaml.safe_load_all(MORE_RIGHTS) if one["kind"].startswith("Cluster")]
    await bed.apply(stateful_set(A, labels=PREPARED), stateful_set(B, labels=PREPARED), *MUTATING, *more)
    async with bed.operator():
        await bed.trusted("mutatingwebhookconfiguration", "prepare-downscale-default")
        await bed.ready(A, B)
        said = await bed.refused("scale", "statefulset", A, "--replicas=2")
        assert not_allowed(A, 3, 2, "adding an annotation to the statefulset failed.") in said
        assert bed.pods.told("POST") == bed.pods.told("DELETE") == endpoints(A, 2)
        await bed.kubectl("annotate", "pod", f"{B}-0", "kedge.dev/never-ready=true")
        why = f"statefulset {B} has 0 non-updated replicas and 1 non-ready replicas"

        async def is_refused() -> bool:
            return not_allowed(A, 3, 2, why) in await bed.refused("scale", "statefulset", A, "--replicas=2")

        await until_so(is_refused, 30)


async def test_a_webhook_may_be_called_by_url(bed: OperatorBed) -> None:
    await bed.apply(stateful_set("mock", 2, GUARDED))
    names = "-server-tls.self-signed-cert.dns-name=rollout-operator.default.svc,127.0.0.1"
    async with bed.operator(names) as operator:
        bed.service.ports.clear()
        text = yaml.safe_dump(VALIDATING[0])
        (webhook,) = (configuration := yaml.safe_load(text))["webhooks"]
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{operator.port}/admission/no-downscale"}
        await bed.apply(configuration)
        await bed.trusted("validatingwebhookconfiguration", "no-downscale-default")
        assert denied("mock", 2, 1) in await bed.refused("scale", "statefulset", "mock", "--replicas=1")
        await bed.scale("mock", 3)
