"""Queues: what it costs to add, get and finish one key, beside the queue of the standard library.

Pure CPU work in one process, in turns. The yardstick neither drops duplicates nor takes turns nor knows delays: it is
what the least possible queue costs, not a rival.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable, Sequence

import uvloop

from kedge.kube.queue import Key, Queue
from kedgebench import cores
from kedgebench.meter import Meter

CLUSTERS = 100
REPEATS = 10


async def plain(keys: Sequence[Key]) -> int:
    """The standard library's queue."""
    queue: asyncio.Queue[Key] = asyncio.Queue()
    for key in keys:
        queue.put_nowait(key)
    for _ in keys:
        await queue.get()
        queue.task_done()
    return len(keys)


async def ours(keys: Sequence[Key]) -> int:
    """Kedge's queue."""
    queue = Queue(rng=random.Random(1))
    for key in keys:
        queue.add(key)
    while len(queue):
        taken = await queue.get()
        assert taken is not None
        queue.forget(taken)
        queue.done(taken)
    return len(keys)


async def turns_until_quiet_cluster(keys: int) -> int:
    """How many keys of a busy cluster go before one of a quiet cluster that came last."""
    queue = Queue(rng=random.Random(1))
    for number in range(keys):
        queue.add(Key("busy", "shop", f"web-{number}"))
    queue.add(Key("quiet", "shop", "web"))
    turns = 0
    while (key := await queue.get()) is not None and key.cluster == "busy":
        turns += 1
    return turns


def _cases(keys: int) -> dict[str, tuple[Callable[[Sequence[Key]], Awaitable[int]], Sequence[Key]]]:
    one = [Key("a", "shop", f"web-{number}") for number in range(keys)]
    few = [Key("a", "shop", f"web-{number % (keys // REPEATS)}") for number in range(keys)]
    many = [Key(f"cluster-{number % CLUSTERS}", "shop", f"web-{number}") for number in range(keys)]
    return {
        "asyncio.Queue": (plain, one),
        "Kedge, one cluster": (ours, one),
        f"Kedge, {CLUSTERS} clusters in turns": (ours, many),
        f"Kedge, each key added {REPEATS} times (per add)": (ours, few),
    }


async def measure(keys: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of CPU time per key, by case and round."""
    cases = _cases(keys)
    found: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, (run, given) in cases.items():
            meter = Meter()
            count = await run(given)
            meter.stop()
            found[case].append(meter.cpu / count)
    return found


def main() -> None:
    cores.take_it()
    keys, rounds = (int(argument) for argument in sys.argv[1:])
    found = uvloop.run(measure(keys, rounds))
    print(json.dumps({"seconds": found, "turns": uvloop.run(turns_until_quiet_cluster(keys))}))


if __name__ == "__main__":
    main()
