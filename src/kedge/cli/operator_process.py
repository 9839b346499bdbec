"""The process of `kedge rollout-operator` and `kedge operator`: HTTP, the connection, the lease, and an orderly end.

The HTTP server is up first, so that metrics can be read and readiness be asked for while everything else starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import click
from aiohttp.typedefs import Middleware
from msgspec import Struct
from msgspec.structs import replace

from kedge import __version__
from kedge.admission.request_metrics import RequestMetrics
from kedge.cli.notifications import notifying, read_notifications
from kedge.cli.operator_http import OperatorHttp
from kedge.cli.processes import connection_to, join_election, run_until_stopped
from kedge.kube.client_metrics import ClientMetrics
from kedge.kube.cluster import Cluster
from kedge.kube.cluster_validation import ValidationMetrics
from kedge.kube.connect import in_cluster
from kedge.kube.connect.config import Connection
from kedge.kube.connect.connection import server_url
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.crash import run_component, unwrap_crash
from kedge.kube.fencing import FencedTransport
from kedge.kube.group_limits import GroupLimitedTransport, MeasuredTransport
from kedge.kube.health import Address, Check
from kedge.kube.lease import Election
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.metrics import Metrics
from kedge.kube.outbound_metrics import MeasuredOutbound
from kedge.kube.transport import Transport
from kedge.notifications.receivers import Prepared
from kedge.operator_role import Operator, OperatorOptions, Webhooks

LEASE: Final = "kedge-operator"
INSTALL_OPERATOR: Final = "`kedge install operator --namespace NAMESPACE | kubectl apply -f -` installs them"
_TRACING: Final = ("OTEL_", "JAEGER_")
log = logging.getLogger("kedge")


class OperatorProcess(Struct, frozen=True):
    """All that one process of an operator is told."""

    options: OperatorOptions
    component: str = "kedge-operator"
    """Who signs its events."""
    http: Address | None = None
    """Where metrics and readiness are served; None: nowhere."""
    kubeconfig: Path | None = None
    """None: the pod's service account, or what kubectl would use."""
    context: str | None = None
    api_url: str = ""
    """The server to use instead of the one in the kubeconfig."""
    qps: float = 500.0
    """Requests a second to each API group; 0: no limit."""
    burst: int = 1000
    client_timeout: float = 30.0
    """Seconds that a request to the API server may take."""
    lease_seconds: int | None = None
    """How long the Lease lasts; None: no leader election."""
    notifications: Path | None = None
    """Who is notified of events; None: nobody."""
    log_level: str = "info"
    log_format: str | None = None
    ignored: tuple[str, ...] = ()
    """Arguments that were given and mean nothing."""


def run_operator(told: OperatorProcess) -> None:
    """Run an operator until told to stop."""
    receivers = read_notifications(told.notifications)
    run_until_stopped(_operator(_connection(told), receivers, told), told.log_level, told.log_format)


def _connection(told: OperatorProcess) -> Connection:
    inside = told.kubeconfig is None and told.context is None and in_cluster.inside()
    found = in_cluster.connection() if inside else connection_to(told.kubeconfig, told.context)
    if not told.api_url:
        return found
    try:
        return replace(found, server=server_url(told.api_url))
    except ValueError as error:
        raise click.ClickException(str(error)) from error


async def _operator(connection: Connection, receivers: Prepared | None, told: OperatorProcess) -> None:
    rng, metrics = random.Random(), Metrics(process=True)
    async with AsyncExitStack() as stack:
        middlewares = _middlewares(told.options, metrics)
        http = OperatorHttp(metrics.registry, middlewares)
        if told.http is not None:
            log.info("health and metrics are at %s", await stack.enter_async_context(http.serve(told.http)))
        election = await _election(stack, connection, told, rng)
        outbound = MeasuredOutbound(HttpOutbound(), metrics.registry)
        stack.push_async_callback(outbound.close)
        client_metrics = ClientMetrics(metrics.registry)
        observer = await stack.enter_async_context(notifying(receivers, rng=rng, registry=metrics.registry))
        manager = await stack.enter_async_context(
            Manager(component=told.component, rng=rng, metrics=metrics, leader=election, event_observer=observer)
        )
        cluster = await _connect(manager, "cluster", _transport(connection, election, told, client_metrics), told)
        serving = manager
        if election is not None:  # webhooks are served by those too that do not lead
            serving = await stack.enter_async_context(
                Manager(component=f"{told.component}-webhooks", rng=rng, metrics=metrics)
            )
        to_serve = cluster
        if serving is not manager:
            to_serve = await _connect(serving, "webhooks", _transport(connection, None, told, client_metrics), told)
        operator = Operator(
            cluster,
            told.options,
            clock=manager.clock,
            rng=rng,
            registry=metrics.registry,
            outbound=outbound,
            to_serve=to_serve,
        )
        stack.push_async_callback(operator.close)
        for controller in operator.acting:
            manager.add_controller(controller)
        for controller in operator.serving:
            serving.add_controller(controller)
        http.watch(lambda: [*manager.checks(), *_webhook_check(operator.webhooks)])
        _log_start(told)
        await _run(manager, serving, operator.webhooks, middlewares)


async def _connect(manager: Manager, name: str, transport: Transport, told: OperatorProcess) -> Cluster:
    return await manager.connect(
        name,
        transport,
        limiter=Limiter(0),  # the transport has its own
        timeout=told.client_timeout,
        if_missing=INSTALL_OPERATOR,
    )


def _webhook_check(webhooks: Webhooks | None) -> list[Check]:
    if webhooks is None:
        return []
    return [Check("webhooks", "" if webhooks.is_ready else "there is no certificate yet", required=True)]


async def _run(manager: Manager, serving: Manager, webhooks: Webhooks | None, middlewares: list[Middleware]) -> None:
    """Everything until told to stop; then webhooks last, since others wait for their answers."""
    with unwrap_crash():
        async with asyncio.TaskGroup() as tasks:
            beside = []
            if webhooks is not None:
                work = partial(webhooks.serve, middlewares, partial(log.info, "webhooks are at %s"))
                beside.append(tasks.create_task(run_component("webhooks", work)))
            if serving is not manager:
                beside.append(tasks.create_task(run_component("serving", partial(serving.run, signals=False))))
            await manager.run()
            serving.stop()
            for task in beside:
                task.cancel()


def _middlewares(options: OperatorOptions, metrics: Metrics) -> list[Middleware]:
    validation, counted = options.cluster_validation, RequestMetrics(metrics.registry).middleware
    return [counted] if validation is None else [counted, validation.middleware(ValidationMetrics(metrics.registry))]


async def _election(
    stack: AsyncExitStack, connection: Connection, told: OperatorProcess, rng: random.Random
) -> Election | None:
    if told.lease_seconds is None:
        return None
    return await join_election(stack, connection, LEASE, told.options.namespace, told.lease_seconds, rng)


def _transport(
    connection: Connection, election: Election | None, told: OperatorProcess, metrics: ClientMetrics
) -> Transport:
    plain = HttpsTransport(connection, before_send=election.guard if election else None)
    limited = GroupLimitedTransport(MeasuredTransport(plain, metrics), qps=told.qps, burst=told.burst, metrics=metrics)
    return FencedTransport(limited, election) if election else limited


def _log_start(told: OperatorProcess) -> None:
    managed = ", ".join(told.options.namespaces) or "all namespaces"
    log.info("Kedge %s: an operator for %s", __version__, managed)
    if told.ignored:
        log.warning("arguments after the first one that is no flag are ignored", extra={"ignored": told.ignored})
    if tracing := sorted(name for name in os.environ if name.startswith(_TRACING)):
        log.warning("traces are not exported: these variables have no effect", extra={"variables": tracing})
