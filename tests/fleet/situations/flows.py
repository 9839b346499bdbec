"""What happens when something is edited or deleted (kubefleet.md §4.1, §16)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from fleet import kinds
from fleet.bed import MEMBERS
from fleet.situations.placements import DONE
from fleet.situations.playing import Group
from fleet.situations.stage import (
    APP,
    APPLIED,
    BOTH,
    CONFIG_MAPS,
    CRP,
    RP,
    SERVICES,
    SETTINGS,
    SHOP,
    WIDGETS,
    Stage,
    config_map,
    deployment,
    fixed,
    names,
    rolling,
    select,
    widget,
    widgets,
)
from kedge.kube.codec import Untyped

GROUP: Final = Group("flows")
ALL: Final = list(MEMBERS)


@GROUP.situation("16", ([], [], [], [], []), kinds=BOTH, real=True)
async def a_deleted_placement_takes_everything_with_it(stage: Stage) -> object:
    await stage.placed()
    await stage.bed.delete(stage.twin.placements, APP, stage.twin.namespace)
    await stage.bed.until(partial(_is_clear, stage))
    left = [await stage.snapshots(), await stage.policies(), list(await stage.bindings())]
    works = [one for member in MEMBERS for one in await stage.works(member)]
    return *left, works, await stage.seen_on()


async def _is_clear(stage: Stage) -> bool:
    return not await stage.bindings() and not await stage.seen_on()


@GROUP.situation("1.5", (ALL, [None] * len(MEMBERS), [True] * len(MEMBERS)), kinds=BOTH)
async def a_deleted_placement_that_abandons_leaves_what_it_placed(stage: Stage) -> object:
    await stage.placed(strategy={"deleteStrategy": {"propagationPolicy": "Abandon"}})
    await stage.bed.delete(stage.twin.placements, APP, stage.twin.namespace)
    await stage.bed.until(partial(_has_no_bindings, stage))
    found = [await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on=one) for one in MEMBERS]
    name = "app-work" if stage.twin is CRP else "shop.app-work"
    gone = [await stage.bed.is_gone(APPLIED, name, on=one) for one in MEMBERS]
    return await stage.seen_on(), [one["metadata"].get("ownerReferences") for one in found], gone


async def _has_no_bindings(stage: Stage) -> bool:
    return not await stage.bindings()


@GROUP.situation("16", (["app-0-snapshot", "app-1-snapshot"], [], DONE))
async def an_object_deleted_on_the_hub_goes_everywhere(stage: Stage) -> object:
    await stage.placed(strategy=rolling("100%"))
    await stage.hub.delete(CONFIG_MAPS, SETTINGS, SHOP)
    await stage.rest()
    return names(await stage.snapshots()), await stage.seen_on(), await stage.says()


@GROUP.situation("16", (True, ["cluster-1"], DONE), kinds=BOTH)
async def a_binding_deleted_by_hand_comes_back_under_another_name(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    before = (await stage.bindings())["cluster-1"]["metadata"]["name"]
    await stage.hub.delete(stage.twin.bindings, before, stage.twin.namespace)
    await stage.rest()
    after = (await stage.bindings())["cluster-1"]["metadata"]["name"]
    return before != after, await stage.seen_on("cluster-1"), await stage.says()


@GROUP.situation("16", (ALL, DONE))
async def a_snapshot_deleted_by_hand_disturbs_nobody(stage: Stage) -> object:
    await stage.placed()
    await stage.hub.delete(stage.twin.snapshots, "app-0-snapshot")
    await stage.rest()
    return await stage.seen_on(), await stage.says()


@GROUP.situation("16", {"ServerSideApply"}, kinds=BOTH)
async def another_way_to_apply_reaches_every_binding_at_once(stage: Stage) -> object:
    await stage.placed()
    await stage.edit(strategy={"applyStrategy": {"type": "ServerSideApply"}})
    await stage.rest()
    return {one["spec"]["applyStrategy"]["type"] for one in (await stage.bindings()).values()}


@GROUP.situation("16", ("app-0-snapshot", "app-0"), kinds=BOTH)
async def a_placement_made_again_begins_at_0(stage: Stage) -> object:
    await stage.placed()
    await stage.paint("red")
    await stage.rest()
    await stage.bed.delete(stage.twin.placements, APP, stage.twin.namespace)
    await stage.bed.until(partial(_is_clear, stage))
    await stage.hub.create(
        stage.twin.placements,
        {"metadata": {"name": APP}, "spec": {"resourceSelectors": [stage.usual_selector()]}},
        stage.twin.namespace,
    )
    await stage.rest()
    (snapshot,), (policy,) = await stage.snapshots(), await stage.policies()
    return snapshot["metadata"]["name"], policy["metadata"]["name"]


@GROUP.situation("16", ["app-0-snapshot"])
async def another_strategy_is_no_new_revision(stage: Stage) -> object:
    await stage.placed()
    await stage.edit(strategy=rolling(2, 2))
    await stage.rest()
    return names(await stage.snapshots())


@GROUP.situation("16", (["app-0-snapshot", "app-1-snapshot"], []))
async def other_selectors_are_a_new_revision(stage: Stage) -> object:
    await stage.placed(strategy=rolling("100%"))
    await stage.edit(resourceSelectors=[{**select("Namespace", SHOP), "selectionScope": "NamespaceOnly"}])
    await stage.rest()
    return names(await stage.snapshots()), await stage.seen_on()


# Selecting


async def selected(stage: Stage) -> list[str]:
    return [f"{one['kind']} {one['name']}" for one in (await stage.status()).get("selectedResources", ())]


@GROUP.situation("1.5", [f"Namespace {SHOP}"])
async def a_namespace_alone(stage: Stage) -> object:
    await stage.settle_in()
    await stage.place({**select("Namespace", SHOP), "selectionScope": "NamespaceOnly"})
    await stage.rest()
    return await selected(stage)


@GROUP.situation("1.5", [f"Namespace {SHOP}", "Deployment web"])
async def a_namespace_with_what_other_selectors_pick(stage: Stage) -> object:
    await stage.settle_in(deployment())
    whole = {**select("Namespace", SHOP), "selectionScope": "NamespaceWithResourceSelectors"}
    await stage.place(whole, select("Deployment", group="apps"), policy=fixed("cluster-1"))
    await stage.rest()
    return await selected(stage)


@GROUP.situation("1.5", ["ConfigMap a"], kinds=(RP,))
async def objects_with_a_label(stage: Stage) -> object:
    labelled = config_map("a")
    await stage.settle_in({**labelled, "metadata": {**labelled["metadata"], "labels": {"tier": "front"}}})
    await stage.place({**select("ConfigMap"), "labelSelector": {"matchLabels": {"tier": "front"}}})
    await stage.rest()
    return await selected(stage)


@GROUP.situation("4.1", [f"Namespace {SHOP}", f"ConfigMap {SETTINGS}", "Service web", "Deployment web"])
async def what_the_hub_made_itself_is_left_out(stage: Stage) -> object:
    """`kube-root-ca.crt` and the account `default` are there too; the order is that of kinds."""
    await stage.settle_in(deployment(), _service())
    await stage.place(policy=fixed("cluster-1"))
    await stage.rest()
    return await selected(stage)


def _service() -> Untyped:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": SHOP}, "spec": spec}


@GROUP.situation("4.1", ({"apiVersion", "kind", "metadata", "spec"}, {"name", "namespace"}, set()))
async def what_belongs_to_the_hub_is_taken_off(stage: Stage) -> object:
    await stage.settle_in(_service())
    assert (await stage.bed.get(SERVICES, "web", SHOP))["spec"]["clusterIP"]
    await stage.place(policy=fixed("cluster-1"))
    await stage.rest()
    (snapshot,) = await stage.snapshots()
    found = next(one for one in snapshot["spec"]["selectedResources"] if one["kind"] == "Service")
    return set(found), set(found["metadata"]), {"clusterIP", "clusterIPs"} & set(found["spec"])


@GROUP.situation("10.2", (["Namespace shop", "Widget one"], ["cluster-1"]))
async def a_new_kind_is_selected_as_soon_as_it_is_there(stage: Stage) -> object:
    await stage.settle_in()
    await stage.hub.delete(CONFIG_MAPS, SETTINGS, SHOP)
    await stage.place(policy=fixed("cluster-1"))
    await stage.make(kinds.DEFINITIONS, widgets(), "cluster-1")
    await stage.make(kinds.DEFINITIONS, widgets())
    await stage.bed.until(partial(_has_widget, stage))
    await asyncio.sleep(12.0)
    return await selected(stage), await stage.seen_on("cluster-1", kind=WIDGETS, name="one")


async def _has_widget(stage: Stage) -> bool:
    try:
        await stage.hub.create(WIDGETS, widget(), SHOP)
    except Exception:  # noqa: BLE001  # it is not served yet
        return False
    return True


# What comes back


@GROUP.situation("1.5", (1, 1))
async def the_status_of_a_placed_object_is_shown_on_the_original(stage: Stage) -> object:
    back = {"type": "Mirror", "destination": "OriginalResource"}
    await stage.placed(deployment(), policy=fixed("cluster-1"), strategy={"reportBackStrategy": back})
    status = (await stage.bed.get(kinds.DEPLOYMENTS, "web", SHOP))["status"]
    return status["availableReplicas"], status["updatedReplicas"]


@GROUP.situation("1.8", {"Mirror": "WorkAPI"}, kinds=BOTH)
async def a_work_is_told_what_to_report_back(stage: Stage) -> object:
    back = {"type": "Mirror", "destination": "WorkAPI"}
    await stage.placed(policy=fixed("cluster-1"), strategy={"reportBackStrategy": back})
    told = (await stage.work("cluster-1"))["spec"]["reportBackStrategy"]
    return {told["type"]: told["destination"]}


@GROUP.situation(
    "4.7",
    {
        *("PlacementRolloutStarted", "PlacementOverriddenSucceeded", "PlacementWorkSynchronized"),
        *("PlacementApplied", "PlacementAvailable", "PlacementRolloutCompleted"),
    },
    kinds=BOTH,
)
async def what_is_reached_is_told_in_events(stage: Stage) -> object:
    await stage.placed()
    meta = (await stage.placement())["metadata"]
    found = [one for one in await stage.bed.all(kinds.EVENTS) if one["involvedObject"].get("uid") == meta["uid"]]
    return {one["reason"] for one in found}
