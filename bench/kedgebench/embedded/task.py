"""Task: the process in which one thing of the second part is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kedgebench import cores
from kedgebench.embedded import fanout, life, requests, weight
from kedgebench.task_main import run_task

TASKS: dict[str, Callable[..., Any]] = {
    "requests inside": requests.inside,
    "requests outside": requests.outside,
    "fan-out inside": fanout.inside,
    "fan-out outside": fanout.outside,
    "weight": weight.measure,
    "life": life.measure,
}


if __name__ == "__main__":
    run_task(TASKS, take_cores=cores.take_it)
