"""`kedge up`: the embedded fleet, kept running, for kubectl and any other client; `kedge down` ends it.

The kubeconfig it writes is the sign that it runs: beside it lies the process's number. Both go when it ends. Everything
is in memory: what was made in a fleet goes with it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import click

from kedge import __version__
from kedge.cli import kubeconfig
from kedge.embedded.callers import Caller
from kedge.embedded.certificates import Serving
from kedge.embedded.door import Door
from kedge.fleet import Fleet
from kedge.kube.clock import SystemClock

READY = "ready: "
_SECONDS_TO_END = 10.0


def default_file() -> Path:
    """Where the kubeconfig goes unless told otherwise."""
    return Path.home() / ".kedge" / "kubeconfig"


def run(members: int, port: int, file: Path) -> None:
    """Keep a fleet up until told to stop."""
    _refuse_second(file)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_keep_up(members, port, file))


def detach(members: int, port: int, file: Path) -> None:
    """Start a fleet that outlives this command; returns when it is ready."""
    _refuse_second(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    log = file.with_name(f"{file.name}.log")
    command = [sys.executable, "-m", "kedge", "up", "--members", str(members), "--port", str(port)]
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            [*command, "--kubeconfig", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            text=True,
        )
    if not _told_ready(process):
        raise click.ClickException(f"the fleet did not come up: see {log}\n{log.read_text()[-2000:]}")


def down(file: Path) -> None:
    """End the fleet whose kubeconfig this is."""
    running = _running(file)
    if running is None:
        raise click.ClickException(f"no fleet is up: there is none that wrote {file}")
    os.kill(running, signal.SIGTERM)
    deadline = time.monotonic() + _SECONDS_TO_END
    while _is_alive(running):
        if time.monotonic() > deadline:
            raise click.ClickException(f"process {running} did not end within {_SECONDS_TO_END:g} s")
        time.sleep(0.05)
    click.echo("the fleet is down")


async def _keep_up(members: int, port: int, file: Path) -> None:
    started = time.monotonic()
    click.echo(f"Kedge {__version__}: starting a hub and {members} member{'' if members == 1 else 's'} …")
    told_to_stop = _stop_signal()
    serving = Serving(datetime.now(UTC))
    token = secrets.token_urlsafe(32)
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(
            Fleet(members=members, clock=SystemClock(), rng=Random(), authority=serving.authority.decode())
        )
        servers = await _open_doors(stack, fleet, serving, token, port)
        await fleet.run_workloads(_Progress(members).says)
        kubeconfig.write(file, servers, authority=serving.authority, token=token)
        _note(file).write_text(f"{os.getpid()}\n")
        stack.callback(_remove, file)
        _explain(file, servers)
        took = time.monotonic() - started
        click.echo(f"{READY}a hub and {members} members in {took:.1f} s; Ctrl-C or `kedge down` ends it")
        await told_to_stop.wait()
        click.echo("\nstopping …")


async def _open_doors(stack: AsyncExitStack, fleet: Fleet, serving: Serving, token: str, port: int) -> dict[str, str]:
    """A door for each cluster: the hub's at the port, the members' at those after it; or wherever there is room."""
    servers = {}
    for number, cluster in enumerate(fleet.clusters):
        door = Door(cluster.server, tokens={token: Caller()}, tls=serving.context)
        wanted = port + number if port else 0
        try:
            await door.open(wanted)
        except OSError as error:
            why = f"port {wanted} for {cluster.name} cannot be had ({error.strerror}): choose another --port"
            raise click.ClickException(why) from None
        stack.push_async_callback(door.close)
        servers[cluster.name] = door.url
    return servers


class _Progress:
    """On a terminal a line that moves; elsewhere nothing until it is done."""

    def __init__(self, members: int) -> None:
        self._members = members
        self._done = 0

    def says(self, name: str) -> None:
        self._done += 1
        if sys.stdout.isatty():
            last = self._done == self._members
            click.echo(f"\r\033[K  {self._done} of {self._members}: {name}", nl=last)


def _explain(file: Path, servers: dict[str, str]) -> None:
    for name, url in list(servers.items())[:6]:
        click.echo(f"  {name:<12} {url}")
    if len(servers) > 6:
        click.echo(f"  … and {len(servers) - 6} more; kubectl config get-contexts shows all")
    click.echo(f"\n  export KUBECONFIG={file}")
    click.echo("  kubectl --context cluster-1 create deployment web --image=web:1 --replicas=3")
    click.echo("  kubectl --context cluster-1 rollout status deployment/web\n")


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


def _told_ready(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    for line in process.stdout:
        click.echo(line, nl=False)
        if line.startswith(READY):
            return True
    return False


def _refuse_second(file: Path) -> None:
    if (running := _running(file)) is not None:
        raise click.ClickException(f"a fleet is up already (process {running}): `kedge down` ends it")
    if file.exists() and not _note(file).exists():
        raise click.ClickException(f"{file} exists and is not a fleet's: name another file with --kubeconfig")


def _running(file: Path) -> int | None:
    """The process that keeps the fleet of this kubeconfig up."""
    with suppress(FileNotFoundError, ValueError):
        number = int(_note(file).read_text())
        return number if _is_alive(number) else None
    return None


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _note(file: Path) -> Path:
    return file.with_name(f"{file.name}.pid")


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    _note(file).unlink(missing_ok=True)
