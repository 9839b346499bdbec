"""Works, as a hub of either project makes them, and what an agent says of them (kubefleet.md §1.8, §4.5, §4.7)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fleet import kinds
from fleet.situations.playing import Group
from fleet.situations.stage import (
    APPLIED,
    CONFIG_MAPS,
    SETTINGS,
    SHOP,
    WORKS,
    Stage,
    config_map,
    deployment,
    names,
    spoken,
    widget,
    widgets,
)
from kedge.kube.codec import Untyped

GROUP: Final = Group("working")
ROOM: Final = "fleet-member-cluster-1"
NAMESPACE: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}}

ALL_APPLIED: Final = "Applied True AllManifestsApplied"
ALL_WELL: Final = [ALL_APPLIED, "Available True AllManifestsAvailable"]
NOT_APPLIED: Final = ["Applied False SomeManifestsAreNotApplied"]
APPLIED_AND_AVAILABLE: Final = ["Applied True Applied", "Available True Available"]


async def given(stage: Stage, *manifests: Untyped, name: str = "given", **how: Any) -> Untyped:
    """A Work by hand, and what the agent has made of it."""
    body = {"metadata": {"name": name, "namespace": ROOM}, "spec": {"workload": {"manifests": list(manifests)}, **how}}
    await stage.make(WORKS, body)
    await stage.rest()
    return await stage.bed.get(WORKS, name, ROOM)


def says(work: Untyped) -> list[str]:
    return spoken(work["status"], work["metadata"]["generation"])


def of_manifests(work: Untyped) -> list[list[str]]:
    """What is said of each manifest."""
    return [spoken(one) for one in work["status"].get("manifestConditions", ())]


@GROUP.situation("4.7", (ALL_WELL, [APPLIED_AND_AVAILABLE, APPLIED_AND_AVAILABLE]))
async def all_manifests_work(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, config_map("a"))
    return says(work), of_manifests(work)


@GROUP.situation("4.7", (ALL_WELL, []))
async def a_work_has_no_manifests(stage: Stage) -> object:
    work = await given(stage)
    return says(work), of_manifests(work)


@GROUP.situation(
    "4.7",
    (
        [ALL_APPLIED, "Available False SomeManifestsAreNotAvailable"],
        [APPLIED_AND_AVAILABLE, ["Applied True Applied", "Available False ManifestNotAvailableYet"]],
    ),
    real=True,
)
async def a_manifest_does_not_work(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, deployment("app:bad"))
    return says(work), of_manifests(work)


@GROUP.situation(
    "4.7",
    ([ALL_APPLIED, "Available True WorkNotTrackable"], ["Applied True Applied", "Available True NotTrackable"]),
)
async def of_a_manifest_nobody_knows_whether_it_works(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, widgets(), widget())
    return says(work), of_manifests(work)[2]


@GROUP.situation("4.7", (NOT_APPLIED, ["Applied False ManifestApplyFailed"]))
async def a_manifest_is_refused(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, {**deployment(), "spec": {"replicas": -1}})
    return says(work), of_manifests(work)[1]


@GROUP.situation("4.5", (NOT_APPLIED, [APPLIED_AND_AVAILABLE, ["Applied False DecodingErred"]]))
async def a_manifest_is_of_a_kind_the_member_does_not_serve(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, {**widget(), "kind": "Gadget"})
    return says(work), of_manifests(work)


@GROUP.situation("4.5", (NOT_APPLIED, [APPLIED_AND_AVAILABLE, ["Applied False DecodingErred"]]))
async def a_manifest_is_of_a_kind_the_member_serves_no_more(stage: Stage) -> object:
    await given(stage, widgets(), name="definition")
    await given(stage, NAMESPACE, widget())
    await stage.bed.delete(WORKS, "given", ROOM)
    await stage.bed.delete(WORKS, "definition", ROOM)
    await given(stage, NAMESPACE, widget(), name="late")
    await asyncio.sleep(30.0)
    work = await stage.bed.get(WORKS, "late", ROOM)
    return says(work), of_manifests(work)


@GROUP.situation("4.5", (NOT_APPLIED, ["Applied False FoundGenerateName"]))
async def a_manifest_would_be_another_object_each_time(stage: Stage) -> object:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-", "namespace": SHOP}}
    work = await given(stage, NAMESPACE, nameless)
    return says(work), of_manifests(work)[1]


@GROUP.situation("4.5", (NOT_APPLIED, [APPLIED_AND_AVAILABLE, APPLIED_AND_AVAILABLE, ["Applied False Duplicated"]]))
async def a_manifest_is_there_twice(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, config_map("a", colour="red"), config_map("a", colour="blue"))
    return says(work), of_manifests(work)


async def _there_before(stage: Stage, **meta: Any) -> None:
    """Namespace and ConfigMap are on the member already, and somebody's."""
    await stage.make(kinds.NAMESPACES, {"metadata": {"name": SHOP}}, "cluster-1")
    there = config_map(SETTINGS, colour="grey")
    await stage.make(CONFIG_MAPS, {**there, "metadata": {**there["metadata"], **meta}}, "cluster-1")


@GROUP.situation("4.5", (ALL_WELL, {"colour": "blue"}))
async def what_was_there_before_is_taken_over(stage: Stage) -> object:
    await _there_before(stage)
    work = await given(stage, config_map(SETTINGS, colour="blue"))
    return says(work), (await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1"))["data"]


@GROUP.situation("4.5", (NOT_APPLIED, [["Applied False NotTakenOver"]], {"colour": "grey"}))
async def what_was_there_before_is_left_alone(stage: Stage) -> object:
    await _there_before(stage)
    work = await given(stage, config_map(SETTINGS, colour="blue"), applyStrategy={"whenToTakeOver": "Never"})
    there = await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1")
    return says(work), of_manifests(work), there["data"]


@GROUP.situation("4.5", (NOT_APPLIED, [["Applied False FailedToTakeOver"]], ["Namespace"]))
async def what_somebody_owns_is_left_alone(stage: Stage) -> object:
    await stage.make(kinds.NAMESPACES, {"metadata": {"name": SHOP}}, "cluster-1")
    room = await stage.bed.get(kinds.NAMESPACES, SHOP, on="cluster-1")
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": SHOP, "uid": room["metadata"]["uid"]}
    there = config_map(SETTINGS, colour="grey")
    await stage.make(CONFIG_MAPS, {**there, "metadata": {**there["metadata"], "ownerReferences": [owner]}}, "cluster-1")
    work = await given(stage, config_map(SETTINGS, colour="blue"))
    found = await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1")
    return says(work), of_manifests(work), [one["kind"] for one in found["metadata"]["ownerReferences"]]


@GROUP.situation("4.5", (NOT_APPLIED, [["Applied False FailedToTakeOver"]]))
async def what_another_work_placed_is_left_alone(stage: Stage) -> object:
    await given(stage, NAMESPACE, config_map(SETTINGS, colour="blue"), name="first")
    work = await given(stage, config_map(SETTINGS, colour="red"), name="second")
    return says(work), of_manifests(work)


@GROUP.situation(
    "1.8",
    [
        {"ordinal": 0, "version": "v1", "kind": "Namespace", "resource": "namespaces", "name": SHOP},
        {
            "ordinal": 1,
            "group": "apps",
            "version": "v1",
            "kind": "Deployment",
            "resource": "deployments",
            "namespace": SHOP,
            "name": "web",
        },
    ],
)
async def manifests_are_named(stage: Stage) -> object:
    work = await given(stage, NAMESPACE, deployment())
    return [one["identifier"] for one in work["status"]["manifestConditions"]]


@GROUP.situation("4.5", (["b"], [SHOP, "b"]))
async def what_a_work_no_longer_asks_for_goes(stage: Stage) -> object:
    await given(stage, NAMESPACE, config_map("a"), config_map("b"))
    manifests = [NAMESPACE, config_map("b")]
    await stage.change(WORKS, "given", {"spec": {"workload": {"manifests": manifests}}}, ROOM)
    await stage.rest()
    there = [one for one in await stage.bed.all(CONFIG_MAPS, "cluster-1") if one["metadata"]["namespace"] == SHOP]
    listed = (await stage.bed.get(APPLIED, "given", on="cluster-1"))["status"]["appliedResources"]
    return [one for one in names(there) if one in ("a", "b")], [one["name"] for one in listed]


@GROUP.situation("4.5", [True, True, True])
async def a_deleted_work_takes_everything_with_it(stage: Stage) -> object:
    await given(stage, NAMESPACE, config_map("a"))
    await stage.bed.delete(WORKS, "given", ROOM)
    gone = [(APPLIED, "given", None), (CONFIG_MAPS, "a", SHOP), (kinds.NAMESPACES, SHOP, None)]
    return [await stage.bed.is_gone(kind, name, space, on="cluster-1") for kind, name, space in gone]


@GROUP.situation("4.5", {"colour": "blue"})
async def what_others_change_is_put_back(stage: Stage) -> object:
    await given(stage, NAMESPACE, config_map(SETTINGS, colour="blue"))
    await stage.change(CONFIG_MAPS, SETTINGS, {"data": {"colour": "red"}}, SHOP, on="cluster-1")
    await stage.rest()
    return (await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1"))["data"]


@GROUP.situation("4.5", (ALL_WELL, ["cluster-1"]))
async def what_others_delete_is_made_again(stage: Stage) -> object:
    await given(stage, NAMESPACE, config_map(SETTINGS))
    await stage.bed.clients["cluster-1"].delete(CONFIG_MAPS, SETTINGS, SHOP)
    await stage.rest()
    return says(await stage.bed.get(WORKS, "given", ROOM)), await stage.seen_on("cluster-1")


@GROUP.situation("4.5", (ALL_WELL, {"spec-hash"}))
async def the_server_applies(stage: Stage) -> object:
    """Then nobody has to remember what was applied last."""
    work = await given(stage, NAMESPACE, config_map(SETTINGS, colour="blue"), applyStrategy={"type": "ServerSideApply"})
    meta = (await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1"))["metadata"]
    return says(work), {one.removeprefix("kubernetes-fleet.io/") for one in meta["annotations"]}


@GROUP.situation("1.8", (1, 1))
async def the_status_of_an_object_comes_back(stage: Stage) -> object:
    back = {"type": "Mirror", "destination": "WorkAPI"}
    work = await given(stage, NAMESPACE, deployment(), reportBackStrategy=back)
    told = work["status"]["manifestConditions"][1]["backReportedStatus"]["observedStatus"]["status"]
    return told["availableReplicas"], told["observedGeneration"]
