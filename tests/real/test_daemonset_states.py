"""DaemonSets go through the same states with our controller as with kube-controller-manager.

The test makes the nodes, tainted so that nobody else's pods come there, and makes pods ready itself, one at a time.
Nobody schedules the pods, so that one that is deleted is gone at once. Which of several nodes comes first is left to
chance by Kubernetes: nodes have no names here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from kedge.api.resource import Resource
from kedge.embedded.workloads.daemonsets import DaemonSets
from kedge.embedded.workloads.nodes import Nodes
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from real.histories import Histories, as_told
from support.recording.api import RealApi
from support.stage import PODS, Letters, Stage, embedded_stage, is_ready, masked
from support.virtual import run

SETS = untyped(Resource("apps", "v1", "DaemonSet", "daemonsets"))
REVISIONS = untyped(Resource("apps", "v1", "ControllerRevision", "controllerrevisions"))
NODES = untyped(Resource("", "v1", "Node", "nodes", namespaced=False))
BINDINGS = untyped(Resource("", "v1", "Binding", "pods"))
OWN = {"key": "own", "effect": "NoSchedule"}
LABEL = "controller-revision-hash"

ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "one at a time": ({}, "ready ready ready image=b ready ready ready"),
    "two at a time": ({"maxUnavailable": 2}, "all image=b ready ready ready"),
    "half of them, rounded up": ({"maxUnavailable": "50%"}, "all image=b ready ready ready"),
    "with surge": ({"maxUnavailable": 0, "maxSurge": 1}, "all image=b ready ready ready"),
    "OnDelete": ({"type": "OnDelete"}, "all image=b delete ready delete ready"),
    "broken old pods go first": ({}, "ready ready image=b ready ready ready"),
    "broken old pods go first, with surge": ({"maxUnavailable": 0, "maxSurge": 1}, "ready ready image=b ready ready"),
    "nodes come and go": ({}, "all node=n4 ready bind leave=n1 reap return=n1 ready"),
    "a node that takes no more pods": ({}, "all taint=n1:NoSchedule,node=n4 ready untaint=n1"),
    "a node that tolerates none": ({}, "all bind taint=n1:NoExecute reap untaint=n1 ready"),
    "a pod that failed comes back": ({}, "all fail ready"),
    "a change of mind": ({}, "all image=b image=a ready image=b ready ready ready"),
    "minReadySeconds": ({"minReadySeconds": 1}, "all image=b ready ready ready"),
}

State: TypeAlias = tuple[str, ...]


@pytest.fixture(scope="module")
def histories(without_nodes_api: RealApi, request: pytest.FixtureRequest) -> Histories:
    """Every row as kube-controller-manager goes through it."""
    return Histories(without_nodes_api, ROWS, played, request)


@pytest.mark.timeout(400)  # the first row waits for all of them to be played on the real one
@pytest.mark.parametrize("row", ROWS)
def test_a_daemon_set_goes_through_the_same_states_as_with_kubernetes(histories: Histories, row: str) -> None:
    strategy, steps = ROWS[row]
    ours = run(played(embedded_stage([("daemonset", DaemonSets), ("node", Nodes)]), strategy, steps))
    for step, here, there in zip(
        ("created", *steps.split(), "told", "shapes"), as_told(ours), histories.of(row), strict=True
    ):
        assert here == there, f"after {step}"


async def played(opening: AbstractAsyncContextManager[Stage], strategy: dict[str, Any], steps: str) -> list[State]:
    """The states at rest: after creation, after each step; then what was told, and what things look like."""
    async with opening as stage:
        for name in ("n1", "n2", "n3"):
            await make_node(stage, name)
        letters = Letters()
        await stage.client.create(SETS, daemon_set(stage, strategy), stage.namespace)
        states = [await stage.at_rest(lambda: look(stage, letters))]
        for step in steps.split():
            await report_all(stage)
            for part in step.split(","):
                await take(stage, part)
            states.append(await stage.at_rest(lambda: look(stage, letters)))
        masks = {r"logs-\w{5}\b": "<pod>", stage.namespace: "<namespace>", r"<namespace>-n\d": "<node>"}
        told = await stage.at_rest(lambda: stage.events_of("DaemonSet", masks))
        made = await shapes(stage, letters)
        for node in await own_nodes(stage):
            await stage.client.delete(NODES, node["metadata"]["name"])
        return [*states, counted(told), made]


def counted(told: Sequence[str]) -> State:
    return tuple(f"{line} ({told.count(line)})" for line in dict.fromkeys(told))


def daemon_set(stage: Stage, strategy: dict[str, Any]) -> Untyped:
    rolling = {key: value for key, value in strategy.items() if key.startswith("max")}
    update = {"type": strategy.get("type", "RollingUpdate"), **({"rollingUpdate": rolling} if rolling else {})}
    return {
        "metadata": {"name": "logs", "annotations": {"team": "shop"}},
        "spec": {
            "minReadySeconds": strategy.get("minReadySeconds", 0),
            "selector": {"matchLabels": {"app": "logs"}},
            "updateStrategy": update,
            "template": {"metadata": {"labels": {"app": "logs"}}, "spec": pod_spec(stage, "a")},
        },
    }


def pod_spec(stage: Stage, image: str) -> dict[str, Any]:
    return {
        "containers": [{"name": "main", "image": image}],
        "nodeSelector": {"row": stage.namespace},
        "schedulerName": "nobody",
        "tolerations": [{"key": "own", "operator": "Exists"}],
    }


async def make_node(stage: Stage, name: str) -> None:
    """A node that is ready, and on which nothing keeps pods away."""
    full = f"{stage.namespace}-{name}"
    meta = {"name": full, "labels": {"row": stage.namespace}}
    await stage.client.create(NODES, {"metadata": meta, "spec": {"taints": [OWN]}})
    await report(stage, full)

    async def free() -> bool | None:
        node = await stage.client.get(NODES, full)
        return is_free(stage, node) or None

    await stage.at_rest(free)


async def report_all(stage: Stage) -> None:
    """A node that says nothing for most of a minute is given up."""
    for node in await own_nodes(stage):
        await report(stage, node["metadata"]["name"])


async def report(stage: Stage, node: str) -> None:
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "here"}
    times = dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), f"{stage.clock.now():%Y-%m-%dT%H:%M:%SZ}")
    body = {"status": {"conditions": [{**condition, **times}]}}
    await stage.client.patch(NODES, node, MergePatch(body), subresource="status")


async def take(stage: Stage, step: str) -> None:
    what, _, value = step.partition("=")
    node, _, effect = value.partition(":")
    full = f"{stage.namespace}-{node}"
    match what:
        case "ready":
            await make_ready(stage)
        case "all":
            while await make_ready(stage):
                await report_all(stage)
                await stage.at_rest(lambda: look(stage, Letters()))
        case "fail":
            await stage.say_of_pod(await some_ready(stage), "Failed", ready=False)
        case "delete":
            await stage.client.delete(PODS, await some_ready(stage, old=True), stage.namespace)
        case "image":
            body = {"spec": {"template": {"spec": pod_spec(stage, value)}}}
            await stage.client.patch(SETS, "logs", MergePatch(body), stage.namespace)
        case "bind":
            for pod in await stage.all(PODS):
                await bind(stage, pod)
        case "reap":  # as a kubelet does when the programs have ended
            for pod in await stage.all(PODS):
                if "deletionTimestamp" in pod["metadata"]:
                    await stage.client.delete(PODS, pod["metadata"]["name"], stage.namespace, grace_seconds=0)
        case "node":
            await make_node(stage, node)
        case "leave" | "return":
            row = stage.namespace if what == "return" else None
            await stage.client.patch(NODES, full, MergePatch({"metadata": {"labels": {"row": row}}}))
        case "taint" | "untaint":
            taints = [OWN, {"key": "closed", "effect": effect}] if effect else [OWN]
            await stage.client.patch(NODES, full, MergePatch({"spec": {"taints": taints}}))
        case _:
            raise AssertionError(f"no such step: {step}")


async def bind(stage: Stage, pod: Untyped) -> None:
    """What a scheduler does with a pod."""
    name = pod["metadata"]["name"]
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": target(pod)}}
    await stage.client.create(BINDINGS, body, stage.namespace, name=name, subresource="binding")


async def make_ready(stage: Stage) -> bool:
    """Make a pod ready: first one that is alone on its node, so that chance has no say."""
    pods = await stage.all(PODS)
    on = [target(pod) for pod in pods]
    waiting = sorted((on.count(target(pod)), pod["metadata"]["name"]) for pod in pods if not is_ready(pod))
    if waiting:
        await stage.say_of_pod(waiting[0][1], "Running", ready=True)
    return bool(waiting)


async def some_ready(stage: Stage, *, old: bool = False) -> str:
    """The name of a pod that is ready; an old one, if asked for, is one of the first revision."""
    first = min(await stage.all(REVISIONS), key=lambda one: int(one["revision"]))["metadata"]["labels"][LABEL]
    pods = [pod for pod in await stage.all(PODS) if is_ready(pod)]
    return str(next(p for p in pods if not old or p["metadata"]["labels"][LABEL] == first)["metadata"]["name"])


async def look(stage: Stage, letters: Letters) -> State | None:
    """The set, its pods by node and its revisions; None while what the set says is not yet true of its pods."""
    found = await stage.client.get(SETS, "logs", stage.namespace)
    pods = await stage.all(PODS)
    revisions = sorted(await stage.all(REVISIONS), key=lambda one: int(one["revision"]))
    status = found.get("status", {})
    free = [node for node in await own_nodes(stage) if is_free(stage, node)]
    if status.get("desiredNumberScheduled") != len(free) or not is_true(found, status, pods):
        return None
    numbers = [f"{letters.of(one['metadata']['labels'][LABEL])}{one['revision']}" for one in revisions]
    return (
        "nodes " + " ".join(by_node(pods, letters)),
        "counts " + " ".join(f"{name}={value}" for name, value in sorted(status.items()) if name != "conditions"),
        "revisions " + " ".join(numbers),
        f"generation {found['metadata']['generation']}",
    )


def is_true(found: Untyped, status: Untyped, pods: Sequence[Untyped]) -> bool:
    """Whether the counts are those of these pods, as far as they can be told without knowing the rules."""
    nodes = {target(pod) for pod in pods}
    scheduled = status.get("currentNumberScheduled", 0) + status.get("numberMisscheduled", 0)
    in_time = status.get("numberReady") == status.get("numberAvailable", 0)
    return (status.get("observedGeneration"), scheduled, in_time) == (found["metadata"]["generation"], len(nodes), True)


def is_free(stage: Stage, node: Untyped) -> bool:
    meant = node["metadata"].get("labels", {}).get("row") == stage.namespace
    return meant and [taint["key"] for taint in node["spec"]["taints"]] == ["own"]


async def own_nodes(stage: Stage) -> list[Untyped]:
    nodes = (await stage.client.list(NODES)).items
    return [node for node in nodes if node["metadata"]["name"].startswith(f"{stage.namespace}-")]


def by_node(pods: Sequence[Untyped], letters: Letters) -> list[str]:
    on: dict[str, list[str]] = {}
    for pod in pods:
        mark = "~" if "deletionTimestamp" in pod["metadata"] else "+" if is_ready(pod) else "-"
        on.setdefault(target(pod), []).append(f"{letters.of(pod['metadata']['labels'][LABEL])}{mark}")
    return sorted("".join(sorted(there)) for there in on.values())


def target(pod: Untyped) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


async def shapes(stage: Stage, letters: Letters) -> State:
    """What pods and revisions look like, with names masked."""
    masks = {
        **letters.masks,
        r"logs-\w{5}\b": "<pod>",
        stage.namespace: "<namespace>",
        r"<namespace>-n\d": "<node>",
    }
    made = [*await stage.all(PODS), *await stage.all(REVISIONS)]
    return tuple(sorted(masked(shape(one), masks) for one in made))


def shape(one: Untyped) -> str:
    meta, spec = one["metadata"], one.get("spec", {})
    owners = [{key: value for key, value in owner.items() if key != "uid"} for owner in meta.get("ownerReferences", ())]
    notes = {key: value for key, value in meta.get("annotations", {}).items() if not key.startswith("deprecated.")}
    # The server adds its own to pods; what belongs to daemons is what is compared.
    tolerations = [toleration for toleration in spec.get("tolerations", ()) if "tolerationSeconds" not in toleration]
    parts = [meta["name"], meta.get("labels"), notes, owners, spec.get("affinity")]
    in_order = sorted(json.dumps(toleration, sort_keys=True) for toleration in tolerations)
    return " ".join([json.dumps(parts, sort_keys=True), *in_order])
