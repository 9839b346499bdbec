"""Child: a contender's process, as the main process sees it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import IO, Any

import psutil

from kedgebench.server import Place

PATIENCE = 300.0
RESTS = 15
Answer = dict[str, Any]


class Failed(Exception):
    """A contender ended or fell silent; carries the last it said."""


class Child:
    """One running contender."""

    def __init__(self, name: str, process: Process, errors: IO[bytes]) -> None:
        self.name = name
        self._process = process
        self._errors = errors

    async def ask(self, task: str, **arguments: object) -> Answer:
        """Give an order, and wait for what came of it."""
        self.order(task, **arguments)
        return await self.answer()

    def order(self, task: str, **arguments: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"task": task, **arguments}).encode() + b"\n")

    async def answer(self, within: float = PATIENCE) -> Answer:
        """The next line it says; TimeoutError if none comes."""
        assert self._process.stdout is not None
        async with asyncio.timeout(within):
            line = await self._process.stdout.readline()
        if not line:
            raise Failed(f"{self.name} ended: {self.said()}")
        answer: Answer = json.loads(line)
        return answer

    def said(self) -> str:
        """What it wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop the process, as if its turn on the processor did not come, and let it go on afterwards."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    async def idle(self) -> None:
        """Wait until it has nothing to do for a while."""
        process = psutil.Process(self._process.pid)
        resting = 0
        while resting < RESTS:
            await asyncio.sleep(0.02)
            resting = resting + 1 if process.status() == psutil.STATUS_SLEEPING else 0

    async def end(self) -> str:
        """Let it finish in good order; gives what it wrote to stderr."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        return self.said()


@asynccontextmanager
async def start(name: str, place: Place, *, profile: bool = False) -> AsyncIterator[Child]:
    """A contender of this name, ready for orders."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kedgebench.contender",
            name,
            str(place.kubeconfig),
            place.namespace,
            *(["--profile"] if profile else []),
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
        )
        try:
            child = Child(name, process, errors)
            await child.answer()
            yield child
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
