"""The local fleet of `kedge up`, from outside its process: its files, starting it detached, and `kedge down`.

A fleet that runs has written its kubeconfig, and beside it a file with its process ID. It removes both when it ends.
Everything is in memory: objects created in a fleet are lost when it ends.
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
    """The default place of the kubeconfig."""
    return Path.home() / ".kedge" / "kubeconfig"


def detach(members: int, port: int, file: Path, *, bare: bool = False, notifications: Path | None = None) -> None:
    """Start a fleet that outlives this command. Returns when it is ready."""
    refuse_second(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    log = file.with_name(f"{file.name}.log")
    command = [sys.executable, "-m", "kedge", "up", "--members", str(members), "--port", str(port)]
    options = [*(["--bare"] if bare else []), *(["--notifications", str(notifications)] if notifications else [])]
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            [*command, "--kubeconfig", str(file), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            text=True,
        )
    if not _wait_until_ready(process):
        raise click.ClickException(f"the fleet did not come up: see {log}\n{log.read_text()[-2000:]}")


def down(file: Path) -> None:
    """End the fleet that wrote this kubeconfig. Removes what is left of one that was killed."""
    running = _running(file)
    if running is None and pid_file(file).exists():
        remove_files(file)
        click.echo(f"the fleet is not running any more: removed {file}, which it left")
        return
    if running is None:
        raise click.ClickException(f"no fleet is running: none wrote {file}")
    os.kill(running, signal.SIGTERM)
    deadline = time.monotonic() + _SECONDS_TO_END
    while _is_alive(running):
        if time.monotonic() > deadline:
            raise click.ClickException(f"process {running} did not end within {_SECONDS_TO_END:g} s")
        time.sleep(0.05)
    click.echo("the fleet is down")


def _wait_until_ready(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    for line in process.stdout:
        click.echo(line, nl=False)
        if line.startswith(READY):
            return True
    return False


def refuse_second(file: Path) -> None:
    """Fail if a fleet runs already, or if the file is somebody else's."""
    if (running := _running(file)) is not None:
        raise click.ClickException(f"a fleet is running already (process {running}): `kedge down` ends it")
    if file.exists() and not pid_file(file).exists():
        raise click.ClickException(f"{file} exists, and no fleet wrote it: choose another file with --kubeconfig")


def _running(file: Path) -> int | None:
    """The ID of the process that runs the fleet of this kubeconfig."""
    with suppress(FileNotFoundError, ValueError):
        number = int(pid_file(file).read_text())
        return number if _is_alive(number) else None
    return None


def _is_alive(number: int) -> bool:
    """Whether this process runs and is a Kedge process. IDs are reused, and zombies keep theirs for a while."""
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


def pid_file(file: Path) -> Path:
    """The file with the process ID, beside a kubeconfig."""
    return file.with_name(f"{file.name}.pid")


def remove_files(file: Path) -> None:
    """Remove the kubeconfig and the process ID."""
    file.unlink(missing_ok=True)
    pid_file(file).unlink(missing_ok=True)
