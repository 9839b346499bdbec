"""Both stories of the proposal, to the letter, on a hub and two members of whichever kind.

What the second story says in words contradicts its manifest: a partition of 4 keeps 4 pods old, so 6 become new
(karmada.md §6.2). The manifest counts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from controllers.align.recorder import PodRecorder
from kedge.api.apps import Deployment, StatefulSet
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work
from kedge.api.kruise import CloneSet
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from support.waiting import until, until_so

NAMESPACE = "default"
OLD, NEW, BAD, FIXED = "nginx:v1", "nginx:v2", "nginx:bad", "nginx:v3"
DEPLOYMENT, CLONE_SET = re.findall(r"(?s)```yaml\n(.*?)```", (Path(__file__).parent / "stories.txt").read_text())

_COUNTS = ("replicas", "availableReplicas", "updatedReplicas", "unavailableReplicas")


class StoryBed(Struct, frozen=True):
    """A hub with two members, and how a user applies manifests to it."""

    hub: Client
    members: Mapping[str, Client]
    apply: Callable[[str], Awaitable[None]]
    quiet: float
    """Seconds in which what should not happen could."""
    within: float = 120.0
    deletes_first: bool = True
    """Whether a Deployment's pods are gone before others are created in their place: real controllers may be late."""


def before(story: str) -> str:
    """The workload before its upgrade, which the story shows; without a partition, since there is nothing to keep."""
    workload, binding = yaml.safe_load_all(story)
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = OLD
    workload["spec"].get("updateStrategy", {}).pop("partition", None)
    return yaml.safe_dump_all([workload, binding])


async def play_deployment(bed: StoryBed) -> None:
    """Story 1: at least 8 of 10 are available and there are at most 11, at every moment."""
    recorder = PodRecorder()
    async with recorder.following(bed.members, NAMESPACE):
        await bed.apply(before(DEPLOYMENT))
        await until(lambda: recorder.ready_images() == [OLD] * 10, bed.within)
        recorder.forget()
        await bed.apply(DEPLOYMENT)
        await until(lambda: recorder.ready_images() == [NEW] * 10, bed.within)
        assert recorder.fewest >= 8
        assert recorder.most_kept() <= 11
        assert recorder.most <= 11 or not bed.deletes_first

        await until_so(lambda: _is_counted(bed, Deployment, updated=10), bed.within)
        await until_so(lambda: _is_healthy(bed, "demo-deployment"), bed.within)
        await _gone(bed, "demo-deployment", recorder)
        await bed.hub.delete(Deployment, "demo", NAMESPACE)


async def play_pause(bed: StoryBed) -> None:
    """The first story, paused midway: the clusters stop with what they have begun, and go on when it is resumed."""
    workload, binding = yaml.safe_load_all(DEPLOYMENT)
    workload["spec"]["minReadySeconds"] = 3
    slowly, recorder = yaml.safe_dump_all([workload, binding]), PodRecorder()
    async with recorder.following(bed.members, NAMESPACE):
        await bed.apply(before(slowly))
        await until(lambda: recorder.ready_images() == [OLD] * 10, bed.within)
        await until_so(lambda: _is_healthy(bed, "demo-deployment"), bed.within)
        recorder.forget()
        await bed.apply(slowly)
        await until(lambda: recorder.most_of.get(NEW, 0) > 0, bed.within)
        await bed.hub.patch(Deployment, "demo", MergePatch({"spec": {"paused": True}}), NAMESPACE)
        await until_so(lambda: _is_paused(bed), bed.within)
        begun = recorder.most_of[NEW]
        await asyncio.sleep(bed.quiet)
        assert recorder.most_of[NEW] == begun < 10
        found = await bed.hub.get(ResourceBinding, "demo-deployment", NAMESPACE)
        assert [one.reason for one in found.status.conditions if one.type == "Aligned"] == ["Paused"]
        await bed.hub.patch(Deployment, "demo", MergePatch({"spec": {"paused": False}}), NAMESPACE)
        await until(lambda: recorder.ready_images() == [NEW] * 10, bed.within)
        assert recorder.fewest >= 8
        assert recorder.most_kept() <= 11
        await _gone(bed, "demo-deployment", recorder)
        await bed.hub.delete(Deployment, "demo", NAMESPACE)


async def _is_paused(bed: StoryBed) -> bool:
    """Whether the workload is paused in every cluster, and its controller there knows."""
    found = [await member.get(Deployment, "demo", NAMESPACE) for member in bed.members.values()]
    return all(one.spec.paused and one.status.observed_generation == one.metadata.generation for one in found)


async def play_clone_set(bed: StoryBed) -> None:
    """Story 2: it stops at the partition with at least 8 of 10 available, and goes on when that is lifted."""
    recorder = PodRecorder()
    async with recorder.following(bed.members, NAMESPACE):
        await bed.apply(before(CLONE_SET))
        await until(lambda: recorder.ready_images() == [OLD] * 10, bed.within)
        recorder.forget()
        await bed.apply(CLONE_SET)
        await until(lambda: recorder.ready_images() == [OLD] * 4 + [NEW] * 6, bed.within)
        await until_so(lambda: _is_healthy(bed, "demo-cloneset"), bed.within)
        await until_so(lambda: _is_counted(bed, CloneSet, updated=6), bed.within)
        await _stays(bed, CloneSet, recorder, *[OLD] * 4, *[NEW] * 6)
        assert recorder.most_of[NEW] == 6
        lifted = MergePatch({"spec": {"updateStrategy": {"partition": 0}}})
        await bed.hub.patch(CloneSet, "demo", lifted, NAMESPACE)
        await until(lambda: recorder.ready_images() == [NEW] * 10, bed.within)
        assert recorder.fewest >= 8
        assert recorder.most <= 10
        await _gone(bed, "demo-cloneset", recorder)
        await bed.hub.delete(CloneSet, "demo", NAMESPACE)


def stateful_set(image: str, partition: int = 0, replicas: tuple[int, int] = (3, 7)) -> str:
    """The second story's workload as a StatefulSet, and its binding."""
    workload, binding = yaml.safe_load_all(CLONE_SET)
    del workload["spec"]["updateStrategy"]
    workload |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    workload["spec"] |= {"serviceName": "demo", "podManagementPolicy": "Parallel"}
    workload["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = image
    binding["metadata"]["name"] = "demo-statefulset"
    for cluster, number in zip(binding["spec"]["clusters"], replicas, strict=True):
        cluster["replicas"] = number
    return yaml.safe_dump_all([workload, binding])


async def play_stateful_set(bed: StoryBed) -> None:
    """Of 10 pods one at a time: a canary that is kept back and goes on, replicas that move, and a bad release with its
    fix, in two clusters as in one."""
    recorder = PodRecorder()
    async with recorder.following(bed.members, NAMESPACE):
        await bed.apply(stateful_set(OLD))
        await until(lambda: recorder.ready_images() == [OLD] * 10, bed.within)
        recorder.forget()
        await bed.apply(stateful_set(NEW, partition=4))
        await until(lambda: recorder.ready_images() == [OLD] * 4 + [NEW] * 6, bed.within)
        await until_so(lambda: _is_healthy(bed, "demo-statefulset"), bed.within)
        await until_so(lambda: _is_counted(bed, StatefulSet, updated=6), bed.within)
        await _stays(bed, StatefulSet, recorder, *[OLD] * 4, *[NEW] * 6)
        assert recorder.most_of[NEW] == 6
        await bed.apply(stateful_set(NEW))
        await until(lambda: recorder.ready_images() == [NEW] * 10, bed.within)
        await bed.apply(stateful_set(NEW, replicas=(5, 5)))
        await until(lambda: recorder.ready_by_cluster() == {"cluster-1": 5, "cluster-2": 5}, bed.within)
        await bed.apply(stateful_set(BAD, replicas=(5, 5)))
        await until(lambda: recorder.most_of.get(BAD) == 1, bed.within)
        await until(lambda: recorder.ready_images() == [NEW] * 9, bed.within)
        await asyncio.sleep(bed.quiet)
        assert recorder.ready_images() == [NEW] * 9
        await bed.apply(stateful_set(FIXED, replicas=(5, 5)))
        await until(lambda: recorder.ready_images() == [FIXED] * 10, bed.within)
        assert recorder.most_of[BAD] == 1
        assert recorder.fewest == 9
        assert recorder.most == 10
        await _gone(bed, "demo-statefulset", recorder)
        await bed.hub.delete(StatefulSet, "demo", NAMESPACE)


async def _stays(bed: StoryBed, kind: type[Any], recorder: PodRecorder, *images: str) -> None:
    """With nothing to do nothing is written, and nothing moves."""
    before = await _versions(bed, kind)
    await asyncio.sleep(bed.quiet)
    assert await _versions(bed, kind) == before
    assert recorder.ready_images() == list(images)


async def _versions(bed: StoryBed, kind: type[Any]) -> list[str]:
    """Of the Works, and of the workload in each cluster."""
    works = (await bed.hub.list(Work)).items
    found = [await member.get(kind, "demo", NAMESPACE) for member in bed.members.values()]
    return [one.metadata.resource_version for one in (*works, *found)]


async def _is_counted(bed: StoryBed, kind: type[Any], *, updated: int) -> bool:
    """Whether the resource itself shows the pods of all clusters, so that `kubectl rollout status` ends."""
    found = await bed.hub.get(untyped(kind.resource), "demo", NAMESPACE)
    counts = {name: found["status"].get(name) or 0 for name in _COUNTS}
    is_seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
    return is_seen and counts == dict(zip(_COUNTS, (10, 10, updated, 0), strict=True))


async def _is_healthy(bed: StoryBed, binding: str) -> bool:
    """Whether the binding that the user wrote shows what Karmada's shows: both clusters are healthy."""
    own = await bed.hub.get(ProposedBinding, binding, NAMESPACE)
    found = await bed.hub.get(ResourceBinding, binding, NAMESPACE)
    health = [(one.cluster_name, one.health) for one in own.status.aggregated_status]
    return own.status == found.status and health == [("cluster-1", "Healthy"), ("cluster-2", "Healthy")]


async def _gone(bed: StoryBed, binding: str, recorder: PodRecorder) -> None:
    """A binding that is deleted takes its pods along."""
    await bed.hub.delete(ProposedBinding, binding, NAMESPACE)
    await until(lambda: not recorder.active, bed.within)
