"""An operator does all its work with exactly the rights that `kedge install operator` prints.

The API server's audit log is the witness: nothing was refused for want of a right, and what is granted is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from controlplane.cluster import Cluster
from kedge.api.rbac import PolicyRule
from real.role_fleet import allowed, did
from real.zone_operator import SECRET, Manifest, OperatorBed, installed, only, stateful_set
from support.waiting import until_so

A, B = ZONES = ("ingester-zone-a", "ingester-zone-b")
GROUP = "rollout-operator.grafana.com"
PREPARED = {"grafana.com/prepare-downscale": "true"}
FOR_THE_PEER = {
    "get zoneawarepoddisruptionbudgets",
    "patch replicatemplates/scale",
    "get replicatemplates/status",
}
"""What Grafana's rollout-operator is given, and this one does not do."""
SELDOM = {"list zoneawarepoddisruptionbudgets"}
"""Where a server cannot stream lists."""
BUDGET = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ZoneAwarePodDisruptionBudget",
    "metadata": {"name": "ingester"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"rollout-group": "ingester"}}},
}
TEMPLATE = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ReplicaTemplate",
    "metadata": {"name": "store"},
    "spec": {"replicas": 2, "labelSelector": "name=store"},
}


def mirrored() -> Manifest:
    """A StatefulSet, in a group of its own, that takes its replicas from a ReplicaTemplate."""
    made = stateful_set("store", 1)
    made["metadata"]["labels"]["rollout-group"] = "store"
    made["metadata"]["annotations"] = {
        f"grafana.com/rollout-mirror-replicas-from-resource-{key}": value
        for key, value in {"name": "store", "kind": "ReplicaTemplate", "api-version": f"{GROUP}/v1"}.items()
    }
    return made


@pytest.fixture
async def bed(zones_cluster: Cluster, tmp_path: Path) -> AsyncIterator[OperatorBed]:
    bed = OperatorBed(zones_cluster, await zones_cluster.fresh_namespace("rights"), tmp_path)
    async with bed.prepared():
        yield bed


def granted(manifests: list[Manifest]) -> set[str]:
    """What the printed roles allow."""
    rules = [rule for one in only(manifests, "Role", "ClusterRole") for rule in one["rules"]]
    return allowed(msgspec.convert(rules, list[PolicyRule]))


async def test_nothing_is_missing_and_nothing_is_granted_in_vain(bed: OperatorBed) -> None:
    printed = await installed(bed.namespace)
    await bed.apply(*printed)
    tracker, renewing = "-use-zone-tracker=true", "-server-tls.self-signed-cert.expiration=5m"
    async with bed.service_address(), bed.operator(tracker, renewing):
        for kind, hook in (("validating", "no-downscale"), ("mutating", "prepare-downscale")):
            await bed.trusted(f"{kind}webhookconfiguration", f"{hook}-{bed.namespace}")
        await bed.apply(*(stateful_set(zone, labels=PREPARED) for zone in ZONES), BUDGET)
        await bed.ready(*ZONES)
        for image in ("app:2", "app:3", "app:2"):  # an event that is reported again is counted
            await release(bed, image)
        await mirror(bed)
        await scale_down(bed)
        await evict(bed)
        await damage_the_certificate(bed)
    assert bed.refusals() == []
    used = did(bed.asked())
    assert used - granted(printed) <= {"get "}, "besides discovery, which everybody may read"
    assert granted(printed) - used <= FOR_THE_PEER | SELDOM


async def release(bed: OperatorBed, image: str) -> None:
    for zone in ZONES:
        await bed.kubectl("set", "image", f"statefulset/{zone}", f"app={image}")
    for zone in ZONES:
        await until_so(partial(_is_current, bed, zone, image), 90)


async def _is_current(bed: OperatorBed, zone: str, image: str) -> bool:
    current, newest = (await bed.get("statefulset", zone, "{.status.currentRevision} {.status.updateRevision}")).split()
    path = "jsonpath={.items[*].spec.containers[0].image}"
    images = await bed.kubectl("get", "pods", "--selector", f"name={zone}", "--output", path)
    return current == newest and images.split() == [image] * 3


async def mirror(bed: OperatorBed) -> None:
    await bed.apply(TEMPLATE, mirrored())
    await bed.ready("store")

    async def is_told() -> bool:
        return await bed.get("replicatemplate", "store", "{.status.replicas}") == "2"

    await until_so(is_told, 60)


async def scale_down(bed: OperatorBed) -> None:
    await bed.ready(*ZONES)
    await bed.scale(A, 2)
    await bed.ready(A)
    await bed.scale(B, 2)
    await bed.ready(B)


async def evict(bed: OperatorBed) -> None:
    name = f"{A}-0"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": bed.namespace}}
    path = f"/api/v1/namespaces/{bed.namespace}/pods/{name}/eviction"
    answer = await bed.cluster.request("POST", path, body)
    assert answer.status == 201, answer.text


async def damage_the_certificate(bed: OperatorBed) -> None:
    key = await bed.get("secret", SECRET, "{.data.key}")
    await bed.kubectl("patch", "secret", SECRET, "--patch", '{"data":{"key":null}}')

    async def is_mended() -> bool:
        return await bed.get("secret", SECRET, "{.data.key}") == key

    await until_so(is_mended, 60)
