"""Roles as processes of their own, as users start them, and what they log."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.waiting import until_so

KEDGE = [sys.executable, "-m", "kedge"]


@asynccontextmanager
async def running(log: Path, *arguments: str, **environ: str) -> AsyncIterator[Process]:
    """A role that runs, and logs to this file. It has to end with 0 when it is told to."""
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(*KEDGE, *arguments, stderr=errors, env={**os.environ, **environ})
    try:
        yield process
        process.terminate()
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def serving(log: Path, *arguments: str, **environ: str) -> AsyncIterator[str]:
    """An operator that runs, and the URL of its HTTP server."""
    async with running(log, *arguments, **environ):
        await until_so(lambda: is_logged(log, "health and metrics are at"), 60)
        yield await asyncio.to_thread(_url_in, log)


async def is_logged(log: Path, words: str) -> bool:
    return words in await asyncio.to_thread(log.read_text)


def _url_in(log: Path) -> str:
    found = re.search(r"http://\S+?:(\d+)", log.read_text())
    assert found is not None
    return f"http://127.0.0.1:{found[1]}"
