"""Asked: a server's process, the client that asks it, and the CPU time that both take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedgebench.embedded.operations import Operations


class Asked:
    """One server in processes of its own, by the name it has in the figures."""

    def __init__(self, name: str, kubeconfig: str, pids: Sequence[int], objects: int) -> None:
        self.name = name
        client = Client(HttpsTransport(load([Path(kubeconfig)])), limiter=Limiter(rate=0), timeout=120.0)
        self.operations = Operations(client, objects)
        self._pids = tuple(pids)

    def cpu(self) -> float:
        """Seconds of CPU time its processes have taken so far."""
        return sum(map(_cpu, self._pids))


class Span:
    """CPU time of the server and of this process, and time on the wall, from its making to `end`."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._server, self._client, self._wall = asked.cpu(), time.process_time(), time.perf_counter()

    @property
    def server(self) -> float:
        return self._asked.cpu() - self._server

    def end(self, count: int) -> dict[str, Any]:
        """Figures for so many of whatever was done."""
        return {
            "server": self.server / count,
            "client": (time.process_time() - self._client) / count,
            "wall": (time.perf_counter() - self._wall) / count,
            "count": count,
        }


def _cpu(pid: int) -> float:
    """To the nanosecond where the system says so, thread by thread; else to the hundredth of a second."""
    try:
        return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except (OSError, ValueError, IndexError):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
