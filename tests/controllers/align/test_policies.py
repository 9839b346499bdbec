"""From policies to pods on embedded servers: detected, scheduled, and brought to the members."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from controllers.align.recorder import PodRecorder
from kedge.api.apps import Deployment
from kedge.api.condition import find_condition, is_true
from kedge.api.core import ConfigMap, Event, Namespace
from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import (
    APPLIED_PLACEMENT,
    BINDING_FINALIZER,
    BINDING_ID,
    CLUSTER_POLICY_ID,
    POLICY_ID,
    POLICY_NAME,
    POLICY_NAMESPACE,
)
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.api.karmada.works import Work
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.virtual import run
from support.waiting import until, until_so

TWO = ("cluster-1", "cluster-2")
DEPLOYMENTS = {"apiVersion": "apps/v1", "kind": "Deployment"}
MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}


def divided(**weights: int) -> dict[str, Any]:
    rules = [
        {"targetCluster": {"clusterNames": [name.replace("_", "-")]}, "weight": weight}
        for name, weight in weights.items()
    ]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    return {"replicaScheduling": {**scheduling, "weightPreference": {"staticWeightList": rules}}}


async def policy(here: AlignBed, selector: dict[str, Any], name: str = "all", **spec: Any) -> None:
    body = {"metadata": {"name": name, "namespace": SHOP}, "spec": {"resourceSelectors": [selector], **spec}}
    await here.hub.create(PropagationPolicy, body)


async def deployment(here: AlignBed, replicas: int, image: str = "app:1") -> None:
    labels = {"app": "demo"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "strategy": strategy}
    await here.hub.create(Deployment, {"metadata": {"name": "demo", "namespace": SHOP}, "spec": spec})


async def config(client: Client, value: str = "1") -> None:
    await client.create(ConfigMap, {"metadata": {"name": "prices", "namespace": SHOP}, "data": {"tea": value}})


async def value(client: Client) -> str | None:
    try:
        return (await client.get(ConfigMap, "prices", SHOP)).data.get("tea")
    except NotFound:
        return None


async def until_values(here: AlignBed, *values: str | None) -> None:
    async def holds() -> bool:
        return [await value(member) for member in here.members.values()] == list(values)

    await until_so(holds)


async def until_clusters(here: AlignBed, name: str, **replicas: int) -> ResourceBinding:
    """The binding, when it is scheduled like this."""
    found = None

    async def holds() -> bool:
        nonlocal found
        try:
            found = await here.hub.get(ResourceBinding, name, SHOP)
        except NotFound:
            return False
        clusters = {one.name.replace("-", "_"): one.replicas for one in found.spec.clusters}
        is_seen = found.status.scheduler_observed_generation == found.metadata.generation
        return is_seen and clusters == replicas

    await until_so(holds)
    assert found is not None
    return found


async def reasons(here: AlignBed) -> dict[str, str]:
    return {one.reason: one.message for one in (await here.hub.list(Event, SHOP)).items}


def test_copies_become_one_workload_when_the_policy_divides_them_with_the_next_release() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            recorder = PodRecorder()
            await policy(here, DEPLOYMENTS, placement={})
            await deployment(here, 10)
            async with recorder.following(here.members, SHOP):
                await until(lambda: recorder.ready_images() == ["app:1"] * 20)
                recorder.forget()
                change = MergePatch({"spec": {"placement": divided(cluster_1=2, cluster_2=3)}})
                await here.hub.patch(PropagationPolicy, "all", change, SHOP)
                await until_clusters(here, "demo-deployment", cluster_1=4, cluster_2=6)
                template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
                await here.edit(Deployment, {"template": template})
                await until(lambda: recorder.ready_images() == ["app:2"] * 10)
            assert recorder.fewest >= 8
            assert recorder.most <= 20  # what is there may go; nothing is added to it

    run(body())


def test_a_workload_that_a_policy_divides_is_scheduled_by_weight_and_rolls_as_one() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            recorder = PodRecorder()
            await policy(here, DEPLOYMENTS, placement=divided(cluster_1=2, cluster_2=3))
            await deployment(here, 10)
            async with recorder.following(here.members, SHOP):
                await until(lambda: recorder.ready_images() == ["app:1"] * 10)
                await _is_as_karmada_stores_it(
                    here, await until_clusters(here, "demo-deployment", cluster_1=4, cluster_2=6)
                )
                recorder.forget()
                await here.edit(Deployment, {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}})
                await until(lambda: recorder.ready_images() == ["app:2"] * 10, 600)
                assert recorder.fewest >= 8
                assert recorder.most <= 11
                await here.edit(Deployment, {"replicas": 12})
                await until_clusters(here, "demo-deployment", cluster_1=5, cluster_2=7)
                await until(lambda: recorder.ready_images() == ["app:2"] * 12, 600)
                await here.hub.delete(Deployment, "demo", SHOP)
                await until(lambda: not recorder.active)

    run(body())


async def _is_as_karmada_stores_it(here: AlignBed, found: ResourceBinding) -> None:
    meta, bound = found.metadata, found.spec.resource
    template = await here.hub.get(Deployment, "demo", SHOP)
    held_by = (await here.hub.get(PropagationPolicy, "all", SHOP)).metadata
    assert meta.labels[POLICY_ID] == held_by.uid
    assert meta.labels[BINDING_ID]
    assert (meta.annotations[POLICY_NAMESPACE], meta.annotations[POLICY_NAME]) == (SHOP, "all")
    assert '"weight":3' in meta.annotations[APPLIED_PLACEMENT]
    assert meta.finalizers == (BINDING_FINALIZER,)
    assert [(one.kind, one.uid, one.controller) for one in meta.owner_references] == [
        ("Deployment", template.metadata.uid, True)
    ]
    assert (bound.api_version, bound.kind, bound.name, bound.namespace) == ("apps/v1", "Deployment", "demo", SHOP)
    assert (bound.uid, found.spec.replicas) == (template.metadata.uid, 10)
    assert bound.resource_version
    assert (found.spec.scheduler_name, found.spec.conflict_resolution) == ("default-scheduler", "Abort")
    scheduled = find_condition(found.status.conditions, "Scheduled")
    assert scheduled is not None
    assert (scheduled.status, scheduled.reason) == ("True", "Success")
    (work,) = (await here.hub.list(Work, "karmada-es-cluster-1")).items
    assert work.metadata.labels[BINDING_ID] == meta.labels[BINDING_ID]


def test_what_is_no_workload_is_copied_to_all_clusters_and_follows_its_policy() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.hub)
            await policy(here, MAPS)
            await until_values(here, "1", "1")
            await here.hub.patch(ConfigMap, "prices", MergePatch({"data": {"tea": "2"}}), SHOP)
            await until_values(here, "2", "2")
            one = {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["cluster-2"]}}}}
            await here.hub.patch(PropagationPolicy, "all", MergePatch(one), SHOP)
            await until_values(here, None, "2")
            await here.hub.delete(ConfigMap, "prices", SHOP)
            await until_values(here, None, None)

    run(body())


def test_a_resource_of_the_whole_cluster_has_a_binding_of_the_cluster() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            selector = {"apiVersion": "v1", "kind": "Namespace", "name": "web"}
            await here.hub.create(
                ClusterPropagationPolicy, {"metadata": {"name": "web"}, "spec": {"resourceSelectors": [selector]}}
            )
            await here.hub.create(Namespace, {"metadata": {"name": "web"}})

            async def is_there() -> bool:
                found = [(await one.list(Namespace)).items for one in here.members.values()]
                return all(any(one.metadata.name == "web" for one in names) for names in found)

            await until_so(is_there)
            found = await here.hub.get(ClusterResourceBinding, "web-namespace")
            held_by = (await here.hub.get(ClusterPropagationPolicy, "web")).metadata
            assert found.metadata.labels[CLUSTER_POLICY_ID] == held_by.uid
            assert [one.name for one in found.spec.clusters] == list(TWO)
            assert (await here.hub.list(ResourceBinding)).items == ()

    run(body())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"propagateDeps": True}, "name it in resourceSelectors"),
        ({"failover": {"application": {}}}, "spec.failover is set"),
        ({"placement": {"spreadConstraints": [{"maxGroups": 1}]}}, "placement.spreadConstraints is set"),
    ],
)
def test_a_policy_that_is_not_followed_says_so_and_binds_nothing(spec: dict[str, Any], message: str) -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await config(here.hub)
            await policy(here, MAPS, **spec)

            async def is_said() -> bool:
                found = await here.hub.get(PropagationPolicy, "all", SHOP)
                accepted = find_condition(found.status.conditions, "Accepted")
                return accepted is not None and accepted.status == "False" and message in accepted.message

            await until_so(is_said)
            await until_so(lambda: _has_reason(here, "NotAccepted", message))
            assert (await here.hub.list(ResourceBinding)).items == ()
            await here.hub.patch(
                PropagationPolicy,
                "all",
                MergePatch(
                    {"spec": {"propagateDeps": None, "failover": None, "placement": {"spreadConstraints": None}}}
                ),
                SHOP,
            )
            await until_values(here, "1")
            found = await here.hub.get(PropagationPolicy, "all", SHOP)
            assert is_true(found.status.conditions, "Accepted")

    run(body())


async def _has_reason(here: AlignBed, reason: str, message: str = "") -> bool:
    return message in (await reasons(here)).get(reason, "\0")


def test_what_a_deleted_policy_brought_stays_and_another_policy_takes_it() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.hub)
            await policy(here, MAPS)
            await until_values(here, "1", "1")
            await here.hub.delete(PropagationPolicy, "all", SHOP)

            async def is_released() -> bool:
                found = await here.hub.get(ResourceBinding, "prices-configmap", SHOP)
                return POLICY_ID not in found.metadata.labels and POLICY_NAME not in found.metadata.annotations

            await until_so(is_released)
            await until_values(here, "1", "1")

    run(body())


async def until_held(here: AlignBed, policy: str | None) -> None:
    """The binding of the Deployment is held by this policy; None: by none."""

    async def holds() -> bool:
        meta = (await here.hub.get(ResourceBinding, "demo-deployment", SHOP)).metadata
        return meta.annotations.get(POLICY_NAME) == policy and (POLICY_ID in meta.labels) is (policy is not None)

    await until_so(holds)


@pytest.mark.parametrize("way", ["the same", "made anew", "another"])
def test_what_a_policy_let_go_of_is_claimed_again_by_the_next_that_means_it(way: str) -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            placement = divided(cluster_1=2, cluster_2=3)
            await policy(here, {**DEPLOYMENTS, "name": "demo"}, placement=placement)
            await deployment(here, 10)
            await until_clusters(here, "demo-deployment", cluster_1=4, cluster_2=6)
            selected = {"spec": {"resourceSelectors": [{**DEPLOYMENTS, "name": "dmeo"}]}}
            await here.hub.patch(PropagationPolicy, "all", MergePatch(selected), SHOP)
            await until_held(here, None)
            if way == "the same":
                right = {"spec": {"resourceSelectors": [{**DEPLOYMENTS, "name": "demo"}]}}
                await here.hub.patch(PropagationPolicy, "all", MergePatch(right), SHOP)
            elif way == "made anew":
                await here.hub.delete(PropagationPolicy, "all", SHOP)
                await policy(here, DEPLOYMENTS, placement=placement)
            else:
                await policy(here, DEPLOYMENTS, "other", placement=placement)
            await until_held(here, "other" if way == "another" else "all")
            await here.edit(Deployment, {"replicas": 12})
            await until_clusters(here, "demo-deployment", cluster_1=5, cluster_2=7)
            assert "NotClaimed" not in await reasons(here)

    run(body())


def test_a_cluster_that_a_policy_names_and_that_does_not_exist_is_told_until_it_joins() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await policy(here, MAPS, placement={"clusterAffinity": {"clusterNames": ["cluster-1", "cluster-9"]}})
            await config(here.hub)
            await until_values(here, "1")
            words = "The placement names cluster-9, which does not exist."

            async def says(*messages: str) -> bool:
                told = await here.hub.get(PropagationPolicy, "all", SHOP)
                binding = await here.hub.get(ResourceBinding, "prices-configmap", SHOP)
                accepted = find_condition(told.status.conditions, "Accepted")
                scheduled = find_condition(binding.status.conditions, "Scheduled")
                if accepted is None or scheduled is None:
                    return False
                assert (accepted.status, scheduled.status) == ("True", "True")
                return (accepted.message, scheduled.message) == messages

            scheduled = "Binding has been scheduled successfully."
            await until_so(lambda: says(f"The policy is followed. {words}", f"{scheduled} {words}"))
            await asyncio.sleep(30)
            before = await _versions(here)
            await asyncio.sleep(120)
            assert await _versions(here) == before
            await here.hub.create(Cluster, {"metadata": {"name": "cluster-9"}, "spec": {}})
            await until_so(lambda: says("The policy is followed", scheduled))

    run(body())


def test_a_policy_says_what_it_names_and_cannot_mean() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await config(here.hub)
            roles = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "view"}
            pods = {"apiVersion": "v1", "kind": "Pod"}
            given = {"resourceSelectors": [MAPS, {**MAPS, "namespace": "play"}, roles, pods]}
            await here.hub.create(PropagationPolicy, {"metadata": {"name": "all", "namespace": SHOP}, "spec": given})
            await until_values(here, "1")
            told = (await here.hub.get(PropagationPolicy, "all", SHOP)).status.conditions
            accepted = find_condition(told, "Accepted")
            assert accepted is not None
            assert accepted.status == "True"
            assert accepted.message.startswith("The policy is followed. It means no ConfigMap of the namespace play: ")
            assert "It means no ClusterRole, which is of the whole cluster: that takes" in accepted.message
            assert accepted.message.endswith("It means no Pod: that kind stays on the hub.")

    run(body())


async def _versions(here: AlignBed) -> list[str | None]:
    """Of the policies and bindings: they change with each write."""
    policies = [one.metadata for one in (await here.hub.list(PropagationPolicy, SHOP)).items]
    bindings = [one.metadata for one in (await here.hub.list(ResourceBinding, SHOP)).items]
    return [one.resource_version for one in (*policies, *bindings)]


async def _is_aligned(here: AlignBed) -> bool:
    binding = await here.hub.get(ResourceBinding, "demo-deployment", SHOP)
    return is_true(binding.status.conditions, "Aligned")


def test_who_scales_what_a_binding_by_hand_decides_on_is_told_once() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await here.deploy(Deployment, {"cluster-1": 1, "cluster-2": 2})
            await here.until_images(*["app:1"] * 3)
            assert "ReplicasDiffer" not in await reasons(here)
            await here.edit(Deployment, {"replicas": 5})
            words = "Deployment shop/demo has spec.replicas: 5, and spec.clusters of this binding 3 in all"
            await until_so(lambda: _has_reason(here, "ReplicasDiffer", words))
            await here.edit(Deployment, {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}})
            await here.until_images(*["app:2"] * 3)
            (event,) = [one for one in (await here.hub.list(Event, SHOP)).items if one.reason == "ReplicasDiffer"]
            assert (event.type, event.count in (None, 1)) == ("Normal", True)
            await until_so(lambda: _is_aligned(here))

    run(body())


def test_nothing_is_written_to_a_cluster_that_is_suspended() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.hub)
            await policy(here, MAPS)
            await until_values(here, "1", "1")
            held = {"suspension": {"dispatchingOnClusters": {"clusterNames": ["cluster-1"]}}}
            await here.hub.patch(PropagationPolicy, "all", MergePatch({"spec": held}), SHOP)

            async def is_held() -> bool:
                (work,) = (await here.hub.list(Work, "karmada-es-cluster-1")).items
                dispatching = find_condition(work.status.conditions, "Dispatching")
                return dispatching is not None and dispatching.reason == "SuspendDispatching"

            await until_so(is_held)
            await here.hub.patch(ConfigMap, "prices", MergePatch({"data": {"tea": "2"}}), SHOP)
            await until_values(here, "1", "2")
            await here.hub.patch(PropagationPolicy, "all", MergePatch({"spec": {"suspension": None}}), SHOP)
            await until_values(here, "2", "2")

    run(body())


def test_what_is_to_be_preserved_stays_in_the_members() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.hub)
            await policy(here, MAPS, preserveResourcesOnDeletion=True)
            await until_values(here, "1", "1")
            await here.hub.delete(ConfigMap, "prices", SHOP)

            async def is_gone() -> bool:
                works, bindings = await here.hub.list(Work), await here.hub.list(ResourceBinding)
                return not works.items and not bindings.items

            await until_so(is_gone)
            await until_values(here, "1", "1")
            for member in here.members.values():
                found = (await member.get(ConfigMap, "prices", SHOP)).metadata
                assert (dict(found.labels), dict(found.annotations)) == ({}, {})

    run(body())


def test_a_workload_that_is_preserved_goes_on_as_if_nobody_had_ever_managed_it() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await deployment(here, 4)
            weights = divided(cluster_1=1, cluster_2=1)
            await policy(here, DEPLOYMENTS, placement=weights, preserveResourcesOnDeletion=True)
            await here.until_images(*["app:1"] * 4)
            before = sorted(one.metadata.uid for one in await here.pods())
            await here.hub.delete(Deployment, "demo", SHOP)
            await asyncio.sleep(30)
            assert not (await here.hub.list(Work)).items
            assert sorted(one.metadata.uid for one in await here.pods()) == before
            for member in here.members.values():
                found = (await member.get(Deployment, "demo", SHOP)).metadata
                assert not [key for key in (*found.labels, *found.annotations) if "karmada.io" in key or "kedge" in key]

    run(body())


def test_what_somebody_else_made_is_taken_over_only_if_that_is_meant() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.members["cluster-1"], "theirs")
            await config(here.hub)
            await policy(here, MAPS)
            await until_values(here, "theirs", "1")

            async def is_said() -> bool:
                found = await here.hub.get(ResourceBinding, "prices-configmap", SHOP)
                said = {one.cluster_name: one.applied_message for one in found.status.aggregated_status}
                return "set conflictResolution to Overwrite" in said.get("cluster-1", "")

            await until_so(is_said)
            overwrite = MergePatch({"spec": {"conflictResolution": "Overwrite"}})
            await here.hub.patch(PropagationPolicy, "all", overwrite, SHOP)
            await until_values(here, "1", "1")

    run(body())


def test_a_binding_that_was_written_by_hand_is_left_alone() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.hub)
            resource = {**MAPS, "name": "prices", "namespace": SHOP}
            spec = {"resource": resource, "clusters": [{"name": "cluster-1"}]}
            await here.hub.create(
                ResourceBinding, {"metadata": {"name": "prices-configmap", "namespace": SHOP}, "spec": spec}
            )
            await policy(here, MAPS)
            await until_so(lambda: _has_reason(here, "NotClaimed"))
            await until_values(here, "1", None)

    run(body())


def test_a_policy_that_no_cluster_fits_says_so_until_one_does() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await config(here.hub)
            await policy(
                here, MAPS, placement={"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prod"}}}}
            )

            async def is_said() -> bool:
                items = (await here.hub.list(ResourceBinding, SHOP)).items
                found = find_condition(items[0].status.conditions, "Scheduled") if items else None
                return found is not None and found.reason == "NoClusterFit"

            await until_so(is_said)
            labelled = MergePatch({"metadata": {"labels": {"tier": "prod"}}})
            await here.hub.patch(Cluster, "cluster-1", labelled)
            await until_values(here, "1")

    run(body())


def test_a_cluster_that_is_left_gracefully_keeps_its_copy_until_others_have_taken_over() -> None:
    async def body() -> None:
        async with align_bed(*TWO) as here:
            await config(here.members["cluster-2"], "theirs")  # so that it is not applied there
            await config(here.hub)
            resource = {**MAPS, "name": "prices", "namespace": SHOP}
            meta = {"name": "prices-configmap", "namespace": SHOP}
            spec: dict[str, Any] = {"resource": resource, "clusters": [{"name": "cluster-1"}]}
            await here.hub.create(ResourceBinding, {"metadata": meta, "spec": spec})
            await until_values(here, "1", "theirs")
            moved = {"clusters": [{"name": "cluster-2"}], "gracefulEvictionTasks": [{"fromCluster": "cluster-1"}]}
            await here.hub.patch(ResourceBinding, "prices-configmap", MergePatch({"spec": moved}), SHOP)
            await until_so(lambda: _has_work(here, "karmada-es-cluster-2"))
            await until_values(here, "1", "theirs")
            overwrite = MergePatch({"spec": {"conflictResolution": "Overwrite"}})
            await here.hub.patch(ResourceBinding, "prices-configmap", overwrite, SHOP)
            await until_values(here, None, "1")

    run(body())


async def _has_work(here: AlignBed, namespace: str) -> bool:
    return bool((await here.hub.list(Work, namespace)).items)
