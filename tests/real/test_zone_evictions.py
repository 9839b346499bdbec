"""Evictions on a real cluster, by the decision table of zone-aware disruption budgets; and budgets that are no good.

With what `kedge install operator` prints, except the Deployment: the operator is a process here. Most rows are asked as
dry runs, which decide in the same way and change nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.cluster import Cluster
from real.zone_operator import Manifest, OperatorBed, installed, stateful_set
from support.waiting import until_so

A, B, C = ZONES = ("ingester-zone-a", "ingester-zone-b", "ingester-zone-c")
SELECTOR = {"matchLabels": {"rollout-group": "ingester"}}
BY_PARTITION: Manifest = {"maxUnavailable": 1, "podNamePartitionRegex": "ingester-zone-[a-c]-([0-9]+)"}


def budget(name: str = "ingester", selector: Any = SELECTOR, **spec: Any) -> Manifest:
    return {
        "apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": selector, **spec},
    }


@pytest.fixture
async def bed(zones_cluster: Cluster, tmp_path: Path) -> AsyncIterator[OperatorBed]:
    """A namespace with an operator, whose webhooks are called."""
    bed = OperatorBed(zones_cluster, await zones_cluster.fresh_namespace("evictions"), tmp_path)
    async with bed.prepared(*await installed(bed.namespace)), bed.service_address(), bed.operator():
        names = [f"{hook}-{bed.namespace}" for hook in ("no-downscale", "pod-eviction", "zpdb-validation")]
        await bed.trusted("validatingwebhookconfiguration", *names)
        await bed.trusted("mutatingwebhookconfiguration", f"prepare-downscale-{bed.namespace}")
        yield bed


async def zones(bed: OperatorBed) -> Evictions:
    """Three zones of three pods each. Those of the last one take so long to be ready that nobody can miss it."""
    slow = stateful_set(C)
    slow["spec"]["template"]["metadata"]["annotations"] = {"kedge.dev/ready-after": "8s"}
    await bed.apply(stateful_set(A), stateful_set(B), slow)
    await bed.ready(*ZONES)
    return Evictions(bed)


class Evictions:
    """Asks for evictions in a namespace."""

    def __init__(self, bed: OperatorBed) -> None:
        self._bed = bed
        self._prefix = f'admission webhook "pod-eviction-{bed.namespace}.grafana.com" denied the request: '

    async def ask(self, pod: str, *, dry_run: bool = True) -> str:
        """The code of the answer, and what the webhook had to say."""
        namespace = self._bed.namespace
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction{'?dryRun=All' if dry_run else ''}"
        answer = await self._bed.cluster.request("POST", path, body)
        message = "" if answer.status == 201 else answer.json()["message"]
        return f"{answer.status} {message.removeprefix(self._prefix)}".strip()

    async def says(self, pod: str, expected: str) -> None:
        """Wait until this is the answer: the operator and the API server may take a moment to notice a change."""
        said = ""

        async def is_said() -> bool:
            nonlocal said
            said = await self.ask(pod)
            return said == expected

        try:
            await until_so(is_said, 40)
        except TimeoutError:
            assert said == expected

    async def not_ready(self, pod: str) -> None:
        await self._bed.kubectl("annotate", "pod", pod, "kedge.dev/never-ready=true")

    async def heal(self, pod: str) -> None:
        await self._bed.kubectl("delete", "pod", pod)
        await self._bed.ready(*ZONES)


LONELY = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {rollout-group: ingester}}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: IMAGE}]}
"""


async def test_evictions_of_one_zone_at_a_time(bed: OperatorBed) -> None:
    evictions = await zones(bed)
    assert await evictions.ask(f"{A}-0") == "201", "no budget has a say"
    await bed.apply(budget(maxUnavailable=0))
    await evictions.says(f"{A}-0", "403 max unavailable = 0")
    await bed.apply(budget(maxUnavailable=1))
    await evictions.says(f"{A}-0", "201")
    assert await evictions.ask("none") == '400 pods "none" not found'

    await evictions.not_ready(f"{A}-2")
    await evictions.says(f"{A}-0", f"429 1 pod not ready in {A}")
    await evictions.says(f"{B}-0", f"429 1 pod not ready in {A}")
    await evictions.says(f"{A}-2", "201")
    await bed.apply(budget(maxUnavailable=2))
    await evictions.says(f"{A}-0", "201")
    await evictions.says(f"{B}-0", f"429 1 pod not ready in {A}")
    await evictions.heal(f"{A}-2")

    await bed.apply(budget("another", maxUnavailable=1))
    await evictions.says(f"{A}-0", "400 multiple zoned pod disruption budgets found for pod")
    await bed.kubectl("delete", "zpdb", "another")
    await bed.apply(budget(maxUnavailable=1))
    await bed.cluster.kubectl("apply", "-n", bed.namespace, "-f", "-", input=_pod("lonely", "app:1"))
    await bed.kubectl("wait", "--for=condition=Ready", "pod/lonely", "--timeout=30s")
    await evictions.says("lonely", "500 unable to find a StatefulSet pod owner")
    await bed.cluster.kubectl("apply", "-n", bed.namespace, "-f", "-", input=_pod("pending", "app:bad"))
    await evictions.says("pending", "201")

    assert await evictions.ask(f"{C}-1", dry_run=False) == "201"
    assert (await evictions.ask(f"{B}-0")).startswith("429 1 pod ")
    await evictions.says(f"{B}-0", "201")


async def test_evictions_of_one_partition_at_a_time(bed: OperatorBed) -> None:
    evictions = await zones(bed)
    await bed.apply(budget(selector={"matchLabels": {"name": A}}, maxUnavailable=1))
    await evictions.says(f"{A}-0", "400 minimum number of StatefulSets not found")
    await bed.apply(budget(maxUnavailable=1, podNamePartitionRegex="another-([0-9]+)"))
    await evictions.says(f"{A}-0", "400 failed to extract partition from pod Name regular expression")
    await bed.apply(budget(**BY_PARTITION))
    await evictions.says(f"{A}-0", "201")
    await evictions.not_ready(f"{B}-0")
    await evictions.says(f"{A}-0", "429 1 pod not ready in partition 0")
    await evictions.says(f"{A}-1", "201")
    await evictions.says(f"{B}-0", "201")
    await evictions.heal(f"{B}-0")

    assert await evictions.ask(f"{C}-1", dry_run=False) == "201"
    assert (await evictions.ask(f"{B}-1")).startswith("429 1 pod ")
    assert await evictions.ask(f"{B}-2") == "201"
    await evictions.says(f"{B}-1", "201")

    await bed.scale(A, 2)
    await bed.ready(A)
    await evictions.says(f"{B}-2", "429 1 pod unknown in partition 2")


def _pod(name: str, image: str) -> str:
    return LONELY.replace("NAME", name).replace("IMAGE", image)


INVALID: dict[str, Manifest] = {
    "invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set": {
        "maxUnavailable": 1,
        "maxUnavailablePercentage": 1,
    },
    "invalid value: regex is not valid, got regular expression requires at least one subexpression": {
        "podNamePartitionRegex": "a-[0-9]+"
    },
    (
        "invalid value: regex is not valid, got regular expression has multiple subexpressions and requires "
        "podNameRegexGroup to be set"
    ): {"podNamePartitionRegex": "(a|b)-([0-9]+)"},
    "invalid value: regex is not valid, got regular expression subexpression index out of range": {
        "podNamePartitionRegex": "a-([0-9]+)",
        "podNameRegexGroup": 2,
    },
    "invalid value: max unavailable percentage can not be used with partition awareness": {
        "maxUnavailablePercentage": 10,
        "podNamePartitionRegex": "a-([0-9]+)",
    },
    "invalid value: crossZoneEvictionDelay requires podNamePartitionRegex to be set": {"crossZoneEvictionDelay": "1m"},
    "invalid value: crossZoneEvictionDelay must be >= 0, got -5m0s": {
        "crossZoneEvictionDelay": "-5m",
        "podNamePartitionRegex": "a-([0-9]+)",
    },
}


async def test_budgets_that_are_no_good_are_refused(bed: OperatorBed) -> None:
    path = f"/apis/rollout-operator.grafana.com/v1/namespaces/{bed.namespace}/zoneawarepoddisruptionbudgets"
    prefix = f'admission webhook "zpdb-validation-{bed.namespace}.grafana.com" denied the request: '
    for message, spec in INVALID.items():
        answer = await bed.cluster.request("POST", path, budget(**spec))
        assert (answer.status, answer.json()["message"]) == (400, prefix + message)
    await bed.apply(budget(maxUnavailable=1))
    worse = budget(maxUnavailable=1, podNamePartitionRegex="(")
    answer = await bed.cluster.request("PATCH", f"{path}/ingester", worse, content_type="application/merge-patch+json")
    assert answer.status == 400
    assert answer.json()["message"].startswith(f"{prefix}invalid value: regex is not valid, got ")
