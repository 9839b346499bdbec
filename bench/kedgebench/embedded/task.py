"""Task: the process in which one thing of the second part is measured.

    python -m kedgebench.embedded.task NAME '{"argument": 1}'

Prints one line of JSON. Asynchronous tasks run on uvloop, as `kedge up` does.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

import uvloop

from kedgebench import cores
from kedgebench.embedded import fanout, life, requests, weight

TASKS: dict[str, Callable[..., Any]] = {
    "requests inside": requests.inside,
    "requests outside": requests.outside,
    "fan-out inside": fanout.inside,
    "fan-out outside": fanout.outside,
    "weight": weight.measure,
    "life": life.measure,
}


def main() -> None:
    cores.take_it()
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    found = TASKS[name](**arguments)
    print(json.dumps(uvloop.run(found) if inspect.iscoroutine(found) else found))


if __name__ == "__main__":
    main()
