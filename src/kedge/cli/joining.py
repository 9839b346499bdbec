"""What `kedge join` does: a MemberCluster, and an identity for its agent, made if they are not there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click

from kedge.api.cluster import Identity, MemberCluster, MemberClusterSpec
from kedge.api.core import ServiceAccount
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.meta import ObjectMeta
from kedge.api.rbac import GROUP as RBAC
from kedge.cli.preflight import NO_HUB
from kedge.kube.client import Client
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import AlreadyExists, KubeError, NotFound

MANAGER = "kedge-join"

NEXT = """
On the hub, a token for its agent, and a kubeconfig with it (or however you hand out identities):

  kubectl --namespace {namespace} create token {account} --duration 8760h

On the member:

  kubectl create namespace {namespace}
  kubectl --namespace {namespace} create secret generic kedge-hub --from-file kubeconfig=HUB-KUBECONFIG
  kedge install member {name} | kubectl apply -f -

Or from any machine that reaches both:

  kedge member --hub-kubeconfig HUB-KUBECONFIG --kubeconfig MEMBER-KUBECONFIG --member {name}=CONTEXT
"""


def run_join(
    name: str, file: Path | None, context: str | None, user: str | None, heartbeat: int, labels: Mapping[str, str]
) -> None:
    """Make the member on the hub, and say what is left to do."""
    try:
        connection = load([file] if file is not None else None, context)
        made = asyncio.run(_join(HttpsTransport(connection), member(name, user, heartbeat, labels)))
    except (ConfigError, KubeError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"membercluster/{name} {'made' if made else 'is there already: its identity and labels stay as they are'}"
    )
    click.echo(NEXT.format(name=name, namespace=SYSTEM_NAMESPACE, account=account(name)))


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


async def _join(transport: HttpsTransport, wanted: MemberCluster) -> bool:
    client = Client(transport)
    try:
        await _check(client, wanted)
        identity = wanted.spec.identity
        if identity.kind == "ServiceAccount":
            await _have_account(client, identity.name)
        await client.create(MemberCluster, wanted, manager=MANAGER)
    except AlreadyExists:
        return False
    finally:
        await client.close()
    return True


async def _check(client: Client, wanted: MemberCluster) -> None:
    """Refuse, before anything is made, what cannot be made here."""
    try:
        await client.create(MemberCluster, wanted, manager=MANAGER, dry_run=True)
    except AlreadyExists:
        return
    except NotFound as error:
        raise click.ClickException(f"this cluster knows no MemberClusters: is it the hub? {NO_HUB}") from error


async def _have_account(client: Client, name: str) -> None:
    try:
        await client.create(ServiceAccount, {"metadata": {"name": name}}, SYSTEM_NAMESPACE, manager=MANAGER)
    except AlreadyExists:
        return
    except NotFound as error:
        raise click.ClickException(
            f"this cluster has no namespace {SYSTEM_NAMESPACE}, where the accounts of agents are: is it the hub? "
            f"{NO_HUB}; `kubectl create namespace {SYSTEM_NAMESPACE}` the namespace alone"
        ) from error
