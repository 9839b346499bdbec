"""What `kedge join` does: a MemberCluster, and an identity for its agent, made if they are not there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import click
from msgspec import Struct

from kedge.api.cluster import Identity, MemberCluster, MemberClusterSpec
from kedge.api.core import ServiceAccount
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.meta import ObjectMeta, Value
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule, Role, RoleBinding, RoleRef, Subject
from kedge.api.times import format_duration
from kedge.cli import kubeconfig
from kedge.cli.preflight import NO_HUB
from kedge.kube.client import Client
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.connect.credentials import CredentialsFailed
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.connect.service_tokens import ServiceToken, request_token
from kedge.kube.errors import AlreadyExists, KubeError, NotFound
from kedge.plan.membership import owner

MANAGER = "kedge-join"

TO_MAKE = """
On the hub, a token for its agent, and a kubeconfig with it (or however you hand out identities). `kedge join {name}
--agent-kubeconfig FILE` does both:

  kubectl --namespace {namespace} create token {account} --duration {duration}

It is for starting the agent, which renews it from then on.
"""
WRITTEN = """
{file} lets its agent in, for {duration}: start the agent within that time, and it renews the token from then on. See
to it that the member reaches the hub as the file says: {server}
"""
NEXT = """
On the member:

  kubectl create namespace {namespace}
  kubectl --namespace {namespace} create secret generic kedge-hub --from-file kubeconfig={file}
  kedge install member {name} | kubectl apply -f -

Or from any machine that reaches both:

  kedge member --hub-kubeconfig {file} --kubeconfig MEMBER-KUBECONFIG --member {name}=CONTEXT
"""


class Agent(Struct, frozen=True):
    """What a member's agent is given: a kubeconfig in this file, with a token that is good for so long."""

    file: Path | None
    token_life: timedelta


def run_join(
    name: str,
    file: Path | None,
    context: str | None,
    user: str | None,
    heartbeat: int,
    labels: Mapping[str, str],
    agent: Agent,
) -> None:
    """Make the member on the hub, and say what is left to do."""
    try:
        connection = load([file] if file is not None else None, context)
        made, token = asyncio.run(_join(HttpsTransport(connection), member(name, user, heartbeat, labels), agent))
        if agent.file is not None and token is not None:
            kubeconfig.write(agent.file, {"hub": connection.server}, authority=connection.ca, token=token.text)
    except (ConfigError, KubeError, CredentialsFailed, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"membercluster/{name} {'made' if made else 'is there already: its identity and labels stay as they are'}"
    )
    told = {
        "name": name,
        "namespace": SYSTEM_NAMESPACE,
        "account": account(name),
        "file": agent.file or "HUB-KUBECONFIG",
        "duration": _hours(agent.token_life),
        "server": connection.server,
    }
    click.echo(((WRITTEN if agent.file else TO_MAKE) + NEXT).format(**told))


def _hours(length: timedelta) -> str:
    return format_duration(length).removesuffix("0s").removesuffix("0m")


def account(name: str) -> str:
    """The service account of a member's agent on the hub."""
    return f"fleet-member-agent-{name}"


def member(name: str, user: str | None, heartbeat: int, labels: Mapping[str, str]) -> MemberCluster:
    """The member to make."""
    if user is not None:
        identity = Identity(kind="User", name=user, api_group=RBAC)
    else:
        identity = Identity(kind="ServiceAccount", name=account(name), namespace=SYSTEM_NAMESPACE)
    spec = MemberClusterSpec(identity=identity, heartbeat_period_seconds=heartbeat)
    return MemberCluster(metadata=ObjectMeta(name=name, labels=labels), spec=spec)


async def _join(transport: HttpsTransport, wanted: MemberCluster, agent: Agent) -> tuple[bool, ServiceToken | None]:
    """Whether the member is new; and a token for its agent, if one is wanted."""
    client = Client(transport)
    try:
        await _check(client, wanted)
        found, made = await _have_member(client, wanted)
        identity = found.spec.identity
        if identity.kind != "ServiceAccount" or identity.namespace != SYSTEM_NAMESPACE:
            return made, None
        for kind, body in identity_of(found):
            with suppress(AlreadyExists):
                await client.create(kind, body, SYSTEM_NAMESPACE, manager=MANAGER)
        if agent.file is None:
            return made, None
        return made, await request_token(transport, SYSTEM_NAMESPACE, identity.name, agent.token_life)
    finally:
        await client.close()


async def _check(client: Client, wanted: MemberCluster) -> None:
    """Refuse, before anything is made, what cannot be made here."""
    try:
        with suppress(AlreadyExists):
            await client.create(MemberCluster, wanted, manager=MANAGER, dry_run=True)
    except NotFound as error:
        raise click.ClickException(f"this cluster knows no MemberClusters: is it the hub? {NO_HUB}") from error
    identity = wanted.spec.identity
    if identity.kind == "ServiceAccount":
        await _check_namespace(client, ServiceAccount(metadata=ObjectMeta(name=identity.name)))


async def _check_namespace(client: Client, account: ServiceAccount) -> None:
    try:
        with suppress(AlreadyExists):
            await client.create(ServiceAccount, account, SYSTEM_NAMESPACE, manager=MANAGER, dry_run=True)
    except NotFound as error:
        raise click.ClickException(
            f"this cluster has no namespace {SYSTEM_NAMESPACE}, where the accounts of agents are: is it the hub? "
            f"{NO_HUB}; `kubectl create namespace {SYSTEM_NAMESPACE}` the namespace alone"
        ) from error


async def _have_member(client: Client, wanted: MemberCluster) -> tuple[MemberCluster, bool]:
    try:
        return await client.create(MemberCluster, wanted, manager=MANAGER), True
    except AlreadyExists:
        return await client.get(MemberCluster, wanted.metadata.name), False


def identity_of(found: MemberCluster) -> list[tuple[type[ServiceAccount | Role | RoleBinding], Value]]:
    """A service account for a member's agent, which may ask for tokens of its own; all of it goes with the member."""
    name = found.spec.identity.name
    meta = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, owner_references=(owner(found),))
    renews = PolicyRule(
        api_groups=("",), resources=("serviceaccounts/token",), resource_names=(name,), verbs=("create",)
    )
    subject = Subject(kind="ServiceAccount", name=name, namespace=SYSTEM_NAMESPACE)
    return [
        (ServiceAccount, ServiceAccount(metadata=meta)),
        (Role, Role(metadata=meta, rules=(renews,))),
        (
            RoleBinding,
            RoleBinding(metadata=meta, role_ref=RoleRef(api_group=RBAC, kind="Role", name=name), subjects=(subject,)),
        ),
    ]
