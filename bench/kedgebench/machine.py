"""Machine: what the numbers were taken on, without saying whose it is."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from kedgebench.rivals import RIVALS

OTHERS = ("msgspec", "uvloop")


def describe() -> dict[str, Any]:
    """Processor, memory, load, and the versions that matter."""
    names = [*dict.fromkeys(entry.package for entry in RIVALS.values()), *OTHERS]
    return {
        "cores": os.cpu_count(),
        "processor": f"{platform.machine()} {_model()}".strip(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": load(),
        "day": time.strftime("%Y-%m-%d"),
        "versions": {name: _version(name) for name in names},
    }


def load() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 1)


def _model() -> str:
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
