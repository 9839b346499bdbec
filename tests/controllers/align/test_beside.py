"""`kedge align` beside a modelled Karmada: story 1 and bad days, with all pods of all members counted all the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from controllers.align.align_bed import SHOP
from controllers.align.beside_bed import BesideBed, beside_bed
from controllers.align.recorder import PodRecorder
from kedge import rights
from kedge.api.apps import Deployment
from kedge.api.core import Event
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.pods import Pod
from kedge.cli.binding_target import BindingName, BindingReader
from kedge.kube.patches import MergePatch
from kedge.plan.aligning.binding_story import PodShare
from kedge.plan.state import State
from kedge.plan.workloads.pods import is_ready
from support.virtual import run
from support.waiting import until_so

SINCE = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
TWO = {"cluster-1": 4, "cluster-2": 6}


def image(name: str) -> dict[str, object]:
    return {"template": {"spec": {"containers": [{"name": "app", "image": name}]}}}


@asynccontextmanager
async def counted(here: BesideBed) -> AsyncIterator[PodRecorder]:
    """All pods, at every event, from when ten are ready."""
    recorder = PodRecorder()
    async with recorder.following(here.members, SHOP):
        while len(recorder.ready_images()) != 10:
            await asyncio.sleep(0.1)
        recorder.forget()
        yield recorder


async def counted_release(here: BesideBed, *images: str, apart: float = 0.0, aligned: bool = True) -> PodRecorder:
    """Release these, one after the other, until the last runs everywhere; all pods are counted meanwhile."""
    if aligned:
        await here.taken_over(2)
    async with counted(here) as pods:
        for name in images:
            await here.edit(Deployment, image(name))
            await asyncio.sleep(apart)
        await here.until_images(*[images[-1]] * 10)
        return pods


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_story_1_a_deployment_that_karmada_divides_rolls_as_one(seed: int, *, tells_seq: bool) -> None:
    async def body() -> None:
        async with beside_bed(*TWO, seed=seed, tells_seq=tells_seq) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            pods = await counted_release(here, "app:2")
            assert pods.fewest >= 8
            assert pods.most <= 11

    run(body())


def test_without_it_karmada_takes_away_what_each_cluster_allows() -> None:
    async def body() -> None:
        async with beside_bed(*TWO, aligned=False) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            pods = await counted_release(here, "app:2", aligned=False)
            assert pods.fewest < 8

    run(body())


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_releases_midway_keep_the_budget_however_late_karmada_is(seed: int, *, tells_seq: bool) -> None:
    async def body() -> None:
        async with beside_bed(*TWO, seed=seed, lag=3.0, tells_seq=tells_seq) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            apart = Random(seed).uniform(0.5, 12.0)
            pods = await counted_release(here, "app:2", "app:3", "app:4", apart=apart)
            assert pods.fewest >= 8
            assert pods.most <= 11

    run(body())


def test_what_ran_before_is_taken_as_it_is_and_then_aligned() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO, align=False)
            await here.until_images(*["app:1"] * 10)
            assert await here.suspended() == ()
            await here.opt("true")
            await asyncio.sleep(30)
            assert await here.suspended() == tuple(TWO)
            pods = await counted_release(here, "app:2")
            assert pods.fewest >= 8
            assert pods.most <= 11

    run(body())


def test_replicas_that_move_are_added_before_they_are_taken_away() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await asyncio.sleep(30)
            async with counted(here) as pods:
                clusters = [{"name": "cluster-1", "replicas": 7}, {"name": "cluster-2", "replicas": 3}]
                body = MergePatch({"spec": {"clusters": clusters}})
                await here.hub.patch(ResourceBinding, "demo-deployment", body, SHOP)
                await until_so(lambda: has_pods(here, "cluster-1", 7), 600)
                await until_so(lambda: has_pods(here, "cluster-2", 3), 600)
            assert pods.fewest >= 8
            assert pods.most <= 11

    run(body())


@pytest.mark.parametrize(("unavailable", "surge"), [(1, 0), (0, 1)])
def test_replicas_move_with_a_budget_of_one_pod(unavailable: int, surge: int) -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            limits = {"maxUnavailable": unavailable, "maxSurge": surge}
            await here.propagate(TWO, strategy={"type": "RollingUpdate", "rollingUpdate": limits})
            await here.until_images(*["app:1"] * 10)
            await here.taken_over(2)
            async with counted(here) as pods:
                clusters = [{"name": "cluster-1", "replicas": 6}, {"name": "cluster-2", "replicas": 4}]
                body = MergePatch({"spec": {"clusters": clusters}})
                await here.hub.patch(ResourceBinding, "demo-deployment", body, SHOP)
                await until_so(lambda: has_pods(here, "cluster-1", 6), 600)
                await until_so(lambda: has_pods(here, "cluster-2", 4), 600)
            assert pods.fewest >= 10 - unavailable
            assert pods.most <= 10 + surge

    run(body())


def test_what_a_cluster_waits_for_is_said_by_the_binding_an_event_and_the_verbs() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await here.taken_over(2)
            at_rest = await here.until_aligned("Aligned")
            assert (at_rest.status, at_rest.message) == ("True", "All clusters are where they are to be")
            await here.edit(Deployment, image("app:bad"))
            await here.until_aligned("BudgetSpent")
            await asyncio.sleep(60)
            stuck = await here.until_aligned("BudgetSpent")
            # Karmada writes one Work first, and that cluster begins.
            waiter, holder = TWO if "cluster-1: at most" in stuck.message else reversed(TWO)
            waits = (
                f"at most 2 of 10 pods may be unavailable, and 1 may be extra: {holder} holds that until new pods"
                " there are available"
            )
            assert stuck.status == "False"
            assert f"{waiter}: {waits}" in stuck.message
            events = [one.message for one in (await here.hub.list(Event, SHOP)).items if one.reason == "RolloutWaits"]
            assert events == [f"{waiter}: {waits}"]
            which = BindingName(ResourceBinding, SHOP, "demo-deployment")
            story = await BindingReader(here.hub).story(which)
            assert story == (await BindingReader(here.hub).stories(ResourceBinding, None))[0]
            told = {one.name: one for one in story.clusters}
            assert (told[waiter].state, told[waiter].why) == (State.waiting, waits)
            assert (told[holder].state, told[holder].granted) == (State.moving, PodShare(2, 1))
            assert (story.in_flight, story.total("available"), story.fewest) == (PodShare(2, 1), 8, 8)
            binding, _ = await BindingReader(here.hub).one(which)
            assert await BindingReader(here.hub).is_aligned_beside(binding)
            await here.opt(None)
            assert not await BindingReader(here.hub).is_aligned_beside(binding)

    run(body())


def test_conditions_of_karmada_stay_and_ours_goes_when_it_is_left_to_karmada() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO)
            scheduled = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "", **SINCE}
            await here.hub.patch(
                ResourceBinding,
                "demo-deployment",
                MergePatch({"status": {"conditions": [scheduled]}}),
                SHOP,
                subresource="status",
            )
            await here.until_aligned("Aligned")
            await here.opt(None)
            await asyncio.sleep(10)
            binding = await here.hub.get(ResourceBinding, "demo-deployment", SHOP)
            assert [one.type for one in binding.status.conditions] == ["Scheduled"]

    run(body())


async def has_pods(here: BesideBed, cluster: str, number: int) -> bool:
    return len([pod for pod in (await here.members[cluster].list(Pod, SHOP)).items if is_ready(pod)]) == number


def test_at_rest_every_cluster_is_suspended_and_nothing_is_written() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await asyncio.sleep(60)
            assert await here.suspended() == tuple(TWO)
            before = (await here.hub.list(OverridePolicy)).items
            await asyncio.sleep(600)
            assert (await here.hub.list(OverridePolicy)).items == before

    run(body())


def test_a_policy_that_asks_no_longer_is_left_to_karmada_alone() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await here.opt(None)
            await asyncio.sleep(10)
            assert await here.suspended() == ()
            assert (await here.hub.list(OverridePolicy)).items == ()

    run(body())


def test_it_asks_for_what_its_printed_rights_allow_and_no_right_is_in_vain() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await counted_release(here, "app:2")
            await here.opt(None)
            await asyncio.sleep(10)
            others = {"create events", "patch events", "patch clusterpropagationpolicies"}  # not in this story
            granted = {
                f"{verb} {kind}" for rule in rights.BESIDE for kind in rule.resources for verb in rule.verbs or ()
            }
            assert here.asked <= granted
            seldom = {one for one in granted if one.startswith(("list ", "get ")) and one != "get deployments"}
            assert granted - here.asked <= seldom | others

    run(body())


def test_a_policy_for_several_resources_is_refused_and_nothing_is_suspended() -> None:
    async def body() -> None:
        async with beside_bed(*TWO) as here:
            everything = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
            await here.propagate(TWO, resourceSelectors=everything)
            await here.until_images(*["app:1"] * 10)
            await asyncio.sleep(10)
            assert await here.suspended() == ()
            messages = [one.message for one in (await here.hub.list(Event, SHOP)).items if one.reason == "NotAligned"]
            assert len(messages) == 1
            assert messages[0].startswith("the policy selects more than Deployment shop/demo, which would be let")
            assert (await here.until_aligned("NotAligned")).message == messages[0]
            which = BindingName(ResourceBinding, SHOP, "demo-deployment")
            story = await BindingReader(here.hub).story(which)
            assert (story.state, story.why, len(story.clusters)) == (State.failed, messages[0], 2)

    run(body())
