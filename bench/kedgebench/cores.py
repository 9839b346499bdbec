"""Cores: the contender has one to itself, and everything of ours besides shares the others.

As in real life, where the API server is on another machine: its work does not push the client's out of the caches.
"""

from __future__ import annotations

import os

_LEFT = "KEDGEBENCH_CORE"


def leave_one() -> bool:
    """Keep this process, and what it starts from now on, off one core; False where that cannot be."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        return False
    os.sched_setaffinity(0, cores[:-1])
    os.environ[_LEFT] = str(cores[-1])
    return True


def take_it() -> None:
    """Put this process on the core that was left, if one was."""
    if _LEFT in os.environ:
        os.sched_setaffinity(0, {int(os.environ[_LEFT])})


def take_all() -> None:
    """Let this process, and what it starts, have the core that was left too."""
    if _LEFT in os.environ:
        os.sched_setaffinity(0, {*os.sched_getaffinity(0), int(os.environ[_LEFT])})
