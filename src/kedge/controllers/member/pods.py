"""Pods: of every pod on a member that has not ended, what it asks of its node, and what is wrong with it.

One cache for all who look at pods. A member may have very many of them, so of each it keeps a few numbers; of the few
that are in trouble also what that is, and which workload it concerns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from msgspec import field

from kedge.api.core import Resources
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.controllers.member.amounts import Amounts, amounts, total
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change, Index
from kedge.plan.availability.pod_trouble import PodStatus, PodTrouble, Workload, trouble_of

NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
WORKLOAD: Final = "workload"


class PodContainer(Value, frozen=True, gc=False):
    """What a container asks for."""

    resources: Resources = Resources()


class PodSpec(Value, frozen=True, gc=False):
    """Where a pod runs, and what it asks for."""

    containers: tuple[PodContainer, ...] | None = None
    node_name: str = ""


class Pod(Value, frozen=True, gc=False):
    """A pod, by what it asks for of its node, and what is wrong with it."""

    resource: ClassVar[Resource] = Resource("", "v1", "Pod", "pods")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec | None = None
    status: PodStatus | None = None
    asks: Amounts = Amounts()
    trouble: PodTrouble | None = None


def pods_of(member: Cluster) -> Cache[Pod]:
    """The pods of a member: one cache, however many ask for it."""
    return member.cache(Pod, fields=NOT_ENDED, transform=pod_in_short, indexes=_INDEXES)


def pod_in_short(pod: Pod) -> Pod:
    """The pod with what it asks of its node added up, and no more. One that has no node asks nothing of any."""
    spec, meta = pod.spec or PodSpec(), pod.metadata
    containers = (spec.containers or ()) if spec.node_name else ()
    return Pod(
        metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, resource_version=meta.resource_version),
        asks=total(amounts(one.resources.requests) for one in containers),
        trouble=trouble_of(meta, pod.status) if pod.status else None,
    )


def troubles_of(pods: Cache[Pod], workload: Workload) -> list[PodTrouble]:
    """What is wrong with the pods of a workload."""
    return [pod.trouble for pod in pods.by(WORKLOAD, _key(workload)) if pod.trouble is not None]


def newly_in_trouble(change: Change[Pod]) -> list[Workload]:
    """The workloads of which a pod got into trouble, into another, or out of it."""
    old, new = (pod.trouble if pod is not None else None for pod in (change.old, change.new))
    if old is new or (old is not None and old.is_like(new)):
        return []
    return list(dict.fromkeys(one.workload for one in (old, new) if one is not None))


def _by_workload(pod: Pod) -> Iterable[str]:
    return () if pod.trouble is None else (_key(pod.trouble.workload),)


def _key(workload: Workload) -> str:
    return f"{workload.group}/{workload.kind}/{workload.namespace}/{workload.name}"


_INDEXES: Final[dict[str, Index[Pod]]] = {WORKLOAD: _by_workload}
