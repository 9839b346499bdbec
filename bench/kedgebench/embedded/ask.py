"""Ask: have a task done in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from typing import Any


class Failed(Exception):
    """A task ended without an answer; says what it wrote to stderr last."""


async def ask(task: str, *, module: str = "kedgebench.embedded.task", **arguments: Any) -> Any:
    """The answer of a task of one of the parts."""
    command = (sys.executable, "-m", module, task, json.dumps(arguments))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Failed(f"{task}: {errors.decode(errors='replace')[-2000:]}")
    return json.loads(out)
