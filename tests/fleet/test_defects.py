"""KubeFleet's defects (kubefleet.md §14) that touch what is built: each is absent here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import pytest

from fleet import kinds
from fleet.bed import MEMBERS, Backend, Bed
from fleet.situations.ghost import GHOST, Ghost
from fleet.situations.placements import DONE
from fleet.situations.stage import (
    APP,
    CONFIG_MAPS,
    CRP,
    MEMBER_CLUSTERS,
    RP,
    SETTINGS,
    SHOP,
    WIDGETS,
    WORKS,
    Stage,
    Twin,
    deployment,
    fixed,
    message,
    names,
    pick,
    rolling,
    select,
    widget,
    widgets,
)
from fleet.watching import Happening, watched
from kedge.api.dialect import Dialect
from kedge.kube.codec import Untyped
from kedge.kube.errors import Invalid

T = TypeVar("T")
_HOLD = "fleet.test/hold"


def play(act: Callable[[Stage], Awaitable[T]], twin: Twin = CRP, dialect: Dialect = Dialect.kubefleet) -> T:
    async def on(bed: Bed) -> T:
        return await act(Stage(bed, twin))

    return Backend("embedded").play(on, dialect)


async def cordon(stage: Stage, *members: str) -> None:
    """Pods do not start there any more."""
    for member in members:
        await stage.change(kinds.NODES, "node-1", {"spec": {"unschedulable": True}}, on=member)


async def hold(stage: Stage, member: str, *finalizers: str) -> None:
    """What is placed on a member cannot go from there; or can again, without finalizers."""
    await stage.change(CONFIG_MAPS, SETTINGS, {"metadata": {"finalizers": list(finalizers)}}, SHOP, on=member)


def ruled(rule: str) -> Untyped:
    return {"metadata": {"annotations": {"kedge.dev/available-when": rule}}}


# 1: what is in progress counted as failed


def test_1_a_cluster_that_is_being_added_counts_as_one_that_holds_resources() -> None:
    async def act(stage: Stage) -> list[str]:
        await stage.placed(deployment(), policy=fixed("cluster-1", "cluster-2"), strategy=rolling(0, 1))
        await cordon(stage, "cluster-3", "cluster-4")
        await stage.edit(policy={"clusterNames": ["cluster-3", "cluster-4"]})
        await stage.rest()
        return [member for member in MEMBERS if await stage.works(member)]

    assert play(act) == ["cluster-1", "cluster-2", "cluster-3"]


def test_1_a_cluster_that_is_still_applying_is_not_given_more_regardless_of_the_budget() -> None:
    async def act(stage: Stage) -> dict[str, str]:
        await Ghost(stage).joins()
        await stage.settle_in()
        await stage.change(CONFIG_MAPS, SETTINGS, ruled("false"), SHOP)
        await stage.place(policy=fixed("cluster-1", GHOST), strategy=rolling(1))
        await stage.rest()
        await stage.paint("red")
        await stage.rest()
        return {name: one["spec"]["resourceSnapshotName"] for name, one in (await stage.bindings()).items()}

    assert play(act) == {"cluster-1": "app-1-snapshot", GHOST: "app-0-snapshot"}


# 5: a binding gone before its Works are


@pytest.mark.parametrize("twin", [CRP, RP], ids=["CRP", "RP"])
def test_5_a_binding_is_there_until_what_it_placed_is_gone(twin: Twin) -> None:
    async def act(stage: Stage) -> tuple[list[str], list[str], list[str]]:
        await stage.placed(policy=fixed("cluster-1"))
        await hold(stage, "cluster-1", _HOLD)
        await stage.hub.delete(stage.twin.placements, APP, stage.twin.namespace)
        await asyncio.sleep(120.0)
        held = list(await stage.bindings())
        works = names(await stage.works("cluster-1"))
        await hold(stage, "cluster-1")
        await stage.rest()
        return held, works, list(await stage.bindings())

    name = "app-work" if twin is CRP else "shop.app-work"
    assert play(act, twin) == (["cluster-1"], [name], [])


# 6: a Work that is made is not noticed


def test_6_a_work_that_is_made_anew_is_noticed() -> None:
    async def act(stage: Stage) -> tuple[bool, list[str]]:
        await stage.placed(policy=fixed("cluster-1"))
        before = (await stage.work("cluster-1"))["metadata"]["uid"]
        await stage.hub.delete(WORKS, "app-work", "fleet-member-cluster-1")
        await stage.rest()
        return (await stage.work("cluster-1"))["metadata"]["uid"] != before, await stage.says()

    assert play(act) == (True, DONE)


# 8: every binding is written in every round


def test_8_a_cluster_that_is_done_is_not_written_while_others_follow() -> None:
    async def act(stage: Stage) -> list[Happening]:
        await stage.placed(deployment(), strategy=rolling(1))
        async with watched(stage.bed, stage.twin.bindings, "hub") as seen:
            await stage.change(kinds.DEPLOYMENTS, "web", {"spec": deployment("app:2")["spec"]}, SHOP)
            await stage.rest()
            assert await stage.says() == DONE
            return list(seen)

    seen = play(act)
    for cluster in MEMBERS:
        own = [one.obj for one in seen if one.obj["spec"]["targetCluster"] == cluster]
        done = [number for number, one in enumerate(own) if is_done(one, "app-1-snapshot")]
        assert done == [len(own) - 1], f"{cluster} was written {len(own) - done[0] - 1} times after it was done"


def is_done(binding: Untyped, snapshot: str) -> bool:
    at, said = binding["metadata"]["generation"], binding["status"].get("conditions", ())
    current = [one for one in said if one["observedGeneration"] == at and one["status"] == "True"]
    return binding["spec"]["resourceSnapshotName"] == snapshot and "Available" in [one["type"] for one in current]


def test_8_no_write_changes_nothing() -> None:
    async def act(stage: Stage) -> list[Happening]:
        async with watched(stage.bed, stage.twin.bindings, "hub") as seen:
            await stage.placed(deployment(), strategy=rolling(1))
            await stage.change(kinds.DEPLOYMENTS, "web", {"spec": deployment("app:2")["spec"]}, SHOP)
            await stage.rest()
            return list(seen)

    last: dict[str, Untyped] = {}
    for one in play(act):
        meta = {
            key: value for key, value in one.obj["metadata"].items() if key not in ("resourceVersion", "managedFields")
        }
        now = {**one.obj, "metadata": meta}
        assert last.get(meta["name"]) != now
        last[meta["name"]] = now


# 9: rollouts that shrink stall


def test_9_what_does_not_work_can_shrink_to_nothing() -> None:
    async def act(stage: Stage) -> tuple[list[str], list[str]]:
        await stage.placed(deployment("app:bad"), policy=pick(2), strategy=rolling(1))
        await stage.edit(policy={"numberOfClusters": 0})
        await stage.rest()
        return sorted(await stage.bindings()), await stage.seen_on()

    assert play(act) == ([], [])


def test_9_a_cluster_that_goes_and_does_not_work_holds_up_no_other() -> None:
    async def act(stage: Stage) -> list[str]:
        await stage.placed(deployment("app:bad"), policy=pick(2), strategy=rolling(1))
        await hold(stage, "cluster-3", _HOLD)
        await stage.edit(policy={"numberOfClusters": 0})
        await asyncio.sleep(60.0)
        left = sorted(await stage.bindings())
        await hold(stage, "cluster-3")
        return left

    assert play(act) == ["cluster-3"]


# 11: fields that do nothing


def test_11_what_is_to_be_abandoned_stays() -> None:
    async def act(stage: Stage) -> list[str]:
        await stage.placed(strategy={"deleteStrategy": {"propagationPolicy": "Abandon"}})
        await stage.bed.delete(stage.twin.placements, APP)
        await stage.rest()
        return await stage.seen_on()

    assert play(act) == list(MEMBERS)


def test_11_the_members_own_status_comes_back() -> None:
    async def act(stage: Stage) -> list[dict[str, Any]]:
        back = {"type": "Mirror", "destination": "WorkAPI"}
        await stage.placed(deployment(replicas=2), policy=pick(2), strategy={"reportBackStrategy": back})
        works = [await stage.work(cluster) for cluster in await stage.picked()]
        told = [one for work in works for one in work["status"]["manifestConditions"] if "backReportedStatus" in one]
        return [one["backReportedStatus"]["observedStatus"] for one in told if one["identifier"]["name"] == "web"]

    told = play(act)
    assert [one["status"]["availableReplicas"] for one in told] == [2, 2]
    assert [one["status"]["observedGeneration"] == one["metadata"]["generation"] for one in told] == [True, True]


# 12: namespaced placements are hardly checked


def test_12_bad_selectors_of_a_namespaced_placement_are_refused_at_once() -> None:
    async def act(stage: Stage) -> str:
        await stage.settle_in()
        with pytest.raises(Invalid) as refusal:
            await stage.place(
                {**select("ConfigMap", SETTINGS), "labelSelector": {"matchLabels": {"a": "b"}}}, name="bad"
            )
        return str(refusal.value)

    assert "name and labelSelector are mutually exclusive in a resource selector" in play(act, RP)


def test_12_a_cluster_wide_kind_in_a_namespaced_placement_is_told_with_the_field() -> None:
    async def act(stage: Stage) -> tuple[list[str], str]:
        await stage.settle_in()
        await stage.place(select("ConfigMap", SETTINGS), select("PriorityClass", group="scheduling.k8s.io"))
        await stage.rest()
        return await stage.says(), message(await stage.status(), "ResourcePlacementScheduled")

    says, why = play(act, RP)
    assert says == ["Scheduled False InvalidResourceSelectors"]
    assert why.startswith("spec.resourceSelectors[1] selects PriorityClass, which is cluster-wide")


# 15: nobody notices that a cluster is not heard any more


def test_15_a_cluster_that_falls_silent_before_it_has_anything_is_exchanged() -> None:
    async def act(stage: Stage) -> tuple[list[str], list[str]]:
        await Ghost(stage).joins()
        await stage.change(MEMBER_CLUSTERS, GHOST, {"metadata": {"labels": {"best": "yes"}}})
        await stage.settle_in()
        likes = {"weight": 10, "preference": {"labelSelector": {"matchLabels": {"best": "yes"}}}}
        wanted = pick(
            1,
            affinity={"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [likes]}},
            tolerations=[{"key": "ghost", "operator": "Exists"}],
        )
        meta = {"name": APP, "annotations": {"kedge.dev/paused": "true"}}
        spec = {"resourceSelectors": [stage.usual_selector()], "policy": wanted}
        await stage.make(stage.twin.placements, {"metadata": meta, "spec": spec})
        await stage.rest()
        before = list(await stage.bindings())
        await asyncio.sleep(330.0)
        live = [name for name, one in (await stage.bindings()).items() if one["spec"]["state"] != "Unscheduled"]
        return before, live

    assert play(act) == ([GHOST], ["cluster-4"])


def test_15_a_placement_shows_that_a_cluster_is_not_heard_any_more_and_since_when() -> None:
    async def act(stage: Stage) -> tuple[list[str], str, str]:
        ghost = Ghost(stage)
        await ghost.joins()
        await stage.placed(policy=fixed(GHOST))
        await ghost.reports(("Applied", "True", "AllManifestsApplied"), ("Available", "True", "AllManifestsAvailable"))
        heard = (await stage.bed.get(MEMBER_CLUSTERS, GHOST))["status"]["agentStatus"][0]["lastReceivedHeartbeat"]
        await asyncio.sleep(90.0)
        return await stage.says(), heard, message(await stage.entry(GHOST), "Available")

    says, heard, why = play(act, dialect=Dialect.seed)
    assert says[-1] == "Available Unknown ResourceAvailableUnknown"
    assert f"its last heartbeat was at {heard}" in why


# 17: times of transition that are none


async def place_widgets(stage: Stage, *clusters: str, period: int) -> None:
    """Widgets, of which nobody knows whether they work, are placed."""
    for where in ("hub", *clusters):
        await stage.make(kinds.DEFINITIONS, widgets(), where)
    await asyncio.sleep(2.0)
    await stage.placed(widget(size=1), policy=fixed(*clusters), strategy=rolling(1, 1, period))


def available(binding: Untyped) -> Untyped:
    found: Untyped = next(one for one in binding["status"]["conditions"] if one["type"] == "Available")
    return found


def test_17_a_time_of_transition_stays_while_nothing_changes() -> None:
    async def act(stage: Stage) -> tuple[Untyped, Untyped]:
        await place_widgets(stage, "cluster-1", period=60)
        before = available((await stage.bindings())["cluster-1"])
        await asyncio.sleep(10.0)
        # The member's object changes, and with it what its Work says of it.
        await stage.change(
            WIDGETS, "one", {"metadata": {"labels": {"seen": "yes"}}, "spec": {"extra": 1}}, SHOP, on="cluster-1"
        )
        await stage.rest()
        await stage.change(stage.twin.placements, APP, {"spec": {"revisionHistoryLimit": 3}})
        await stage.rest()
        return before, available((await stage.bindings())["cluster-1"])

    before, after = play(act)
    assert before["reason"] == "NotAllWorkAreAvailabilityTrackable"
    assert after == before


def test_17_the_wait_for_what_cannot_be_seen_counts_from_the_first_moment_whatever_the_member_says_later() -> None:
    async def act(stage: Stage) -> list[Happening]:
        await place_widgets(stage, "cluster-1", "cluster-2", period=60)
        await asyncio.sleep(120.0)
        async with watched(stage.bed, stage.twin.bindings, "hub") as seen:
            await stage.change(WIDGETS, "one", {"spec": {"size": 2}}, SHOP)
            for number in range(6):
                await asyncio.sleep(15.0)
                await stage.change(WIDGETS, "one", {"spec": {"extra": number}}, SHOP, on="cluster-1")
            await stage.rest()
            assert await stage.says() == DONE
            return list(seen)

    seen = play(act)
    first, second = [
        next(one for one in seen if one.obj["spec"]["targetCluster"] == name and is_done(one.obj, "app-1-snapshot"))
        for name in ("cluster-1", "cluster-2")
    ]
    assert 59.0 <= second.at - first.at <= 63.0
    since = datetime.fromisoformat(available(first.obj)["lastTransitionTime"])
    last = [one.obj for one in seen if one.obj["spec"]["targetCluster"] == "cluster-1"][-1]
    assert datetime.fromisoformat(available(last)["lastTransitionTime"]) == since
