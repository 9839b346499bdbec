"""The command line: `python -m controlplane build | where | up | pin`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from controlplane import kubeconfig
from controlplane.binaries import Binaries, Missing, find
from controlplane.gotool import GoError
from controlplane.obtain import ObtainError, obtain
from controlplane.pin import pin
from controlplane.plane import ControlPlane
from controlplane.processes import StartError


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except (GoError, ObtainError, StartError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "build":
            _print_where(obtain(_say))
        case "pin":
            pin(_say)
        case "where":
            return _where()
        case "up":
            asyncio.run(_up(options))
    return 0


def _where() -> int:
    found = find()
    if isinstance(found, Missing):
        print(found.reason, file=sys.stderr)
        return 1
    _print_where(found)
    return 0


def _print_where(binaries: Binaries) -> None:
    for binary in binaries.found.values():
        version = ".".join(str(part) for part in binary.version)
        _say(f"{binary.name:<24} {version:<8} {binary.source:<19} {binary.path}")


async def _up(options: argparse.Namespace) -> None:
    """Start clusters, say how to use them, and keep them until interrupted."""
    names: list[str] = options.clusters.split(",")
    if options.kubeconfig.exists():
        raise ValueError(f"{options.kubeconfig} exists already: remove it, or name another file with --kubeconfig")
    _stop_on_sigterm()
    async with ControlPlane(await asyncio.to_thread(obtain, _say)) as plane:
        _say(f"starting {', '.join(names)} …")
        clusters = await plane.start_many(
            names, controllers=not options.bare, nodes=0 if options.bare else options.nodes
        )
        file = kubeconfig.merge(options.kubeconfig.absolute(), [cluster.kubeconfig for cluster in clusters])
        try:
            for cluster in clusters:
                _say(f"{cluster.name:<16} {cluster.url}   audit log: {cluster.audit_log}")
            _say(f"ready: export KUBECONFIG={file}; kubectl --context {names[0]} get nodes. Ctrl-C ends it.")
            await asyncio.Event().wait()
        finally:
            file.unlink(missing_ok=True)


def _stop_on_sigterm() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("controlplane", description="A real Kubernetes control plane on loopback.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="find the programs, or build what lacks with Go, once, into the user's cache")
    commands.add_parser("where", help="say which programs are found, and where")
    commands.add_parser("pin", help="write modules/*/go.mod and go.sum for the versions in versions.py")
    up = commands.add_parser("up", help="start clusters and keep them until Ctrl-C")
    up.add_argument("--clusters", default="hub", metavar="NAMES", help="names, with commas between (default: hub)")
    up.add_argument("--nodes", type=int, default=1, help="simulated nodes of each cluster (default: 1)")
    up.add_argument("--bare", action="store_true", help="API servers only: no controllers, no nodes")
    up.add_argument("--kubeconfig", type=Path, default=Path("kubeconfig"), metavar="FILE", help="file to write")
    return parser


def _say(line: str) -> None:
    print(line, flush=True)
