"""Profiling: where Kedge's CPU time goes, by function."""

from __future__ import annotations

from collections.abc import Iterable

from kedgebench import child, sample
from kedgebench.progress import Progress
from kedgebench.run import AT_ONCE, Run
from kedgebench.scale import Scale
from kedgebench.server import Server

TASKS = ("get", "get20", "list", "watch", "backlog")


async def show(server: Server, scale: Scale, tasks: Iterable[str], name: str = "kedge") -> None:
    """Profile each task in a process of its own. The profiler's own cost is in it: read shares, not times."""
    run = Run(server, scale, [name], Progress())
    names = [sample.name(number) for number in range(50)]
    for task in tasks:
        async with child.start(name, server.place, profile=True) as contender:
            match task:
                case "list":
                    answer = await contender.ask("list", seconds=scale.seconds)
                case "watch" | "backlog":
                    answer = await run.watched(contender, task, scale.changes)
                case _:
                    at_once = AT_ONCE if task == "get20" else 1
                    answer = await contender.ask("get", names=names, seconds=scale.seconds, at_once=at_once)
            print(f"## {task}: {answer['count']} in {answer['cpu']:.2f} s of CPU time, profiler included\n")
            print(await contender.end())
