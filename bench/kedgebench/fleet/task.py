"""Task: the process in which one thing of the third part is measured.

    python -m kedgebench.fleet.task NAME '{"argument": 1}'

Prints one line of JSON. These are whole systems of many processes: they get every core.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

import uvloop

from kedgebench import cores
from kedgebench.fleet import many_runs, placing, previewing, rolling, staging, standing

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


def main() -> None:
    cores.take_all()
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    found = TASKS[name](**arguments)
    print(json.dumps(uvloop.run(found) if inspect.iscoroutine(found) else found))


if __name__ == "__main__":
    main()
