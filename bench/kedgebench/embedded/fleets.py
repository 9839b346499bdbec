"""Fleets: `kedge up` as a user starts it, and what it took until it said that it is ready."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

import kedge
from kedge.cli.local_fleet import READY

PATIENCE = 120.0


@dataclass(frozen=True)
class Up:
    """A fleet that is ready: where, and the seconds and bytes it took until then."""

    kubeconfig: Path
    pid: int
    wall: float
    cpu: float
    resident: int


@asynccontextmanager
async def up(members: int, folder: Path, *, sources: Path | None = None) -> AsyncIterator[Up]:
    """Keep a fleet up, with its files in this folder; of the Kedge in `sources`, or else of the one that runs."""
    kubeconfig = folder / f"fleet-{members}"
    command = (sys.executable, "-m", "kedge", "up", "--members", str(members), "--kubeconfig", str(kubeconfig))
    environ = dict(os.environ) if sources is None else _compiling(sources)
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=environ)
    try:
        await _ready(process)
        yield _taken(kubeconfig, process.pid, time.perf_counter() - begun)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        else:
            print(f"kedge up with {members} members ended by itself: {process.returncode}", file=sys.stderr)


async def _ready(process: Process) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            if line.startswith(READY.encode()):
                return
    raise RuntimeError("kedge up ended before it was ready")


def _taken(kubeconfig: Path, pid: int, wall: float) -> Up:
    process = psutil.Process(pid)
    times = process.cpu_times()
    return Up(kubeconfig, pid, wall, times.user + times.system, process.memory_info().rss)


def copied(folder: Path) -> Path:
    """Kedge as it is in a fresh clone: its dependencies were compiled when they were installed, it was not."""
    shutil.copytree(Path(kedge.__file__).parent, folder / "kedge", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _compiling(sources: Path) -> dict[str, str]:
    """An environment in which this Kedge is run, and stays compiled for the next time."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(sources)}
