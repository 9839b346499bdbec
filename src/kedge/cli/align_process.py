"""The process of `kedge align`."""

from __future__ import annotations

import logging
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from kedge import __version__
from kedge.cli.notifications import notifying, read_notifications
from kedge.cli.processes import ProcessOptions, connection_to, join_election, run_until_stopped
from kedge.kube.connect.config import Connection
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.fencing import FencedTransport
from kedge.kube.manager import Manager
from kedge.kube.metrics import Metrics
from kedge.notifications.receivers import Prepared
from kedge.roles import add_align

LEASE: Final = "kedge-align"
NO_KARMADA: Final = "this is no API server of a Karmada: name its kubeconfig with --kubeconfig"
log = logging.getLogger("kedge")


def run_align(
    kubeconfig: Path | None,
    context: str | None,
    lease_namespace: str,
    lease_duration: int,
    no_lease: bool,
    notifications: Path | None,
    **told: Any,
) -> None:
    """Run beside a Karmada until told to stop."""
    receivers, process = read_notifications(notifications), ProcessOptions(**told)
    lease = None if no_lease else (lease_namespace, lease_duration)
    work = _align(connection_to(kubeconfig, context), lease, receivers, process)
    run_until_stopped(work, process.log_level, process.log_format)


async def _align(
    connection: Connection, lease: tuple[str, int] | None, receivers: Prepared | None, told: ProcessOptions
) -> None:
    rng, metrics = random.Random(), Metrics(process=True)
    async with AsyncExitStack() as stack:
        election = await join_election(stack, connection, LEASE, *lease, rng) if lease else None
        observer = await stack.enter_async_context(notifying(receivers, rng=rng, registry=metrics.registry))
        manager = await stack.enter_async_context(
            Manager(
                component=LEASE,
                rng=rng,
                metrics=metrics,
                leader=election,
                health=told.address,
                event_observer=observer,
            )
        )
        transport = HttpsTransport(connection, before_send=election.guard if election else None)
        acting = FencedTransport(transport, election) if election else transport
        karmada = await manager.connect("karmada", acting, limiter=told.limiter(), if_missing=NO_KARMADA)
        add_align(manager, karmada)
        log.info("Kedge %s: beside a Karmada", __version__)
        await manager.run()
