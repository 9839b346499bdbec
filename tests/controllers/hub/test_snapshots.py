"""Snapshots: what a placement selects and its policy, written down under running numbers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kedge.api.condition import Condition
from kedge.api.core import Namespace
from kedge.api.dialect import Dialect
from kedge.api.fleet import (
    IS_LATEST,
    NUMBER_OF_CLUSTERS,
    NUMBER_OF_ENVELOPED,
    NUMBER_OF_SNAPSHOTS,
    PARENT_PLACEMENT,
    PINNED,
    PLACEMENT_CLEANUP,
    PLACEMENT_GENERATION,
    POLICY_INDEX,
    RESOURCE_HASH,
    RESOURCE_INDEX,
    SUBINDEX,
)
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.reasons import RUN_SUCCEEDED
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.simulate.clock import START
from support.snapping import MAPS, QUIET, SHOP, Bench, play
from support.waiting import until_so

ALL_OF_THEM = {"placementType": "PickAll"}
both_twins = pytest.mark.parametrize("kinds", [CLUSTER, NAMESPACED], ids=["cluster", "namespaced"])


@both_twins
def test_a_placement_gets_a_first_revision_of_what_it_selects_and_of_its_policy(kinds: PlacementKinds) -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a")
        placement = await hub.place(policy={"placementType": "PickN", "numberOfClusters": 3})
        await hub.until_indexes([0])

        owner = {
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": kinds.placement.resource.kind,
            "name": "crp",
            "uid": placement.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        made = await hub.newest()
        assert made["metadata"]["name"] == "crp-0-snapshot"
        assert made["metadata"]["labels"] == {PARENT_PLACEMENT: "crp", RESOURCE_INDEX: "0", IS_LATEST: "true"}
        annotations = made["metadata"]["annotations"]
        assert annotations[NUMBER_OF_SNAPSHOTS] == "1"
        assert annotations[NUMBER_OF_ENVELOPED] == "0"
        assert len(annotations[RESOURCE_HASH]) == 64
        assert made["metadata"]["ownerReferences"] == [owner]

        [policy] = await hub.policies_of()
        assert policy["metadata"]["name"] == "crp-0"
        assert policy["metadata"]["labels"] == {PARENT_PLACEMENT: "crp", POLICY_INDEX: "0", IS_LATEST: "true"}
        assert policy["metadata"]["annotations"] == {PLACEMENT_GENERATION: "1", NUMBER_OF_CLUSTERS: "3"}
        assert policy["metadata"]["ownerReferences"] == [owner]
        assert policy["spec"]["policy"] == {"placementType": "PickN", "numberOfClusters": 3}
        held = await hub.client.get(hub.kinds.placement, "crp", hub.namespace)
        assert held.metadata.finalizers == (PLACEMENT_CLEANUP,)
        assert held.metadata.generation == 1

    play(act, kinds)


def test_a_namespace_comes_with_what_is_in_it_and_without_what_the_hub_made_there() -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a", "7")
        await hub.place()
        await hub.until_indexes([0])
        namespace, kept = (await hub.newest())["spec"]["selectedResources"]
        assert namespace == {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "shop", "labels": {"kubernetes.io/metadata.name": "shop"}},
            "spec": {"finalizers": ["kubernetes"]},
        }
        assert kept == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "shop"},
            "data": {"value": "7"},
        }

    play(act)


def test_selectors_that_match_nothing_make_an_empty_revision() -> None:
    async def act(hub: Bench) -> None:
        await hub.place({**SHOP, "name": "not-there"})
        await hub.until_indexes([0])
        assert (await hub.newest())["spec"] == {"selectedResources": []}

    play(act)


@both_twins
def test_nothing_is_written_down_for_selectors_that_make_no_sense_until_they_do(kinds: PlacementKinds) -> None:
    async def act(hub: Bench) -> None:
        await hub.place({"group": "nope.io", "version": "v1", "kind": "Nope"})
        await asyncio.sleep(QUIET)
        assert await hub.problem()
        assert await hub.policies_of() == []  # so that no cluster is picked
        await hub.change({"resourceSelectors": [SHOP if kinds is CLUSTER else MAPS]})
        await hub.until_indexes([0])
        assert len(await hub.policies_of()) == 1

    play(act, kinds)


@both_twins
def test_a_change_of_a_selected_object_is_a_new_revision(kinds: PlacementKinds) -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a", "1")
        await hub.place()
        await hub.until_indexes([0])
        await hub.keep("a", "2")
        await hub.until_indexes([0, 1])
        assert await hub.values() == {"a": "2"}
        await hub.drop("a")
        await hub.until_indexes([0, 1, 2])
        assert await hub.values() == {}

    play(act, kinds)


def test_many_changes_at_once_are_one_revision() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        for number in range(10):
            await hub.keep(f"map-{number}")
            await asyncio.sleep(0.03)
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0, 1]
        assert len(await hub.values()) == 10

    play(act)


def test_changes_are_collected_until_there_are_no_more_but_not_for_ever() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        seen = set()
        for number in range(60):  # never quiet
            await hub.keep("a", str(number))
            await asyncio.sleep(0.2)
            seen.update(await hub.indexes())
            assert number >= 20 or seen == {0}
        assert seen == {0, 1, 2}

    play(act, collect=0.25)


def test_changes_over_a_slow_line_are_one_revision_once_that_shows() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        for number in range(6):
            await hub.keep(f"map-{number}")
            await asyncio.sleep(0.2)
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0, 1, 2]
        assert len(await hub.values()) == 6

    play(act)


def test_a_change_that_is_taken_back_in_time_is_no_revision() -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a", "1")
        await hub.place()
        await hub.until_indexes([0])
        await hub.keep("a", "2")
        await asyncio.sleep(0.1)
        await hub.keep("a", "1")
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0]

    play(act)


def test_what_was_once_is_a_new_revision_when_it_comes_back() -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a", "1")
        await hub.place()
        await hub.until_indexes([0])
        await hub.keep("a", "2")
        await hub.until_indexes([0, 1])
        await hub.keep("a", "1")
        await hub.until_indexes([0, 1, 2])
        assert await hub.values() == {"a": "1"}

    play(act)


@pytest.mark.parametrize(
    ("options", "takes"), [({"collect": 0.0}, 0.2), ({"collect": 3.0}, 3.2), ({"collect": 0.0, "interval": 4.0}, 4.2)]
)
def test_a_change_waits_as_long_as_it_was_told_to_and_no_longer(options: dict[str, Any], takes: float) -> None:
    async def act(hub: Bench) -> None:
        loop = asyncio.get_running_loop()
        await hub.place()
        await hub.until_indexes([0])
        started = loop.time()
        await hub.keep("a")
        await hub.until_indexes([0, 1])
        assert takes - 1.2 <= loop.time() - started <= takes

    play(act, **options)


def test_in_the_kubefleet_dialect_changes_wait_as_long_whatever_came_before() -> None:
    async def act(hub: Bench) -> None:
        loop = asyncio.get_running_loop()
        await hub.place()
        await hub.until_indexes([0])
        await asyncio.sleep(2.0)  # a pause by whose measure the next change would be waited for
        started = loop.time()
        await hub.keep("a")
        await asyncio.sleep(2.0)
        await hub.keep("b")
        await hub.until_indexes([0, 1])
        assert 2.9 <= loop.time() - started <= 3.3
        assert await hub.values() == {"a": "1", "b": "1"}
        await hub.change({"resourceSelectors": [SHOP, {**SHOP, "name": "other"}]})
        await asyncio.sleep(2.0)
        assert await hub.indexes() == [0, 1]

    play(act, dialect=Dialect.kubefleet, collect=3.0)


def test_nobody_waits_when_the_selectors_themselves_change() -> None:
    async def act(hub: Bench) -> None:
        await hub.client.create(Namespace, {"metadata": {"name": "other"}})
        await hub.place()
        await hub.until_indexes([0])
        await hub.change({"resourceSelectors": [SHOP, {**SHOP, "name": "other"}]})
        await hub.until_indexes([0, 1], within=0.5)

    play(act, collect=60.0)


def test_a_change_of_status_alone_is_no_revision() -> None:
    async def act(hub: Bench) -> None:
        namespaces = Namespace
        await hub.place()
        await hub.until_indexes([0])
        patch = MergePatch({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}})
        await hub.client.patch(namespaces, "shop", patch)
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0]

    play(act)


def test_what_is_large_comes_in_parts() -> None:
    async def act(hub: Bench) -> None:
        for number in range(5):
            await hub.keep(f"map-{number}", str(number) * 300 * 1024)
        await hub.place()
        await hub.until_indexes([0])
        assert len(await hub.resources_of()) == 3
        master = await hub.newest()
        assert master["metadata"]["annotations"][NUMBER_OF_SNAPSHOTS] == "3"
        rest = [each for each in await hub.resources_of() if each["metadata"]["name"] != "crp-0-snapshot"]
        parts = {each["metadata"]["name"]: each["metadata"] for each in rest}
        assert sorted(parts) == ["crp-0-0", "crp-0-1"]
        assert parts["crp-0-1"]["annotations"] == {SUBINDEX: "1"}
        assert parts["crp-0-1"]["labels"] == {PARENT_PLACEMENT: "crp", RESOURCE_INDEX: "0"}
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0]

    play(act)


def test_a_revision_that_lost_a_part_is_made_again() -> None:
    async def act(hub: Bench) -> None:
        for number in range(4):
            await hub.keep(f"map-{number}", str(number) * 300 * 1024)
        await hub.place()
        await hub.until_indexes([0])
        await hub.client.delete(hub.kinds.resource_snapshot, "crp-0-0")
        await hub.until_indexes([0, 1])

    play(act)


def test_another_policy_is_another_snapshot_and_another_number_of_clusters_is_not() -> None:
    async def act(hub: Bench) -> None:
        await hub.place(policy={"placementType": "PickN", "numberOfClusters": 3})
        await hub.until_indexes([0])
        await hub.change({"policy": {"numberOfClusters": 5}})

        async def noted() -> bool:
            [only] = await hub.policies_of()
            return bool(
                only["metadata"]["annotations"] == {PLACEMENT_GENERATION: "2", NUMBER_OF_CLUSTERS: "5"}
                and only["metadata"]["generation"] == 1
            )

        await until_so(noted, QUIET)
        await hub.change({"policy": {"tolerations": [{"key": "a", "operator": "Exists"}]}})

        async def followed() -> bool:
            marks = {
                each["metadata"]["name"]: each["metadata"]["labels"][IS_LATEST] for each in await hub.policies_of()
            }
            return marks == {"crp-0": "false", "crp-1": "true"}

        await until_so(followed, QUIET)
        assert await hub.indexes() == [0]

    play(act)


def test_a_change_of_the_strategy_is_noted_on_the_policy() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        await hub.change({"strategy": {"rollingUpdate": {"maxUnavailable": 1}}})

        async def noted() -> bool:
            [only] = await hub.policies_of()
            return bool(only["metadata"]["annotations"] == {PLACEMENT_GENERATION: "2"})

        await until_so(noted, QUIET)
        assert await hub.indexes() == [0]

    play(act)


def test_old_revisions_are_forgotten_but_none_that_a_cluster_has_or_is_to_have() -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a", "0")
        await hub.place(revisionHistoryLimit=2)
        await hub.until_indexes([0])
        await bind(hub, "crp-0-snapshot")
        await hub.annotate({PINNED: "1"})
        for number in range(1, 5):
            await hub.keep("a", str(number))
            await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0, 1, 3, 4]
        await hub.annotate({PINNED: None})
        await hub.until_indexes([0, 3, 4])

    play(act)


async def bind(hub: Bench, resources: str) -> None:
    spec = {
        "state": "Bound",
        "resourceSnapshotName": resources,
        "schedulingPolicySnapshotName": "crp-0",
        "targetCluster": "c",
        "clusterDecision": {"clusterName": "c", "selected": True, "reason": "r"},
    }
    meta = {"name": "crp-c", "labels": {PARENT_PLACEMENT: "crp"}}
    await hub.client.apply(hub.kinds.binding, {"metadata": meta, "spec": spec}, manager="user", force=True)


def test_a_revision_is_forgotten_once_the_last_cluster_has_left_it() -> None:
    async def act(hub: Bench) -> None:
        await hub.place(revisionHistoryLimit=1)
        await hub.until_indexes([0])
        await bind(hub, "crp-0-snapshot")
        await hub.keep("a")
        await hub.until_indexes([0, 1])
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0, 1]
        await bind(hub, "crp-1-snapshot")
        await hub.until_indexes([1], within=0.5)

    play(act)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["ended", "deleted"])
def test_a_revision_is_forgotten_once_the_last_run_no_longer_needs_it(is_deleted: bool) -> None:
    async def act(hub: Bench) -> None:
        await hub.place(revisionHistoryLimit=1)
        await hub.until_indexes([0])
        spec = {"placementName": "crp", "resourceSnapshotIndex": "0", "stagedRolloutStrategyName": "strategy"}
        run = await hub.client.create(hub.kinds.run, {"metadata": {"name": "run"}, "spec": spec})
        await hub.keep("a")
        await hub.until_indexes([0, 1])
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0, 1]
        if is_deleted:
            await hub.client.delete(hub.kinds.run, "run")
        else:
            ended = Condition("Succeeded", "True", START, RUN_SUCCEEDED, "", observed_generation=1)
            await hub.client.amend(
                hub.kinds.run, run.metadata, {"status": {"conditions": [ended]}}, subresource="status"
            )
        await hub.until_indexes([1], within=0.5)

    play(act)


def test_in_the_kubefleet_dialect_no_more_revisions_are_kept_than_asked_for() -> None:
    async def act(hub: Bench) -> None:
        await hub.place(revisionHistoryLimit=1)
        await hub.until_indexes([0])
        await bind(hub, "crp-0-snapshot")
        await hub.keep("a")
        await hub.until_indexes([1])

    play(act, dialect=Dialect.kubefleet)


def test_old_policies_are_forgotten() -> None:
    async def act(hub: Bench) -> None:
        await hub.place(policy=ALL_OF_THEM, revisionHistoryLimit=2)
        await hub.until_indexes([0])
        for number in range(4):
            await hub.change({"policy": {"tolerations": [{"key": f"k{number}", "operator": "Exists"}]}})
            await asyncio.sleep(QUIET)
        assert [each["metadata"]["name"] for each in await hub.policies_of()] == ["crp-3", "crp-4"]

    play(act)


@pytest.mark.parametrize(("dialect", "wanted"), [(Dialect.seed, [0]), (Dialect.kubefleet, [])])
def test_with_strategy_external_the_dialect_says_who_takes_the_resources(dialect: Dialect, wanted: list[int]) -> None:
    async def act(hub: Bench) -> None:
        await hub.place(strategy={"type": "External"})
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == wanted
        assert len(await hub.policies_of()) == 1

    play(act, dialect=dialect)


@both_twins
def test_a_deleted_placement_takes_its_snapshots_along(kinds: PlacementKinds) -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a")
        await hub.place()
        await hub.until_indexes([0])
        await hub.client.delete(kinds.placement, "crp", hub.namespace)

        async def gone() -> bool:
            try:
                await hub.client.get(kinds.placement, "crp", hub.namespace)
            except NotFound:
                return True
            return False

        await until_so(gone, QUIET)
        assert await hub.resources_of() == []
        assert await hub.policies_of() == []

    play(act, kinds)


def test_the_scheduler_can_hold_a_deleted_placement_longer() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        both = MergePatch({"metadata": {"finalizers": [PLACEMENT_CLEANUP, "kubernetes-fleet.io/scheduler-cleanup"]}})
        await hub.client.patch(hub.kinds.placement, "crp", both)
        await hub.client.delete(hub.kinds.placement, "crp")
        await asyncio.sleep(QUIET)
        left = await hub.client.get(hub.kinds.placement, "crp")
        assert left.metadata.finalizers == ("kubernetes-fleet.io/scheduler-cleanup",)
        assert await hub.resources_of() == []

    play(act)


def test_a_placement_made_again_under_the_same_name_starts_anew() -> None:
    async def act(hub: Bench) -> None:
        for _ in range(2):
            placement = await hub.place()
            await hub.until_indexes([0])
            owner = (await hub.newest())["metadata"]["ownerReferences"][0]
            assert owner["uid"] == placement.metadata.uid
            await hub.client.delete(hub.kinds.placement, "crp")
            await hub.until_indexes([])

    play(act)


def test_nothing_is_written_when_nothing_changes() -> None:
    async def act(hub: Bench) -> None:
        await hub.keep("a")
        await hub.place()
        await hub.until_indexes([0])
        await asyncio.sleep(QUIET)
        before = (await hub.client.list(Namespace)).resource_version
        await asyncio.sleep(600.0)
        assert (await hub.client.list(Namespace)).resource_version == before

    play(act)
