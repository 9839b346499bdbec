"""Members of a hub of Karmada's kinds: whether they are heard, what bindings say then, and how they leave."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from controllers.align.recorder import PodRecorder
from kedge.api.apps import Deployment
from kedge.api.condition import find_condition
from kedge.api.core import Event, Namespace
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.policies import PropagationPolicy
from kedge.api.karmada.works import Work
from kedge.api.rbac import Subject
from kedge.cli.karmada_join import join_karmada
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.virtual import run
from support.waiting import until, until_so

TWO = ("cluster-1", "cluster-2")
STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}}
NEW = {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}


async def divided(here: AlignBed, replicas: int = 10) -> None:
    """A policy that divides a Deployment equally, and the Deployment."""
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    placement = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
    spec = {"resourceSelectors": [selector], "placement": placement}
    await here.hub.create(PropagationPolicy, {"metadata": {"name": "all", "namespace": SHOP}, "spec": spec})
    labels = {"app": "demo"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "strategy": STRATEGY}
    await here.hub.create(Deployment, {"metadata": {"name": "demo", "namespace": SHOP}, "spec": body})


async def aligned(here: AlignBed) -> tuple[str, str]:
    """What the binding says of its alignment: the reason and the message."""
    found = await here.hub.get(ResourceBinding, "demo-deployment", SHOP)
    condition = find_condition(found.status.conditions, "Aligned")
    return ("", "") if condition is None else (condition.reason, condition.message)


async def until_reason(here: AlignBed, reason: str, words: str = "") -> None:
    async def holds() -> bool:
        found, message = await aligned(here)
        return found == reason and words in message

    await until_so(holds, 300)


async def is_gone(here: AlignBed, kind: Any, name: str) -> bool:
    try:
        await here.hub.get(kind, name)
    except NotFound:
        return True
    return False


def test_a_cluster_that_is_not_heard_keeps_what_it_holds_and_the_binding_says_so() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            recorder = PodRecorder()
            await divided(here)
            async with recorder.following(here.members, SHOP):
                await until(lambda: recorder.ready_images() == ["app:1"] * 10, 600)
                await until_reason(here, "Aligned")
                here.silence("cluster-1")

                async def is_unknown() -> bool:
                    found = find_condition((await here.hub.get(Cluster, "cluster-1")).status.conditions, "Ready")
                    return found is not None and found.status == "Unknown"

                await until_so(is_unknown, 60)
                await here.edit(Deployment, NEW)
                await until(lambda: recorder.ready_images() == ["app:1"] * 5 + ["app:2"] * 5, 600)
                await until_reason(here, "Unreachable", "cluster-1: it is not heard from")
                assert recorder.fewest <= 10
            events = [one for one in (await here.hub.list(Event, SHOP)).items if one.reason == "RolloutWaits"]
            unheard = [one for one in events if "cluster-1: it is not heard from" in one.message]
            assert len(unheard) == 1
            assert unheard[0].count in (None, 1)

    run(body())


def test_a_binding_whose_cluster_is_suspended_says_so_and_goes_on_when_it_is_not() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            recorder = PodRecorder()
            await divided(here)
            async with recorder.following(here.members, SHOP):
                await until(lambda: recorder.ready_images() == ["app:1"] * 10, 600)
                held = {"suspension": {"dispatchingOnClusters": {"clusterNames": ["cluster-1"]}}}
                await here.hub.patch(PropagationPolicy, "all", MergePatch({"spec": held}), SHOP)

                async def is_held() -> bool:
                    (work,) = (await here.hub.list(Work, "karmada-es-cluster-1")).items
                    return bool(work.spec.suspend_dispatching)

                await until_so(is_held)
                await here.edit(Deployment, NEW)
                await until_reason(here, "Suspended", "cluster-1: its dispatching is suspended")
                await until(lambda: recorder.ready_images() == ["app:1"] * 5 + ["app:2"] * 5, 600)
                await here.hub.patch(PropagationPolicy, "all", MergePatch({"spec": {"suspension": None}}), SHOP)
                await until(lambda: recorder.ready_images() == ["app:2"] * 10, 600)
                await until_reason(here, "Aligned")

    run(body())


def test_the_replicas_of_a_cluster_that_leaves_run_elsewhere_before_it_is_gone() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            recorder = PodRecorder()
            await divided(here)
            async with recorder.following(here.members, SHOP):
                await until(lambda: recorder.ready_images() == ["app:1"] * 10, 600)
                recorder.forget()
                await here.hub.delete(Cluster, "cluster-2")
                await until_so(lambda: is_gone(here, Cluster, "cluster-2"), 600)
                await until_so(lambda: is_gone(here, Namespace, "karmada-es-cluster-2"), 60)
                await until(lambda: recorder.ready_images() == ["app:1"] * 10, 60)
                assert recorder.fewest >= 8
                assert recorder.most <= 11
            found = await here.hub.get(ResourceBinding, "demo-deployment", SHOP)
            assert [(one.name, one.replicas) for one in found.spec.clusters] == [("cluster-1", 10)]

    run(body())


async def stays(here: AlignBed, reason: str, words: str) -> None:
    """Cluster-1 is being deleted, stays, and says why."""

    async def is_said() -> bool:
        found = find_condition((await here.hub.get(Cluster, "cluster-1")).status.conditions, "Leaving")
        return found is not None and found.reason == reason and words in found.message

    await until_so(is_said, 60)


async def told(here: AlignBed, reason: str) -> list[Event]:
    return [one for one in (await here.hub.list(Event)).items if one.reason == reason]


def test_a_cluster_that_a_binding_names_by_hand_says_what_it_waits_for_and_goes_when_it_is_taken_out() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await here.deploy(Deployment, {"cluster-1": 2, "cluster-2": 1})
            await here.until_images(*["app:1"] * 3)
            await here.hub.delete(Cluster, "cluster-1")
            words = "ResourceBinding shop/demo-deployment names it in spec.clusters: take it out there"
            await stays(here, "BindingsRemain", words)
            before = (await here.hub.get(Cluster, "cluster-1")).metadata.resource_version
            with pytest.raises(click.ClickException, match="cluster/cluster-1 is being deleted"):
                await join_karmada(here.hub, "cluster-1", Subject(kind="User", name="you"), {}, "")
            await asyncio.sleep(120)
            assert (await here.hub.get(Cluster, "cluster-1")).metadata.resource_version == before
            (event,) = await told(here, "ClusterStays")
            assert words in event.message
            assert event.count in (None, 1)
            taken_out = MergePatch({"spec": {"clusters": [{"name": "cluster-2", "replicas": 3}]}})
            await here.hub.patch(ResourceBinding, "demo-deployment", taken_out, SHOP)
            await until_so(lambda: is_gone(here, Cluster, "cluster-1"), 120)
            assert len(await here.images()) == 3

    run(body())


def test_a_cluster_that_joins_says_that_it_is_not_pushed_to() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            assert await join_karmada(here.hub, "east", Subject(kind="User", name="you"), {"at": "sea"}, "")
            found = await here.hub.get(untyped(Cluster.resource), "east")
            assert found["spec"] == {"syncMode": "Pull"}
            assert found["metadata"]["labels"] == {"at": "sea"}

    run(body())


def test_a_cluster_whose_replicas_fit_nowhere_else_says_so_until_they_do() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await divided(here)
            await here.until_images(*["app:1"] * 10)
            only = {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["cluster-1"]}}}}
            await here.hub.patch(PropagationPolicy, "all", MergePatch(only), SHOP)
            await until_so(lambda: _runs_in_cluster_1_alone(here), 120)
            await here.hub.delete(Cluster, "cluster-1")
            await stays(here, "BindingsRemain", "ResourceBinding shop/demo-deployment has no other cluster")
            anywhere = {"spec": {"placement": {"clusterAffinity": None}}}
            await here.hub.patch(PropagationPolicy, "all", MergePatch(anywhere), SHOP)
            await until_so(lambda: is_gone(here, Cluster, "cluster-1"), 600)
            assert len(await told(here, "ClusterStays")) == 1

    run(body())


async def _runs_in_cluster_1_alone(here: AlignBed) -> bool:
    return {one.metadata.namespace for one in (await here.hub.list(Work)).items} == {"karmada-es-cluster-1"}


def test_a_cluster_that_is_not_heard_leaves_without_its_works_and_its_pods_stay() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            recorder = PodRecorder()
            await divided(here)
            async with recorder.following(here.members, SHOP):
                await until(lambda: recorder.ready_images() == ["app:1"] * 10, 600)
                here.silence("cluster-2")

                async def is_unknown() -> bool:
                    found = find_condition((await here.hub.get(Cluster, "cluster-2")).status.conditions, "Ready")
                    return found is not None and found.status == "Unknown"

                await until_so(is_unknown, 60)
                await here.hub.delete(Cluster, "cluster-2")
                await until_so(lambda: is_gone(here, Cluster, "cluster-2"), 60)
                await until_so(lambda: is_gone(here, Namespace, "karmada-es-cluster-2"), 60)
                await until(lambda: recorder.ready_images() == ["app:1"] * 15, 600)
                assert [one.metadata.namespace for one in (await here.hub.list(Work)).items] == ["karmada-es-cluster-1"]

    run(body())
