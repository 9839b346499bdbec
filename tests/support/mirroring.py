"""A Deployment that is placed on one cluster, and what its member reports of it: the truth, and attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kedge.api.apps import Deployment, StatefulSet
from kedge.api.core import Namespace
from kedge.api.fleet import PARENT_BINDING, PARENT_PLACEMENT, member_namespace
from kedge.api.resource import Resource
from kedge.api.staged import ClusterApprovalRequest
from kedge.api.work import Work
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from support.placed import Placed
from support.waiting import until_so

BACK = {"reportBackStrategy": {"type": "Mirror", "destination": "OriginalResource"}}
APPROVAL = "run-canary"
_LABELS = {"app": "web"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
_SPEC = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
_APPROVED = {
    "conditions": [
        {
            "type": "Approved",
            "status": "True",
            "reason": "tested",
            "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ]
}


def workload(name: str, namespace: str, kind: str = "Deployment") -> dict[str, Any]:
    spec = {**_SPEC, "serviceName": name} if kind == "StatefulSet" else _SPEC
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


WEB = workload("web", "shop")
_REQUEST = {
    "apiVersion": ClusterApprovalRequest.resource.api_version,
    "kind": "ClusterApprovalRequest",
    "metadata": {"name": APPROVAL},
    "spec": {"parentStageRollout": "run", "targetStage": "canary"},
}


def identifier(resource: Resource, name: str, namespace: str = "", *, ordinal: int = 0) -> dict[str, Any]:
    """How a member names an object of its Work."""
    named = {"group": resource.group, "version": resource.version, "kind": resource.kind, "resource": resource.plural}
    return {"ordinal": ordinal, **named, "name": name, "namespace": namespace}


@dataclass(frozen=True)
class Attack:
    """What a member reports, and where; `manifests` is what it makes of its Work's objects before.

    With `shows_web` the object is truly its own, which then shows the status.
    """

    name: str
    identifier: Mapping[str, Any]
    status: Mapping[str, Any] = field(default_factory=lambda: {"replicas": 66})
    manifests: Sequence[Mapping[str, Any]] = ()
    cluster: str = "a"
    shows_web: bool = False


_NAMED = identifier(ClusterApprovalRequest.resource, APPROVAL)
_OTHER = workload("till", "bank")
ATTACKS = (
    Attack("an approval it names", _NAMED, _APPROVED),
    Attack("an approval it puts into its Work", _NAMED, _APPROVED, (_REQUEST,)),
    Attack("an object of others", identifier(Deployment.resource, "till", "bank")),
    Attack(
        "an object of others it puts into its Work",
        identifier(Deployment.resource, "till", "bank"),
        manifests=(_OTHER,),
    ),
    Attack("another object at that place", identifier(Deployment.resource, "till", "bank", ordinal=-1)),
    Attack(
        "its object under the plural of another kind",
        {**identifier(Deployment.resource, "web", "shop"), "resource": "statefulsets"},
        shows_web=True,
    ),
    Attack("a Work of a cluster that is not picked", identifier(Deployment.resource, "web", "shop"), cluster="b"),
)


async def prepare(placed: Placed) -> None:
    """The originals, those of others, an open approval, and a placement that wants statuses back."""
    client = placed.client
    for name in ("shop", "bank"):
        await client.create(Namespace, {"metadata": {"name": name}})
    for one in (WEB, _OTHER):
        await client.create(untyped(Deployment.resource), one, one["metadata"]["namespace"])
    await client.create(untyped(StatefulSet.resource), workload("web", "shop", "StatefulSet"), "shop")
    await client.create(untyped(ClusterApprovalRequest.resource), _REQUEST)
    await placed.place(strategy=BACK)
    await placed.snapshot(0, [WEB])


async def bind(placed: Placed, cluster: str, of: str | None = None) -> str:
    """A binding with a Work, as others make them; or, in the namespace of this cluster, a Work `of` another's."""
    await placed.join(cluster)
    name = of or await placed.bind(cluster, state="Bound", resourceSnapshotName="crp-0-snapshot")
    labels = {PARENT_PLACEMENT: "crp", PARENT_BINDING: name}
    meta = {"name": "crp-work", "namespace": member_namespace(cluster), "labels": labels}
    body = {"metadata": meta, "spec": {"workload": {"manifests": [WEB]}}}
    await placed.client.create(untyped(Work.resource), body, member_namespace(cluster))
    return name


async def reports(
    placed: Placed, cluster: str, status: Mapping[str, Any], named: Mapping[str, Any], at: str = "2030-01-01T00:00:00Z"
) -> None:
    """What a member's agent says of an object."""
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": status}
    back = {"observationTime": at, "observedStatus": whole}
    told = {"identifier": named, "conditions": [], "backReportedStatus": back}
    patch = MergePatch({"status": {"conditions": [], "manifestConditions": [told]}})
    await placed.client.patch(Work, "crp-work", patch, member_namespace(cluster), subresource="status")


async def expected(placed: Placed, attack: Attack) -> dict[str, Any]:
    """The statuses that an attack should leave behind."""
    return await statuses(placed) | ({"web": dict(attack.status)} if attack.shows_web else {})


async def try_out(placed: Placed, attack: Attack) -> None:
    """Do what a member can do with its own Work."""
    if attack.manifests:
        patch = MergePatch({"spec": {"workload": {"manifests": list(attack.manifests)}}})
        await placed.client.patch(Work, "crp-work", patch, member_namespace(attack.cluster))
    await reports(placed, attack.cluster, attack.status, attack.identifier)


async def restore(placed: Placed, attack: Attack) -> None:
    """Make the Work's objects the placed ones again, as a hub does."""
    if attack.manifests:
        patch = MergePatch({"spec": {"workload": {"manifests": [WEB]}}})
        await placed.client.patch(Work, "crp-work", patch, member_namespace(attack.cluster))


async def statuses(placed: Placed) -> dict[str, Any]:
    """The statuses of all that a member could be after."""
    client = placed.client
    web = await client.get(untyped(Deployment.resource), "web", "shop")
    till = await client.get(untyped(Deployment.resource), "till", "bank")
    other_kind = await client.get(untyped(StatefulSet.resource), "web", "shop")
    request = await client.get(untyped(ClusterApprovalRequest.resource), APPROVAL)
    found = {"web": web, "till": till, "StatefulSet web": other_kind, "approval": request}
    return {name: one.get("status") or {} for name, one in found.items()}


async def until_shown(placed: Placed, within: float = 10.0, **status: Any) -> None:
    """Wait until the placed Deployment shows this."""

    async def so() -> bool:
        return bool((await statuses(placed))["web"] == status)

    await until_so(so, within)
