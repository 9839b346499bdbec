"""Processes: starting the control plane's programs, watching over them, and leaving none behind.

Promises that every program runs in a process group of its own, logs to a file, is stopped by SIGTERM and, after a
deadline, by SIGKILL, and dies with this process however it ends (see `leash.py`).
Bound to no event loop: what one loop started, another may stop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from controlplane import leash

START_DEADLINE = 180.0
_POLL = 0.05
_LINES_SHOWN = 15

# One thread that lives until the interpreter ends: leashed programs die with the thread that started them.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controlplane-starter")


class StartError(Exception):
    """A program ended, or did not become ready in time; shows the end of its log."""


class Process:
    """One running program."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._popen = _starter.submit(self._spawn).result()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._popen.poll()

    def send(self, number: signal.Signals) -> None:
        """Signal the whole group; nothing happens when it is gone already."""
        if self.exit_code is None:
            os.killpg(self._popen.pid, number)

    def wait(self, seconds: float) -> bool:
        """Whether it ended within so many seconds."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:])

    def _spawn(self) -> subprocess.Popen[bytes]:
        python = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid())]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*python, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


async def wait_until(ready: Callable[[], bool], *, by: Process, what: str, seconds: float = START_DEADLINE) -> None:
    """Poll, off the event loop, until `ready()`; raises with the end of the log of `by`, on whom it depends.

    A server that cannot be reached (OSError) is not ready yet.
    """
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(_succeeds, ready):
        if by.exit_code is not None:
            raise StartError(_blame(by, f"{by.name} ended with code {by.exit_code}, while waiting for {what}"))
        if time.monotonic() > deadline:
            raise StartError(_blame(by, f"{by.name}: {what} did not come within {seconds:.0f} s"))
        await asyncio.sleep(_POLL)


def _succeeds(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except OSError:
        return False


def stop(processes: Iterable[Process], *, deadline: float) -> None:
    """Stop all of them at once: SIGTERM, then SIGKILL for those still there after the deadline."""
    asked = list(processes)
    for process in asked:
        process.send(signal.SIGTERM)
    end = time.monotonic() + deadline
    for process in asked:
        process.wait(max(0.0, end - time.monotonic()))
    kill(asked)


def kill(processes: Iterable[Process]) -> None:
    """SIGKILL, and wait until the kernel is done with them."""
    asked = list(processes)
    for process in asked:
        process.send(signal.SIGKILL)
    for process in asked:
        process.wait(10.0)


def _blame(process: Process, what: str) -> str:
    return f"{what}\nlast lines of {process.log}:\n{process.last_lines()}"
