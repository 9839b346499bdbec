"""Task: the process in which one thing of the fifth part is measured.

    python -m kedgebench.batches.task NAME '{"argument": 1}'

Prints one line of JSON. A control plane is many processes: they get every core.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from kedgebench import cores
from kedgebench.batches import releasing, resting

TASKS: dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]] = {
    "releasing": releasing.measure,
    "resting": resting.measure,
}


def main() -> None:
    cores.take_all()
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps(uvloop.run(TASKS[name](**arguments))))


if __name__ == "__main__":
    main()
