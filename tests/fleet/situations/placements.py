"""What a placement says of itself and of its clusters: every status of every type (kubefleet.md §4.7, §18)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fleet import kinds
from fleet.bed import MEMBERS
from fleet.situations.ghost import GHOST, Ghost
from fleet.situations.playing import Group
from fleet.situations.stage import (
    APP,
    BOTH,
    CONFIG_MAPS,
    COPIES,
    CRP,
    RP,
    SETTINGS,
    SHOP,
    WIDGETS,
    WORKS,
    Stage,
    Twin,
    config_map,
    deployment,
    fixed,
    message,
    names,
    parent,
    pick,
    required,
    rolling,
    select,
    spoken,
    widget,
    widgets,
)
from kedge.kube.codec import Untyped
from kedge.kube.errors import NotFound

GROUP: Final = Group("placements")

FULFILLED: Final = "Scheduled True SchedulingPolicyFulfilled"
STARTED: Final = "RolloutStarted True RolloutStarted"
AS_IS: Final = "Overridden True NoOverrideSpecified"
SYNCED: Final = "WorkSynchronized True WorkSynchronized"
APPLIED: Final = "Applied True ApplySucceeded"
DONE: Final = [FULFILLED, STARTED, AS_IS, SYNCED, APPLIED, "Available True ResourceAvailable"]

PICKED: Final = "Scheduled True Scheduled"
HAS_WORKS: Final = "WorkSynchronized True AllWorkSynced"
HAS_APPLIED: Final = "Applied True AllWorkHaveBeenApplied"
CLUSTER_DONE: Final = [PICKED, STARTED, AS_IS, HAS_WORKS, HAS_APPLIED, "Available True AllWorkAreAvailable"]
NOT_PICKED: Final = "Scheduled False ScheduleFailed"


@GROUP.situation("18", DONE, kinds=BOTH, real=True)
async def all_is_well_with_a_placement(stage: Stage) -> object:
    await stage.placed()
    return await stage.says()


@GROUP.situation("18", dict.fromkeys(MEMBERS, CLUSTER_DONE), kinds=BOTH)
async def all_is_well_on_every_cluster(stage: Stage) -> object:
    await stage.placed()
    return {one: await stage.says_of(one) for one in await stage.picked()}


def _selected(twin: Twin) -> list[Untyped]:
    settings = {"version": "v1", "kind": "ConfigMap", "namespace": SHOP, "name": SETTINGS}
    return [settings] if twin is RP else [{"version": "v1", "kind": "Namespace", "name": SHOP}, settings]


@GROUP.situation("1.5", lambda twin: ("0", _selected(twin), {"0"}), kinds=BOTH)
async def the_status_names_the_resources_and_their_index(stage: Stage) -> object:
    await stage.placed()
    status = await stage.status()
    entries = {one["observedResourceIndex"] for one in status["placementStatuses"]}
    return status["observedResourceIndex"], status["selectedResources"], entries


@GROUP.situation("4.7", (DONE, "1"), kinds=BOTH)
async def after_a_change_all_is_said_of_the_new_index(stage: Stage) -> object:
    await stage.placed(strategy=rolling("100%"))
    await stage.paint("red")
    await stage.rest()
    return await stage.says(), (await stage.status())["observedResourceIndex"]


@GROUP.situation("4.7", (2, DONE))
async def after_an_edit_all_is_said_of_the_new_generation(stage: Stage) -> object:
    await stage.placed()
    await stage.edit(revisionHistoryLimit=5)
    await stage.rest()
    return (await stage.placement())["metadata"]["generation"], await stage.says()


# Scheduled


@GROUP.situation("4.7", (["Scheduled False SchedulingPolicyUnfulfilled", *DONE[1:]], [NOT_PICKED]), kinds=BOTH)
async def too_few_clusters_still_get_everything(stage: Stage) -> object:
    await stage.placed(policy=pick(3, affinity=required(loc="east")))
    return await stage.says(), await stage.says_of("")


@GROUP.situation("4.3", (["Scheduled False SchedulingPolicyUnfulfilled"], [NOT_PICKED, NOT_PICKED]))
async def no_cluster_fits(stage: Stage) -> object:
    await stage.placed(policy=pick(2, affinity=required(loc="moon")))
    return await stage.says(), await stage.says_of("")


@GROUP.situation("4.3", ([FULFILLED], [], []), kinds=BOTH)
async def all_clusters_are_wanted_and_none_fits(stage: Stage) -> object:
    await stage.placed(policy={"placementType": "PickAll", "affinity": required(loc="moon")})
    return await stage.says(), await stage.picked(), await stage.says_of("")


@GROUP.situation("4.3", ([FULFILLED], []))
async def no_cluster_is_wanted(stage: Stage) -> object:
    await stage.placed(policy=pick(0))
    return await stage.says(), await stage.entries()


@GROUP.situation("2.6", (["cluster-1"], [NOT_PICKED], 'Specified cluster "nowhere" is not found'))
async def a_cluster_that_is_named_does_not_exist(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1", "nowhere"))
    nameless = next(one for one in await stage.entries() if "clusterName" not in one)
    said = message(nameless, "Scheduled").partition(": ")[2]
    return await stage.picked(), await stage.says_of(""), said


@GROUP.situation("4.3", (["cluster-1", "cluster-2", "cluster-3"], []))
async def clusters_that_pick_all_passes_over_are_not_listed(stage: Stage) -> object:
    await stage.change(kinds.MEMBERS, "cluster-4", {"spec": {"taints": [{"key": "old", "effect": "NoSchedule"}]}})
    await stage.placed()
    return await stage.picked(), await stage.says_of("")


@GROUP.situation("4.7", (["Scheduled False InvalidResourceSelectors"], []), kinds=BOTH)
async def selectors_mean_nothing(stage: Stage) -> object:
    await stage.settle_in()
    await stage.place(select("Gadget", group="example.com"))
    await stage.rest()
    return await stage.says(), await stage.works("cluster-1")


@GROUP.situation("1.6", (DONE, None, {}), kinds=BOTH)
async def selectors_match_nothing(stage: Stage) -> object:
    await stage.settle_in()
    kind = "Namespace" if stage.twin is CRP else "ConfigMap"
    await stage.place(select(kind, "not-there"))
    await stage.rest()
    (snapshot,) = await stage.snapshots()
    (resources,) = [snapshot.get("spec", {})]
    return await stage.says(), (await stage.status()).get("selectedResources"), _without_empty(resources)


def _without_empty(values: Untyped) -> Untyped:
    return {key: value for key, value in values.items() if value}


# RolloutStarted


@GROUP.situation("4.3", ([FULFILLED, "RolloutStarted Unknown RolloutControlledByExternalController"], None), kinds=BOTH)
async def runs_from_outside_have_not_begun(stage: Stage) -> object:
    await stage.placed(strategy={"type": "External"})
    return await stage.says(), (await stage.status()).get("observedResourceIndex")


@GROUP.situation("18", [PICKED, "RolloutStarted Unknown RolloutStartedUnknown"], kinds=BOTH)
async def a_cluster_that_a_run_from_outside_has_not_reached(stage: Stage) -> object:
    await stage.placed(strategy={"type": "External"})
    return await stage.says_of("cluster-1")


async def _running(stage: Stage, image: str, **spec: Any) -> None:
    """A Deployment is placed: with its namespace, or alone."""
    await stage.settle_in(deployment(image))
    await stage.place(*([select("Deployment", "web", group="apps")] if stage.twin is RP else ()), **spec)
    await stage.rest()


async def _stopped(stage: Stage) -> None:
    """A bad image has reached one of three clusters."""
    await _running(stage, "app:1", policy=fixed("cluster-1", "cluster-2", "cluster-3"), strategy=rolling(1))
    await stage.change(kinds.DEPLOYMENTS, "web", {"spec": deployment("app:bad")["spec"]}, SHOP)
    await stage.rest()


@GROUP.situation("18", [FULFILLED, "RolloutStarted False RolloutNotStartedYet"], kinds=BOTH, real=True)
async def a_rollout_that_is_held_up(stage: Stage) -> object:
    await _stopped(stage)
    return await stage.says()


@GROUP.situation("18", [PICKED, "RolloutStarted False RolloutNotStartedYet"])
async def a_cluster_that_waits_in_a_rollout(stage: Stage) -> object:
    await _stopped(stage)
    return await stage.says_of("cluster-3")


@GROUP.situation("18", [*CLUSTER_DONE[:-1], "Available False NotAllWorkAreAvailable"])
async def the_cluster_that_holds_up_a_rollout(stage: Stage) -> object:
    await _stopped(stage)
    return await stage.says_of("cluster-1")


# Overridden and WorkSynchronized


@GROUP.situation(
    "4.7",
    ([FULFILLED, STARTED, "Overridden False OverriddenFailed"], [PICKED, STARTED, "Overridden False OverriddenFailed"]),
    kinds=BOTH,
)
async def a_binding_asks_for_what_is_not_there(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    binding = (await stage.bindings())["cluster-1"]["metadata"]
    asked = {"spec": {"clusterResourceOverrideSnapshots": ["not-there"]}}
    await stage.change(stage.twin.bindings, binding["name"], asked, stage.twin.namespace)
    await stage.rest()
    return await stage.says(), await stage.says_of("cluster-1")


@GROUP.situation(
    "4.7",
    (
        [FULFILLED, STARTED, AS_IS, "WorkSynchronized False WorkNotSynchronizedYet"],
        [PICKED, STARTED, AS_IS, "WorkSynchronized False SyncWorkFailed"],
    ),
    kinds=(RP,),
)
async def the_name_of_a_work_is_taken(stage: Stage) -> object:
    """A ClusterResourcePlacement `shop.app` and a ResourcePlacement `app` in `shop` want Works of the same name."""
    await stage.settle_in()
    body = {"resourceSelectors": [select("PriorityClass", "high", group="scheduling.k8s.io")]}
    await stage.make(CRP.placements, {"metadata": {"name": f"{SHOP}.{APP}"}, "spec": body})
    await stage.rest()
    await stage.place(policy=fixed("cluster-1"))
    await stage.rest()
    return await stage.says(), await stage.says_of("cluster-1")


@GROUP.situation("4.7", [FULFILLED, STARTED, AS_IS, "WorkSynchronized False WorkNotSynchronizedYet"])
async def the_name_of_a_work_is_somebody_elses(stage: Stage) -> object:
    body = {"metadata": {"name": "app-work", "namespace": "fleet-member-cluster-1"}}
    await stage.make(WORKS, {**body, "spec": {"workload": {"manifests": []}}})
    await stage.placed(policy=fixed("cluster-1"))
    return await stage.says()


# Applied


@GROUP.situation(
    "4.7",
    (
        [FULFILLED, STARTED, AS_IS, SYNCED, "Applied False ApplyFailed"],
        [PICKED, STARTED, AS_IS, HAS_WORKS, "Applied False ApplyInProgress"],
    ),
    kinds=BOTH,
)
async def an_agent_has_not_answered(stage: Stage) -> object:
    await Ghost(stage).joins()
    await stage.placed(policy=fixed(GHOST))
    return await stage.says(), await stage.says_of(GHOST)


async def _refused(stage: Stage) -> None:
    """cluster-2 takes no ConfigMap called `settings`: one that cannot be changed is there already."""
    await stage.make(kinds.NAMESPACES, {"metadata": {"name": SHOP}}, "cluster-2")
    await stage.make(CONFIG_MAPS, {**config_map(SETTINGS, colour="grey"), "immutable": True}, "cluster-2")
    await stage.placed(policy=fixed("cluster-2"))


@GROUP.situation("18", [*DONE[:4], "Applied False ApplyFailed"], kinds=BOTH)
async def an_object_is_refused(stage: Stage) -> object:
    await _refused(stage)
    return await stage.says()


@GROUP.situation("18", [*CLUSTER_DONE[:4], "Applied False NotAllWorkHaveBeenApplied"], kinds=BOTH)
async def a_cluster_refuses_an_object(stage: Stage) -> object:
    await _refused(stage)
    return await stage.says_of("cluster-2")


@GROUP.situation(
    "1.5",
    [{"version": "v1", "kind": "ConfigMap", "namespace": SHOP, "name": SETTINGS}, "Applied False ManifestApplyFailed"],
    kinds=BOTH,
)
async def an_object_that_is_refused_is_listed(stage: Stage) -> object:
    await _refused(stage)
    (failed,) = (await stage.entry("cluster-2"))["failedPlacements"]
    (said,) = spoken({"conditions": [failed.pop("condition")]})
    return [failed, said]


@GROUP.situation("4.4", ({"Applied False NotAllWorkHaveBeenApplied"}, ["settings"]))
async def a_binding_says_the_same(stage: Stage) -> object:
    await _refused(stage)
    binding = (await stage.bindings())["cluster-2"]
    said = spoken(binding["status"], binding["metadata"]["generation"])
    return {said[-1]}, [one["name"] for one in binding["status"]["failedPlacements"]]


# Available


@GROUP.situation(
    "4.7",
    (
        [*DONE[:5], "Available Unknown ResourceAvailableUnknown"],
        [*CLUSTER_DONE[:5], "Available Unknown ResourceAvailableUnknown"],
    ),
    kinds=BOTH,
)
async def an_agent_does_not_say_whether_it_works(stage: Stage) -> object:
    ghost = Ghost(stage)
    await ghost.joins()
    await stage.placed(policy=fixed(GHOST))
    await ghost.reports(("Applied", "True", "AllManifestsApplied"))
    await stage.rest()
    return await stage.says(), await stage.says_of(GHOST)


@GROUP.situation(
    "18",
    ([*DONE[:5], "Available False ResourceNotAvailableYet"], [("web", "Available False ManifestNotAvailableYet")]),
    kinds=BOTH,
)
async def a_deployment_does_not_start(stage: Stage) -> object:
    await _running(stage, "app:bad", policy=fixed("cluster-1"))
    failed = (await stage.entry("cluster-1"))["failedPlacements"]
    return await stage.says(), [(one["name"], *spoken({"conditions": [one["condition"]]})) for one in failed]


@GROUP.situation(
    "4.7",
    (DONE, [*CLUSTER_DONE[:5], "Available True NotAllWorkAreAvailabilityTrackable"]),
    kinds=BOTH,
    real=True,
)
async def nothing_tells_whether_it_works(stage: Stage) -> object:
    await stage.make(kinds.DEFINITIONS, widgets())
    await stage.make(kinds.DEFINITIONS, widgets(), "cluster-1")
    await stage.bed.until(lambda: _serves_widgets(stage))
    await stage.settle_in(widget())
    await stage.place(*([select("Widget", group="example.com")] if stage.twin is RP else ()), policy=fixed("cluster-1"))
    await stage.rest()
    return await stage.says(), await stage.says_of("cluster-1")


async def _serves_widgets(stage: Stage) -> bool:
    try:
        return [await stage.bed.all(WIDGETS, where) for where in ("hub", "cluster-1")] == [[], []]
    except NotFound:
        return False


@GROUP.situation("4.5", (CLUSTER_DONE, "cannot be reached"))
async def a_member_that_falls_silent_keeps_what_it_said_last(stage: Stage) -> object:
    ghost = Ghost(stage)
    await ghost.joins()
    await stage.placed(policy=fixed(GHOST))
    await ghost.reports(("Applied", "True", "AllManifestsApplied"), ("Available", "True", "AllManifestsAvailable"))
    await asyncio.sleep(60.0)
    await stage.rest()
    words = message(await stage.entry(GHOST), "Available")
    return await stage.says_of(GHOST), "cannot be reached" if "cannot be reached" in words else words


# StatusSynced


@GROUP.situation("1.11", ([*DONE, "StatusSynced True StatusSyncSucceeded"], [APP], DONE), real=True)
async def the_status_can_be_read_in_the_namespace(stage: Stage) -> object:
    await stage.placed(statusReportingScope="NamespaceAccessible")
    copies = [one for one in await stage.bed.all(COPIES) if one["metadata"]["namespace"] == SHOP]
    copied = [one.removeprefix(stage.twin.prefix) for one in spoken(copies[0]["sourceStatus"])]
    assert "lastUpdatedTime" in copies[0]
    return await stage.says(), names(copies), copied[: len(DONE)]


@GROUP.situation("1.11", [*DONE, "StatusSynced False StatusSyncFailed"])
async def the_namespace_for_the_status_does_not_exist(stage: Stage) -> object:
    await stage.place(statusReportingScope="NamespaceAccessible")
    await stage.rest()
    return await stage.says()


NOT_FOLLOWED = ["Scheduled False InvalidResourceSelectors", *DONE[1:], "StatusSynced True StatusSyncSucceeded"]


@GROUP.situation(
    "16", (NOT_FOLLOWED, ["1", "2"], CLUSTER_DONE, ["0"], [*DONE, "StatusSynced True StatusSyncSucceeded"]), real=True
)
async def a_placement_that_shows_its_status_in_a_namespace_names_another(stage: Stage) -> object:
    await stage.placed(statusReportingScope="NamespaceAccessible", policy={"placementType": "PickAll"})
    was = stage.usual_selector()
    await stage.edit(resourceSelectors=[{**was, "name": "elsewhere"}], policy={"tolerations": [{"operator": "Exists"}]})
    await stage.rest()
    status = await stage.status()
    said = [one.removeprefix(stage.twin.prefix) for one in spoken(status)]
    generations = sorted({str(one["observedGeneration"]) for one in status["conditions"]})
    entries = spoken(status["placementStatuses"][0], 1)
    indexes = [one["metadata"]["labels"]["kubernetes-fleet.io/resource-index"] for one in await stage.snapshots()]
    assert await stage.seen_on("cluster-1") == ["cluster-1"]
    assert len(await stage.policies()) == 1
    await stage.edit(resourceSelectors=[was], policy={"tolerations": None})
    await stage.rest()
    return said, generations, entries, indexes, await stage.says()


@GROUP.situation("1.5", (DONE, DONE))
async def two_placements_share_a_fleet(stage: Stage) -> object:
    await stage.placed()
    await stage.place(select("PriorityClass", "not-there", group="scheduling.k8s.io"), name="second")
    await stage.rest()
    second = await stage.bed.get(stage.twin.placements, "second")
    assert parent(next(iter((await stage.bindings()).values()))) == APP
    said = spoken(second["status"], second["metadata"]["generation"])
    return await stage.says(), [one.removeprefix(stage.twin.prefix) for one in said]
