"""Applications on an embedded server: revisions, configurations, workloads; in virtual time."""

from __future__ import annotations

from typing import Any

from controllers.application.application_bed import NAMESPACE, bed, play
from kedge.api.apps import Deployment, StatefulSet
from kedge.api.core import Service
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration
from kedge.api.oam.keys import CREATING, ROLLOUT_TEMPLATE
from kedge.api.oam.rollouts import AppRollout, Rollout
from kedge.kube.errors import NotFound
from plan.oam.objects import STATEFUL_SET, trait, web

LABELS = {
    "app.oam.dev/name": "shop",
    "app.oam.dev/component": "web",
    "app.oam.dev/revision": "web-v1",
    "app.oam.dev/appRevision": "shop-v1",
}


def test_a_webservice_runs() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1", replicas=2))
            await here.until_equal(here.deployments, {"web": ("web:1", 2)})
            assert (await here.revisions(), await here.app_revisions()) == (["web-v1"], ["shop-v1"])
            assert await here.names(ApplicationConfiguration) == ["shop-v1"]
            live = await here.get(Deployment, "web")
            assert live["metadata"]["labels"] == LABELS
            (owner,) = live["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner.get("controller")) == ("Application", "shop", None)

            async def status() -> Any:
                found = (await here.get(Application, "shop"))["status"]
                services = [(one["name"], one["healthy"]) for one in found["services"]]
                return found["status"], found["latestRevision"]["name"], services

            await here.until_equal(status, ("running", "shop-v1", [("web", True)]))
            assert (await here.condition(Application, "shop", "Parsed"))[0] == "True"
            assert (await here.condition(Application, "shop", "Applied"))[0] == "True"
            await here.at_rest()
            assert "ApplicationConfiguration WorkloadApplied: applied Deployment prod/web of revision web-v1" in (
                await here.events()
            )

    play(scene())


def test_a_change_makes_a_revision_and_a_configuration_of_its_own_and_is_applied() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1", replicas=2))
            await here.until_equal(here.deployments, {"web": ("web:1", 2)})
            await here.application(web(image="web:2", replicas=2))
            await here.until_equal(here.deployments, {"web": ("web:2", 2)})
            assert (await here.revisions(), await here.app_revisions()) == (
                ["web-v1", "web-v2"],
                ["shop-v1", "shop-v2"],
            )

            async def configurations() -> Any:
                return await here.names(ApplicationConfiguration)

            await here.until_equal(configurations, ["shop-v2"])
            found = await here.get(ApplicationConfiguration, "shop-v2")
            assert found["metadata"]["annotations"] == {"app.oam.dev/appconfig-rollout": "true"}
            assert found["spec"]["components"] == [{"componentName": "web", "revisionName": "web-v2"}]
            live = (await here.get(Deployment, "web"))["metadata"]["labels"]
            assert (live["app.oam.dev/revision"], live["app.oam.dev/appRevision"]) == ("web-v2", "shop-v2")

    play(scene())


def test_what_does_not_change_makes_nothing() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1", replicas=1))
            await here.until_equal(here.deployments, {"web": ("web:1", 1)})
            await here.at_rest()
            writes = len(here.transport.writes)
            await here.application(web(image="web:1", replicas=1))
            await here.annotate(Application, "shop", "x", "y")
            await here.at_rest()
            assert here.transport.writes[writes:] == []
            assert (await here.revisions(), await here.app_revisions()) == (["web-v1"], ["shop-v1"])

    play(scene())


def test_an_application_that_a_rollout_brings_in_is_left_alone_until_the_annotation_is_gone() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1", replicas=3), annotations={ROLLOUT_TEMPLATE: "true"})
            await here.at_rest()
            assert here.transport.writes == []
            await here.annotate(Application, "shop", CREATING, "true")
            await here.annotate(Application, "shop", ROLLOUT_TEMPLATE, None)
            await here.until_equal(here.deployments, {"web-v1": ("web:1", 0)})
            live = (await here.get(Deployment, "web-v1"))["spec"]
            assert (live["replicas"], live["paused"]) == (0, True)

            async def annotations() -> Any:
                return (await here.get(ApplicationConfiguration, "shop-v1"))["metadata"].get("annotations")

            await here.until_equal(annotations, {"app.oam.dev/rolling-components": "web"})
            await here.at_rest()
            assert await here.deployments() == {"web-v1": ("web:1", 0)}
            await here.annotate(Application, "shop", CREATING, None)  # given back
            await here.until_equal(annotations, None)
            await here.at_rest()
            live = (await here.get(Deployment, "web-v1"))["spec"]
            assert (live["replicas"], live.get("paused")) == (0, None)

    play(scene())


def test_what_cannot_be_made_is_said_and_corrected() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web("helm"))

            async def parsed() -> Any:
                return (await here.condition(Application, "shop", "Parsed"))[:2]

            await here.until_equal(parsed, ("False", "Refused"))
            message = (await here.condition(Application, "shop", "Parsed"))[2]
            assert "component web has the type 'helm', which is not known here" in message
            assert (await here.get(Application, "shop"))["status"]["status"] == "rendering"
            await here.at_rest()
            assert f"Application Refused: {message}" in await here.events()
            assert await here.app_revisions() == []
            await here.application(web(traits=[trait("rollout", targetSize=1), trait("scaler", replicas=2)]))
            await here.at_rest()
            message = (await here.condition(Application, "shop", "Parsed"))[2]
            assert "component web has Rollout and ManualScalerTrait, which both set its replicas" in message
            await here.application(web(image="web:1"))
            await here.until_equal(parsed, ("True", "ReconcileSuccess"))
            await here.until_equal(here.deployments, {"web": ("web:1", 1)})

    play(scene())


def test_a_component_that_is_removed_goes_and_so_does_everything_with_the_application() -> None:
    async def scene() -> None:
        async with bed() as here:
            exposed = web(image="web:1", ports=[{"port": 80, "expose": True}])
            db = {**web("raw", **STATEFUL_SET), "name": "db"}
            await here.application(exposed, db)
            await here.until_equal(here.deployments, {"web": ("web:1", 1)})

            async def others() -> Any:
                return await here.names(StatefulSet), await here.names(Service)

            await here.until_equal(others, (["db"], ["web"]))
            await here.application(web(image="web:1"))
            await here.until_equal(others, ([], []))
            assert await here.deployments() == {"web": ("web:1", 1)}
            await here.client.delete(Application, "shop", NAMESPACE)

            async def left() -> Any:
                return (
                    await here.deployments(),
                    await here.revisions(),
                    await here.app_revisions(),
                    await here.names(ApplicationConfiguration),
                )

            await here.until_equal(left, ({}, [], [], []))

    play(scene())


def test_a_scaler_sets_the_replicas_and_makes_no_component_revision() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1", traits=[trait("scaler", replicas=3)]))
            await here.until_equal(here.deployments, {"web": ("web:1", 3)})
            await here.application(web(image="web:1", traits=[trait("scaler", replicas=1)]))

            async def replicas() -> Any:
                return (await here.get(Deployment, "web"))["spec"]["replicas"]

            await here.until_equal(replicas, 1)
            assert await here.revisions() == ["web-v1"]

    play(scene())


def test_a_rollout_trait_gets_a_frozen_workload_for_each_revision() -> None:
    async def scene() -> None:
        async with bed() as here:
            rollout = trait("rollout", targetSize=2, rolloutBatches=[{"replicas": 1}, {"replicas": 1}])
            await here.application(web(image="web:1", traits=[rollout]))
            await here.until_equal(here.deployments, {"web-v1": ("web:1", 0)})
            found = await here.get(Rollout, "web")
            assert (found["spec"]["targetRevisionName"], found["spec"]["componentName"]) == ("web-v1", "web")
            await here.application(web(image="web:2", traits=[rollout]))
            await here.until_equal(here.deployments, {"web-v1": ("web:1", 0), "web-v2": ("web:2", 0)})
            await here.at_rest()
            assert (await here.get(Rollout, "web"))["spec"]["targetRevisionName"] == "web-v2"
            back = trait("rollout", targetRevision="web-v1", targetSize=2)
            await here.application(web(image="web:2", traits=[back]))
            await here.at_rest()
            assert (await here.get(Rollout, "web"))["spec"]["targetRevisionName"] == "web-v1"
            assert await here.revisions() == ["web-v1", "web-v2"]
            await here.application(web(image="web:3", replicas=2))  # without a rollout again
            await here.until_equal(here.deployments, {"web-v2": ("web:3", 2)})

            async def rollouts() -> Any:
                return await here.names(Rollout)

            await here.until_equal(rollouts, [])

    play(scene())


def test_a_plan_of_the_application_itself_is_an_app_rollout() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1"), rolloutPlan={"targetSize": 2})
            await here.until_equal(here.deployments, {"web-v1": ("web:1", 0)})
            await here.at_rest()
            found = await here.get(AppRollout, "shop")
            plan = {"targetAppRevisionName": "shop-v1", "componentList": ["web"], "rolloutPlan": {"targetSize": 2}}
            assert found["spec"] == plan
            assert (await here.get(Application, "shop"))["status"]["status"] == "rollingOut"
            await here.application(web(image="web:1"), rolloutPlan={"targetSize": 3})
            await here.at_rest()
            assert await here.app_revisions() == ["shop-v1"]  # another plan is no other revision
            assert (await here.get(AppRollout, "shop"))["spec"]["rolloutPlan"] == {"targetSize": 3}
            await here.application(web(image="web:2"), rolloutPlan={"targetSize": 3})
            await here.at_rest()
            found = (await here.get(AppRollout, "shop"))["spec"]
            assert (found["sourceAppRevisionName"], found["targetAppRevisionName"]) == ("shop-v1", "shop-v2")
            await here.client.patch(
                AppRollout,
                "shop",
                _status({"rollingState": "rolloutSucceed", "batchRollingState": "batchReady", "currentBatch": 2}),
                NAMESPACE,
                subresource="status",
            )
            await here.at_rest()
            status = (await here.get(Application, "shop"))["status"]
            assert (status["status"], status["rollout"]["currentBatch"]) == ("running", 2)
            kept = (await here.get(ApplicationRevision, "shop-v2"))["spec"]
            assert "rolloutPlan" not in kept["application"]["spec"]

    play(scene())


def _status(fields: dict[str, Any]) -> Any:
    from kedge.kube.patches import MergePatch

    required = {"upgradedReplicas": 0, "upgradedReadyReplicas": 0, "lastTargetAppRevision": "shop-v2"}
    return MergePatch({"status": {**required, **fields}})


def test_somebody_elses_deployment_is_not_touched() -> None:
    async def scene() -> None:
        async with bed() as here:
            labels = {"mine": "yes"}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "mine:1"}]}}
            spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
            await here.client.create(Deployment, {"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec})
            await here.application(web(image="web:1"))

            async def applied() -> Any:
                return (await here.condition(Application, "shop", "Applied"))[:2]

            await here.until_equal(applied, ("False", "Refused"))
            message = (await here.condition(Application, "shop", "Applied"))[2]
            assert message.startswith("component web: Deployment prod/web exists already and was made by somebody else")
            assert (await here.deployments())["web"][0] == "mine:1"
            await here.client.delete(Deployment, "web", NAMESPACE)
            await here.until_equal(here.deployments, {"web": ("web:1", 1)})

    play(scene())


def test_two_applications_with_the_same_component_do_not_fight() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1"))
            await here.until_equal(here.deployments, {"web": ("web:1", 1)})
            await here.application(web(image="web:2"), name="other")
            await here.at_rest()
            message = (await here.condition(Application, "other", "Applied"))[2]
            assert "Deployment prod/web exists already and belongs to the Application shop" in message
            assert await here.deployments() == {"web": ("web:1", 1)}
            assert await here.revisions() == ["web-v1", "web-v2"]

    play(scene())


def test_two_operators_at_once_make_everything_once() -> None:
    async def scene() -> None:
        async with bed(operators=2) as here:
            for number in (1, 2, 3):
                await here.application(web(image=f"web:{number}", replicas=2))
                await here.until_equal(here.deployments, {"web": (f"web:{number}", 2)})
            await here.at_rest()
            assert await here.revisions() == ["web-v1", "web-v2", "web-v3"]
            assert await here.app_revisions() == ["shop-v1", "shop-v2", "shop-v3"]
            assert await here.names(ApplicationConfiguration) == ["shop-v3"]

    play(scene())


def test_a_lost_answer_to_any_write_does_no_harm() -> None:
    async def scene() -> None:
        for number in range(1, 12):
            async with bed() as here:
                here.transport.fail_after = number
                await here.application(web(image="web:1", traits=[trait("scaler", replicas=2)]))
                await here.until_equal(here.deployments, {"web": ("web:1", 2)})
                await here.at_rest()
                assert (await here.revisions(), await here.app_revisions()) == (["web-v1"], ["shop-v1"])
                assert (await here.condition(Application, "shop", "Applied"))[0] == "True"

    play(scene())


def test_a_deleted_workload_is_made_again() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.application(web(image="web:1"))
            await here.until_equal(here.deployments, {"web": ("web:1", 1)})
            before = (await here.get(Deployment, "web"))["metadata"]["uid"]
            await here.client.delete(Deployment, "web", NAMESPACE)

            async def made_again() -> bool:
                try:
                    return bool((await here.get(Deployment, "web"))["metadata"]["uid"] != before)
                except NotFound:
                    return False

            await here.until(made_again)

    play(scene())
