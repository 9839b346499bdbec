"""Standing: a hub as a process of its own, with many members and Works that another process keeps alive.

That other process is this one (`hub_server`). `kedge hub` starts, puts right what copying left wrong, and is killed;
one more placement is made; and what counts begins with the next start. It has caught up once it is ready, its queues
are empty and nothing is in work, and the member of the late placement has its Work.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from prometheus_client.parser import text_string_to_metric_families

from kedgebench.fleet.hub_server import PATIENCE, HubServer

MIB = 2**20
QUIET = 1.0  # seconds with nothing to do, after which what was done counts as all of it
LOOK_EVERY = 0.1
BUSY = ("workqueue_depth", "controller_runtime_active_workers")


class HubProcess:
    """`kedge hub`, as a user starts it."""

    def __init__(self, pid: int, url: str) -> None:
        self._process = psutil.Process(pid)
        self._url = url

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
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def idle(self) -> float:
        """When it became ready with nothing to do, and stayed so for a while."""
        since: float | None = None
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            while since is None or time.perf_counter() - since < QUIET:
                asked = time.perf_counter()
                since = (since or asked) if await self._is_idle(session) else None
                await asyncio.sleep(LOOK_EVERY)
        return since

    async def _is_idle(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self._url}/readyz") as answer:
                is_ready = answer.status == 200
            async with session.get(f"{self._url}/metrics") as answer:
                families = text_string_to_metric_families(await answer.text())
        except aiohttp.ClientError:
            return False
        return is_ready and not any(one.value for family in families if family.name in BUSY for one in family.samples)


async def measure(members: int, placements: int, idle: float) -> dict[str, Any]:
    """Task: the memory of that hub, and how long it takes to catch up after it was killed."""
    say = teller()
    async with AsyncExitStack() as stack:
        server = HubServer()
        server.cluster.start()
        stack.callback(server.cluster.stop)
        await server.fill(members, placements, say)
        file = await stack.enter_async_context(server.open_door())
        await stack.enter_async_context(server.served())
        begun = time.perf_counter()
        async with hub_process(file) as process:
            say(f"the first hub settled after {await process.idle() - begun:.1f} s: {dict(server.writes)}")
        await server.place_late()
        begun = time.perf_counter()
        async with hub_process(file) as process:
            found = await _started(server, process, begun, idle)
            say(f"the next one caught up after {found['caught_up']:.1f} s")
            return {"members": members, "works": len(server.works), **found, **await _rolled(server, process)}


async def _started(server: HubServer, process: HubProcess, begun: float, idle: float) -> dict[str, Any]:
    server.writes.clear()
    cpu = time.process_time()
    acted = asyncio.create_task(_acted(server))
    caught_up = await process.idle()
    found = {
        "caught_up": max(caught_up, await acted) - begun,
        "acted": await acted - begun,
        "start_cpu": process.cpu,
        "server_cpu": time.process_time() - cpu,
        "started": process.resident,
        "start_peak": process.peak,
        "start_writes": dict(server.writes),
    }
    cpu = process.cpu
    await asyncio.sleep(idle)
    return {**found, "idle": process.resident, "idle_cpu": (process.cpu - cpu) / idle}


async def _acted(server: HubServer) -> float:
    await server.until(server.has_late_work)
    return time.perf_counter()


async def _rolled(server: HubServer, process: HubProcess) -> dict[str, Any]:
    """A release of one placement on all members, whose agents answer at once."""
    cpu, begun = process.cpu, time.perf_counter()
    server.writes.clear()
    await server.release(2)
    await server.until(lambda: server.writes["works"] > 0)
    done = await process.idle()
    return {
        "rolled": done - begun,
        "rolled_cpu": process.cpu - cpu,
        "rolled_writes": dict(server.writes),
        "busy": process.resident,
        "peak": process.peak,
    }


@asynccontextmanager
async def hub_process(file: Path) -> AsyncIterator[HubProcess]:
    """A hub, until it is killed."""
    port = _free_port()
    told = ("--kubeconfig", str(file), "--no-lease", "--health", f"127.0.0.1:{port}", "--log-level", "warning")
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "kedge", "hub", *told, stderr=errors)
        try:
            yield HubProcess(process.pid, f"http://127.0.0.1:{port}")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            errors.seek(0)
            if said := errors.read().decode(errors="replace"):
                print(f"the hub said: {said[-2000:]}", file=sys.stderr)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def teller() -> Callable[[str], None]:
    begun = time.perf_counter()
    return lambda what: print(f"[{time.perf_counter() - begun:4.0f} s] {what}", file=sys.stderr, flush=True)
