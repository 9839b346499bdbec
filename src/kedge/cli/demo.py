"""`kedge demo`: the tutorial's controller at work on the embedded API server, in good times and bad."""

import asyncio
import logging
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from kedge import __version__
from kedge.api.core import ConfigMap, Namespace
from kedge.cli.tutorial import CHECKSUM, Stamper, checksum
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch

SHOP = "shop"
BAR = 30


def run(objects: int) -> None:
    """Show it, and fail if it does not converge."""
    with _without_warnings():
        asyncio.run(Demo(objects).tell())


@contextmanager
def _without_warnings() -> Iterator[None]:
    """The trouble is part of the show, and told there."""
    log = logging.getLogger("kedge")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


class Demo:
    """A server, a user of it, and a controller that may lose its connection."""

    def __init__(self, objects: int) -> None:
        self._names = [f"map-{number}" for number in range(1, objects + 1)]
        server = Server(clock=SystemClock(), rng=random.Random())
        self._user = Client(InProcessTransport(server, rng=random.Random()))
        self._line = InProcessTransport(server, rng=random.Random())

    async def tell(self) -> None:
        click.echo(f"Kedge {__version__}: a controller on the embedded API server; no Kubernetes needed.\n")
        await self._user.create(Namespace, {"metadata": {"name": SHOP}})
        async with Manager(component="stamper") as manager:
            stamper = Stamper(await manager.connect("embedded", self._line))
            manager.add_controller(stamper.controller)
            running = asyncio.create_task(manager.run(signals=False))
            await self._tell_all(stamper)
            manager.stop()
            await running
        click.echo("\nThe controller is about thirty lines: docs/tutorial.md")

    async def _tell_all(self, stamper: Stamper) -> None:
        some, others = self._names[::4], self._names[1::4]
        click.echo(f"· {len(self._names)} ConfigMaps are made; the controller stamps each with a checksum of its data")
        await self._make()
        await self._show_stamping()
        click.echo(f"\n· {len(some)} of them change")
        await self._change(some, "second")
        await self._show_stamping()
        click.echo("\n· The controller loses its connection …")
        self._line.disconnect()
        await self._change(others, "third")
        await self._delete(self._names[2::4])
        await _until(lambda: bool(stamper.maps.problem))
        click.echo(f"  … and says so: {stamper.maps.problem}")
        self._line.connect()
        click.echo(f"\n· It is back: {len(others)} changed and {len(self._names[2::4])} were deleted meanwhile")
        await self._show_stamping()
        await _until(lambda: len(stamper.maps) == len(self._names) - len(self._names[2::4]))
        click.echo(f"\nIts cache and an independent list agree on {len(stamper.maps)} objects; every stamp is true.")

    async def _show_stamping(self) -> None:
        """Watch until every stamp is true: by a list, not by what the controller says."""
        shown = (-1, 0)
        while shown[0] != shown[1]:
            stamped, there = await self._count()
            if (stamped, there) != shown:
                _show(f"  {_bar(stamped, there)} {stamped} of {there} stamped", last=stamped == there)
            shown = (stamped, there)
            await asyncio.sleep(0.01)

    async def _count(self) -> tuple[int, int]:
        """How many carry a true stamp, of how many."""
        found = (await self._user.list(ConfigMap, SHOP)).items
        return sum(item.metadata.annotations.get(CHECKSUM) == checksum(item) for item in found), len(found)

    async def _make(self) -> None:
        for name in self._names:
            meta = {"name": name, "namespace": SHOP, "labels": {"stamp": "yes"}}
            await self._user.create(ConfigMap, {"metadata": meta, "data": {"value": "first"}})

    async def _change(self, names: Iterable[str], value: str) -> None:
        for name in names:
            await self._user.patch(ConfigMap, name, MergePatch({"data": {"value": value}}), SHOP)

    async def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            await self._user.delete(ConfigMap, name, SHOP)


def _show(line: str, *, last: bool) -> None:
    """On a terminal a line that moves, elsewhere only how it ends."""
    moves = sys.stdout.isatty()
    if moves or last:
        click.echo(f"\r{line}" if moves else line, nl=last or not moves)


def _bar(done: int, whole: int) -> str:
    filled = BAR * done // max(1, whole)
    return "█" * filled + "░" * (BAR - filled)


async def _until(condition: Callable[[], bool], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  # it looks now and then, as a person would
            await asyncio.sleep(0.01)
