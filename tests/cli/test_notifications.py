"""`--notifications FILE`: what is refused before anything starts, and that events leave a running process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from kedge.cli import main
from kedge.notifications.cloud_event import signature

SECRET = "hunter2-hunter2-hunter2"
COMMANDS = (
    ("hub", "--notifications"),
    ("operator", "--namespace", "zones", "--notifications"),
    ("rollout-operator", "-kubernetes.namespace=zones", "-notifications"),
    ("up", "--members", "0", "--notifications"),
)


def kedge(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "notifications.yaml"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_file_that_cannot_be_used_is_refused_with_the_field(file: Path, command: tuple[str, ...]) -> None:
    file.write_text(f"receivers: [{{name: a, webhook: {{url: '{SECRET}'}}}}]")
    result = kedge(*command, str(file))
    says = f"Error: --notifications: {file}: receivers[0].webhook.url: this is no http:// or https:// URL\n"
    assert (result.exit_code, result.stderr) == (1, says)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_file_that_is_not_there_is_named(file: Path, command: tuple[str, ...]) -> None:
    result = kedge(*command, str(file))
    assert result.exit_code in (1, 2)
    assert str(file) in result.stderr


def test_a_URL_of_apprise_without_apprise_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    file.write_text(f"receivers: [{{name: a, url: 'slack://{SECRET}'}}]")
    result = kedge("hub", "--notifications", str(file))
    says = "receivers[0].url: this needs apprise, which is not installed: pip install 'kedge[notify]'"
    assert (result.exit_code, result.stderr) == (1, f"Error: --notifications: {file}: {says}\n")


def test_a_bare_fleet_has_nothing_to_notify_of(file: Path) -> None:
    file.write_text("")
    result = kedge("up", "--bare", "--notifications", str(file))
    assert result.exit_code == 2
    assert "--bare runs no controllers, so there is nothing to notify of" in result.stderr


class Hook:
    """A webhook on this machine that keeps what it is sent."""

    def __init__(self) -> None:
        self.deliveries: asyncio.Queue[tuple[web.Request, bytes]] = asyncio.Queue()

    async def _take(self, request: web.Request) -> web.Response:
        self.deliveries.put_nowait((request, await request.read()))
        return web.Response(status=202)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/events", self._take)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            yield f"http://{host}:{port}/events"
        finally:
            await runner.cleanup()


async def test_a_running_fleet_posts_signed_events(tmp_path: Path, file: Path) -> None:
    hook = Hook()
    async with hook.serve() as url, asyncio.timeout(60):
        wanted = "events: {reasons: [MemberClusterJoined]}"
        await asyncio.to_thread(
            file.write_text, f"receivers: [{{name: a, webhook: {{url: '{url}', secret: {SECRET}}}, {wanted}}}]"
        )
        arguments = ("up", "--members", "1", "--kubeconfig", str(tmp_path / "kubeconfig"), "--notifications", str(file))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kedge", *arguments, stdout=asyncio.subprocess.DEVNULL
        )
        try:
            request, body = await hook.deliveries.get()
        finally:
            process.terminate()
            await process.wait()
    event = json.loads(body)
    assert (event["type"], event["subject"]) == ("dev.kedge.rollout.MemberClusterJoined", "MemberCluster/cluster-1")
    assert request.content_type == "application/cloudevents+json"
    signed = signature(body, SECRET, request.headers["Kedge-Timestamp"])
    assert request.headers["Kedge-Signature"] == f"sha256={signed}"
    assert hook.deliveries.empty()
