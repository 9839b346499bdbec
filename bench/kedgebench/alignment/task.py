"""Task: the process in which one thing of the sixth part is measured."""

from __future__ import annotations

from kedgebench.alignment import deciding, rolling
from kedgebench.task_main import run_task

if __name__ == "__main__":
    run_task({"deciding": deciding.measure, "rolling": rolling.measure})
