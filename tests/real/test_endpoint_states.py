"""EndpointSlices and Endpoints are the same with our controller as with kube-controller-manager.

The test makes pods on a node and says of them what a kubelet would. What is compared: addresses, conditions, ports,
labels and owners; not names that are made up, nor times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from kedge.api.resource import Resource
from kedge.embedded.workloads.endpoints import EndpointKeeper
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from real.histories import Histories, as_told
from support.recording.api import RealApi
from support.stage import PODS, Stage, embedded_stage, masked
from support.virtual import run

SERVICES = untyped(Resource("", "v1", "Service", "services"))
SLICES = untyped(Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"))
ENDPOINTS = untyped(Resource("", "v1", "Endpoints", "endpoints"))
NODES = untyped(Resource("", "v1", "Node", "nodes", namespaced=False))
PORTS = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "raw", "port": 81, "targetPort": 9000}]

ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "pods come and go": ({}, "pod=a ready=a pod=b ready=b unready=a delete=a gone=a"),
    "a named port that some pods lack": ({"ports": PORTS}, "pod=a ready=a bare=b ready=b gone=a"),
    "another port": ({}, "pod=a ready=a port=81 named=http"),
    "headless": ({"clusterIP": "None"}, "peer=a ready=a pod=b ready=b"),
    "headless, without ports": ({"clusterIP": "None", "ports": []}, "pod=a ready=a"),
    "not ready is good enough": ({"publishNotReadyAddresses": True}, "pod=a unready=a ready=a delete=a gone=a"),
    "labels and selector": ({}, "pod=a ready=a label=gold select=other select=web"),
    "no selector": ({"selector": None}, "pod=a ready=a"),
    "a name for something outside": ({"type": "ExternalName", "externalName": "x.test", "ports": []}, "pod=a ready=a"),
    "pods that ended": ({}, "pod=a ready=a pod=b ready=b succeed=a"),
    "deleted": ({}, "pod=a ready=a away"),
}
ADDRESSES = {"a": "10.1.0.1", "b": "10.1.0.2"}

State: TypeAlias = tuple[str, ...]


@pytest.fixture(scope="module")
def histories(without_nodes_api: RealApi, request: pytest.FixtureRequest) -> Histories:
    """Every row as kube-controller-manager goes through it."""
    return Histories(without_nodes_api, ROWS, played, request)


@pytest.mark.timeout(400)  # the first row waits for all of them to be played on the real one
@pytest.mark.parametrize("row", ROWS)
def test_what_is_behind_a_service_is_the_same_as_with_kubernetes(histories: Histories, row: str) -> None:
    spec, steps = ROWS[row]
    ours = run(played(embedded_stage([("endpoints", EndpointKeeper)]), spec, steps))
    for step, here, there in zip(("created", *steps.split()), as_told(ours), histories.of(row), strict=True):
        assert here == there, f"after {step}"


async def played(opening: AbstractAsyncContextManager[Stage], spec: dict[str, Any], steps: str) -> list[State]:
    async with opening as stage:
        node = {"name": stage.namespace, "labels": {"topology.kubernetes.io/zone": "east"}}
        await stage.client.create(NODES, {"metadata": node})
        full = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
        body = {"metadata": {"name": "web", "labels": {"tier": "front"}}, "spec": full}
        await stage.client.create(SERVICES, body, stage.namespace)
        states = [await stage.at_rest(lambda: look(stage), patience=3)]
        for step in steps.split():
            await take(stage, step)
            states.append(await stage.at_rest(lambda: look(stage), patience=3))
        await stage.client.delete(NODES, stage.namespace)
        return states


async def take(stage: Stage, step: str) -> None:
    what, _, value = step.partition("=")
    match what:
        case "pod" | "bare" | "peer":
            await make_pod(stage, value, named=what != "bare", peer=what == "peer")
        case "ready" | "unready":
            ip = ADDRESSES[value]
            await stage.say_of_pod(value, "Running", ready=what == "ready", podIP=ip, podIPs=[{"ip": ip}])
        case "succeed":
            await stage.say_of_pod(value, "Succeeded", ready=False)
        case "delete":
            await stage.client.delete(PODS, value, stage.namespace)
        case "gone":
            await stage.client.delete(PODS, value, stage.namespace, grace_seconds=0)
        case "port":
            await change(stage, {"spec": {"ports": [{"port": int(value)}]}})
        case "named":
            await change(stage, {"spec": {"ports": [{"port": 81, "name": value, "appProtocol": "http"}]}})
        case "label":
            await change(stage, {"metadata": {"labels": {"tier": None, "class": value}}})
        case "select":
            await change(stage, {"spec": {"selector": {"app": value}}})
        case "away":
            await stage.client.delete(SERVICES, "web", stage.namespace)
        case _:
            raise AssertionError(f"no such step: {step}")


async def change(stage: Stage, body: dict[str, Any]) -> None:
    await stage.client.patch(SERVICES, "web", MergePatch(body), stage.namespace)


async def make_pod(stage: Stage, name: str, *, named: bool, peer: bool) -> None:
    ports = [{"containerPort": 8080, "name": "web", "protocol": "TCP"}] if named else []
    spec = {"nodeName": stage.namespace, "containers": [{"name": "main", "image": "a", "ports": ports}]}
    spec |= {"hostname": name, "subdomain": "web"} if peer else {}
    await stage.client.create(
        PODS, {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}, stage.namespace
    )


async def look(stage: Stage) -> State | None:
    """Slices and endpoints, once they show what the pods say."""
    found = await stage.all(SLICES)
    older = await stage.all(ENDPOINTS)
    masks = {f'"{stage.namespace}"': '"<here>"', r'"uid": "[^"]+"': '"uid": ""'}
    slices = sorted(masked(_slice(one), masks) for one in found)
    return ("slices", *slices, "endpoints", *(masked(_endpoints(one), masks) for one in older))


def _slice(one: Untyped) -> str:
    endpoints = sorted(one["endpoints"] or (), key=lambda endpoint: str(endpoint["addresses"]))
    parts = [one["addressType"], endpoints, one["ports"] or [], *_meta(one), one["metadata"]["generateName"]]
    return json.dumps(parts, sort_keys=True)


def _endpoints(one: Untyped) -> str:
    subsets = sorted(one.get("subsets") or [], key=lambda subset: str(subset.get("ports", "")))
    return json.dumps([one["metadata"]["name"], subsets, *_meta(one)], sort_keys=True)


def _meta(one: Untyped) -> list[Any]:
    meta = one["metadata"]
    return [meta.get("labels", {}), meta.get("ownerReferences", []), sorted(meta.get("annotations", {}))]
