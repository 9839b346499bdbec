"""Operator: `kedge rollout-operator` as a process of its own, and what it takes."""

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
import yaml

from controlplane.cluster import Cluster
from kedge.api.crds import zone_crds

USER = "zone-operator"
PATIENCE = 120.0
MIB = 2**20


class OperatorProcess:
    """An operator that runs."""

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
        """Seconds of CPU time so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def until_ready(self) -> float:
        """Until /ready says so; gives when that was."""
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            while True:
                if await self._is_ready(session):
                    return time.perf_counter()
                await asyncio.sleep(0.02)

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self._url}/ready") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


async def install_crds(cluster: Cluster) -> None:
    """The kinds of an operator, as `kedge install operator` prints them."""
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(map(dict, zone_crds())))


@asynccontextmanager
async def operator(cluster: Cluster, namespace: str, *flags: str) -> AsyncIterator[OperatorProcess]:
    """An operator of one namespace, as an admin of its own name, so that the audit log says what it asked for."""
    kubeconfig = cluster.user(USER, ["system:masters"]).kubeconfig
    port = _free_port()
    told = (
        f"-kubernetes.config-file={kubeconfig}",
        f"-kubernetes.api-url={cluster.url}",
        f"-kubernetes.namespace={namespace}",
        f"-server.port={port}",
        "-log.level=warn",
        *flags,
    )
    with tempfile.TemporaryFile() as errors:
        command = (sys.executable, "-m", "kedge", "rollout-operator", *told)
        process = await asyncio.create_subprocess_exec(*command, stderr=errors)
        try:
            yield OperatorProcess(process.pid, f"http://127.0.0.1:{port}")
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
            errors.seek(0)
            if said := errors.read().decode(errors="replace"):
                print(f"the operator said: {said[-2000:]}", file=sys.stderr)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
