"""Task: the process in which one thing of the sixth part is measured.

    python -m kedgebench.alignment.task NAME '{"argument": 1}'

Prints one line of JSON. A control plane is many processes: they get every core.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from kedgebench import cores
from kedgebench.alignment import deciding, rolling

TASKS: dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]] = {
    "deciding": deciding.measure,
    "rolling": rolling.measure,
}


def main() -> None:
    cores.take_all()
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps(uvloop.run(TASKS[name](**arguments))))


if __name__ == "__main__":
    main()
