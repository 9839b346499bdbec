"""Bad input: what users get wrong, and what they are told: the field, and what to do.

What the server refuses is told at once; what gets in is told on the object. Meanwhile another placement goes on.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from fleet import kinds
from fleet.bed import MEMBERS, Bed
from fleet.situations.playing import Failure
from fleet.situations.stage import (
    APP,
    CONFIG_MAPS,
    CRP,
    MEMBER_CLUSTERS,
    RP,
    SETTINGS,
    SHOP,
    Stage,
    Twin,
    config_map,
    fixed,
    pick,
    select,
)
from kedge.kube.codec import Codec, Untyped
from kedge.kube.errors import refusal
from kedge.kube.transport import Request

Told: TypeAlias = Callable[[Stage], Awaitable[str]]
SELECTORS: Final = "spec.resourceSelectors"
POLICY: Final = "spec.policy"
ROLLING: Final = "spec.strategy.rollingUpdate"
WHOLE: Final = [select("Namespace", SHOP)]


class Row(Struct, frozen=True):
    """One mistake: how it is made, which gives what is said of it, and what has to be in that."""

    name: str
    make: Told
    says: tuple[str, ...]


# What the server refuses


async def _refused(stage: Stage, kind: Codec[Untyped], body: Untyped) -> str:
    """Make it as kubectl does, which asks for what it does not know to be refused; gives the answer."""
    space = body["metadata"].get("namespace")
    query = (("fieldValidation", "Strict"),)
    sent = msgspec.json.encode({"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **body})
    response = await stage.hub.transport.send(Request("POST", kind.path(space), query=query, body=sent), timeout=120.0)
    assert response.status >= 400, f"it was taken: {response.body.decode()}"
    return str(refusal(Request("POST", kind.path(space)), response))


def refused(
    name: str, *says: str, kind: Codec[Untyped] = CRP.placements, meta: Untyped | None = None, **spec: Any
) -> Row:
    whole = spec if kind is MEMBER_CLUSTERS else {"resourceSelectors": WHOLE, **spec}
    body = {
        "metadata": meta or {"name": "bad"},
        "spec": {key: value for key, value in whole.items() if value is not ...},
    }
    return Row(name, lambda stage: _refused(stage, kind, body), says)


async def _changed(stage: Stage, before: Untyped, after: Untyped) -> str:
    """Make a good one, and change it to a bad one."""
    await stage.place(**before)
    try:
        await stage.edit(**after)
    except Exception as error:  # noqa: BLE001  # what is said is what is looked at
        return str(error)
    raise AssertionError("it was taken")


def immutable(name: str, *says: str, before: Untyped, after: Untyped) -> Row:
    return Row(name, lambda stage: _changed(stage, before, after), says)


def policy(**fields: Any) -> Untyped:
    return {"policy": fields}


def strategy(**rolling: Any) -> Untyped:
    return {"strategy": {"rollingUpdate": rolling}}


_USER: Final = {"kind": "User", "name": "x"}

REFUSED: Final = (
    refused("resource selectors are missing", SELECTORS, "Required", resourceSelectors=...),
    refused("resource selectors are empty", SELECTORS, "at least 1", resourceSelectors=[]),
    refused("resource selectors are a word", SELECTORS, "array", resourceSelectors="all"),
    refused(
        "too many resource selectors",
        SELECTORS,
        "100",
        resourceSelectors=[select("Namespace", f"n{n}") for n in range(101)],
    ),
    refused(
        "a selector without a kind",
        f"{SELECTORS}[0].kind",
        "Required",
        resourceSelectors=[{"group": "", "version": "v1"}],
    ),
    refused(
        "a selector by name and by labels",
        SELECTORS,
        "name and labelSelector are mutually exclusive in a resource selector",
        resourceSelectors=[{**select("Namespace", SHOP), "labelSelector": {"matchLabels": {"a": "b"}}}],
    ),
    refused(
        "an unknown selectionScope",
        f"{SELECTORS}[0].selectionScope",
        'supported values: "NamespaceOnly"',
        resourceSelectors=[{**select("Namespace", SHOP), "selectionScope": "Everything"}],
    ),
    refused(
        "a picky namespace without a name",
        "spec",
        "must select by name",
        resourceSelectors=[{**select("Namespace"), "selectionScope": "NamespaceWithResourceSelectors"}],
    ),
    refused(
        "a picky namespace beside another",
        "spec",
        "only one namespace selector is allowed",
        resourceSelectors=[
            {**select("Namespace", SHOP), "selectionScope": "NamespaceWithResourceSelectors"},
            select("Namespace", "other"),
        ],
    ),
    refused("a field that does not exist", 'unknown field "spec.polcy"', polcy={}),
    refused(
        "a field deep inside that does not exist",
        f'unknown field "{ROLLING}.maxUnavailible"',
        **strategy(maxUnavailible=1),
    ),
    refused(
        "a number that is a word",
        f"{POLICY}.numberOfClusters",
        "integer",
        **policy(placementType="PickN", numberOfClusters="three"),
    ),
    refused(
        "a negative number of clusters",
        f"{POLICY}.numberOfClusters",
        "greater than or equal to 0",
        **policy(placementType="PickN", numberOfClusters=-1),
    ),
    refused(
        "an unknown placementType",
        f"{POLICY}.placementType",
        'supported values: "PickAll"',
        **policy(placementType="PickSome"),
    ),
    refused(
        "PickAll with a number",
        POLICY,
        "numberOfClusters",
        "cannot be set when placementType is PickAll: remove",
        **policy(placementType="PickAll", numberOfClusters=2),
    ),
    refused("PickN without a number", POLICY, "PickN", "numberOfClusters must be set", **policy(placementType="PickN")),
    refused(
        "PickN with names",
        POLICY,
        "PickN",
        "clusterNames cannot be set",
        **policy(placementType="PickN", numberOfClusters=1, clusterNames=["a"]),
    ),
    refused(
        "PickFixed with an affinity",
        POLICY,
        "PickFixed",
        "PickFixed: remove them",
        **policy(placementType="PickFixed", clusterNames=["a"], affinity={}),
    ),
    refused(
        "too many names",
        f"{POLICY}.clusterNames",
        "100",
        **policy(placementType="PickFixed", clusterNames=[f"c{n}" for n in range(101)]),
    ),
    refused(
        "a toleration that compares nothing",
        f"{POLICY}.tolerations",
        "operator must be Exists when key is empty",
        **policy(tolerations=[{"value": "x"}]),
    ),
    refused(
        "a toleration of Exists with a value",
        f"{POLICY}.tolerations",
        "value must be empty when operator is Exists",
        **policy(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
    ),
    refused(
        "a spread without a skew",
        f"{POLICY}.topologySpreadConstraints[0].maxSkew",
        "greater than or equal to 1",
        **policy(
            placementType="PickN", numberOfClusters=1, topologySpreadConstraints=[{"topologyKey": "a", "maxSkew": 0}]
        ),
    ),
    refused(
        "a weight over 100",
        "weight",
        "less than or equal to 100",
        **policy(
            affinity={
                "clusterAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]
                }
            }
        ),
    ),
    refused("a percentage over 100", f"{ROLLING}.maxUnavailable", "101%", **strategy(maxUnavailable="101%")),
    refused("a surge that is no number", f"{ROLLING}.maxSurge", "some", **strategy(maxSurge="some")),
    refused(
        "a negative wait",
        f"{ROLLING}.unavailablePeriodSeconds",
        "greater than or equal to 0",
        **strategy(unavailablePeriodSeconds=-1),
    ),
    refused(
        "an unknown strategy",
        "spec.strategy.type",
        'supported values: "RollingUpdate", "External"',
        strategy={"type": "Recreate"},
    ),
    refused(
        "an unknown way to apply",
        "spec.strategy.applyStrategy.type",
        "supported values",
        strategy={"applyStrategy": {"type": "Replace"}},
    ),
    refused(
        "a status that comes back to nowhere",
        "spec.strategy.reportBackStrategy",
        "destination must be set when type is Mirror",
        strategy={"reportBackStrategy": {"type": "Mirror"}},
    ),
    refused("no history at all", "spec.revisionHistoryLimit", "greater than or equal to 1", revisionHistoryLimit=0),
    refused("too long a history", "spec.revisionHistoryLimit", "less than or equal to 1000", revisionHistoryLimit=1001),
    refused(
        "a status for two namespaces",
        "spec",
        "exactly one resourceSelector with kind 'Namespace' is required",
        statusReportingScope="NamespaceAccessible",
        resourceSelectors=[select("Namespace", "a"), select("Namespace", "b")],
    ),
    refused(
        "a namespaced placement with bad selectors",
        SELECTORS,
        "name and labelSelector are mutually exclusive",
        kind=RP.placements,
        meta={"name": "bad", "namespace": SHOP},
        resourceSelectors=[{**select("ConfigMap", "a"), "labelSelector": {}}],
    ),
    refused(
        "a member with too long a name",
        "metadata.name",
        "63",
        kind=MEMBER_CLUSTERS,
        meta={"name": "m" * 64},
        identity=_USER,
    ),
    refused(
        "a member without an identity", "spec.identity", "Required", kind=MEMBER_CLUSTERS, heartbeatPeriodSeconds=60
    ),
    refused(
        "a member that never speaks",
        "spec.heartbeatPeriodSeconds",
        "less than or equal to 600",
        kind=MEMBER_CLUSTERS,
        identity=_USER,
        heartbeatPeriodSeconds=3600,
    ),
    refused(
        "a taint with an unknown effect",
        "spec.taints[0].effect",
        'supported values: "NoSchedule"',
        kind=MEMBER_CLUSTERS,
        identity=_USER,
        taints=[{"key": "a", "effect": "NoExecute"}],
    ),
    immutable(
        "another placementType",
        POLICY,
        "placement type is immutable",
        before=policy(placementType="PickAll"),
        after={"policy": pick(1)},
    ),
    immutable(
        "a policy that is taken away",
        "spec",
        "policy cannot be removed once set",
        before={"policy": pick(1)},
        after={"policy": None},
    ),
    immutable(
        "a strategy that is taken back from runs",
        "spec.strategy.type",
        "cannot change rollout strategy type from 'External'",
        before={"strategy": {"type": "External"}},
        after={"strategy": {"type": "RollingUpdate"}},
    ),
    immutable(
        "another scope of the status",
        "spec",
        "statusReportingScope is immutable",
        before={"statusReportingScope": "NamespaceAccessible"},
        after={"statusReportingScope": "ClusterScopeOnly"},
    ),
)


# What is told on the object


async def _told(stage: Stage, twin: Twin, name: str, space: str | None) -> str:
    """All that a placement says: of itself, and of its clusters."""
    status = (await stage.bed.get(twin.placements, name, space)).get("status", {})
    conditions = [*status.get("conditions", ())]
    for entry in status.get("placementStatuses", ()):
        conditions += [*entry["conditions"], *(one["condition"] for one in entry.get("failedPlacements", ()))]
    return "\n".join(f"{one['type']} {one['status']} {one['reason']}: {one.get('message', '')}" for one in conditions)


async def _placed(
    stage: Stage, twin: Twin, spec: Untyped, name: str, space: str | None, objects: tuple[Untyped, ...], notes: Untyped
) -> str:
    for body in objects:
        await stage.make(CONFIG_MAPS, body)
    whole = {"resourceSelectors": WHOLE, **spec}
    meta = {"name": name, **({"namespace": space} if space else {}), "annotations": notes}
    await stage.make(twin.placements, {"metadata": meta, "spec": whole})
    await stage.rest()
    return await _told(stage, twin, name, space)


def told(
    name: str,
    *says: str,
    twin: Twin = CRP,
    called: str = "bad",
    inside: str | None = None,
    objects: tuple[Untyped, ...] = (),
    notes: Mapping[str, str] | None = None,
    **spec: Any,
) -> Row:
    space = (inside or SHOP) if twin is RP else None
    return Row(name, lambda stage: _placed(stage, twin, spec, called, space, objects, dict(notes or {})), says)


def affinity(**expression: Any) -> Untyped:
    term = {"propertySelector": {"matchExpressions": [expression]}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [term]}}
    return {"policy": {"affinity": {"clusterAffinity": terms}}}


def ruled(rule: str) -> tuple[Untyped, ...]:
    """A ConfigMap with a rule of its own."""
    body = config_map("ruled")
    return ({**body, "metadata": {**body["metadata"], "annotations": {"kedge.dev/available-when": rule}}},)


async def _same_object_twice(stage: Stage) -> str:
    await stage.place()
    await stage.rest()
    return await _placed(stage, CRP, {}, "bad", None, (), {})


async def _same_work_twice(stage: Stage) -> str:
    body = {"resourceSelectors": [select("PriorityClass", "x", group="scheduling.k8s.io")]}
    await stage.make(CRP.placements, {"metadata": {"name": f"{SHOP}.bad"}, "spec": body})
    await stage.rest()
    return await _placed(stage, RP, {"resourceSelectors": [select("ConfigMap", SETTINGS)]}, "bad", SHOP, (), {})


async def _strange_identity(stage: Stage) -> str:
    body: Untyped = {"metadata": {"name": "bad"}, "spec": {"identity": {"kind": "Robot", "name": "r2"}}}
    await stage.make(MEMBER_CLUSTERS, body)
    await stage.rest()
    found = await stage.bed.get(MEMBER_CLUSTERS, "bad")
    return "\n".join(f"{one['type']} {one['status']} {one['message']}" for one in found["status"]["conditions"])


async def _nothing_disturbed(stage: Stage) -> str:
    """A budget of nothing, and then something to roll out."""
    await stage.place(
        strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}, policy=fixed("cluster-1", "cluster-2")
    )
    await stage.rest()
    broken = {"metadata": {"annotations": {"kedge.dev/available-when": "false"}}}
    await stage.change(CONFIG_MAPS, SETTINGS, broken, SHOP)
    await stage.rest()
    return await _told(stage, CRP, APP, None)


_INVALID: Final = "Scheduled False InvalidResourceSelectors"
_FIRST: Final = f"{SELECTORS}[0]"

TOLD: Final = (
    told(
        "a kind that is not served",
        _INVALID,
        _FIRST,
        "install its CustomResourceDefinition",
        resourceSelectors=[select("Gadget", group="example.com")],
    ),
    told(
        "a version that is not served",
        _INVALID,
        _FIRST,
        "serves as v1: correct version",
        resourceSelectors=[select("Namespace", SHOP, version="v2")],
    ),
    told(
        "a namespaced kind in a ClusterResourcePlacement",
        _INVALID,
        _FIRST,
        "ConfigMap",
        "or use a ResourcePlacement",
        resourceSelectors=[select("ConfigMap", SETTINGS)],
    ),
    told(
        "a cluster-wide kind in a ResourcePlacement",
        _INVALID,
        _FIRST,
        "use a ClusterResourcePlacement",
        twin=RP,
        resourceSelectors=[select("ClusterRole", "x", group="rbac.authorization.k8s.io")],
    ),
    told(
        "a namespace of the system",
        _INVALID,
        _FIRST,
        "kube-system",
        "reserved",
        "choose another",
        resourceSelectors=[select("Namespace", "kube-system")],
    ),
    told(
        "a namespace of the fleet",
        _INVALID,
        _FIRST,
        "fleet-member-cluster-1",
        "reserved",
        resourceSelectors=[select("Namespace", "fleet-member-cluster-1")],
    ),
    told(
        "namespace default",
        _INVALID,
        _FIRST,
        "default",
        "choose another",
        resourceSelectors=[select("Namespace", "default")],
    ),
    told(
        "a kind of the hub itself",
        _INVALID,
        _FIRST,
        "MemberCluster",
        "remove it",
        resourceSelectors=[select("MemberCluster", group="cluster.kubernetes-fleet.io", version="v1")],
    ),
    told("pods", _INVALID, _FIRST, "Pod", "remove it", twin=RP, resourceSelectors=[select("Pod")]),
    told(
        "labels that mean nothing",
        _INVALID,
        _FIRST,
        "labelSelector",
        resourceSelectors=[
            {
                **select("Namespace"),
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]},
            }
        ],
    ),
    told(
        "the same object selected twice",
        _INVALID,
        f"{SELECTORS}[0]",
        f"{SELECTORS}[1]",
        f"Namespace {SHOP}",
        resourceSelectors=[select("Namespace", SHOP), select("Namespace", SHOP)],
    ),
    told(
        "a placement in a namespace of the system",
        _INVALID,
        "metadata.namespace",
        "kube-public",
        twin=RP,
        inside="kube-public",
        resourceSelectors=[select("ConfigMap")],
    ),
    told("a placement with too long a name", "metadata.name", "63", "shorter name", called="x" * 70),
    told(
        "a property that is no quantity",
        "Scheduled False",
        "propertySelector.matchExpressions[0].values",
        "write a number, such as 4",
        **affinity(name="kubernetes-fleet.io/node-count", operator="Gt", values=["many"]),
    ),
    told(
        "an unknown comparison",
        "Scheduled False",
        "propertySelector.matchExpressions[0].operator",
        "none of Gt",
        **affinity(name="kubernetes-fleet.io/node-count", operator="Above", values=["1"]),
    ),
    told(
        "a comparison with nothing",
        "Scheduled False",
        "propertySelector.matchExpressions[0].values",
        "give exactly one quantity",
        **affinity(name="kubernetes-fleet.io/node-count", operator="Gt", values=[]),
    ),
    told(
        "a cluster that does not exist",
        "Scheduled False",
        'Specified cluster "nowhere" is not found',
        policy=fixed("nowhere"),
    ),
    told("more clusters than there are", "Scheduled False", "could not find all clusters needed", policy=pick(9)),
    told(
        "a rule that does not compile",
        "Available False",
        "ConfigMap shop/ruled",
        "kedge.dev/available-when",
        "does not compile",
        objects=ruled("self.status.phase =="),
    ),
    told(
        "a rule that comes to a word",
        "Available False",
        "kedge.dev/available-when",
        "must come to true or false",
        objects=ruled("'ready'"),
    ),
    told(
        "a rule about what is not there",
        "Available False",
        "kedge.dev/available-when",
        objects=ruled("self.spec.size > 1"),
    ),
    told(
        "a rule that would take for ever",
        "Available False",
        "kedge.dev/available-when",
        "has a rule that cannot be evaluated",
        "it makes a list of more than 100000 items",
        objects=ruled("lists.range(1000000000).all(x, x >= 0)"),
    ),
    told(
        "a way to apply that does not exist yet",
        "Applied False",
        "applyStrategy.type ReportDiff",
        "use ClientSideApply",
        strategy={"applyStrategy": {"type": "ReportDiff"}},
    ),
    told(
        "a rollback to what never was",
        "RolloutStarted False",
        "kedge.dev/pinned-resource-index",
        "7",
        notes={"kedge.dev/pinned-resource-index": "7"},
    ),
    told(
        "a rollback to a word",
        "RolloutStarted False",
        "kedge.dev/pinned-resource-index",
        "last",
        notes={"kedge.dev/pinned-resource-index": "last"},
    ),
    Row(
        "the same object in two placements",
        _same_object_twice,
        ("Applied False", "AppliedWork app-work owns it", "with one placement only"),
    ),
    Row(
        "two placements whose Works have one name",
        _same_work_twice,
        ("WorkSynchronized False", "shop.bad-work", "rename one of the two placements"),
    ),
    Row("a member with a strange identity", _strange_identity, ("ReadyToJoin False", "spec.identity", "Robot")),
    Row("a budget of nothing", _nothing_disturbed, ("RolloutStarted False", "maxUnavailable", "counts as 1")),
    told(
        "selectors that match nothing",
        f"{SELECTORS}[1] selects nothing on the hub: correct it, or make what is meant",
        resourceSelectors=[select("Namespace", SHOP), select("Namespace", "not-there")],
    ),
)

ROWS: Final = (*REFUSED, *TOLD)


# Playing


async def play(bed: Bed) -> dict[str, str | Failure]:
    """What is said of each mistake, with another placement going on beside it."""
    beside = Stage(bed, CRP)
    await beside.make(kinds.NAMESPACES, {"metadata": {"name": "beside"}})
    await beside.make(CONFIG_MAPS, config_map("pulse", "beside", beat="0"))
    body = {"resourceSelectors": [select("Namespace", "beside")], "strategy": {"rollingUpdate": {"maxUnavailable": 4}}}
    await bed.hub.create(CRP.placements, {"metadata": {"name": "beside"}, "spec": body})
    return {row.name: await _play(bed, row, str(number)) for number, row in enumerate(ROWS, start=1)}


async def _play(bed: Bed, row: Row, beat: str) -> str | Failure:
    stage = Stage(bed, CRP, spares=("beside",))
    try:
        await stage.settle_in()
        said = await row.make(stage)
        await stage.change(CONFIG_MAPS, "pulse", {"data": {"beat": beat}}, "beside")
        await bed.until(partial(_beats, bed, beat), within=90.0)
        await stage.clear()
    except Exception:  # noqa: BLE001  # it is told of by the test of this row
        return Failure(traceback.format_exc())
    return said


async def _beats(bed: Bed, beat: str) -> bool:
    """Whether the other placement has reached every cluster with this."""
    for member in MEMBERS:
        if await bed.is_gone(CONFIG_MAPS, "pulse", "beside", on=member):
            return False
        if (await bed.get(CONFIG_MAPS, "pulse", "beside", on=member))["data"]["beat"] != beat:
            return False
    return True
