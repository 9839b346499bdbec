"""`python -m kedgebench`: see `--help`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kedgebench import cores, goals, machine, profiling, report, server
from kedgebench.parts import PARTS
from kedgebench.progress import Progress
from kedgebench.rivals import RIVALS
from kedgebench.run import Run
from kedgebench.scale import FULL, QUICK, Scale


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kedgebench",
        description="Kedge's client, cache and queue beside others; its embedded server and simulator; fleets; zones; "
        "rollouts in batches; alignment.",
    )
    parser.add_argument("--quick", action="store_true", help="a smoke run, too short to believe")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    names = [*RIVALS, *PARTS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument(
        "--profile", nargs="+", choices=profiling.TASKS, help="instead, show where Kedge's CPU time goes in these"
    )
    return parser.parse_args()


async def _measure(arguments: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """The parts that are wanted; gives what they found."""
    wanted = arguments.only or [*RIVALS, *PARTS]
    about = machine.describe() | {"own_core": cores.leave_one()}
    found: dict[str, Any] = {}
    clients = [name for name in wanted if name not in PARTS]
    if clients or arguments.profile:
        found = await _measure_clients(arguments, clients, about, progress)
    for name, part in PARTS.items():
        if name in wanted and not arguments.profile:
            found = report.joined(found, await part.measure(about, progress, quick=arguments.quick), name)
    return found


async def _measure_clients(
    arguments: argparse.Namespace, names: list[str], about: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    scale: Scale = QUICK if arguments.quick else FULL
    async with server.start() as target:
        progress.say(f"making {scale.objects} Deployments")
        await target.fill(scale.objects, scale.few, lambda made: progress.say(f"making Deployments: {made}"))
        if arguments.profile:
            await profiling.show(target, scale, arguments.profile)
            return {}
        run = Run(target, scale, names, progress)
        await run.everything()
        about = about | {
            "load_before": about["load"],
            "load": machine.load(),
            "objects": scale.objects,
            "bytes_per_object": await target.bytes_per_object(),
            "kubernetes": await target.version(),
            "seconds": round(progress.elapsed),
        }
    progress.end()
    if arguments.quick:
        run.notes.append("a quick run: too short to believe any of it")
    verdicts = goals.judge(run.measures)
    print(report.text(about, run.measures, verdicts, run.notes), flush=True)
    return report.data(about, run.measures, verdicts, run.notes)


def main() -> None:
    arguments = _arguments()
    try:
        found = asyncio.run(_measure(arguments, Progress()))
    except server.Unavailable as error:
        sys.exit(f"no control plane to measure against: {error}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
