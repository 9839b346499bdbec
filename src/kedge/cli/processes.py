"""The processes of `kedge hub` and `kedge member`: connections, the lease, health, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import click
from msgspec import Struct

from kedge import __version__
from kedge.api.core import Namespace
from kedge.api.dialect import Dialect
from kedge.cli.apis import FLEET, KARMADA
from kedge.cli.hub_lease import LEASE
from kedge.cli.hub_token import saved_in_file, saved_in_secret, token_place, with_renewed_token
from kedge.cli.install import install_hub, install_member
from kedge.cli.notifications import notifying, read_notifications
from kedge.controllers.metric_queries import MetricQueries
from kedge.kube import logs
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.connect.config import ConfigError, Connection, load
from kedge.kube.connect.config import kubeconfig as read_kubeconfig
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.crash import Crashed
from kedge.kube.errors import AlreadyExists, KubeError
from kedge.kube.fencing import AlarmWatchdog, FencedTransport
from kedge.kube.health import Address
from kedge.kube.lease import Election
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.metrics import Metrics
from kedge.kube.outbound_metrics import MeasuredOutbound
from kedge.notifications.receivers import Prepared
from kedge.roles import HubOptions, MemberOptions, add_hub, add_karmada_hub, add_karmada_member, add_member

NAMESPACE_TIMEOUT: Final = 3.0  # seconds: a server that hangs must not keep the role from starting
log = logging.getLogger("kedge")


class ProcessOptions(Struct, frozen=True):
    """The options that every role has."""

    health: tuple[str, int] | None
    qps: float
    log_level: str
    log_format: str | None

    @property
    def address(self) -> Address | None:
        return Address(*self.health) if self.health else None

    def limiter(self) -> Limiter:
        return Limiter(self.qps, burst=max(1, round(2 * self.qps)))


class LeaderOptions(Struct, frozen=True):
    """The options of a role of which one process acts at a time."""

    connection: Connection
    lease: tuple[str, int] | None
    """The namespace of the Lease, and its seconds; None: no leader election."""
    receivers: Prepared | None
    """Who is notified of events."""
    process: ProcessOptions


def leader_options(
    kubeconfig: Path | None,
    context: str | None,
    *,
    lease_namespace: str,
    lease_duration: int,
    no_lease: bool,
    notifications: Path | None,
    **told: Any,
) -> LeaderOptions:
    """What was typed, read. An error for people if a file is wrong."""
    receivers = read_notifications(notifications)
    lease = None if no_lease else (lease_namespace, lease_duration)
    return LeaderOptions(connection_to(kubeconfig, context), lease, receivers, ProcessOptions(**told))


def run_hub(
    kubeconfig: Path | None,
    context: str | None,
    api: str,
    dialect: str,
    collect: float,
    interval: float,
    enable_workload: bool,
    force_delete_after: float,
    **told: Any,
) -> None:
    """Run a hub until told to stop."""
    leader = leader_options(kubeconfig, context, **told)
    options = HubOptions(
        dialect=Dialect(dialect),
        collect=collect,
        interval=interval,
        force_delete_after=force_delete_after,
        enable_workload=enable_workload,
    )
    work = _hub(leader, options if api == FLEET else None)
    run_until_stopped(work, leader.process.log_level, leader.process.log_format)


def run_members(
    hub_kubeconfig: Path | None,
    hub_context: str | None,
    kubeconfig: Path | None,
    members: Sequence[tuple[str, str | None]],
    hub_secret: tuple[str, str] | None,
    api: str,
    report_namespaces: bool,
    **told: Any,
) -> None:
    """Run the agents of these members until told to stop."""
    _refuse_doubles(members)
    if hub_kubeconfig is None and hub_context is None and kubeconfig is None:
        raise click.UsageError(
            "the hub and the member would be the same cluster: say --hub-kubeconfig or --hub-context"
        )
    hub = connection_to(hub_kubeconfig, hub_context)
    connections = {name: _member_connection(name, kubeconfig, context, hub) for name, context in members}
    if (place := token_place(hub_kubeconfig, hub_context)) is not None:
        member = partial(HttpsTransport, next(iter(connections.values())))
        save = saved_in_secret(place, member, *hub_secret) if hub_secret else saved_in_file(place)
        hub = with_renewed_token(hub, place, save, kept_in=f"Secret {'/'.join(hub_secret)}" if hub_secret else "")
    process = ProcessOptions(**told)
    options = MemberOptions(report_namespaces=report_namespaces) if api == FLEET else None
    run_until_stopped(_members(hub, connections, options, process), process.log_level, process.log_format)


def _refuse_doubles(members: Sequence[tuple[str, str | None]]) -> None:
    """Refuse a member or a context that is given twice, and several members without contexts."""
    if len(members) > 1 and any(context is None for _, context in members):
        raise click.UsageError("of several members each needs its context: write --member NAME=CONTEXT")
    for what, given in (("member", [name for name, _ in members]), ("context", [context for _, context in members])):
        for name, count in Counter(given).items():
            if count > 1:
                raise click.UsageError(f"{what} {name} is given {count} times: each member is one cluster")


def _member_connection(name: str, file: Path | None, context: str | None, hub: Connection) -> Connection:
    """The connection to a member. Without a context, only one cluster may be possible."""
    if context is None:
        _refuse_choice(name, file)
    found = connection_to(file, context)
    if context is None and found.server == hub.server:
        raise click.UsageError(
            f"member {name} would be the hub itself ({found!r}): name its cluster with --kubeconfig, "
            f"or write --member {name}=CONTEXT if that is meant"
        )
    return found


def _refuse_choice(name: str, file: Path | None) -> None:
    try:
        found = read_kubeconfig([file] if file is not None else None)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    if len(found.contexts) > 1:
        raise click.UsageError(
            f"{found.origin} has {len(found.contexts)} contexts, and the current one need not be member {name}: "
            f"write --member {name}=CONTEXT, with one of {', '.join(found.contexts)}"
        )


def connection_to(file: Path | None, context: str | None) -> Connection:
    """The connection that a kubeconfig and a context stand for. An error for people if there is none."""
    try:
        return load([file] if file is not None else None, context)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


async def _hub(told: LeaderOptions, options: HubOptions | None) -> None:
    """A hub of KubeFleet's kinds; without options, of Karmada's."""
    metrics = Metrics(process=True)
    async with AsyncExitStack() as stack:
        missing = install_hub(FLEET if options is not None else KARMADA)
        manager, hub = await lead(stack, told, LEASE, "hub", metrics, if_missing=missing)
        if options is None:
            add_karmada_hub(manager, hub)
            log.info("Kedge %s: a hub of Karmada's kinds", __version__)
            await manager.run()
            return
        outbound = MeasuredOutbound(HttpOutbound(), metrics.registry)
        stack.push_async_callback(outbound.close)
        measures = MetricQueries(hub.client, outbound)
        stack.push_async_callback(measures.close)
        add_hub(manager, hub, options, measures)
        log.info("Kedge %s: a hub, in the dialect %s", __version__, options.dialect.value)
        await manager.run()


async def lead(
    stack: AsyncExitStack, told: LeaderOptions, component: str, name: str, metrics: Metrics, *, if_missing: str
) -> tuple[Manager, Cluster]:
    """A manager that acts on one cluster while this process leads. Its Lease is named like the component."""
    rng = random.Random()
    election = await join_election(stack, told.connection, component, *told.lease, rng) if told.lease else None
    observer = await stack.enter_async_context(notifying(told.receivers, rng=rng, registry=metrics.registry))
    manager = await stack.enter_async_context(
        Manager(
            component=component,
            rng=rng,
            metrics=metrics,
            leader=election,
            health=told.process.address,
            event_observer=observer,
        )
    )
    transport = HttpsTransport(told.connection, before_send=election.guard if election else None)
    acting = FencedTransport(transport, election) if election else transport
    return manager, await manager.connect(name, acting, limiter=told.process.limiter(), if_missing=if_missing)


async def join_election(
    stack: AsyncExitStack, connection: Connection, lease: str, namespace: str, duration: int, rng: random.Random
) -> Election:
    """Leader election over a connection of its own: renewals never wait for anything else."""
    client = Client(HttpsTransport(connection))
    stack.push_async_callback(client.close)
    await make_namespace(client, namespace)
    return Election(
        client,
        lease,
        namespace,
        clock=SystemClock(),
        rng=rng,
        duration=duration,
        renew_deadline=duration * 2 / 3,
        retry=duration * 2 / 15,
        watchdog=AlarmWatchdog(),
    )


async def make_namespace(client: Client, name: str) -> None:
    """Create the namespace of the lease, if it is missing and we may."""
    try:
        async with asyncio.timeout(NAMESPACE_TIMEOUT):
            await client.without_retry().create(Namespace, {"metadata": {"name": name}})
        log.info("created the namespace %s, for the lease", name)
    except AlreadyExists:
        return
    except (KubeError, TimeoutError) as error:
        # A service account of `kedge install` may not create it; it was then installed with the account.
        log.debug("the namespace %s was not created: %s", name, error)


async def _members(
    hub: Connection, members: dict[str, Connection], options: MemberOptions | None, told: ProcessOptions
) -> None:
    """Agents for a hub of KubeFleet's kinds; without options, of Karmada's."""
    api = FLEET if options is not None else KARMADA
    metrics = Metrics(process=True)
    async with Manager(component="kedge-member", metrics=metrics, health=told.address) as manager:
        # One unreachable member must not make the whole process unready.
        alone = len(members) == 1
        for name, connection in members.items():
            to_hub = await manager.connect(
                f"hub for {name}",
                HttpsTransport(hub),
                limiter=told.limiter(),
                essential=alone,
                if_missing=install_hub(api),
            )
            member = await manager.connect(
                name,
                HttpsTransport(connection),
                limiter=told.limiter(),
                essential=alone,
                if_missing=install_member(name, api),
            )
            if options is None:
                add_karmada_member(manager, name, to_hub, member)
            else:
                add_member(manager, name, to_hub, member, options)
        log.info("Kedge %s: the agent of %s", __version__, ", ".join(members))
        await manager.run()


def run_until_stopped(work: Coroutine[Any, Any, None], log_level: str, log_format: str | None) -> None:
    """Run a process to its end. Errors that people can do something about are said as such."""
    form = log_format or ("text" if sys.stderr.isatty() else "json")
    logs.configure(log_level, cast("logs.Format", form))
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(work)
    except Crashed as error:
        log.critical("%s", error, exc_info=error)
        raise SystemExit(1) from None
    except OSError as error:
        raise click.ClickException(f"cannot listen there: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    with suppress(ImportError):
        import uvloop

        return uvloop.Loop
    return None
