"""The process of `kedge rollout-operator` and `kedge operator`: HTTP, the connection, the lease, and an orderly end.

The HTTP server is up first, so that metrics can be read and readiness be asked for while everything else starts.
"""

from __future__ import annotations

import logging
import os
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import click
from aiohttp.typedefs import Middleware
from msgspec import Struct
from msgspec.structs import replace

from kedge import __version__
from kedge.cli.operator_http import OperatorHttp
from kedge.cli.processes import connection_to, join_election, run_until_stopped
from kedge.kube.client_metrics import ClientMetrics
from kedge.kube.cluster_validation import ValidationMetrics
from kedge.kube.connect import in_cluster
from kedge.kube.connect.config import Connection
from kedge.kube.connect.connection import server_url
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.fencing import FencedTransport
from kedge.kube.group_limits import GroupLimitedTransport, MeasuredTransport
from kedge.kube.health import Address
from kedge.kube.lease import Election
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.metrics import Metrics
from kedge.kube.transport import Transport
from kedge.roles import OperatorOptions, add_operator

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
    log_level: str = "info"
    log_format: str | None = None
    ignored: tuple[str, ...] = ()
    """Arguments that were given and mean nothing."""


def run_operator(told: OperatorProcess) -> None:
    """Run an operator until told to stop."""
    run_until_stopped(_operator(_connection(told), told), told.log_level, told.log_format)


def _connection(told: OperatorProcess) -> Connection:
    inside = told.kubeconfig is None and told.context is None and in_cluster.inside()
    found = in_cluster.connection() if inside else connection_to(told.kubeconfig, told.context)
    if not told.api_url:
        return found
    try:
        return replace(found, server=server_url(told.api_url))
    except ValueError as error:
        raise click.ClickException(str(error)) from error


async def _operator(connection: Connection, told: OperatorProcess) -> None:
    rng, metrics = random.Random(), Metrics(process=True)
    async with AsyncExitStack() as stack:
        http = OperatorHttp(metrics.registry, _middlewares(told.options, metrics))
        if told.http is not None:
            log.info("health and metrics are at %s", await stack.enter_async_context(http.serve(told.http)))
        election = await _election(stack, connection, told, rng)
        manager = await stack.enter_async_context(
            Manager(component=told.component, rng=rng, metrics=metrics, leader=election)
        )
        cluster = await manager.connect(
            "cluster",
            _transport(connection, election, told, ClientMetrics(metrics.registry)),
            limiter=Limiter(0),  # the transport has its own
            timeout=told.client_timeout,
            if_missing=INSTALL_OPERATOR,
        )
        add_operator(manager, cluster, told.options)
        http.watch(manager.checks)
        _log_start(told)
        await manager.run()


def _middlewares(options: OperatorOptions, metrics: Metrics) -> list[Middleware]:
    validation = options.cluster_validation
    return [] if validation is None else [validation.middleware(ValidationMetrics(metrics.registry))]


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
