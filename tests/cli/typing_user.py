"""A user who types commands, with a kubeconfig of a cluster behind HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml
from click.testing import CliRunner, Result

from kedge.cli import kubeconfig, main
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.kube.transport import Request, Response

SECONDS = 120


class User:
    """Types commands."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def _typed(self, words: tuple[object, ...]) -> Result:
        runner = CliRunner(env={"KUBECONFIG": str(self._file)})
        return await asyncio.to_thread(runner.invoke, main, list(map(str, words)), catch_exceptions=False)

    async def kedge(self, *words: object, code: int = 0) -> Result:
        """What comes of a command."""
        result = await self._typed(words)
        assert result.exit_code == code, result.output
        return result

    async def said(self, *words: object, code: int = 0) -> str:
        """What a command prints, with a blank for every space."""
        return " ".join((await self.kedge(*words, code=code)).output.split())

    async def data(self, *words: object, code: int = 0) -> Any:
        return msgspec.json.decode((await self.kedge(*words, "-o", "json", code=code)).stdout)

    async def until_said(self, sentence: str, *words: object, code: int = 0) -> str:
        """Until a command says this."""
        async with asyncio.timeout(SECONDS):
            while True:
                result = await self._typed(words)
                if sentence in result.output and result.exit_code == code:
                    return result.output
                await asyncio.sleep(0.2)


@asynccontextmanager
async def served(cluster: EmbeddedCluster, folder: Path, namespace: str) -> AsyncIterator[Path]:
    """The kubeconfig of a cluster, which is served as long as the context is open. Its context is in a namespace."""
    serving = await asyncio.to_thread(ServingCertificate, datetime.now(UTC))
    door = HttpsServer(cluster.server, tokens={"secret": Caller()}, tls=serving.context)
    await door.open()
    file = folder / "kubeconfig"
    await asyncio.to_thread(kubeconfig.write, file, {"cluster": door.url}, authority=serving.authority, token="secret")
    await asyncio.to_thread(_at_home_in, file, namespace)
    try:
        yield file
    finally:
        await door.close()


def watched(cluster: EmbeddedCluster) -> list[Request]:
    """What users ask of the cluster from now on."""
    requests: list[Request] = []
    respond = cluster.server.respond

    async def responded(request: Request, caller: Caller = IN_PROCESS) -> Response:
        if caller is not IN_PROCESS:
            requests.append(request)
        return await respond(request, caller)

    cluster.server.respond = responded  # type: ignore[method-assign]  # nobody else listens here
    return requests


def saved(file: Path, *objects: dict[str, Any]) -> Path:
    """A file with these objects."""
    file.write_text(yaml.safe_dump_all(objects))
    return file


def _at_home_in(file: Path, namespace: str) -> None:
    config = yaml.safe_load(file.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    file.write_text(yaml.safe_dump(config))
