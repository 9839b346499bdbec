"""The Go toolchain: running `go` in surroundings that do not depend on the caller's settings, with signs of life.

Promises that a command of any length prints a line at least every HEARTBEAT seconds, that a failing one raises
with the end of what it said, and that an interrupted one does not run on.
Assumes that modules may be downloaded in the way the user's Go is set up for.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from controlplane import versions
from controlplane.binaries import HOW_TO_GET_THEM, go_platform

HEARTBEAT = 15.0
_LINES_SHOWN = 30

Say = Callable[[str], None]


class GoError(Exception):
    """Go is missing or too old, or a Go command failed."""


def require_go() -> str:
    """The version of the Go on PATH; raises when there is none, or one that cannot build what we need."""
    try:
        told = subprocess.run(
            ["go", "env", "GOVERSION"], env=go_environment(), capture_output=True, text=True, check=True
        ).stdout.strip()
    except FileNotFoundError:
        raise GoError(f"there is no Go on PATH: {HOW_TO_GET_THEM}") from None
    except subprocess.CalledProcessError as error:
        raise GoError(f"'go env GOVERSION' failed: {error.stderr.strip()}") from error
    match = re.search(r"go(\d+)\.(\d+)", told)
    if match and (int(match[1]), int(match[2])) < versions.OLDEST_GO:
        raise GoError(f"the Go on PATH is {told}, which is too old: {HOW_TO_GET_THEM}")
    return told


def go_environment() -> Mapping[str, str]:
    """The caller's environment without what would change the result: workspaces, cross-compiling, C."""
    goos, goarch = go_platform()
    ours = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOOS": goos, "GOARCH": goarch}
    return os.environ | ours


def run_go(*arguments: str, cwd: Path, what: str, say: Say) -> str:
    """Run one Go command as a phase called `what`; returns what it printed."""
    said, printed = cwd / "go.stderr", cwd / "go.stdout"
    start = time.monotonic()
    say(f"{what} …")
    with printed.open("w") as out, said.open("w") as err:
        process = subprocess.Popen(["go", *arguments], cwd=cwd, env=go_environment(), stdout=out, stderr=err)
        code = _wait(process, lambda: say(f"{what}: {_elapsed(start)}{_progress(said)}"))
    if code != 0:
        raise GoError(f"{what} failed: 'go {arguments[0]}' ended with {code}:\n{_last_lines(said)}")
    say(f"{what}: done after {_elapsed(start)}")
    return printed.read_text()


def _wait(process: subprocess.Popen[bytes], heartbeat: Callable[[], None]) -> int:
    try:
        while True:
            try:
                return process.wait(timeout=HEARTBEAT)
            except subprocess.TimeoutExpired:
                heartbeat()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _elapsed(start: float) -> str:
    return f"{time.monotonic() - start:.0f} s"


def _progress(said: Path) -> str:
    """How far Go has come: it names each module it downloads and, with -v, each package it compiles."""
    lines = said.read_text(errors="replace").splitlines()
    downloaded = sum(line.startswith("go: downloading ") for line in lines)
    compiled = sum(not line.startswith("go: ") for line in lines)
    counts = {"modules downloaded": downloaded, "packages compiled": compiled}
    return "".join(f", {count} {what}" for what, count in counts.items() if count)


def _last_lines(said: Path) -> str:
    return "\n".join(said.read_text(errors="replace").splitlines()[-_LINES_SHOWN:])
