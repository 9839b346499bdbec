"""Joining a hub of Karmada's kinds: a Cluster, its namespace, and an agent that may act there and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import click

from kedge import rights
from kedge.api.cluster import MemberCluster
from kedge.api.core import Namespace, ServiceAccount
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.karmada.clusters import Cluster
from kedge.api.meta import ObjectMeta, OwnerReference, Value
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule, Role, RoleBinding, RoleRef, Subject
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.plan.aligning.names import work_namespace

if TYPE_CHECKING:
    from kedge.kube.client import Client

MANAGER = "kedge-join"
PULL = "Pull"
"""Said although it is the default: a default needs a spec to be in, and `kubectl get clusters` shows it."""
Member = TypeVar("Member", MemberCluster, Cluster)
Made: TypeAlias = tuple[type[ServiceAccount | Role | RoleBinding], Value, str]


async def join_karmada(client: Client, name: str, subject: Subject, labels: Mapping[str, str], advice: str) -> bool:
    """Create what a member has on the hub, unless it is there; whether the member is new."""
    wanted = {"metadata": {"name": name, "labels": dict(labels)}, "spec": {"syncMode": PULL}}
    try:
        found, made = await client.create(Cluster, wanted, manager=MANAGER), True
    except AlreadyExists:
        found, made = not_leaving(await client.get(Cluster, name)), False
    except NotFound as error:
        raise click.ClickException(f"this cluster serves no Clusters of Karmada: is it the hub? {advice}") from error
    with suppress(AlreadyExists):
        await client.create(Namespace, {"metadata": {"name": work_namespace(name)}}, manager=MANAGER)
    for kind, body, namespace in identity(found, subject):
        with suppress(AlreadyExists):
            await client.create(kind, body, namespace, manager=MANAGER)
    return made


def not_leaving(found: Member) -> Member:
    """A member that is there to stay. One that is being deleted cannot be joined."""
    meta, kind = found.metadata, found.resource.kind.lower()
    if meta.deletion_timestamp is None:
        return found
    raise click.ClickException(
        f"{kind}/{meta.name} is being deleted: wait until it is gone, and join it then. `kubectl describe {kind}"
        f" {meta.name}` shows what it waits for"
    )


def identity(found: Cluster, subject: Subject) -> Iterator[Made]:
    """Who the agent is, and what it may do: in its own namespace only. All of it goes with the member."""
    own, name = work_namespace(found.metadata.name), subject.name
    yield from _may(found, "kedge-member", own, rights.KARMADA_AGENT, subject)
    if subject.kind == "ServiceAccount":
        yield ServiceAccount, ServiceAccount(metadata=_meta(found, name, SYSTEM_NAMESPACE)), SYSTEM_NAMESPACE
        renews = PolicyRule(
            api_groups=("",), resources=("serviceaccounts/token",), resource_names=(name,), verbs=("create",)
        )
        yield from _may(found, name, SYSTEM_NAMESPACE, (renews,), subject)


def _may(found: Cluster, name: str, namespace: str, rules: tuple[PolicyRule, ...], subject: Subject) -> Iterator[Made]:
    meta = _meta(found, name, namespace)
    yield Role, Role(metadata=meta, rules=rules), namespace
    role = RoleRef(api_group=RBAC, kind="Role", name=name)
    yield RoleBinding, RoleBinding(metadata=meta, role_ref=role, subjects=(subject,)), namespace


def _meta(found: Cluster, name: str, namespace: str) -> ObjectMeta:
    kind, meta = Cluster.resource, found.metadata
    owner = OwnerReference(api_version=kind.api_version, kind=kind.kind, name=meta.name, uid=meta.uid, controller=True)
    return ObjectMeta(name=name, namespace=namespace, owner_references=(owner,))
