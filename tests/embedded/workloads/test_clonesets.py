"""CloneSets on the embedded server, with its kubelet, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import pytest

from embedded.workloads.test_other_workloads import template, until
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import ControllerRevision
from kedge.api.crds import kruise_crds
from kedge.api.kruise import CloneSet
from kedge.embedded.workloads.clonesets import CloneSets
from kedge.embedded.workloads.everything import EVERYTHING, add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.codec import untyped
from kedge.kube.errors import Invalid
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.stage import PODS, Stage, embedded_stage, is_ready
from support.virtual import run

DEFINITIONS = kruise_crds()  # here: it reads files
CRDS = untyped(CustomResourceDefinition.resource)
CLONE_SETS = untyped(CloneSet.resource)
REVISIONS = untyped(ControllerRevision.resource)


@asynccontextmanager
async def kruise(parts: Any = EVERYTHING, **options: Any) -> AsyncIterator[Stage]:
    """A namespace with everything that is simulated, two nodes, and the CRD."""
    async with embedded_stage(parts, **options) as stage:
        await make_nodes(stage.client, 2, stage.clock)
        await install(stage)
        yield stage


async def install(stage: Stage) -> None:
    for definition in DEFINITIONS:
        await stage.client.create(CRDS, definition)
    await asyncio.sleep(2)


async def make(stage: Stage, pods: dict[str, Any] | None = None, strategy: Any = None, **spec: Any) -> None:
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": pods or template(), **spec}
    body |= {"updateStrategy": strategy} if strategy else {}
    await stage.client.create(CLONE_SETS, {"metadata": {"name": "web"}, "spec": body}, stage.namespace)


async def change(stage: Stage, image: str = "", **spec: Any) -> None:
    body = {**spec, **({"template": {"spec": template(image)["spec"]}} if image else {})}
    await stage.client.patch(CLONE_SETS, "web", MergePatch({"spec": body}), stage.namespace)


async def status(stage: Stage) -> dict[str, Any]:
    found = await stage.client.get(CLONE_SETS, "web", stage.namespace)
    return dict(found.get("status", {}))


async def images(stage: Stage) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in await stage.all(PODS) if is_ready(pod))


def runs(stage: Stage, **wanted: int) -> Callable[[], Awaitable[bool]]:
    """Whether so many pods of each image are ready, there are no others, and the status says so."""
    expected = sorted(f"web:{image.removeprefix('v')}" for image, number in wanted.items() for _ in range(number))

    async def holds() -> bool:
        found = await stage.client.get(CLONE_SETS, "web", stage.namespace)
        said = found.get("status", {})
        counted = [said.get(name, 0) for name in ("replicas", "readyReplicas", "availableReplicas")]
        at_generation = said.get("observedGeneration") == found["metadata"]["generation"]
        return at_generation and counted == [len(expected)] * 3 and await images(stage) == expected

    return holds


class Watcher:
    """Looks at the pods very often, and remembers the least that were ready and the most that there were."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.least, self.most, self.most_new = 1000, 0, 0

    async def run(self) -> None:
        while True:
            found = [pod for pod in await self._stage.all(PODS) if "deletionTimestamp" not in pod["metadata"]]
            self.least = min(self.least, sum(map(is_ready, found)))
            self.most = max(self.most, len(found))
            new = sum(pod["spec"]["containers"][0]["image"] == "web:2" for pod in found)
            self.most_new = max(self.most_new, new)
            await asyncio.sleep(0.05)


@asynccontextmanager
async def watched(stage: Stage) -> AsyncIterator[Watcher]:
    watcher = Watcher(stage)
    task = asyncio.create_task(watcher.run())
    yield watcher
    task.cancel()


def test_a_set_without_a_strategy_has_its_pods_and_says_everything() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, replicas=3)
            await until(runs(stage, v1=3))
            said = await status(stage)
            (revision,) = await stage.all(REVISIONS)
            name = revision["metadata"]["name"]
            assert said == {
                "observedGeneration": 1,
                "replicas": 3,
                "readyReplicas": 3,
                "availableReplicas": 3,
                "updatedReplicas": 3,
                "updatedReadyReplicas": 3,
                "updatedAvailableReplicas": 3,
                "expectedUpdatedReplicas": 3,
                "updateRevision": name,
                "currentRevision": name,
                "collisionCount": 0,
                "labelSelector": "app=web",
            }
            for pod in await stage.all(PODS):
                assert pod["metadata"]["labels"]["controller-revision-hash"] == name
                base, _, suffix = pod["metadata"]["name"].rpartition("-")
                assert (base, len(suffix)) == ("web", 5)

    run(main())


@pytest.mark.parametrize(
    ("strategy", "least", "most"),
    [
        ({}, 8, 10),  # 20 % unavailable, no surge
        ({"maxUnavailable": 1}, 9, 10),
        ({"maxUnavailable": 0, "maxSurge": 3}, 10, 13),
        ({"maxUnavailable": "15%", "maxSurge": "15%"}, 9, 12),  # 1 and 2
        ({"type": "InPlaceIfPossible", "maxUnavailable": 3}, 7, 10),
    ],
)
def test_an_update_stays_within_its_limits(strategy: dict[str, Any], least: int, most: int) -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(ready_after="5s"), strategy, replicas=10)
            await until(runs(stage, v1=10))
            async with watched(stage) as watcher:
                await change(stage, "web:2")
                await until(runs(stage, v2=10))
            assert (watcher.least, watcher.most) == (least, most)
            said = await status(stage)
            assert said["currentRevision"] == said["updateRevision"]

    run(main())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["ReCreate", "InPlaceIfPossible"])
def test_an_update_stays_within_its_limits_however_late_watches_are(kind: str, seed: int) -> None:
    async def main() -> None:
        async with kruise(seed=seed, delay=(0.0, 3.0)) as stage:
            strategy = {"type": kind, "maxUnavailable": 2, "maxSurge": 1, "partition": 3}
            await make(stage, template(), strategy, replicas=10)
            await until(runs(stage, v1=10))
            async with watched(stage) as watcher:
                await change(stage, "web:2")
                await until(runs(stage, v1=3, v2=7))
                await asyncio.sleep(30)
                await change(stage, updateStrategy={"partition": 8})
                await until(runs(stage, v1=8, v2=2))
            assert watcher.least >= 8
            assert watcher.most <= 11
            assert watcher.most_new == 7

    run(main())


@pytest.mark.parametrize("kind", ["ReCreate", "InPlaceIfPossible"])
def test_a_partition_goes_forward_and_back(kind: str) -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), {"type": kind, "partition": "100%"}, replicas=5)
            await until(runs(stage, v1=5))
            before = (await status(stage))["currentRevision"]
            await change(stage, "web:2")
            await until(runs(stage, v1=5))
            for partition, new in ((4, 1), (2, 3), ("60%", 2), (5, 0), (1, 4)):
                async with watched(stage) as watcher:
                    await change(stage, updateStrategy={"partition": partition})
                    await until(runs(stage, v1=5 - new, v2=new))
                said = await status(stage)
                assert (said["updatedReplicas"], said.get("expectedUpdatedReplicas", 0)) == (new, new)
                assert said["currentRevision"] == before != said["updateRevision"]
                assert (watcher.least, watcher.most) == (4, 5)
            await change(stage, updateStrategy={"partition": 0})
            await until(runs(stage, v2=5))

    run(main())


def test_without_partition_rollback_updated_pods_stay() -> None:
    parts = [(name, make) for name, make in EVERYTHING if name != "cloneset"]
    parts.append(("cloneset", partial(CloneSets, partition_rollback=False)))

    async def main() -> None:
        async with kruise(parts) as stage:
            await make(stage, template(), {"partition": 3}, replicas=5)
            await until(runs(stage, v1=5))
            await change(stage, "web:2")
            await until(runs(stage, v1=3, v2=2))
            await change(stage, updateStrategy={"partition": 5})
            await asyncio.sleep(60)
            assert await runs(stage, v1=3, v2=2)()

    run(main())


def test_a_paused_set_is_scaled_and_not_updated() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), {"maxSurge": 2}, replicas=4)
            await until(runs(stage, v1=4))
            await change(stage, "web:2", updateStrategy={"paused": True, "partition": "100%"})
            await asyncio.sleep(60)
            assert await runs(stage, v1=4)()
            await stage.client.delete(PODS, (await stage.all(PODS))[0]["metadata"]["name"], stage.namespace)
            await change(stage, replicas=6)
            await until(runs(stage, v1=6))
            await change(stage, replicas=3)
            await until(runs(stage, v1=3))
            await change(stage, updateStrategy={"paused": False, "partition": 0})
            await until(runs(stage, v2=3))

    run(main())


def test_on_delete_leaves_pods_alone_until_somebody_deletes_them() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), {"type": "OnDelete", "maxSurge": 1}, replicas=3)
            await until(runs(stage, v1=3))
            await change(stage, "web:2")
            await asyncio.sleep(60)
            assert await runs(stage, v1=3)()
            await stage.client.delete(PODS, (await stage.all(PODS))[0]["metadata"]["name"], stage.namespace)
            await until(runs(stage, v1=2, v2=1))

    run(main())


async def names(stage: Stage) -> list[str]:
    return [pod["metadata"]["name"] for pod in await stage.all(PODS)]


@pytest.mark.parametrize("kind", ["InPlaceIfPossible", "InPlaceOnly"])
def test_new_images_are_given_in_place_and_the_pod_restarts(kind: str) -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(ready_after="10s"), {"type": kind, "maxUnavailable": 1}, replicas=3)
            await until(runs(stage, v1=3))
            before = await names(stage)
            await change(stage, "web:2")
            assert 30 <= await until(runs(stage, v2=3)) < 33
            assert await names(stage) == before
            revision = (await status(stage))["updateRevision"]
            for pod in await stage.all(PODS):
                assert pod["metadata"]["labels"]["controller-revision-hash"] == revision
                (container,) = pod["status"]["containerStatuses"]
                assert (container["image"], container["restartCount"], container["ready"]) == ("web:2", 1, True)
                gate = next(one for one in pod["status"]["conditions"] if one["type"] == "InPlaceUpdateReady")
                assert gate["status"] == "True"

    run(main())


def test_a_bad_image_stops_an_update_in_place_and_a_good_one_goes_on() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), {"type": "InPlaceIfPossible", "maxUnavailable": 1}, replicas=3)
            await until(runs(stage, v1=3))
            before = await names(stage)
            await change(stage, "web:bad")
            await asyncio.sleep(60)
            said = await status(stage)
            assert (said["updatedReplicas"], said["readyReplicas"], said.get("updatedReadyReplicas")) == (1, 2, 0)
            await change(stage, "web:2")
            await until(runs(stage, v2=3))
            assert await names(stage) == before

    run(main())


def test_more_than_an_image_recreates_pods_or_fails_where_only_in_place_will_do() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), {"type": "InPlaceOnly"}, replicas=2)
            await until(runs(stage, v1=2))
            before = await names(stage)
            container = {"name": "web", "image": "web:2", "env": [{"name": "A", "value": "b"}]}
            await change(stage, template={"spec": {"containers": [container]}})
            await asyncio.sleep(60)
            (said,) = (await status(stage))["conditions"]
            assert (said["type"], said["status"]) == ("FailedUpdate", "True")
            assert "cannot be updated in place" in said["message"]
            assert await names(stage) == before
            await change(stage, updateStrategy={"type": "InPlaceIfPossible"})
            await until(runs(stage, v2=2))
            assert "conditions" not in await status(stage)
            assert not set(await names(stage)) & set(before)

    run(main())


def test_a_pod_is_available_only_after_min_ready_seconds() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), {"maxUnavailable": 1}, replicas=3, minReadySeconds=10)
            await until(runs(stage, v1=3))
            await change(stage, "web:2")
            assert 27 <= await until(runs(stage, v2=3)) < 34  # times in objects are in whole seconds

    run(main())


def test_a_change_back_takes_the_old_revision_again_and_old_ones_are_forgotten() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage, template(), replicas=1, revisionHistoryLimit=1)
            await until(runs(stage, v1=1))
            first = (await status(stage))["updateRevision"]
            for image in ("2", "3", "2", "4"):
                await change(stage, f"web:{image}")
                await until(runs(stage, **{f"v{image}": 1}))
            assert len(await stage.all(REVISIONS)) == 2
            await change(stage, "web:1")
            await until(runs(stage, v1=1))
            assert (await status(stage))["updateRevision"] == first

    run(main())


def test_a_refused_pod_is_told_as_a_condition() -> None:
    async def main() -> None:
        async with kruise() as stage:
            refused = {**template(), "spec": {"containers": [{"name": "No Name", "image": "web:1"}]}}
            await make(stage, refused, replicas=3)
            await asyncio.sleep(30)
            (said,) = (await status(stage))["conditions"]
            assert (said["type"], said["status"]) == ("FailedScale", "True")
            assert "spec.containers[0].name" in said["message"]
            await change(stage, "web:1")
            await until(runs(stage, v1=3))
            assert "conditions" not in await status(stage)

    run(main())


# The definition


@pytest.mark.parametrize(
    ("strategy", "replicas", "problem"),
    [
        ({"maxUnavailable": 0}, 3, "should not both be less than 1"),
        ({"maxUnavailable": "0%", "maxSurge": "0%"}, 1, "should not both be less than 1"),
        ({"type": "InPlaceOnly", "maxSurge": 1}, 3, "can not be used with type InPlaceOnly"),
        ({"type": "Sometimes"}, 3, "Unsupported value"),
        ({"partition": "half"}, 3, "partition"),
    ],
)
def test_what_makes_no_sense_is_refused(strategy: dict[str, Any], replicas: int, problem: str) -> None:
    async def main() -> None:
        async with kruise(()) as stage:
            with pytest.raises(Invalid, match=problem):
                await make(stage, strategy=strategy, replicas=replicas)

    run(main())


@pytest.mark.parametrize(
    ("strategy", "replicas"),
    [
        ({"maxUnavailable": 0}, 0),
        ({"maxUnavailable": 0, "maxSurge": "1%"}, 3),
        ({"maxUnavailable": "1%"}, 3),
        ({"type": "InPlaceOnly", "maxSurge": 0}, 3),
        ({"type": "InPlaceIfPossible", "maxSurge": 1}, 3),
        ({"scatterStrategy": [{"key": "a", "value": "b"}]}, 3),
    ],
)
def test_what_is_left_out_is_filled_in_and_what_is_not_known_is_kept(strategy: dict[str, Any], replicas: int) -> None:
    async def main() -> None:
        async with kruise(()) as stage:
            await make(stage, strategy=strategy, replicas=replicas)
            found = await stage.client.get(CLONE_SETS, "web", stage.namespace)
            filled_in = {"type": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0}
            assert found["spec"]["updateStrategy"] == {**filled_in, **strategy}

    run(main())


def test_a_set_is_scaled_through_its_subresource() -> None:
    async def main() -> None:
        async with kruise() as stage:
            await make(stage)
            await until(runs(stage, v1=1))
            patch = MergePatch({"spec": {"replicas": 2}})
            await stage.client.patch(CLONE_SETS, "web", patch, stage.namespace, subresource="scale")
            await until(runs(stage, v1=2))

    run(main())


# With and without the kind


def test_a_cluster_without_the_kind_is_no_problem_and_one_that_gets_it_late_neither(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with embedded_stage(EVERYTHING) as stage:
            await make_nodes(stage.client, 2, stage.clock)
            await asyncio.sleep(300)
            for _ in range(2):
                await install(stage)
                await make(stage, replicas=2)
                await until(runs(stage, v1=2))
                await stage.client.delete(CRDS, "clonesets.apps.kruise.io")
                await until(partial(_is_empty, stage))

    with caplog.at_level(logging.WARNING):
        run(main())
    assert [record.getMessage() for record in caplog.records] == []


def test_sets_that_were_there_before_the_controllers_are_found() -> None:
    async def main() -> None:
        async with kruise(()) as stage:
            await make(stage, replicas=2)
            async with Manager(clock=stage.clock, rng=Random(1)) as manager:
                connected = await manager.connect("again", stage.client.transport, limiter=Limiter(rate=0))
                add_workloads(manager, connected)
                running = asyncio.create_task(manager.run(signals=False))
                await until(runs(stage, v1=2))
                manager.stop()
                await running

    run(main())


async def _is_empty(stage: Stage) -> bool:
    return not await stage.all(PODS)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_users_do_meanwhile_a_set_ends_well(seed: int) -> None:
    async def main() -> None:
        rng = Random(seed)
        async with kruise(seed=seed, delay=(0.0, 3.0)) as stage:
            await make(stage, template(), {"maxSurge": seed % 3, "type": rng.choice(_TYPES)}, replicas=3)
            for _ in range(12):
                await meddle(stage, rng)
                await asyncio.sleep(rng.uniform(0, 6))
            await change(stage, "web:9", replicas=4, updateStrategy={"partition": 0, "paused": False})
            await until(runs(stage, v9=4))

    run(main())


_TYPES = ("ReCreate", "InPlaceIfPossible")


async def meddle(stage: Stage, rng: Random) -> None:
    match rng.choice(["scale", "image", "partition", "pause", "type", "delete"]):
        case "scale":
            await change(stage, replicas=rng.randrange(6))
        case "image":
            await change(stage, rng.choice(["web:1", "web:2", "web:bad"]))
        case "partition":
            await change(stage, updateStrategy={"partition": rng.choice([0, 1, 2, "50%", "100%"])})
        case "pause":
            await change(stage, updateStrategy={"paused": rng.choice([True, False])})
        case "type":
            await change(stage, updateStrategy={"type": rng.choice(_TYPES)})
        case _:
            for pod in (await stage.all(PODS))[: rng.randrange(3)]:
                await stage.client.delete(PODS, pod["metadata"]["name"], stage.namespace)
