"""Rollouts of Applications on an embedded server, in virtual time: by revisions, by Applications, and by a plan."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.batch.app_bed import SHOP, AppBed, app_bed
from kedge.api.apps import ControllerRevision, Deployment
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration
from kedge.api.oam.keys import CREATING, ROLLING_COMPONENTS, ROLLOUT_TEMPLATE
from kedge.api.oam.rollouts import ApplicationDeployment, AppRollout
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from support.virtual import run

HPA = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
SERVICE = Resource("", "v1", "Service", "services")
FIVE = {"numBatches": 5}


# Revisions of one Application


def test_an_app_rollout_goes_from_revision_to_revision_and_back() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 10)
            await here.until_images(v1=10)
            await here.app_rollout("store-v2", "store-v1", plan=FIVE)
            await here.until_message(AppRollout, "ApplicationRevision shop/store-v2 does not exist")
            await here.application("2", 10)  # held, since the rollout is to bring it in
            found = await here.until_state(AppRollout, "rolloutSucceed")
            assert [one["goal"] for one in found["batches"]] == [2, 4, 6, 8, 10]
            assert (found["lastTargetAppRevision"], found["LastSourceAppRevision"]) == ("store-v2", "store-v1")
            await here.until_images(v2=10)
            await here.until_sizes({"web-v2": 10})  # the old one is deleted
            assert ROLLING_COMPONENTS not in await here.annotations(Application, "store")
            await here.edit(AppRollout, {"targetAppRevisionName": "store-v1"})
            await here.until_images(v1=10)
            await here.until_state(AppRollout, "rolloutSucceed")
            await asyncio.sleep(120)  # what the Application says is not applied behind its back
            assert await here.images() == {"1": 10}
            assert (await here.annotations(Application, "store"))[ROLLING_COMPONENTS] == "web"

    run(body())


async def _halfway(here: AppBed, **more: Any) -> None:
    await here.application("1", 10)
    await here.until_images(v1=10)
    await here.app_rollout("store-v2", "store-v1", plan={**FIVE, "batchPartition": 1}, **more)
    await here.application("2", 10)
    await here.until_state(AppRollout, "rollingInBatches", "batchReady")
    await here.until_sizes({"web": 6, "web-v2": 4})


def test_back_midway_ends_where_it_began() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _halfway(here)
            plan = {"batchPartition": None}
            await here.edit(AppRollout, {"targetAppRevisionName": "store-v1", "rolloutPlan": plan})
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_images(v1=10)
            assert (await here.sizes())["web"] == 10  # the workload that was there, not another one

    run(body())


def test_another_revision_midway_takes_all_that_runs_along() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _halfway(here)
            await here.application("3", 10)
            plan = {"batchPartition": 0}
            await here.edit(AppRollout, {"targetAppRevisionName": "store-v3", "rolloutPlan": plan})
            await here.until_message(AppRollout, "batch 0 is the last one")
            await asyncio.sleep(30)
            sizes = await here.sizes()
            assert (sizes["web-v3"], sizes["web"] + sizes["web-v2"]) == (2, 8)
            await here.edit(AppRollout, {"rolloutPlan": {"batchPartition": 4}})
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_images(v3=10)

    run(body())


def test_deleted_midway_it_is_taken_back_and_the_new_revision_takes_no_effect() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _halfway(here, revertOnDelete=True)
            await here.delete(AppRollout)
            assert await here.sizes() == {"web": 10, "web-v2": 0}
            await asyncio.sleep(120)
            assert await here.images() == {"1": 10}
            assert await here.sizes() == {"web": 10, "web-v2": 0}

    run(body())


def test_deleted_midway_without_that_it_stays_as_it_is() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _halfway(here)
            await here.delete(AppRollout)
            await asyncio.sleep(120)
            assert await here.images() == {"1": 6, "2": 4}
            # Another one takes all of it along.
            await here.app_rollout("store-v2", "store-v1", plan=FIVE)
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_images(v2=10)

    run(body())


def test_one_that_failed_is_taken_back_when_it_is_deleted() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _halfway(here, revertOnDelete=True)
            aborted = MergePatch({"metadata": {"annotations": {"kedge.dev/abort": "true"}}})
            await here.client.patch(AppRollout, "web", aborted, SHOP)
            await here.until_state(AppRollout, "rolloutFailed")
            await asyncio.sleep(60)
            assert await here.sizes() == {"web": 6, "web-v2": 4}
            await here.delete(AppRollout)
            assert await here.sizes() == {"web": 10, "web-v2": 0}

    run(body())


def test_without_a_source_it_deploys_and_scales() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.app_rollout("store-v1", plan={"targetSize": 4, "numBatches": 2})
            await here.application("1", 7)
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_images(v1=4)
            await here.edit(AppRollout, {"rolloutPlan": {"targetSize": 6}})
            await here.until_images(v1=6)

    run(body())


def test_an_application_that_waits_for_a_rollout_is_brought_in_by_the_first_to_its_next_revision() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 7, template=True)
            await asyncio.sleep(60)
            await here.app_rollout("store-v1", componentList=["web"], plan={"targetSize": 4, "numBatches": 2})
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_images(v1=4)
            assert (
                not {ROLLOUT_TEMPLATE, CREATING, ROLLING_COMPONENTS}
                & (await here.annotations(Application, "store")).keys()
            )
            # Applied again from the same file, which has the annotation: the next revision waits again.
            note = MergePatch({"metadata": {"annotations": {ROLLOUT_TEMPLATE: "true"}}})
            await here.client.patch(Application, "store", note, SHOP)
            await here.application("2", 7)
            await asyncio.sleep(60)
            assert await here.images() == {"1": 4}
            await here.edit(AppRollout, {"targetAppRevisionName": "store-v2", "rolloutPlan": {"batchPartition": 0}})
            await here.until_state(AppRollout, "rollingInBatches", "batchReady")
            await here.until_images(v1=2, v2=2)
            await here.edit(AppRollout, {"rolloutPlan": {"batchPartition": None}})
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_images(v2=4)

    run(body())


def test_a_component_that_a_waiting_application_lacks_fails_the_rollout_in_words() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 7, template=True)
            await here.app_rollout("store-v1", componentList=["shelf"], plan={"targetSize": 4})
            found = await here.until_state(AppRollout, "rolloutFailed")
            assert found["failure"] == "componentList names shelf, and the target has only web"
            assert (await here.annotations(Application, "store"))[ROLLOUT_TEMPLATE] == "true"  # it is left alone

    run(body())


def test_the_revision_that_is_gone_does_not_keep_a_rollout_from_ending() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _halfway(here)
            await here.client.delete(ApplicationRevision, "store-v2", SHOP)
            await here.client.delete(ApplicationRevision, "store-v1", SHOP)
            await here.delete(AppRollout)
            left = (await here.client.list(Deployment, SHOP)).items
            assert all("kedge.dev/rolled-by" not in one.metadata.annotations for one in left)

    run(body())


def test_it_does_not_guess_which_component_moves() -> None:
    async def body() -> None:
        async with app_bed() as here:
            one = {"type": "worker", "properties": {"image": "app:1"}}
            spec = {"components": [{**one, "name": "a"}, {**one, "name": "b"}]}
            await here.client.create(Application, {"metadata": {"name": "store", "namespace": SHOP}, "spec": spec})
            await here.until_images(v1=2)
            other = {**one, "properties": {"image": "app:2"}}
            await here.app_rollout("store-v2", "store-v1", plan={})
            await here.client.patch(
                Application, "store", MergePatch({"spec": {"components": [{**other, "name": n} for n in "ab"]}}), SHOP
            )
            found = await here.until_state(AppRollout, "rolloutFailed")
            assert found["failure"] == "cannot find a default component, too many common components: [a b]"
            await here.edit(AppRollout, {"componentList": ["b"]})
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_sizes({"a": 1, "b-v2": 1})

    run(body())


def test_an_autoscaler_is_stopped_while_it_rolls_and_scales_the_new_workload_after() -> None:
    async def body() -> None:
        async with app_bed() as here:
            autoscaler = {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "spec": {"minReplicas": 1, "maxReplicas": 9},
            }
            traits = [{"type": "raw", "properties": autoscaler}]
            await here.application("1", 4, traits=traits)
            await here.until_images(v1=4)

            async def scaled() -> str:
                found = await here.client.get(untyped(HPA), "web", SHOP)
                return str(found["spec"]["scaleTargetRef"]["name"])

            assert await scaled() == "web"
            await here.app_rollout("store-v2", "store-v1", plan={"numBatches": 2, "batchPartition": 0})
            await here.application("2", 4, traits=traits)
            await here.until_message(AppRollout, "batch 0 is the last one")
            assert (await scaled()).endswith("-DisableByRollout")
            await here.edit(AppRollout, {"rolloutPlan": {"batchPartition": 1}})
            await here.until_state(AppRollout, "rolloutSucceed")
            await here.until_sizes({"web-v2": 4})
            assert await scaled() == "web-v2"

    run(body())


# A plan of the Application itself


def test_the_plan_of_an_application_rolls_each_change_out() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 6, rolloutPlan={"numBatches": 3})
            await here.until_images(v1=6)  # as many as the component asks for
            await here.until_state(AppRollout, "rolloutSucceed", name="store")
            await here.application("2", 6, rolloutPlan={"numBatches": 3, "batchPartition": 0})
            await here.until_message(AppRollout, "batch 0 is the last one", "store")
            await here.until_images(v1=4, v2=2)
            await here.application("3", 6, rolloutPlan={"numBatches": 3})  # another one midway
            await here.until_images(v3=6)
            await here.until_state(AppRollout, "rolloutSucceed", name="store")
            await here.until_sizes({"web-v3": 6})

            async def status() -> Any:
                return (await here.raw(Application, "store"))["status"]

            assert (await status())["rollout"]["rollingState"] == "rolloutSucceed"

    run(body())


def test_a_plan_for_what_runs_already_moves_nothing() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 3)
            await here.until_images(v1=3)
            await here.application("1", 3, rolloutPlan={"numBatches": 3})
            await here.until_state(AppRollout, "rolloutSucceed", name="store")
            assert await here.sizes() == {"web": 3}
            await here.application("2", 3, rolloutPlan={"numBatches": 3})
            await here.until_images(v2=3)
            await here.until_sizes({"web-v2": 3})

    run(body())


async def _named(here: AppBed, image: str, revision: str, **plan: Any) -> None:
    """An Application that names the revision of its component, and rolls it out by a trait."""
    component = {"name": "web", "type": "webservice", "properties": {"image": f"app:{image}"}}
    trait = {"type": "rollout", "properties": {"targetSize": 4, **plan}}
    spec = {"components": [{**component, "externalRevision": revision, "traits": [trait]}]}
    body = {"metadata": {"name": "store", "namespace": SHOP}, "spec": spec}
    await here.client.apply(untyped(Application.resource), body, manager="user", force=True)


def test_revisions_that_an_application_names_are_rolled_out_by_their_names() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _named(here, "1", "blue")
            await here.until_sizes({"blue": 4})
            await _named(here, "2", "green", rolloutBatches=[{"replicas": 1}, {"replicas": 3}], batchPartition=0)
            await here.until_sizes({"blue": 3, "green": 1})
            await _named(here, "2", "green", rolloutBatches=[{"replicas": 1}, {"replicas": 3}])
            await here.until_sizes({"green": 4})
            await _named(here, "2", "green", targetRevision="blue")
            await here.until_sizes({"blue": 4})
            await _named(here, "1", "blue")
            await here.until_images(v1=4)
            found = (await here.client.list(ControllerRevision, SHOP)).items
            assert {one.metadata.name: one.revision for one in found} == {"blue": 1, "green": 2}

    run(body())


def test_another_state_under_the_name_of_a_revision_is_refused() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _named(here, "1", "blue")
            await here.until_images(v1=4)
            await _named(here, "2", "blue")

            async def says() -> bool:
                found = (await here.raw(Application, "store"))["status"]["conditions"]
                return any("externalRevision blue keeps another state of it already" in one["message"] for one in found)

            await here.until(says)
            assert await here.images() == {"1": 4}

    run(body())


def test_what_changes_beside_the_component_of_a_plan_moves_nothing() -> None:
    async def body() -> None:
        async with app_bed() as here:
            plan = {"rolloutBatches": [{"replicas": 1}, {"replicas": 2}], "targetSize": 3}
            await here.application("1", 3, rolloutPlan=plan)
            await here.until_state(AppRollout, "rolloutSucceed", name="store")
            port = {"port": 80, "expose": True}
            component = {"name": "web", "type": "webservice", "properties": {"image": "app:1", "replicas": 3}}
            other = {"name": "shelf", "type": "webservice", "properties": {"image": "app:7", "ports": [port]}}
            live = await here.raw(Application, "store")
            spec = {"components": [component, other], "rolloutPlan": plan}
            await here.client.replace(untyped(Application.resource), {**live, "spec": spec})

            async def has_second() -> bool:
                found = (await here.raw(AppRollout, "store"))["status"]
                return (found["rollingState"], found["lastTargetAppRevision"]) == ("rolloutSucceed", "store-v2")

            await here.until(has_second)
            await here.until_images(v1=3, v7=1)

    run(body())


# From one Application to another


async def _two(here: AppBed, **more: Any) -> None:
    """Halfway from the old Application to the new one."""
    await here.application("1", 10, name="old")
    await here.until_images(v1=10)
    await here.application("2", 10, name="new", template=True)
    await here.deployment_of("new", "old", plan={**FIVE, "batchPartition": 1}, **more)
    await here.until_message(ApplicationDeployment, "batch 1 is the last one")
    await here.until_images(v1=6, v2=4)


async def _owners(here: AppBed) -> list[str]:
    found = (await here.raw(Application, "new"))["metadata"].get("ownerReferences", [])
    return [one["kind"] for one in found]


def test_an_application_deployment_brings_the_new_application_in() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 10, name="old")
            await here.until_images(v1=10)
            await here.application("2", 10, name="new", template=True)
            await asyncio.sleep(60)
            assert "status" not in await here.raw(Application, "new")  # nobody looks after it
            await here.deployment_of("new", "old", plan={**FIVE, "batchPartition": 1})
            await here.until_message(ApplicationDeployment, "batch 1 is the last one")
            notes = await here.annotations(Application, "new")
            assert ROLLOUT_TEMPLATE not in notes
            assert (notes[CREATING], notes[ROLLING_COMPONENTS]) == ("true", "web")
            assert await _owners(here) == ["ApplicationDeployment"]
            assert CREATING not in await here.annotations(ApplicationConfiguration, "new-v1")  # its first time is over
            await here.until_images(v1=6, v2=4)
            await here.edit(ApplicationDeployment, {"rolloutPlan": {"batchPartition": 4}})
            await here.until_state(ApplicationDeployment, "rolloutSucceed")
            await here.until_images(v2=10)
            await here.delete(ApplicationDeployment)
            await asyncio.sleep(120)
            assert await here.images() == {"2": 10}  # nothing of the old one comes back, nothing of the new one goes
            assert await _owners(here) == []
            assert not {CREATING, ROLLING_COMPONENTS} & (await here.annotations(Application, "new")).keys()
            assert not await here.is_gone(Deployment, "web")  # the old one keeps its workload

    run(body())


def test_deleted_midway_the_old_application_is_as_before_and_the_new_one_takes_no_effect() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _two(here, revertOnDelete=True)
            await here.delete(ApplicationDeployment)
            await here.until_images(v1=10)
            await asyncio.sleep(120)
            assert await here.images() == {"1": 10}
            assert await _owners(here) == []
            assert ROLLING_COMPONENTS not in await here.annotations(Application, "old")
            assert (await here.annotations(Application, "new"))[ROLLING_COMPONENTS] == "web"
            await here.deployment_of("new", "old", plan=FIVE)  # and again
            await here.until_state(ApplicationDeployment, "rolloutSucceed")
            await here.until_images(v2=10)

    run(body())


def test_deleted_midway_without_that_both_applications_stay_mixed() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _two(here)
            await here.delete(ApplicationDeployment)
            await asyncio.sleep(120)
            assert await here.images() == {"1": 6, "2": 4}
            assert not await here.is_gone(Application, "new")
            assert await _owners(here) == []

    run(body())


def test_one_that_fails_before_it_begins_lets_go_of_the_new_application() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 10, name="old")
            await here.until_images(v1=10)
            await here.application("2", 10, name="new", template=True)
            await here.deployment_of("new", "old", plan={"targetSize": 3})
            found = await here.until_state(ApplicationDeployment, "rolloutFailed")
            assert found["failure"] == "target size `3` less than source size `10`"
            await here.delete(ApplicationDeployment)
            await asyncio.sleep(60)
            assert await _owners(here) == []
            assert await here.images() == {"1": 10}

    run(body())


def test_an_application_is_waited_for_and_only_one_brings_it_in() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await here.application("1", 2, name="old")
            await here.until_images(v1=2)
            await here.deployment_of("new", "old", plan={"numBatches": 2, "batchPartition": 0})
            await here.until_message(ApplicationDeployment, "Application shop/new does not exist")
            await here.application("2", 2, name="new", template=True)
            await here.until_images(v1=1, v2=1)
            await here.deployment_of("new", "old", name="second", plan={})
            said = "Application shop/new is being brought in by ApplicationDeployment web"
            await here.until_message(ApplicationDeployment, said, "second")

    run(body())


def test_the_services_of_its_traffic_are_told_apart_while_it_rolls() -> None:
    async def body() -> None:
        async with app_bed() as here:
            for name in ("front", "back"):
                selector = {"app.oam.dev/component": "web"}
                spec = {"selector": selector, "ports": [{"port": 80}]}
                await here.client.create(
                    untyped(SERVICE), {"metadata": {"name": name, "namespace": SHOP}, "spec": spec}
                )
            route = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
            rule = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _backend("back")}]}}
            await here.client.create(untyped(route), _ingress("web", rule, {}))
            canary = {
                "nginx.ingress.kubernetes.io/canary": "true",
                "nginx.ingress.kubernetes.io/canary-weight": "0",
            }
            other = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _backend("front")}]}}
            await here.client.create(untyped(route), _ingress("canary", other, canary))

            async def selectors() -> list[str]:
                found = [await here.client.get(untyped(SERVICE), name, SHOP) for name in ("back", "front")]
                return [one["spec"]["selector"].get("kedge.dev/workload", "") for one in found]

            traffic = {
                "provider": "nginx",
                "routeRef": {"name": "canary"},
                "sourceService": "back",
                "targetService": "front",
            }
            await here.application("1", 2, name="old")
            await here.until_images(v1=2)
            await here.application("2", 2, name="new", template=True)
            await here.deployment_of("new", "old", plan={"numBatches": 2, "batchPartition": 0, "traffic": traffic})
            await here.until_message(ApplicationDeployment, "batch 0 is the last one")
            assert await selectors() == ["web", "web-v2"]
            await here.edit(ApplicationDeployment, {"rolloutPlan": {"batchPartition": 1}})
            await here.until_state(ApplicationDeployment, "rolloutSucceed")
            assert await selectors() == ["", ""]

    run(body())


def _backend(service: str) -> dict[str, Any]:
    return {"service": {"name": service, "port": {"number": 80}}}


def _ingress(name: str, rule: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": SHOP, "annotations": annotations},
        "spec": {"ingressClassName": "nginx", "rules": [rule]},
    }
