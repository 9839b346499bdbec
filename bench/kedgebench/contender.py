"""Contender: the process in which one client is measured.

    python -m kedgebench.contender NAME KUBECONFIG NAMESPACE [--profile]

Reads one order a line from stdin and answers with one line of JSON each; only what an order asks for runs under the
meter, and between orders nothing runs at all. What libraries print goes to stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import itertools
import json
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TextIO

from kedgebench import cores, hotspots
from kedgebench.marks import Marks
from kedgebench.memory import deep_size, resident
from kedgebench.meter import Meter
from kedgebench.rivals import RIVALS, Rival

WARM_UP = 10
SOUND_OUT = 20
Answer = dict[str, Any]


class Contender:
    """Carries out orders with one rival."""

    def __init__(self, rival: Rival, tell: Callable[[Answer], None], profile: cProfile.Profile | None) -> None:
        self._rival = rival
        self._tell = tell
        self._meter = partial(Meter, profile)
        self._has_listed = False

    async def get(self, names: list[str], seconds: float, at_once: int) -> Answer:
        """Read single objects for about so many seconds of CPU time, so many at once."""
        cycle = itertools.cycle(names)
        await self._reads(cycle, WARM_UP, at_once)
        sounded = Meter()
        await self._reads(cycle, SOUND_OUT, at_once)
        sounded.stop()
        count = _as_many(seconds, sounded.cpu / SOUND_OUT, least=30, most=4000)
        return await self._metered(lambda: self._reads(cycle, count, at_once), count)

    async def list(self, seconds: float) -> Answer:
        """Read everything, at least once, for about so many seconds of CPU time."""
        if not self._has_listed:
            await self._lists(1)
            self._has_listed = True
        gc.collect()
        meter = self._meter()
        listed = await self._lists(1)
        more = _as_many(seconds, meter.so_far, least=1, most=50) - 1
        await self._lists(more)
        meter.stop()
        return _figures(meter, (1 + more) * listed)

    async def watch(self) -> Answer:
        """Follow changes from the start mark to the end mark."""
        marks = Marks(lambda: self._tell({"started": True}), self._meter)
        gc.collect()
        await self._rival.watch(marks.saw)
        return _figures(marks.meter, marks.events)

    async def hold(self, small: str, namespace: str, copies: int) -> Answer:
        """How much memory objects take, once everything else is there."""
        warmed_up = await self._rival.hold(small, 1)
        before = resident()
        held = await self._rival.hold(namespace, copies)
        after = resident()
        exact = deep_size(held.objects()) if held.objects is not None else None
        del warmed_up
        return {"bytes": after - before, "count": held.count, "exact": exact}

    async def _reads(self, names: itertools.cycle[str], count: int, at_once: int) -> None:
        left = iter(range(count))

        async def reader() -> None:
            for _ in left:
                await self._rival.get(next(names))

        if at_once == 1:
            await reader()
        else:
            await asyncio.gather(*(reader() for _ in range(at_once)))

    async def _lists(self, times: int) -> int:
        listed = 0
        for _ in range(times):
            listed = len(await self._rival.list())
        return listed

    async def _metered(self, work: Callable[[], Awaitable[object]], count: int) -> Answer:
        gc.collect()
        meter = self._meter()
        await work()
        meter.stop()
        return _figures(meter, count)


def _figures(meter: Meter, count: int) -> Answer:
    return {"cpu": meter.cpu, "wall": meter.wall, "count": count}


def _as_many(seconds: float, each: float, *, least: int, most: int) -> int:
    return max(least, min(most, round(seconds / max(each, 1e-6))))


async def _serve(arguments: argparse.Namespace, out: TextIO) -> None:
    def tell(answer: Answer) -> None:
        print(json.dumps(answer), file=out, flush=True)

    rival = RIVALS[arguments.name].make(arguments.kubeconfig, arguments.namespace)
    profile = cProfile.Profile(time.process_time) if arguments.profile else None
    contender = Contender(rival, tell, profile)
    tell({"ready": True})
    # Blocks the loop on purpose: between orders nothing of this process may run.
    for line in sys.stdin:
        order = json.loads(line)
        tell(await getattr(contender, order.pop("task"))(**order))
    if profile is not None:
        print(hotspots.text(profile), file=sys.stderr)
    sys.stderr.flush()
    os._exit(0)  # no goodbyes: connections end with the process


def main() -> None:
    parser = argparse.ArgumentParser(prog="kedgebench.contender")
    parser.add_argument("name", choices=RIVALS)
    parser.add_argument("kubeconfig")
    parser.add_argument("namespace")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cores.take_it()
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        if RIVALS[arguments.name].loop == "uvloop":
            import uvloop

            uvloop.run(_serve(arguments, out))
        else:
            asyncio.run(_serve(arguments, out))


if __name__ == "__main__":
    main()
