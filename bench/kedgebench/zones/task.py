"""Task: the process in which one thing of the fourth part is measured."""

from __future__ import annotations

from kedgebench.task_main import run_task
from kedgebench.zones import releasing, resting

if __name__ == "__main__":
    run_task({"releasing": releasing.measure, "resting": resting.measure})
