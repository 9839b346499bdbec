"""Task: the process in which one thing of the fifth part is measured."""

from __future__ import annotations

from kedgebench.batches import releasing, resting
from kedgebench.task_main import run_task

if __name__ == "__main__":
    run_task({"releasing": releasing.measure, "resting": resting.measure})
