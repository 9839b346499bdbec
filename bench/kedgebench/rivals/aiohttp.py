"""aiohttp alone: what the bytes cost before anybody reads them. No client, a floor under those built on it."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from kedgebench.marks import END, START
from kedgebench.rivals import Held, Saw

_NAMES = [(f'"name":"{mark}"'.encode(), mark) for mark in (START, END)]
_ONCE_IN_EACH = b'"progressDeadlineSeconds"'


class Aiohttp:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        self._server = config["clusters"][0]["cluster"]["server"]
        self._context = _context(config)
        self._path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self._made: aiohttp.ClientSession | None = None

    async def get(self, name: str) -> object:
        return await self._read(f"{self._path}/{name}")

    async def list(self) -> Sequence[object]:
        return range((await self._read(self._path)).count(_ONCE_IN_EACH))

    async def watch(self, saw: Saw) -> None:
        async with self._session.get(f"{self._path}?watch=true&resourceVersion=0", timeout=None) as response:
            async for line in response.content:
                if line.startswith(b'{"type":"MODIFIED"') and saw(marked(line)):
                    return

    async def hold(self, namespace: str, copies: int) -> Held:
        raise NotImplementedError

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._made is None:
            connector = aiohttp.TCPConnector(ssl=self._context)
            self._made = aiohttp.ClientSession(self._server, connector=connector, read_bufsize=2**18)
        return self._made

    async def _read(self, path: str) -> bytes:
        async with self._session.get(path) as response:
            return await response.read()


def marked(line: bytes) -> str:
    return next((mark for sought, mark in _NAMES if sought in line), "")


def _context(config: dict[str, Any]) -> ssl.SSLContext:
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context
