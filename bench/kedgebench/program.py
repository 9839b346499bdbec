"""Program: a process that is measured: an operator as it is deployed, and what it takes."""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil

PATIENCE = 120.0
MIB = 2**20


class Program:
    """A program that runs, and says at a URL when it is ready."""

    def __init__(self, pid: int, ready_url: str) -> None:
        self._process = psutil.Process(pid)
        self._ready_url = ready_url

    @property
    def resident(self) -> float:
        """MiB of memory."""
        return float(self._process.memory_info().rss / MIB)

    @property
    def peak(self) -> float:
        """The most it ever was."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    @property
    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def until_ready(self) -> float:
        """Until it says so; gives when that was."""
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            while True:
                if await self._is_ready(session):
                    return time.perf_counter()
                await asyncio.sleep(0.02)

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(self._ready_url) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


@asynccontextmanager
async def running(*command: str, ready_url: str, told: bool = True) -> AsyncIterator[Program]:
    """A program, until the context is left. With `told`, what it wrote to stderr is shown then."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(*command, stdout=errors, stderr=errors)
        try:
            yield Program(process.pid, ready_url)
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
            errors.seek(0)
            if told and (said := errors.read().decode(errors="replace")):
                print(f"{Path(command[0]).name} said: {said[-2000:]}", file=sys.stderr)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
