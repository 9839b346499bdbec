"""Task: the process in which one thing of the third part is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kedgebench.fleet import many_runs, placing, previewing, rolling, staging, standing
from kedgebench.task_main import run_task

TASKS: dict[str, Callable[..., Any]] = {
    "placing": placing.whole,
    "shares": placing.by_role,
    "rolling": rolling.measure,
    "standing": standing.measure,
    "staged": staging.measure,
    "staged embedded": staging.embedded,
    "many runs": many_runs.measure,
    "previews": previewing.measure,
}


if __name__ == "__main__":
    run_task(TASKS)
