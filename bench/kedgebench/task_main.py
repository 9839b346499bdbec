"""Task main: what every process runs in which one thing is measured.

    python -m kedgebench.PART.task NAME '{"argument": 1}'

Prints one line of JSON. Asynchronous tasks run on uvloop, as `kedge` does.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import uvloop

from kedgebench import cores


def run_task(tasks: Mapping[str, Callable[..., Any]], *, take_cores: Callable[[], None] = cores.take_all) -> None:
    """Do what the arguments name. Whole systems are many processes: unless told otherwise, they get every core."""
    take_cores()
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    found = tasks[name](**arguments)
    print(json.dumps(uvloop.run(found) if inspect.iscoroutine(found) else found))
