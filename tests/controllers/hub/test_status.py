"""The statuses of placements, written as things change around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import Struct
from prometheus_client import CollectorRegistry

from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, is_true
from kedge.api.core import Event, Namespace
from kedge.api.dialect import Dialect
from kedge.api.placement import ClusterResourcePlacement, ClusterResourcePlacementStatus
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PLACEMENT_KINDS, PlacementKinds
from kedge.api.reasons import (
    APPLIED,
    AVAILABLE,
    AVAILABLE_UNKNOWN,
    INVALID_SELECTORS,
    NO_OVERRIDE,
    NOT_STARTED,
    OVERRIDDEN,
    ROLLOUT_STARTED,
    SCHEDULED,
    STATUS_SYNC_FAILED,
    STATUS_SYNC_SUCCEEDED,
    STATUS_SYNCED,
    WORK_APPLIED,
    WORK_AVAILABLE,
    WORK_NOT_AVAILABLE,
    WORK_SYNCED,
    WORK_SYNCHRONIZED,
)
from kedge.controllers.hub.metrics import PlacementMetrics
from kedge.controllers.hub.status import PlacementStatuses
from kedge.controllers.hub.status_delays import COUNTS_AFTER, GATHER, REST
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Signal, Source
from support.fleets import IDENTITY, client_of, fleet_cluster, managed
from support.placed import NAMESPACE, Placed, config_map
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

UP_TO_APPLIED = (
    (OVERRIDDEN, TRUE, NO_OVERRIDE, ""),
    (WORK_SYNCHRONIZED, TRUE, WORK_SYNCED, ""),
    (APPLIED, TRUE, WORK_APPLIED, ""),
)
WELL = (*UP_TO_APPLIED, (AVAILABLE, TRUE, WORK_AVAILABLE, ""))
BROKEN = (*UP_TO_APPLIED, (AVAILABLE, FALSE, WORK_NOT_AVAILABLE, "it is broken"))


class Answer(Struct, frozen=True):
    """What a placement selects."""

    problem: str = ""
    pending: str = ""
    warning: str = ""


class Told:
    """Selections that are what they are told to be."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.signals = {kinds: Signal("hub") for kinds in PLACEMENT_KINDS}

    def selected(self, placement: ClusterResourcePlacement) -> Answer:  # the same for all
        return self.answer

    def source(self, kinds: PlacementKinds) -> Source:
        return self.signals[kinds]

    def become(self, problem: str) -> None:
        self.answer = Answer(problem)
        self.signals[CLUSTER].wake(Key("hub", None, "crp"))


class Scene:
    """A placement, and everything that its status depends on."""

    def __init__(self, placed: Placed, selections: Told, registry: CollectorRegistry) -> None:
        self.placed = placed
        self.client = placed.client
        self.selections = selections
        self.registry = registry

    async def condition(self, kind: str) -> Condition | None:
        found = await self.placed.placement()
        return find_condition(found.status.conditions, f"{self.placed.kinds.prefix}{kind}")

    async def until(self, kind: str, reason: str | None, within: float = 20.0) -> Condition:
        """Wait until the placement says this of itself as it is now."""

        async def so() -> bool:
            found, at = await self.condition(kind), (await self.placed.placement()).metadata.generation
            return found is not None and found.reason == reason and found.observed_generation == at

        await until_so(so, within)
        found = await self.condition(kind)
        assert found is not None
        return found

    async def picked(self, *clusters: str, **spec: object) -> list[str]:
        """A placement with resources, bound to these clusters; gives the bindings' names."""
        await self.placed.place(**spec)
        await self.placed.snapshot(0, (NAMESPACE, config_map("one")))
        names = [await self.placed.bind(cluster) for cluster in clusters]
        await self.placed.decide(*clusters)
        return names

    async def well(self, *clusters: str, **spec: object) -> list[str]:
        """The same, everything available."""
        names = await self.picked(*clusters, **spec)
        for name in names:
            await self.placed.point(name, "crp-0-snapshot")
            await self.placed.tell(name, *WELL)
        await self.until(AVAILABLE, "ResourceAvailable")
        return names

    async def events(self) -> set[str]:
        return {one.reason for one in (await self.client.list(Event)).items if one.involved_object.name == "crp"}


@asynccontextmanager
async def stage(kinds: PlacementKinds, dialect: Dialect) -> AsyncIterator[Scene]:
    async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
        hub = await manager.connect("hub", cluster.transport())
        selections, registry = Told(), CollectorRegistry()
        statuses = PlacementStatuses(
            hub,
            kinds,
            clock=LoopClock(),
            selections=selections,
            dialect=dialect,
            metrics=PlacementMetrics(registry),
        )
        manager.add_controller(statuses.controller)
        await client.create(Namespace, {"metadata": {"name": "shop"}})
        namespace = "shop" if kinds is NAMESPACED else None
        yield Scene(Placed(client, kinds, namespace=namespace), selections, registry)


def play(
    act: Callable[[Scene], Awaitable[None]], kinds: PlacementKinds = CLUSTER, dialect: Dialect = Dialect.seed
) -> None:
    async def main() -> None:
        async with stage(kinds, dialect) as scene:
            await act(scene)

    run(main())


def test_a_placement_says_how_it_is_on_every_cluster() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("b", "a")
        status = (await scene.placed.placement()).status
        assert [one.cluster_name for one in status.placement_statuses] == ["b", "a"]
        assert status.observed_resource_index == "0"
        assert [(one.kind, one.name) for one in status.selected_resources] == [
            ("Namespace", "shop"),
            ("ConfigMap", "one"),
        ]

    play(act)


def test_a_namespaced_placement_does_so_too_under_its_own_names() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a")
        found = await scene.placed.placement()
        assert all(one.type.startswith("ResourcePlacement") for one in found.status.conditions)

    play(act, NAMESPACED)


def test_a_cluster_that_waits_says_what_for() -> None:
    async def act(scene: Scene) -> None:
        one, other = await scene.well("a", "b")
        await scene.placed.snapshot(1, (NAMESPACE,))
        await scene.placed.point(one, "crp-1-snapshot")
        await scene.placed.tell(one, *BROKEN)
        await scene.placed.start(other, FALSE, NOT_STARTED, "b waits: a is not available")
        found = await scene.until(ROLLOUT_STARTED, NOT_STARTED)
        assert found.message == "1 of 2 clusters waits: b: a is not available"
        status = (await scene.placed.placement()).status
        assert status.observed_resource_index == "1"
        assert [one.observed_resource_index for one in status.placement_statuses] == ["1", "1"]
        assert [(one.kind, one.name) for one in status.selected_resources] == [("Namespace", "shop")]

    play(act)


def test_a_cluster_that_is_to_be_removed_says_what_for() -> None:
    async def act(scene: Scene) -> None:
        for name in "ab":
            await scene.client.create(MemberCluster, {"metadata": {"name": name}, "spec": {"identity": IDENTITY}})
        going, _ = await scene.well("a", "b", policy={"placementType": "PickN", "numberOfClusters": 2})
        await scene.placed.bind("c")
        unscheduled = MergePatch({"spec": {"state": "Unscheduled"}})
        await scene.client.patch(scene.placed.kinds.binding, going, unscheduled)
        await scene.placed.decide("b", "c")

        async def so() -> bool:
            found = await scene.condition(ROLLOUT_STARTED)
            return found is not None and found.message.endswith(
                "Still to be removed: a waits to be removed: c has to be sent the resources first"
            )

        await until_so(so, 20.0)

    play(act)


def test_selectors_that_make_no_sense_are_said_and_forgotten_when_they_do() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a")
        scene.selections.become("spec.resourceSelectors[0].kind: there is no kind Foo")
        found = await scene.until(SCHEDULED, INVALID_SELECTORS)
        assert found.message == "spec.resourceSelectors[0].kind: there is no kind Foo"
        scene.selections.become("")
        await scene.until(AVAILABLE, "ResourceAvailable")

    play(act)


def test_a_member_that_falls_silent_is_shown_and_one_that_speaks_again_too() -> None:
    async def act(scene: Scene) -> None:
        await scene.client.create(MemberCluster, {"metadata": {"name": "a"}, "spec": {"identity": IDENTITY}})
        await scene.well("a")
        now = "2030-01-01T00:00:00Z"
        silent = {
            "type": "Healthy",
            "status": "False",
            "reason": "MemberClusterUnreachable",
            "message": f"No heartbeat since {now}",
            "lastTransitionTime": now,
        }
        patch = MergePatch({"status": {"conditions": [silent]}})
        await scene.client.patch(MemberCluster, "a", patch, subresource="status")
        found = await scene.until(AVAILABLE, AVAILABLE_UNKNOWN)
        assert f"No heartbeat since {now}" in found.message
        patch = MergePatch({"status": {"conditions": []}})
        await scene.client.patch(MemberCluster, "a", patch, subresource="status")
        await scene.until(AVAILABLE, "ResourceAvailable")

    play(act)


def test_a_change_of_the_spec_does_not_make_the_clusters_vanish_while_they_are_picked_anew() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a")
        await scene.client.patch(CLUSTER.placement, "crp", MergePatch({"spec": {"revisionHistoryLimit": 3}}))
        await asyncio.sleep(0.5)
        assert (await scene.placed.placement()).status.placement_statuses
        await scene.placed.decide("a", generation=2)
        await scene.until(AVAILABLE, "ResourceAvailable")

    play(act)


def test_a_placement_nobody_schedules_says_that_it_waits_for_that() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a")
        await scene.client.patch(CLUSTER.placement, "crp", MergePatch({"spec": {"revisionHistoryLimit": 3}}))
        await scene.until(SCHEDULED, "SchedulePending")
        assert (await scene.placed.placement()).status.placement_statuses == ()

    play(act)


def test_many_changes_are_few_writes_and_the_last_is_always_shown() -> None:
    async def act(scene: Scene) -> None:
        (name,) = await scene.well("a")
        written = set()
        for number in range(200):
            await scene.placed.tell(name, *UP_TO_APPLIED, (AVAILABLE, FALSE, WORK_NOT_AVAILABLE, f"look {number}"))
            await asyncio.sleep(0.005)
            written.add((await scene.placed.placement()).metadata.resource_version)
        await asyncio.sleep(GATHER + COUNTS_AFTER + GATHER)
        found = await scene.condition(AVAILABLE)
        assert found is not None
        assert "look 199" in found.message
        assert len(written) <= 3, "in a second: how it was, that it is not available, and perhaps once more"
        await scene.placed.tell(name, *UP_TO_APPLIED, (AVAILABLE, TRUE, WORK_AVAILABLE, "well"))
        await asyncio.sleep(GATHER + REST + GATHER)
        found = await scene.condition(AVAILABLE)
        assert found is not None
        assert found.status == TRUE, "how it stands as a whole is told sooner than that it counts on"

    play(act)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a")
        await asyncio.sleep(2)
        before = (await scene.placed.placement()).metadata.resource_version
        scene.selections.become("")
        await asyncio.sleep(60)
        assert (await scene.placed.placement()).metadata.resource_version == before

    play(act)


def test_what_is_reached_is_told_in_events() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a")
        await asyncio.sleep(1)
        assert await scene.events() >= {
            "PlacementRolloutStarted",
            "PlacementOverriddenSucceeded",
            "PlacementWorkSynchronized",
            "PlacementApplied",
            "PlacementAvailable",
            "PlacementRolloutCompleted",
        }

    play(act)


def test_where_a_placement_stands_can_be_measured() -> None:
    def series(scene: Scene) -> list[tuple[str, str, str]]:
        (family,) = [one for one in scene.registry.collect() if one.name.startswith("fleet_workload_placement")]
        return [(one.labels["name"], one.labels["conditionType"], one.labels["reason"]) for one in family.samples]

    async def act(scene: Scene) -> None:
        (name,) = await scene.well("a")
        assert series(scene) == [("crp", "Completed", "Completed")]
        await scene.placed.tell(name, *BROKEN)
        await scene.until(AVAILABLE, "ResourceNotAvailableYet")
        assert series(scene) == [("crp", "ClusterResourcePlacementAvailable", "ResourceNotAvailableYet")]
        await scene.client.delete(CLUSTER.placement, "crp")
        await asyncio.sleep(1)
        assert series(scene) == []

    play(act)


# In the namespace

WIDE = {"statusReportingScope": "NamespaceAccessible"}


async def copy(scene: Scene) -> ClusterResourcePlacementStatus:
    return await scene.client.get(ClusterResourcePlacementStatus, "crp", "shop")


def test_a_status_can_be_read_in_the_namespace_that_is_placed() -> None:
    async def act(scene: Scene) -> None:
        (name,) = await scene.well("a", **WIDE)
        await scene.until(STATUS_SYNCED, STATUS_SYNC_SUCCEEDED)
        found, placement = await copy(scene), await scene.placed.placement()
        assert found.source_status.placement_statuses == placement.status.placement_statuses
        assert not is_true(found.source_status.conditions, f"ClusterResourcePlacement{STATUS_SYNCED}")
        assert found.metadata.owner_references[0].uid == placement.metadata.uid
        await scene.placed.tell(name, *BROKEN)
        await scene.until(AVAILABLE, "ResourceNotAvailableYet")
        assert (await copy(scene)).source_status.conditions[-1].reason == "ResourceNotAvailableYet"

    play(act)


def test_a_copy_that_somebody_deletes_comes_back() -> None:
    async def act(scene: Scene) -> None:
        await scene.well("a", **WIDE)
        uid = (await copy(scene)).metadata.uid
        await scene.client.delete(ClusterResourcePlacementStatus, "crp", "shop")

        async def is_back() -> bool:
            try:
                return (await copy(scene)).metadata.uid != uid
            except NotFound:
                return False

        await until_so(is_back)

    play(act)


def test_a_copy_that_cannot_be_written_is_said() -> None:
    async def act(scene: Scene) -> None:
        await scene.client.patch(Namespace, "shop", MergePatch({"metadata": {"finalizers": ["kedge.dev/stay"]}}))
        await scene.client.delete(Namespace, "shop")
        await scene.well("a", **WIDE)
        found = await scene.until(STATUS_SYNCED, STATUS_SYNC_FAILED)
        assert "The status cannot be written into namespace shop" in found.message

    play(act)
