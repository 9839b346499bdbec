"""Ports: free TCP ports on loopback that stay ours, between being chosen and being listened on.

Promises ports outside the range from which the kernel takes the source ports of outgoing connections, so that a
server that is down for a while finds its port free again; and that no two processes using this module get the same.
Assumes that nobody else binds such a port in the moment between our look and the server's start.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

_LOWEST = 12000
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_RANGE = (32768, 60999)


class Ports:
    """Hands out ports and holds on to them until closed."""

    def __init__(self) -> None:
        self._held: list[IO[str]] = []

    def free(self) -> int:
        """A port that nobody listens on, held for us."""
        for port in _candidates():
            lock = _reserve(port)
            if lock is not None and _nobody_listens(port):
                self._held.append(lock)
                return port
        raise OSError("there is no free TCP port on 127.0.0.1")

    def close(self) -> None:
        """Let go of all of them."""
        for lock in self._held:
            lock.close()
        self._held.clear()


def _candidates() -> list[int]:
    first, last = _outgoing_range()
    below, above = range(_LOWEST, first), range(last + 1, 65536)
    ports = list(below) + list(above) or list(range(_LOWEST, 65536))
    # Any will do; the choice must not follow a seed that a test runner has set for everybody.
    return random.SystemRandom().sample(ports, len(ports))


def _outgoing_range() -> tuple[int, int]:
    try:
        first, last = _RANGE_FILE.read_text().split()
    except (OSError, ValueError):
        return _USUAL_RANGE
    return int(first), int(last)


def _reserve(port: int) -> IO[str] | None:
    """A lock on the port's number, which the kernel takes back when we die; None when another holds it."""
    folder = Path(tempfile.gettempdir()) / f"kedge-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = (folder / str(port)).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _nobody_listens(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
