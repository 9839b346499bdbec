"""StatefulSets go through the same states with our controller as with kube-controller-manager.

The test makes pods ready itself, one at a time, so that everything in between is at rest and nothing is a race. There
are no nodes: a pod that is deleted is gone at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from kedge.api.resource import Resource
from kedge.embedded.workloads.statefulsets import StatefulSets
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from real.histories import Histories, as_told
from support.recording.api import RealApi
from support.stage import PODS, Letters, Stage, embedded_stage, is_ready, masked
from support.virtual import run

SETS = untyped(Resource("apps", "v1", "StatefulSet", "statefulsets"))
REVISIONS = untyped(Resource("apps", "v1", "ControllerRevision", "controllerrevisions"))
CLAIMS = untyped(Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"))
LABEL = "controller-revision-hash"

CLAIMED = {"replicas": 2, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}

ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "one by one, up and down": ({"replicas": 3}, "ready ready ready replicas=5 ready replicas=2 ready"),
    "parallel, up and down": ({"replicas": 3, "podManagementPolicy": "Parallel"}, "ready ready replicas=5 replicas=1"),
    "a rolling update": ({"replicas": 3}, "all image=b ready ready ready"),
    "a rolling update, parallel": (
        {"replicas": 3, "podManagementPolicy": "Parallel"},
        "all image=b ready ready image=c ready ready ready",
    ),
    "a partition that is lowered": (
        {"replicas": 4},
        "all partition=2 image=b ready ready partition=1 ready partition=0 ready",
    ),
    "a partition above all": ({"replicas": 2}, "all partition=5 image=b delete=1 ready replicas=4 ready ready"),
    "a pod below the partition comes back as it was": (
        {"replicas": 3},
        "all partition=2 image=b ready delete=0 ready delete=2 ready",
    ),
    "OnDelete": (
        {"replicas": 3, "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=1 ready replicas=4 ready delete=0 delete=2 ready ready",
    ),
    "OnDelete, parallel": (
        {"replicas": 2, "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}},
        "all image=b replicas=3 ready delete=0 ready",
    ),
    "OnDelete, back to the template of before": (
        {"replicas": 3, "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=2 ready delete=1 ready image=a delete=2 ready delete=1 ready",
    ),
    "OnDelete, and somebody says that the update is over": (
        {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=0 ready delete=1 ready current=update image=c delete=1 ready current=update",
    ),
    "OnDelete, and somebody names a revision that there is not": (
        {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=1 ready current=web-nothing delete=0 ready",
    ),
    "OnDelete, scaled down in the middle, with a broken pod": (
        {"replicas": 4, "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=3 ready unready=1 replicas=2 ready replicas=3 ready",
    ),
    "OnDelete, parallel, scaled down with a broken pod": (
        {"replicas": 4, "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=3 delete=0 unready=1 replicas=2 ready ready",
    ),
    "OnDelete becomes a rolling update": (
        {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
        "all image=b delete=1 ready strategy=RollingUpdate ready",
    ),
    "somebody says that a rolling update is over": ({"replicas": 3}, "all image=b ready current=update ready ready"),
    "a broken pod of the old revision blocks": ({"replicas": 3}, "all unready=1 image=b ready ready ready ready"),
    "a broken pod of the new revision blocks the way back": (
        {"replicas": 3},
        "all image=b image=a delete=2 ready image=b ready",
    ),
    "parallel replaces a broken pod of the old revision": (
        {"replicas": 3, "podManagementPolicy": "Parallel"},
        "all unready=1 image=b ready ready ready",
    ),
    "scaling down waits for broken pods": ({"replicas": 4}, "all unready=0 replicas=2 ready unready=1 ready"),
    "scaling down takes a broken pod": ({"replicas": 3}, "all unready=2 replicas=1"),
    "scaling during an update": ({"replicas": 3}, "all image=b replicas=4 ready replicas=2 ready ready ready"),
    "failed and succeeded pods come back": ({"replicas": 2}, "all fail=0 ready succeed=1 ready"),
    "failed pods come back, parallel": (
        {"replicas": 3, "podManagementPolicy": "Parallel"},
        "all fail=0 image=b fail=2 ready ready ready",
    ),
    "ordinals that begin at five": (
        {"replicas": 3, "ordinals": {"start": 5}},
        "all partition=1 image=b ready ready replicas=2 start=6 ready ready",
    ),
    "back to a revision of before, and a short history": (
        {"replicas": 1, "revisionHistoryLimit": 1},
        "all image=b ready image=c ready image=a ready image=d ready image=c ready",
    ),
    "claims": (
        {**CLAIMED, "serviceName": "web-peers"},
        "ready ready replicas=1 replicas=2 ready image=b ready ready",
    ),
    "claims that go with their pods": (
        {**CLAIMED, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}},
        "ready ready replicas=1 replicas=2 ready delete=0 ready",
    ),
    "claims that go with the set": (
        {**CLAIMED, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"}},
        "ready ready replicas=1 keep=Retain replicas=2 ready",
    ),
    "minReadySeconds": ({"replicas": 2, "minReadySeconds": 1}, "ready ready image=b ready ready"),
    "orphans are taken back": ({"replicas": 2}, "all image=b ready orphan ready replicas=3 ready"),
    "to nothing and back": ({"replicas": 2}, "all replicas=0 image=b replicas=2 ready ready"),
}

State: TypeAlias = tuple[str, ...]

# Kubernetes may say twice that it deleted a pod, when its cache still shows the one it has deleted.
UNSTEADY = {r"(SuccessfulDelete: .*) x\d+$": r"\1"}


@pytest.fixture(scope="module")
def histories(without_nodes_api: RealApi, request: pytest.FixtureRequest) -> Histories:
    """Every row as kube-controller-manager goes through it."""
    return Histories(without_nodes_api, ROWS, played, request)


@pytest.mark.timeout(400)  # the first row waits for all of them to be played on the real one
@pytest.mark.parametrize("row", ROWS)
def test_a_stateful_set_goes_through_the_same_states_as_with_kubernetes(histories: Histories, row: str) -> None:
    spec, steps = ROWS[row]
    ours = run(played(embedded_stage([("statefulset", StatefulSets)]), spec, steps))
    for step, here, there in zip(
        ("created", *steps.split(), "told", "shapes"), as_told(ours), histories.of(row), strict=True
    ):
        assert here == there, f"after {step}"


async def played(opening: AbstractAsyncContextManager[Stage], spec: dict[str, Any], steps: str) -> list[State]:
    """The states at rest: after creation, after each step; then what was told, and what things look like."""
    async with opening as stage:
        letters = Letters()
        await stage.client.create(SETS, stateful_set(spec), stage.namespace)
        states = [await stage.at_rest(lambda: look(stage, letters))]
        for step in steps.split():
            await take(stage, step)
            states.append(await stage.at_rest(lambda: look(stage, letters)))
        told = await stage.at_rest(lambda: stage.events_of("StatefulSet", UNSTEADY))
        return [*states, tuple(told), await shapes(stage, letters)]


def stateful_set(spec: dict[str, Any]) -> Untyped:
    claims = [
        {**claim, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        for claim in spec.get("volumeClaimTemplates", ())
    ]
    return {
        "metadata": {"name": "web", "annotations": {"team": "shop"}},
        "spec": {
            "serviceName": "",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": pod_spec("a")},
            **spec,
            **({"volumeClaimTemplates": claims} if claims else {}),
        },
    }


def pod_spec(image: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": image}]}


async def take(stage: Stage, step: str) -> None:
    """`ready`: the lowest pod that is not; `all`: until none is left; `image=b`; `fail=0`; …"""
    what, _, value = step.partition("=")
    match what:
        case "ready":
            await make_ready(stage)
        case "all":
            while await make_ready(stage):
                await stage.at_rest(lambda: look(stage, Letters()))
        case "unready":
            await stage.say_of_pod(f"web-{value}", "Running", ready=False)
        case "fail":
            await stage.say_of_pod(f"web-{value}", "Failed", ready=False)
        case "succeed":
            await stage.say_of_pod(f"web-{value}", "Succeeded", ready=False)
        case "delete":
            await stage.client.delete(PODS, f"web-{value}", stage.namespace)
        case "image":
            await change(stage, {"template": {"spec": pod_spec(value)}})
        case "replicas":
            await change(stage, {"replicas": int(value)})
        case "partition":
            await change(stage, {"updateStrategy": {"rollingUpdate": {"partition": int(value)}}})
        case "strategy":
            await change(stage, {"updateStrategy": {"type": value}})
        case "current":
            await say_current_revision(stage, value)
        case "keep":
            await change(stage, {"persistentVolumeClaimRetentionPolicy": {"whenScaled": value, "whenDeleted": value}})
        case "orphan":
            await begin_again(stage)
        case "start":
            await change(stage, {"ordinals": {"start": int(value)}})
        case _:
            raise AssertionError(f"no such step: {step}")


async def say_current_revision(stage: Stage, value: str) -> None:
    """What somebody beside the controller writes to the status: `update` stands for the update revision."""
    found = await stage.client.get(SETS, "web", stage.namespace)
    name = found["status"]["updateRevision"] if value == "update" else value
    patch = MergePatch({"status": {"currentRevision": name}})
    await stage.client.patch(SETS, "web", patch, stage.namespace, subresource="status")


async def begin_again(stage: Stage) -> None:
    """The same set again, after one that left its pods and revisions behind."""
    found = await stage.client.get(SETS, "web", stage.namespace)
    await stage.client.delete(SETS, "web", stage.namespace, propagation="Orphan")

    async def is_gone() -> bool | None:
        return not await stage.all(SETS) or None

    await stage.at_rest(is_gone)
    meta = {"name": "web", "annotations": {"team": "shop"}}
    await stage.client.create(SETS, {"metadata": meta, "spec": found["spec"]}, stage.namespace)


async def make_ready(stage: Stage) -> bool:
    waiting = [pod for pod in sorted(await stage.all(PODS), key=ordinal) if not is_ready(pod)]
    if waiting:
        await stage.say_of_pod(waiting[0]["metadata"]["name"], "Running", ready=True)
    return bool(waiting)


async def change(stage: Stage, spec: dict[str, Any]) -> None:
    await stage.client.patch(SETS, "web", MergePatch({"spec": spec}), stage.namespace)


async def look(stage: Stage, letters: Letters) -> State | None:
    """The set, its pods and its revisions; None while what the set says is not yet true of its pods."""
    found = await stage.client.get(SETS, "web", stage.namespace)
    pods = sorted(await stage.all(PODS), key=ordinal)
    revisions = sorted(await stage.all(REVISIONS), key=lambda one: int(one["revision"]))
    status = found.get("status", {})
    if not is_true(found, status, pods):
        return None
    claims = [f"{one['metadata']['name']}({' '.join(owned_by(one))})" for one in await stage.all(CLAIMS)]
    numbers = [f"{letters.of(one['metadata']['name'])}{one['revision']}" for one in revisions]
    names = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "collisionCount")
    return (
        "pods " + " ".join(in_short(pod, letters) for pod in pods),
        "counts " + " ".join(f"{name}={status.get(name)}" for name in names),
        f"from {letters.of(status['currentRevision'])} to {letters.of(status['updateRevision'])}",
        "revisions " + " ".join(numbers),
        "claims " + " ".join(claims),
        f"generation {found['metadata']['generation']}",
    )


def owned_by(one: Untyped) -> list[str]:
    return [f"{owner['kind']}/{owner['name']}" for owner in one["metadata"].get("ownerReferences", ())]


def is_true(found: Untyped, status: Untyped, pods: Sequence[Untyped]) -> bool:
    ready = sum(is_ready(pod) for pod in pods)
    updated = sum(pod["metadata"]["labels"][LABEL] == status.get("updateRevision") for pod in pods)
    said = [status.get(name, 0) for name in ("observedGeneration", "replicas", "readyReplicas", "updatedReplicas")]
    everything_in_time = status.get("availableReplicas", 0) == ready
    return said == [found["metadata"]["generation"], len(pods), ready, updated] and everything_in_time


def in_short(pod: Untyped, letters: Letters) -> str:
    mark = "~" if "deletionTimestamp" in pod["metadata"] else "+" if is_ready(pod) else "-"
    return f"{ordinal(pod)}{letters.of(pod['metadata']['labels'][LABEL])}{mark}"


def ordinal(pod: Untyped) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


async def shapes(stage: Stage, letters: Letters) -> State:
    """What pods, revisions and claims look like, names of revisions masked."""
    made = [*await stage.all(PODS), *await stage.all(REVISIONS), *await stage.all(CLAIMS)]
    masks = letters.masks | {r"(controller.kubernetes.io/hash', )'\w+'": r"\1<hash>"}
    return tuple(sorted(masked(shape(one), masks) for one in made))


def shape(one: Untyped) -> str:
    meta, spec = one["metadata"], one.get("spec", {})
    owners = [{key: value for key, value in owner.items() if key != "uid"} for owner in meta.get("ownerReferences", ())]
    volumes = [volume for volume in spec.get("volumes", ()) if "persistentVolumeClaim" in volume]
    parts = [meta["name"], sorted(meta.get("labels", {}).items()), sorted(meta.get("annotations", {}).items())]
    named = {key: spec.get(key) for key in ("hostname", "subdomain")}
    return str([*parts, [sorted(owner.items()) for owner in owners], named, volumes])
