"""Alive: whether a process still runs, for tests that prove that nothing is left behind. Linux only."""

from __future__ import annotations

import time
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead, and only not yet waited for, does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_until_gone(pid: int, *, seconds: float = 30.0) -> None:
    """Come back when the process is gone; raises TimeoutError when it stays."""
    end = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > end:
            raise TimeoutError(f"process {pid} is still there after {seconds:.0f} s")
        time.sleep(0.05)
