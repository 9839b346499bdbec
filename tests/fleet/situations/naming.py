"""What objects are called, what they carry, and whose they are (kubefleet.md §1.6–1.8, §1.12, §7)."""

from __future__ import annotations

import re
from typing import Final

from fleet import kinds
from fleet.situations.ghost import GHOST, Ghost
from fleet.situations.playing import Group
from fleet.situations.stage import (
    APP,
    APPLIED,
    BOTH,
    CONFIG_MAPS,
    COPIES,
    CRP,
    INTERNAL,
    MEMBER_CLUSTERS,
    RP,
    SETTINGS,
    SHOP,
    Stage,
    Twin,
    config_map,
    fixed,
    names,
    pick,
    rolling,
)
from kedge.kube.codec import Untyped

GROUP: Final = Group("naming")
_FLEET: Final = "kubernetes-fleet.io/"


def short(keys: Untyped) -> Untyped:
    """Labels or annotations of the fleet, without its prefix, and hashes as what they are."""
    ours = {key.removeprefix(_FLEET): value for key, value in keys.items() if key.startswith(_FLEET)}
    return {key: "SHA256" if re.fullmatch("[0-9a-f]{64}", value) else value for key, value in ours.items()}


def marks(obj: Untyped) -> tuple[Untyped, Untyped]:
    """The labels and annotations of an object that are the fleet's."""
    meta = obj["metadata"]
    return short(meta.get("labels", {})), short(meta.get("annotations", {}))


def owners(obj: Untyped) -> list[tuple[str, str, str, object, object]]:
    return [
        (one["apiVersion"], one["kind"], one["name"], one.get("controller"), one.get("blockOwnerDeletion"))
        for one in obj["metadata"].get("ownerReferences", ())
    ]


def finalizers(obj: Untyped) -> set[str]:
    return {one.removeprefix(_FLEET) for one in obj["metadata"].get("finalizers", ())}


def _owned_by_placement(twin: Twin) -> list[tuple[str, str, str, bool, bool]]:
    return [("placement.kubernetes-fleet.io/v1beta1", twin.prefix, APP, True, True)]


@GROUP.situation("1.12", {"crp-cleanup", "scheduler-cleanup"}, kinds=BOTH)
async def finalizers_of_a_placement(stage: Stage) -> object:
    await stage.placed()
    return finalizers(await stage.placement())


@GROUP.situation(
    "1.6",
    lambda twin: (
        "app-0-snapshot",
        {"parent-CRP": APP, "resource-index": "0", "is-latest-snapshot": "true"},
        {"resource-hash": "SHA256", "number-of-resource-snapshots": "1", "number-of-enveloped-object": "0"},
        _owned_by_placement(twin),
    ),
    kinds=BOTH,
    real=True,
)
async def a_resource_snapshot(stage: Stage) -> object:
    await stage.placed()
    (snapshot,) = await stage.snapshots()
    return snapshot["metadata"]["name"], *marks(snapshot), owners(snapshot)


@GROUP.situation(
    "1.6",
    lambda twin: (
        "app-0",
        {"parent-CRP": APP, "policy-index": "0", "is-latest-snapshot": "true"},
        {"CRP-generation": "1", "number-of-clusters": "2"},
        _owned_by_placement(twin),
        {"placementType": "PickN", "numberOfClusters": 2},  # kept, as recorded; only the hash does not count it
    ),
    kinds=BOTH,
)
async def a_policy_snapshot(stage: Stage) -> object:
    await stage.placed(policy=pick(2))
    (policy,) = await stage.policies()
    assert policy["spec"]["policyHash"]
    return policy["metadata"]["name"], *marks(policy), owners(policy), policy["spec"]["policy"]


@GROUP.situation(
    "1.7",
    lambda twin: (
        "app-cluster-1-SUFFIX",
        twin.namespace,
        {"parent-CRP": APP},
        {"scheduler-crb-cleanup", "work-cleanup"},
        [],
    ),
    kinds=BOTH,
)
async def a_binding(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    binding = (await stage.bindings())["cluster-1"]
    meta = binding["metadata"]
    name = re.sub("-[0-9a-f]{8}$", "-SUFFIX", meta["name"])
    return name, meta.get("namespace"), marks(binding)[0], finalizers(binding), owners(binding)


@GROUP.situation("1.7", ("Bound", "app-0-snapshot", "app-0", "cluster-1", True, "ClientSideApply"), kinds=BOTH)
async def what_a_binding_points_at(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    spec = (await stage.bindings())["cluster-1"]["spec"]
    pointed = (spec["state"], spec["resourceSnapshotName"], spec["schedulingPolicySnapshotName"])
    return *pointed, spec["targetCluster"], spec["clusterDecision"]["selected"], spec["applyStrategy"]["type"]


@GROUP.situation("1.7", 63)
async def names_of_bindings_fit_a_label(stage: Stage) -> object:
    long = "x" * 60
    await stage.settle_in()
    await stage.place(name=long, policy=fixed("cluster-1"))
    await stage.rest()
    (binding,) = await stage.bed.all(stage.twin.bindings)
    length = len(binding["metadata"]["name"])
    assert binding["metadata"]["name"].startswith("x" * 26 + "-cluster-1-")
    return max(63, length)


def _work_labels(twin: Twin) -> Untyped:
    labels = {"parent-CRP": APP, "parent-resource-binding": "BINDING", "parent-resource-snapshot-index": "0"}
    return {**labels, "parent-placement-namespace": SHOP} if twin is RP else labels


@GROUP.situation(
    "4.4",
    lambda twin: (
        "shop.app-work" if twin is RP else "app-work",
        _work_labels(twin),
        {
            "parent-resource-snapshot-name": "app-0-snapshot",
            "parent-resource-override-snapshot-hash": "SHA256",
            "parent-cluster-resource-override-snapshot-hash": "SHA256",
        },
        {"work-cleanup"},
        [],
    ),
    kinds=(RP, CRP),
    real=True,
)
async def a_work(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    work, binding = await stage.work("cluster-1"), (await stage.bindings())["cluster-1"]["metadata"]["name"]
    labels, annotations = marks(work)
    told = {key: "BINDING" if value == binding else value for key, value in labels.items()}
    return work["metadata"]["name"], told, annotations, finalizers(work), owners(work)


@GROUP.situation(
    "1.8",
    lambda twin: {"workName": "shop.app-work" if twin is RP else "app-work", "workNamespace": "fleet-member-cluster-1"},
    kinds=BOTH,
)
async def an_applied_work(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    work = await stage.work("cluster-1")
    found = await stage.bed.get(APPLIED, work["metadata"]["name"], on="cluster-1")
    return found["spec"]


@GROUP.situation(
    "1.8",
    {"ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": SHOP, "name": SETTINGS},
    kinds=(RP,),
)
async def what_an_applied_work_lists(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    found = await stage.bed.get(APPLIED, "shop.app-work", on="cluster-1")
    placed = await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1")
    (listed,) = found["status"]["appliedResources"]
    assert listed.pop("uid") == placed["metadata"]["uid"]
    return listed


@GROUP.situation(
    "4.5",
    lambda twin: (
        [
            (
                "placement.kubernetes-fleet.io/v1beta1",
                "AppliedWork",
                "shop.app-work" if twin is RP else "app-work",
                None,
                True,
            )
        ],
        {"spec-hash", "last-applied-configuration"},
    ),
    kinds=BOTH,
)
async def a_placed_object(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    found = await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-1")
    return owners(found), set(marks(found)[1])


@GROUP.situation("16", [("app-0-snapshot", "0", "false"), ("app-1-snapshot", "1", "true")], kinds=BOTH)
async def resource_snapshots_after_a_change(stage: Stage) -> object:
    await stage.placed()
    await stage.paint("red")
    await stage.rest()
    return [_numbered(one, "resource-index") for one in await stage.snapshots()]


def _numbered(obj: Untyped, index: str) -> tuple[str, str, str]:
    labels, _ = marks(obj)
    return obj["metadata"]["name"], labels[index], labels["is-latest-snapshot"]


@GROUP.situation("4.4", ("1", "app-1-snapshot"), kinds=BOTH)
async def a_work_after_a_change(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    await stage.paint("red")
    await stage.rest()
    labels, annotations = marks(await stage.work("cluster-1"))
    return labels["parent-resource-snapshot-index"], annotations["parent-resource-snapshot-name"]


@GROUP.situation("16", [("app-0", "0", "false"), ("app-1", "1", "true")], kinds=BOTH)
async def policy_snapshots_after_another_policy(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    await stage.edit(policy={"clusterNames": ["cluster-2"]})
    await stage.rest()
    return [_numbered(one, "policy-index") for one in await stage.policies()]


@GROUP.situation("16", ("app-0", "3", "2"), kinds=BOTH)
async def a_policy_snapshot_after_another_number(stage: Stage) -> object:
    await stage.placed(policy=pick(2))
    await stage.edit(policy={"numberOfClusters": 3})
    await stage.rest()
    (policy,) = await stage.policies()
    _, annotations = marks(policy)
    return policy["metadata"]["name"], annotations["number-of-clusters"], annotations["CRP-generation"]


@GROUP.situation("1.6", ["app-2-snapshot", "app-3-snapshot"], kinds=BOTH)
async def old_revisions_are_forgotten(stage: Stage) -> object:
    await stage.placed(revisionHistoryLimit=2, strategy=rolling("100%"))
    for colour in ("red", "green", "white"):
        await stage.paint(colour)
        await stage.rest()
    return names(await stage.snapshots())


def _large(number: int) -> Untyped:
    return config_map(f"large-{number}", text="x" * 450_000)


@GROUP.situation(
    "1.6",
    (
        [
            ("app-0-0", {"subindex-of-resource-snapshot": "0"}),
            ("app-0-snapshot", {"number-of-resource-snapshots": "2"}),
        ],
        ["app-0", "app-work"],
        True,
    ),
)
async def what_is_large_comes_in_parts(stage: Stage) -> object:
    await stage.placed(_large(1), _large(2), policy=fixed("cluster-1"))
    wanted = ("subindex-of-resource-snapshot", "number-of-resource-snapshots")
    parts = [
        (one["metadata"]["name"], {key: value for key, value in marks(one)[1].items() if key in wanted})
        for one in await stage.snapshots()
    ]
    there = await stage.seen_on("cluster-1", name="large-1") == await stage.seen_on("cluster-1", name="large-2")
    return parts, sorted(names(await stage.works("cluster-1"))), there


@GROUP.situation("1.7", ("Unscheduled", "Bound"))
async def a_binding_that_is_to_go(stage: Stage) -> object:
    """It stays until the cluster that comes instead, whose agent does not answer, has its resources."""
    await Ghost(stage).joins()
    await stage.placed(policy=fixed("cluster-1"), strategy=rolling(1, 1))
    await stage.edit(policy={"clusterNames": [GHOST]}, strategy=rolling(0, 1))
    await stage.rest()
    binding = (await stage.bindings())["cluster-1"]
    return binding["spec"]["state"], marks(binding)[1]["previous-binding-state"]


@GROUP.situation(
    "1.11", (APP, [("placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", APP, True, True)])
)
async def the_copy_of_a_status(stage: Stage) -> object:
    await stage.placed(statusReportingScope="NamespaceAccessible")
    copy = await stage.bed.get(COPIES, APP, SHOP)
    return copy["metadata"]["name"], owners(copy)


# Members


_MEMBER: Final = ("cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", GHOST, True, True)


@GROUP.situation("7", ({"member-name": "cluster-1"}, {"membercluster-finalizer"}))
async def a_member(stage: Stage) -> object:
    member = await stage.bed.get(MEMBER_CLUSTERS, "cluster-1")
    return marks(member)[0], finalizers(member)


@GROUP.situation("7", ({"is-fleet-resource": "true"}, ["MemberCluster"]))
async def the_namespace_of_a_member(stage: Stage) -> object:
    room = await stage.bed.get(kinds.NAMESPACES, "fleet-member-cluster-1")
    return marks(room)[0], [one[1] for one in owners(room)]


@GROUP.situation("1.12", ("fleet-role-cluster-1", "fleet-rolebinding-cluster-1", "fleet-member-agent-cluster-1"))
async def the_rights_of_a_member(stage: Stage) -> object:
    room = "fleet-member-cluster-1"
    role = await stage.bed.get(kinds.ROLES, "fleet-role-cluster-1", room)
    bound = await stage.bed.get(kinds.ROLE_BINDINGS, "fleet-rolebinding-cluster-1", room)
    assert bound["roleRef"]["name"] == role["metadata"]["name"]
    return role["metadata"]["name"], bound["metadata"]["name"], bound["subjects"][0]["name"]


@GROUP.situation("1.4", {"state": "Join", "heartbeatPeriodSeconds": 15})
async def what_an_agent_is_told(stage: Stage) -> object:
    return (await stage.bed.get(INTERNAL, "cluster-1", "fleet-member-cluster-1"))["spec"]
