"""`kedge join`: makes a cluster a member of the fleet. Does what can be done on the hub, and prints what is left to do.

Creates a MemberCluster and an identity for its agent, unless they exist. What opens connections is imported when the
command runs, so that `kedge --help` is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from kedge.api.cluster import Identity, MemberCluster, MemberClusterSpec
from kedge.api.core import ServiceAccount
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.meta import ObjectMeta, Value
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule, Role, RoleBinding, RoleRef, Subject
from kedge.api.times import format_duration, parse_duration
from kedge.cli.apis import FLEET, KARMADA, api_option, api_words
from kedge.cli.install import install_hub
from kedge.cli.roles import file_option
from kedge.kube.errors import AlreadyExists, KubeError, NotFound
from kedge.plan.membership import member_name_problem, owner_reference

if TYPE_CHECKING:
    from kedge.kube.client import Client
    from kedge.kube.connect.https import HttpsTransport
    from kedge.kube.connect.service_tokens import ServiceToken

MANAGER = "kedge-join"
HEARTBEAT = 60

TO_MAKE = """
On the hub, create a token for its agent, and a kubeconfig with it (or hand out identities in your own way).
`kedge join {name}{api} --agent-kubeconfig FILE` does both:

  kubectl --namespace {namespace} create token {account} --duration {duration}

The agent starts with this token, and renews it from then on.
"""
WRITTEN = """
{file} holds a token for its agent, valid for {duration}. Start the agent within that time: it renews the token from
then on. The member must reach the hub at the address in the file: {server}
"""
NEXT = """
On the member:

  kubectl create namespace {namespace}
  kubectl --namespace {namespace} create secret generic kedge-hub --from-file kubeconfig={file}
  kedge install member {name}{api} | kubectl apply -f -

Or from any machine that reaches both:

  kedge member{api} --hub-kubeconfig {file} --kubeconfig MEMBER-KUBECONFIG --member {name}=CONTEXT
"""


class Agent(Struct, frozen=True):
    """The credentials of a member's agent: a kubeconfig in this file, with a token of this lifetime."""

    file: Path | None
    token_lifetime: timedelta


def pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read labels, each written as `KEY=VALUE`."""
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is no label: write KEY=VALUE")
    return {key: content for key, _, content in (value.partition("=") for value in values)}


def token_duration(_: click.Context, __: click.Parameter, value: str) -> timedelta:
    """Read the lifetime of a token. An API server issues none for less than ten minutes."""
    try:
        length = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if length < timedelta(minutes=10):
        raise click.BadParameter(f"{value} is too short: an API server issues no token for less than 10m")
    return length


@click.command()
@click.argument("name")
@api_option
@file_option("--kubeconfig", "the hub")
@click.option("--context", help="The context of the hub.")
@click.option("--user", help="The user name of the member's agent on the hub.  [default: a service account of its own]")
@click.option("--heartbeat", type=click.IntRange(1, 600), default=HEARTBEAT, show_default=True,
              help="Seconds between two heartbeats of its agent.")  # fmt: skip
@click.option(
    "--label",
    "labels",
    metavar="KEY=VALUE",
    callback=pairs,
    multiple=True,
    help="A label of the member, for placements to select it by; repeatable.",
)
@click.option("--agent-kubeconfig", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write a kubeconfig with a token for its agent to this file, readable by you alone.")  # fmt: skip
@click.option("--token-duration", default="1h", show_default=True, callback=token_duration,
              help="The lifetime of the token, at least 10m. The agent renews it at half of that.")  # fmt: skip
def join(
    name: str,
    api: str,
    kubeconfig: Path | None,
    context: str | None,
    user: str | None,
    heartbeat: int,
    labels: dict[str, str],
    agent_kubeconfig: Path | None,
    token_duration: timedelta,
) -> None:
    """Make NAME a member of the fleet.

    Does what can be done on the hub, and prints what to run on the member.
    """
    if user is not None and agent_kubeconfig is not None:
        raise click.UsageError("--agent-kubeconfig is for a service account: the --user has credentials already")
    if api != FLEET and heartbeat != HEARTBEAT:
        raise click.UsageError(f"--heartbeat is for --api {FLEET}: agents of the other renew a Lease every ten seconds")
    if api == FLEET and (problem := member_name_problem(name)):
        raise click.UsageError(problem)
    run_join(name, kubeconfig, context, user, heartbeat, labels, Agent(agent_kubeconfig, token_duration), api)


def run_join(
    name: str,
    file: Path | None,
    context: str | None,
    user: str | None,
    heartbeat: int,
    labels: Mapping[str, str],
    agent: Agent,
    api: str = FLEET,
) -> None:
    """Create the member on the hub, and print what is left to do."""
    import asyncio

    from kedge.cli import kubeconfig
    from kedge.kube.connect.config import ConfigError, load
    from kedge.kube.connect.credentials import CredentialsFailed
    from kedge.kube.connect.https import HttpsTransport

    try:
        connection = load([file] if file is not None else None, context)
        wanted = member(name, user, heartbeat, labels)
        joining = _join if api == FLEET else _join_karmada
        made, token = asyncio.run(joining(HttpsTransport(connection), wanted, agent))
        if agent.file is not None and token is not None:
            kubeconfig.write(agent.file, {"hub": connection.server}, authority=connection.ca, token=token.text)
    except (ConfigError, KubeError, CredentialsFailed, OSError) as error:
        raise click.ClickException(str(error)) from error
    kind = "membercluster" if api == FLEET else "cluster"
    click.echo(f"{kind}/{name} {'created' if made else 'exists already: its identity and labels stay as they are'}")
    told = {
        "name": name,
        "api": api_words(api),
        "namespace": SYSTEM_NAMESPACE,
        "account": account(name),
        "file": agent.file or "HUB-KUBECONFIG",
        "duration": _short(agent.token_lifetime),
        "server": connection.server,
    }
    click.echo(((WRITTEN if agent.file else TO_MAKE) + NEXT).format(**told))


def _short(length: timedelta) -> str:
    return format_duration(length).removesuffix("0s").removesuffix("0m")


def account(name: str) -> str:
    """The service account of a member's agent on the hub."""
    return f"fleet-member-agent-{name}"


def member(name: str, user: str | None, heartbeat: int, labels: Mapping[str, str]) -> MemberCluster:
    """The MemberCluster to create."""
    if user is not None:
        identity = Identity(kind="User", name=user, api_group=RBAC)
    else:
        identity = Identity(kind="ServiceAccount", name=account(name), namespace=SYSTEM_NAMESPACE)
    spec = MemberClusterSpec(identity=identity, heartbeat_period_seconds=heartbeat)
    return MemberCluster(metadata=ObjectMeta(name=name, labels=labels), spec=spec)


async def _join(transport: HttpsTransport, wanted: MemberCluster, agent: Agent) -> tuple[bool, ServiceToken | None]:
    """Whether the member is new; and a token for its agent, if one is wanted."""
    from kedge.kube.client import Client
    from kedge.kube.connect.service_tokens import request_token

    client = Client(transport)
    try:
        await _check(client, wanted)
        found, made = await _have_member(client, wanted)
        identity = found.spec.identity
        if identity.kind != "ServiceAccount" or identity.namespace != SYSTEM_NAMESPACE:
            return made, None
        for kind, body in agent_account(found):
            with suppress(AlreadyExists):
                await client.create(kind, body, SYSTEM_NAMESPACE, manager=MANAGER)
        if agent.file is None:
            return made, None
        return made, await request_token(transport, SYSTEM_NAMESPACE, identity.name, agent.token_lifetime)
    finally:
        await client.close()


async def _join_karmada(
    transport: HttpsTransport, wanted: MemberCluster, agent: Agent
) -> tuple[bool, ServiceToken | None]:
    """The same for a hub of Karmada's kinds."""
    from kedge.cli.karmada_join import join_karmada
    from kedge.kube.client import Client
    from kedge.kube.connect.service_tokens import request_token

    who, meta = wanted.spec.identity, wanted.metadata
    subject = Subject(kind=who.kind, name=who.name, namespace=who.namespace, api_group=who.api_group)
    client = Client(transport)
    try:
        if who.kind == "ServiceAccount":
            await _check_namespace(client, ServiceAccount(metadata=ObjectMeta(name=who.name)))
        made = await join_karmada(client, meta.name, subject, meta.labels, install_hub(KARMADA))
        if agent.file is None or who.kind != "ServiceAccount":
            return made, None
        return made, await request_token(transport, SYSTEM_NAMESPACE, who.name, agent.token_lifetime)
    finally:
        await client.close()


async def _check(client: Client, wanted: MemberCluster) -> None:
    """Refuse what cannot be created here, before anything is created."""
    try:
        with suppress(AlreadyExists):
            await client.create(MemberCluster, wanted, manager=MANAGER, dry_run=True)
    except NotFound as error:
        raise click.ClickException(f"this cluster serves no MemberClusters: is it the hub? {install_hub()}") from error
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
            f"{install_hub()}; `kubectl create namespace {SYSTEM_NAMESPACE}` the namespace alone"
        ) from error


async def _have_member(client: Client, wanted: MemberCluster) -> tuple[MemberCluster, bool]:
    try:
        return await client.create(MemberCluster, wanted, manager=MANAGER), True
    except AlreadyExists:
        from kedge.cli.karmada_join import not_leaving

        return not_leaving(await client.get(MemberCluster, wanted.metadata.name)), False


def agent_account(found: MemberCluster) -> list[tuple[type[ServiceAccount | Role | RoleBinding], Value]]:
    """A service account for a member's agent, which may request its own tokens. Deleted together with the member."""

    name = found.spec.identity.name
    meta = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, owner_references=(owner_reference(found),))
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
