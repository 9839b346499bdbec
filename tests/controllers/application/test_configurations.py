"""Components and ApplicationConfigurations on an embedded server, in virtual time."""

from __future__ import annotations

from typing import Any

from controllers.application.application_bed import NAMESPACE, Bed, bed, play
from kedge.api.apps import ControllerRevision, Deployment, StatefulSet
from kedge.api.crd import crd
from kedge.api.kruise import CloneSet
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.keys import CLAIM, CREATING, FROZEN
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from plan.oam.objects import AUTOSCALER, DEPLOYMENT, STATEFUL_SET

CLONE_SETS = crd(CloneSet)  # here: it reads files
PLAN = {"rolloutPlan": {"targetSize": 2}}
ROLLOUT_TRAIT = {"apiVersion": "standard.oam.dev/v1alpha1", "kind": "RolloutTrait", "spec": PLAN}
ROLLOUT = {**ROLLOUT_TRAIT, "kind": "Rollout"}


def version(number: int, kind: Any = DEPLOYMENT, replicas: int = 2) -> dict[str, Any]:
    containers = [{"name": "web", "image": f"web:{number}"}]
    template = {**kind["spec"]["template"], "spec": {"containers": containers}}
    return {**kind, "spec": {**kind["spec"], "replicas": replicas, "template": template}}


def with_traits(*traits: Any, **more: Any) -> dict[str, Any]:
    return {"componentName": "web", "traits": [{"trait": one} for one in traits], **more}


async def synced(here: Bed) -> tuple[str, str, str]:
    return await here.condition(ApplicationConfiguration, "conf", "Synced")


def test_each_state_of_a_component_is_a_revision() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1))
            await here.until_equal(here.revisions, ["web-v1"])
            await here.at_rest()
            writes = len(here.transport.writes)
            await here.annotate(Component, "web", "x", "y")
            await here.component(version(1))
            await here.at_rest()
            assert here.transport.writes[writes:] == []
            await here.component(version(2))
            await here.until_equal(here.revisions, ["web-v1", "web-v2"])
            await here.at_rest()
            status = (await here.get(Component, "web"))["status"]
            assert (status["latestRevision"]["name"], status["latestRevision"]["revision"]) == ("web-v2", 2)
            assert (await here.condition(Component, "web", "Synced"))[:2] == ("True", "ReconcileSuccess")
            kept = await here.get(ControllerRevision, "web-v2")
            assert kept["data"]["spec"]["workload"] == version(2)
            assert (kept["revision"], kept["data"]["kind"]) == (2, "Component")
            await here.client.delete(Component, "web", NAMESPACE)
            await here.until_equal(here.revisions, [])

    play(scene())


def test_parameters_are_not_used_and_the_condition_says_so() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1), parameters=[{"name": "image", "fieldPaths": ["spec.image"]}])
            await here.at_rest()
            found = await here.condition(Component, "web", "Synced")
            assert found == (
                "True",
                "ReconcileSuccess",
                "spec.parameters is not used: put the values into spec.workload",
            )

    play(scene())


def test_a_name_that_is_too_long_is_refused_in_the_condition() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1), name="w" * 61)
            await here.at_rest()
            found = await here.condition(Component, "w" * 61, "Synced")
            assert found[:2] == ("False", "Refused")
            assert "is too long" in found[2]

    play(scene())


def test_a_configuration_follows_the_newest_revision_of_its_component_or_stays_at_one() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.configuration(with_traits())
            await here.at_rest()
            assert await synced(here) == ("False", "Refused", "the Component web does not exist")
            await here.component(version(1))
            await here.until_equal(here.deployments, {"web": ("web:1", 2)})
            await here.component(version(2))
            await here.until_equal(here.deployments, {"web": ("web:2", 2)})
            await here.at_rest()
            assert (await synced(here))[0] == "True"
            (emitted,) = (await here.get(ApplicationConfiguration, "conf"))["status"]["workloads"]
            assert (emitted["componentRevisionName"], emitted["available"]) == ("web-v2", True)
            assert emitted["workloadRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
            change = MergePatch({"spec": {"components": [{"componentName": "web", "revisionName": "web-v1"}]}})
            await here.client.patch(ApplicationConfiguration, "conf", change, NAMESPACE)
            await here.until_equal(here.deployments, {"web": ("web:1", 2)})
            await here.client.delete(ApplicationConfiguration, "conf", NAMESPACE)
            await here.until_equal(here.deployments, {})

    play(scene())


def test_a_rollout_trait_gets_component_revisions_as_source_and_target() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1))
            await here.configuration(with_traits(ROLLOUT_TRAIT))
            await here.until_equal(here.deployments, {"web-v1": ("web:1", 0)})

            async def refs() -> Any:
                found = (await here.get(RolloutTrait, "web"))["spec"]
                return found["targetRef"]["name"], [one["name"] for one in found.get("sourceRef", ())]

            await here.until_equal(refs, ("web-v1", []))
            await here.component(version(2))
            await here.until_equal(refs, ("web-v2", ["web-v1"]))
            await here.component(version(3))  # midway: pods of both may run
            await here.until_equal(refs, ("web-v3", ["web-v1", "web-v2"]))
            await here.at_rest()
            assert set(await here.deployments()) == {"web-v1", "web-v2", "web-v3"}
            found = await here.get(RolloutTrait, "web")
            assert found["spec"]["targetRef"]["kind"] == "ControllerRevision"
            assert found["metadata"]["ownerReferences"][0]["kind"] == "ApplicationConfiguration"

    play(scene())


def test_a_stateful_set_is_frozen_in_the_same_write_as_its_template() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1, STATEFUL_SET))
            await here.configuration(with_traits(ROLLOUT))

            async def there() -> Any:
                return await here.names(StatefulSet)

            await here.until_equal(there, ["web"])
            await here.at_rest()
            scaled = {"spec": {"replicas": 3}, "metadata": {"annotations": {FROZEN: None}}}  # the rollout did
            await here.client.patch(StatefulSet, "web", MergePatch(scaled), NAMESPACE)
            await here.at_rest()
            await here.client.patch(
                StatefulSet,
                "web",
                MergePatch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}),
                NAMESPACE,
            )
            await here.component(version(2, STATEFUL_SET))
            await here.at_rest()
            live = await here.get(StatefulSet, "web")
            assert live["spec"]["replicas"] == 3
            assert live["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 3
            assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
            assert live["metadata"]["labels"]["app.oam.dev/revision"] == "web-v2"
            assert FROZEN in live["metadata"]["annotations"]
            assert live["status"]["currentRevision"] != live["status"]["updateRevision"]

    play(scene())


def test_nobody_writes_a_workload_that_a_rollout_moves() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1, STATEFUL_SET))
            await here.configuration(with_traits(ROLLOUT))
            await here.until(lambda: here.names(StatefulSet))
            await here.annotate(StatefulSet, "web", CLAIM, "Rollout/web/u1")
            await here.component(version(2, STATEFUL_SET))
            await here.at_rest()
            assert await synced(here) == ("False", "Waiting", "Rollout/web/u1 moves StatefulSet prod/web now")

            async def image() -> Any:
                return (await here.get(StatefulSet, "web"))["spec"]["template"]["spec"]["containers"][0]["image"]

            assert await image() == "web:1"
            await here.annotate(StatefulSet, "web", CLAIM, None)
            await here.until_equal(image, "web:2")
            await here.at_rest()
            assert (await synced(here))[0] == "True"

    play(scene())


def test_a_clone_set_is_paused() -> None:
    async def scene() -> None:
        async with bed(definitions=[CLONE_SETS]) as here:
            kind = {**DEPLOYMENT, "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
            await here.component(version(1, kind))
            await here.configuration(with_traits(ROLLOUT))
            await here.until(lambda: here.names(CloneSet))
            live = (await here.get(CloneSet, "web"))["spec"]
            assert (live["replicas"], live["updateStrategy"]["paused"]) == (0, True)
            await here.client.patch(untyped(CloneSet.resource), "web", MergePatch({"spec": {"replicas": 4}}), NAMESPACE)
            await here.component(version(2, kind))

            async def image() -> Any:
                return (await here.get(CloneSet, "web"))["spec"]["template"]["spec"]["containers"][0]["image"]

            await here.until_equal(image, "web:2")
            live = (await here.get(CloneSet, "web"))["spec"]
            assert (live["replicas"], live["updateStrategy"]["paused"]) == (4, True)

    play(scene())


def test_traits_that_are_not_asked_for_any_more_go() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1))
            await here.configuration(with_traits(AUTOSCALER))
            await here.at_rest()
            hpa = untyped(_autoscalers())
            found = await here.client.get(hpa, "web", NAMESPACE)
            assert found["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
            change = MergePatch({"spec": {"components": [{"componentName": "web"}]}})
            await here.client.patch(ApplicationConfiguration, "conf", change, NAMESPACE)

            async def left() -> Any:
                return [one["metadata"]["name"] for one in (await here.client.list(hpa, NAMESPACE)).items]

            await here.until_equal(left, [])
            assert await here.deployments() == {"web": ("web:1", 2)}

    play(scene())


def _autoscalers() -> Any:
    from kedge.api.resource import Resource

    return Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")


def test_one_component_that_cannot_be_written_does_not_hold_up_the_others() -> None:
    async def scene() -> None:
        async with bed() as here:
            game = {"apiVersion": "example.com/v1", "kind": "Game"}
            await here.component(version(1))
            await here.component(game, name="game")
            await here.component({"apiVersion": "v1", "kind": "Namespace"}, name="space")
            await here.component({**DEPLOYMENT, "spec": {"replicas": -1}}, name="bad")
            names = ("game", "web", "space", "bad")
            await here.configuration(*({"componentName": name} for name in names))
            await here.until_equal(here.deployments, {"web": ("web:1", 2)})

            async def refused() -> Any:
                return (await synced(here))[:2]

            await here.until_equal(refused, ("False", "Refused"))
            message = (await synced(here))[2]
            assert "the cluster serves no Game of example.com/v1: install its definition first" in message
            assert "a Namespace is not of a namespace, and cannot be part of a component" in message
            assert "component bad: " in message

    play(scene())


def test_conflicting_traits_are_refused_in_a_configuration_too() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.component(version(1))
            await here.configuration(with_traits(ROLLOUT, AUTOSCALER))
            await here.at_rest()
            status, reason, message = await synced(here)
            assert (status, reason) == ("False", "Refused")
            assert message.startswith("component web has Rollout and HorizontalPodAutoscaler, which both set its rep")
            assert await here.deployments() == {}

    play(scene())


def test_the_mark_of_the_first_time_is_removed_when_everything_is_written() -> None:
    async def scene() -> None:
        async with bed() as here:
            await here.configuration(with_traits(ROLLOUT), **{CREATING: "true"})
            await here.at_rest()
            assert (await here.get(ApplicationConfiguration, "conf"))["metadata"]["annotations"] == {CREATING: "true"}
            await here.component(version(1))
            await here.until_equal(here.deployments, {"web-v1": ("web:1", 0)})
            await here.at_rest()
            assert "annotations" not in (await here.get(ApplicationConfiguration, "conf"))["metadata"]
            live = (await here.get(Deployment, "web-v1"))["spec"]
            assert (live["replicas"], live["paused"]) == (0, True)

    play(scene())
