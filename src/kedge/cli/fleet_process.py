"""The process behind `kedge up`: a fleet with an HTTPS server for each cluster, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shlex
import signal
import sys
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random

import click
from prometheus_client import CollectorRegistry

from kedge import __version__
from kedge.cli import kubeconfig
from kedge.cli.local_fleet import READY, pid_file, refuse_second, remove_files
from kedge.cli.notifications import notifying, read_notifications
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.request_info import Caller
from kedge.fleet import Fleet
from kedge.kube.clock import SystemClock
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.memory import freeze_heap
from kedge.notifications.receivers import Prepared
from kedge.plan.text import counted


def run(members: int, port: int, file: Path, *, bare: bool = False, notifications: Path | None = None) -> None:
    """Run a fleet until told to stop. A `bare` one has clusters alone: no hub controllers and no agents."""
    receivers = read_notifications(notifications)
    refuse_second(file)
    for noisy in ("events", "rest"):  # the warnings of an API server are for its controllers, not for its user
        logging.getLogger(f"kedge.kube.{noisy}").setLevel(logging.ERROR)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(members, port, file, bare, receivers))
    finally:
        remove_files(file)


async def _run(members: int, port: int, file: Path, bare: bool, receivers: Prepared | None) -> None:
    started = time.monotonic()
    click.echo(f"Kedge {__version__}: starting a hub and {counted(members, 'member')} …")
    told_to_stop = _stop_signal()
    serving = ServingCertificate(SystemClock().now())
    token = secrets.token_urlsafe(32)
    async with AsyncExitStack() as stack:
        outbound = HttpOutbound()
        stack.push_async_callback(outbound.close)
        authority = serving.authority.decode()
        observer = await stack.enter_async_context(notifying(receivers, rng=Random(), registry=CollectorRegistry()))
        fleet = await stack.enter_async_context(
            Fleet(
                members=members,
                clock=SystemClock(),
                rng=Random(),
                authority=authority,
                outbound=outbound,
                event_observer=observer,
            )
        )
        servers = await _open_servers(stack, fleet, serving, token, port)
        await fleet.run_workloads(_Progress(members, "up").says)
        if not bare:
            await fleet.run_roles(progress=_Progress(members, "joined").says)
        freeze_heap()
        kubeconfig.write(file, servers, authority=serving.authority, token=token)
        pid_file(file).write_text(f"{os.getpid()}\n")
        _explain(file, servers, bare=bare)
        took = time.monotonic() - started
        click.echo(f"{READY}a hub and {counted(members, 'member')} in {took:.1f} s; Ctrl-C or `kedge down` ends it")
        await told_to_stop.wait()
        click.echo("\nstopping …")


async def _open_servers(
    stack: AsyncExitStack, fleet: Fleet, serving: ServingCertificate, token: str, port: int
) -> dict[str, str]:
    """An HTTPS server for each cluster: the hub at the port, members at the next ones; or at any free ports."""
    servers = {}
    for number, cluster in enumerate(fleet.clusters):
        door = HttpsServer(cluster.server, tokens={token: Caller()}, tls=serving.context)
        wanted = port + number if port else 0
        try:
            await door.open(wanted)
        except OSError as error:
            why = f"port {wanted} for {cluster.name} is not available ({error.strerror}): choose another --port"
            raise click.ClickException(why) from None
        stack.push_async_callback(door.close)
        servers[cluster.name] = door.url
    return servers


class _Progress:
    """On a terminal a line that is updated; elsewhere nothing."""

    def __init__(self, members: int, what: str) -> None:
        self._members = members
        self._what = what
        self._done = 0

    def says(self, name: str) -> None:
        self._done += 1
        if sys.stdout.isatty():
            last = self._done == self._members
            click.echo(f"\r\033[K  {self._done} of {self._members} {self._what}: {name}", nl=last)


def _explain(file: Path, servers: dict[str, str], *, bare: bool) -> None:
    for name, url in list(servers.items())[:6]:
        click.echo(f"  {name:<12} {url}")
    if len(servers) > 6:
        click.echo(f"  … and {len(servers) - 6} more; kubectl config get-contexts shows all")
    click.echo(f"\n  export KUBECONFIG={shlex.quote(str(file))}")
    if not bare:
        click.echo("  kubectl get memberclusters")
    if len(servers) > 1:
        click.echo("  kubectl --context cluster-1 get nodes")
    click.echo()


def _stop_signal() -> asyncio.Event:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    return told


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    with suppress(ImportError):
        import uvloop

        return uvloop.Loop
    return None
