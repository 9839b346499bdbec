"""Run: asks every contender every question, in turns."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from kedgebench import child, sample
from kedgebench.child import Child, Failed
from kedgebench.marks import END, START
from kedgebench.progress import Progress
from kedgebench.results import Measure
from kedgebench.rivals import RIVALS, SYNC, Entry
from kedgebench.scale import Scale
from kedgebench.server import Server

AT_ONCE = 20
MICRO = 1e6
KIB = 1024
SEEN_WITHIN = 0.5
TRIES = 100


class Run:
    """One benchmark run against one server. `notes` are what a reader of the numbers must know besides."""

    def __init__(self, server: Server, scale: Scale, names: Sequence[str], progress: Progress) -> None:
        self._server = server
        self._scale = scale
        self._names = names
        self._progress = progress
        self.notes: list[str] = []
        self.measures = {measure.key: measure for measure in _measures(scale)}

    async def everything(self) -> None:
        """Every question, to every contender that can answer it."""
        async with self._contenders() as contenders:
            await self._gets(contenders, "get", at_once=1)
            await self._gets([c for c in contenders if _entry(c).loop != SYNC], "get20", at_once=AT_ONCE)
            await self._lists(contenders)
            await self._watches(contenders, "watch")
            await self._watches(contenders, "backlog")
        await self._memory()
        await self._queue()

    @asynccontextmanager
    async def _contenders(self) -> AsyncIterator[list[Child]]:
        async with AsyncExitStack() as stack:
            self._progress.say("starting the contenders")
            starting = [stack.enter_async_context(child.start(name, self._server.place)) for name in self._names]
            yield await asyncio.gather(*starting)

    async def _gets(self, contenders: list[Child], key: str, at_once: int) -> None:
        names = [sample.name(number) for number in range(min(50, self._scale.objects))]
        for contender in self._turns(key, [c for c in contenders if _entry(c).reads], self._scale.rounds):
            answer = await contender.ask("get", names=names, seconds=self._scale.seconds, at_once=at_once)
            self._take(key, contender, answer)

    async def _lists(self, contenders: list[Child]) -> None:
        for contender in self._turns("list", [c for c in contenders if _entry(c).lists], self._scale.long_rounds):
            self._take("list", contender, await contender.ask("list", seconds=self._scale.seconds))

    async def _watches(self, contenders: list[Child], key: str) -> None:
        paces = []
        for contender in self._turns(key, contenders, self._scale.long_rounds):
            changes = self._scale.changes if key == "watch" else self._scale.changes_behind
            count = round(changes * _entry(contender).pace)
            answer = await self.watched(contender, key, count)
            if answer["count"] != count:
                self.notes.append(f"{key}: {contender.name} told of {answer['count']} events for {count} changes")
            self._take(key, contender, answer)
            paces.append(count / answer["wall"])
        if key == "watch":
            self.notes.append(f"watch: events came at {min(paces):.0f} to {max(paces):.0f} a second")

    async def watched(self, contender: Child, key: str, count: int) -> dict[str, Any]:
        """Have a contender watch, make changes between the two marks, and see what they cost it."""
        contender.order("watch")
        await self._open(contender)
        if key == "watch":
            await self._server.change(count, rate=self._scale.rate)
            await contender.idle()  # a framework may work on several objects at once, and on the mark before others
        else:
            await self._behind(contender, count)
        await self._server.mark(END)
        answer = await contender.answer()
        while "started" in answer:  # a mark that was repeated too early
            answer = await contender.answer()
        return answer

    async def _behind(self, contender: Child, count: int) -> None:
        """Make changes while the contender stands still, so that many are waiting when it goes on."""
        while count > 0:
            with contender.standing_still():
                await self._server.change(min(count, self._scale.backlog))
            await contender.idle()
            count -= self._scale.backlog

    async def _open(self, contender: Child) -> None:
        """Change the start mark until the contender has seen it: only then its watch is surely open."""
        for _ in range(TRIES):
            await self._server.mark(START)
            try:
                await contender.answer(SEEN_WITHIN)
            except TimeoutError:
                continue
            return
        raise Failed(f"{contender.name} saw no event in {TRIES * SEEN_WITHIN:g} s: {contender.said()}")

    async def _memory(self) -> None:
        place = self._server.place
        for name in self._names:
            entry = RIVALS[name]
            if not entry.holds:
                continue
            self._progress.say(f"memory: {name}")
            copies = max(1, round(self._scale.copies * entry.copies))
            async with child.start(name, place) as contender:
                answer = await contender.ask("hold", small=place.small, namespace=place.namespace, copies=copies)
            self.measures["memory"].add(name, answer["bytes"] / answer["count"] / KIB)
            if answer["exact"] is not None:
                self.measures["exact"].add(name, answer["exact"] / answer["count"] / KIB)
            self.notes.append(f"memory: {entry.title} held {answer['count']} objects")

    async def _queue(self) -> None:
        self._progress.say("queue")
        command = [sys.executable, "-m", "kedgebench.queues", str(self._scale.queue_keys), str(self._scale.rounds)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        found = json.loads((await process.communicate())[0])
        for case, rounds in found["seconds"].items():
            for seconds in rounds:
                self.measures["queue"].add(case, seconds * MICRO)
        self.notes.append(
            f"queue: {found['turns']} of {self._scale.queue_keys} waiting keys of a busy cluster go before the one of "
            "a quiet cluster that came last"
        )

    def _turns(self, key: str, contenders: list[Child], rounds: int) -> Iterator[Child]:
        for turn in range(rounds):
            for contender in contenders:
                self._progress.say(f"{self.measures[key].title}: round {turn + 1} of {rounds}: {contender.name}")
                yield contender

    def _take(self, key: str, contender: Child, answer: dict[str, Any]) -> None:
        self.measures[key].add(contender.name, answer["cpu"] / answer["count"] * MICRO)


def _measures(scale: Scale) -> list[Measure]:
    return [
        Measure("get", "GET, one at a time", "µs"),
        Measure("get20", f"GET, {AT_ONCE} at once", "µs"),
        Measure("list", "LIST, per object", "µs"),
        Measure("watch", "watch, event by event", "µs"),
        Measure("backlog", f"watch, {scale.backlog} events behind, per event", "µs"),
        Measure("memory", "memory per object", "KiB"),
        Measure("exact", "memory per object, added up", "KiB"),
        Measure("queue", "queue, per key added", "µs", "Kedge, one cluster"),
    ]


def _entry(contender: Child) -> Entry:
    return RIVALS[contender.name]
