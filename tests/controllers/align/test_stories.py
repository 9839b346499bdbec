"""Both stories of the proposal on embedded servers: all pods of all members counted at every moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import yaml

from controllers.align.align_bed import SHOP, align_bed
from controllers.align.recorder import PodRecorder
from controllers.align.stories import (
    DEPLOYMENT,
    NAMESPACE,
    NEW,
    OLD,
    StoryBed,
    before,
    play_clone_set,
    play_deployment,
    play_pause,
    play_stateful_set,
)
from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.works import Work
from kedge.kube.patches import MergePatch
from support.virtual import run
from support.waiting import until


@pytest.mark.parametrize("play", [play_deployment, play_pause, play_clone_set, play_stateful_set])
def test_a_story_of_the_proposal(play: Callable[[StoryBed], Awaitable[None]]) -> None:
    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            await play(here.story)

    run(body())


def test_the_recorder_sees_what_copies_of_the_whole_strategy_do() -> None:
    """Two clusters with a copy each take 4 pods away, and add 2: whoever could not see that would judge nothing."""

    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            recorder, workload = PodRecorder(), next(yaml.safe_load_all(before(DEPLOYMENT)))
            async with recorder.following(here.members, NAMESPACE):
                for member, replicas in zip(here.members.values(), (4, 6), strict=True):
                    copy = {**workload, "spec": {**workload["spec"], "replicas": replicas}}
                    await member.create(Deployment, copy, NAMESPACE)
                await until(lambda: recorder.ready_images() == [OLD] * 10)
                recorder.forget()
                for member in here.members.values():
                    change = {"template": {"spec": {"containers": [{"name": "main", "image": NEW}]}}}
                    await member.patch(Deployment, "demo", MergePatch({"spec": change}), NAMESPACE)
                await until(lambda: recorder.ready_images() == [NEW] * 10)
            assert recorder.fewest < 8
            assert recorder.most > 11

    run(body())


def test_a_binding_that_is_deleted_takes_its_pods_along() -> None:
    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            await here.deploy(Deployment, {"cluster-1": 1, "cluster-2": 2})
            await here.until_images(*["app:1"] * 3)
            await here.hub.delete(ResourceBinding, "demo-deployment", SHOP)
            await here.until_images()
            assert (await here.hub.list(Work)).items == ()
            assert (await here.hub.list(ResourceBinding)).items == ()

    run(body())
