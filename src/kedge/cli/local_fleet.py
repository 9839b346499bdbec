"""`kedge up`: the embedded fleet, kept running, for kubectl and any other client; `kedge down` ends it.

The kubeconfig it writes is the sign that it runs: beside it lies the process's number. Both go when it ends. Everything
is in memory: what was made in a fleet goes with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import click

READY = "ready: "
_SECONDS_TO_END = 10.0


def default_file() -> Path:
    """Where the kubeconfig goes unless told otherwise."""
    return Path.home() / ".kedge" / "kubeconfig"


def run(members: int, port: int, file: Path, *, bare: bool = False) -> None:
    """Keep a fleet up until told to stop."""
    _refuse_second(file)
    from kedge.cli.fleet_process import keep_up  # with the whole of Kedge behind it: `kedge down` needs none of that

    try:
        keep_up(members, port, file, bare=bare, ready=lambda: _note(file).write_text(f"{os.getpid()}\n"))
    finally:
        _remove(file)


def detach(members: int, port: int, file: Path, *, bare: bool = False) -> None:
    """Start a fleet that outlives this command; returns when it is ready."""
    _refuse_second(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    log = file.with_name(f"{file.name}.log")
    command = [sys.executable, "-m", "kedge", "up", "--members", str(members), "--port", str(port)]
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            [*command, "--kubeconfig", str(file), *(["--bare"] if bare else [])],
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
    """Whether that process runs, and is one of ours: numbers are used again, and the dead keep theirs for a while."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # somebody else's
    about = Path(f"/proc/{number}")
    with suppress(OSError):  # there is no such folder on other systems
        is_dead = about.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_dead and b"kedge" in about.joinpath("cmdline").read_bytes()
    return True


def _note(file: Path) -> Path:
    return file.with_name(f"{file.name}.pid")


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    _note(file).unlink(missing_ok=True)
