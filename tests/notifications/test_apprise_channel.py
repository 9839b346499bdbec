"""Messages through apprise: in a thread, one at a time, and nothing of the URL is shown."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from kedge.api.core import ObjectReference
from kedge.kube.events import RecordedEvent
from kedge.notifications.apprise_channel import AppriseChannel, Notify, apprise_notify, text, title
from kedge.notifications.channel import SendFailed
from kedge.notifications.config import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise imports it

SECRET = "hunter2-hunter2-hunter2"
ABOUT = ObjectReference(api_version="v1", kind="StagedUpdateRun", namespace="shop", name="web")
EVENT = RecordedEvent("hub", "kedge", ABOUT, "Warning", "RunStuck", "stuck", datetime(2026, 3, 1, tzinfo=UTC))


def channel(notify: Notify) -> AppriseChannel:
    return AppriseChannel(notify, source="/kedge")


async def test_a_message_says_what_happened_to_what_and_is_sent_in_a_thread() -> None:
    sent: list[tuple[str, str, bool, bool]] = []

    def notify(title: str, text: str, warns: bool) -> bool:
        sent.append((title, text, warns, threading.current_thread() is threading.main_thread()))
        return True

    await channel(notify).send(EVENT)
    assert sent == [("RunStuck: StagedUpdateRun shop/web (hub, /kedge)", "stuck", True, False)]


def test_a_message_is_never_empty() -> None:
    empty = RecordedEvent("hub", "kedge", ObjectReference(kind="Run", name="web"), "Normal", "Moved", "", EVENT.at)
    assert (title(empty, "/a"), text(empty)) == ("Moved: Run web (hub, /a)", "Moved")


async def test_what_is_not_sent_is_a_failure_that_is_worth_another_attempt() -> None:
    with pytest.raises(SendFailed, match="apprise could not send it") as failed:
        await channel(lambda *_: False).send(EVENT)
    assert not failed.value.final


async def test_an_error_of_apprise_is_not_shown() -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError(SECRET)

    with pytest.raises(SendFailed, match=r"^apprise could not send it$") as failed:
        await channel(broken).send(EVENT)
    assert failed.value.__cause__ is None


async def test_one_that_hangs_has_one_thread_whatever_is_tried() -> None:
    release, calls = threading.Event(), []

    def hangs(*_: object) -> bool:
        calls.append(1)
        return release.wait(60)

    to = channel(hangs)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await to.send(EVENT)
    with pytest.raises(SendFailed, match="the attempt before still hangs"):
        await to.send(EVENT)
    assert len(calls) == 1
    hanging = [thread for thread in threading.enumerate() if thread.name == "notification"]
    assert hanging
    assert all(thread.daemon for thread in hanging)  # or the process could not end before them
    release.set()
    for thread in hanging:
        await asyncio.to_thread(thread.join)
    await to.send(EVENT)
    assert len(calls) == 2


async def test_a_thread_that_has_sent_its_message_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    class Lingering(threading.Thread):
        def run(self) -> None:
            super().run()
            release.wait(60)

    monkeypatch.setattr(threading, "Thread", Lingering)
    to = channel(lambda *_: True)
    await to.send(EVENT)
    await to.send(EVENT)
    release.set()


async def test_without_a_thread_it_is_not_sent_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    to = channel(lambda *_: True)
    with monkeypatch.context() as full, pytest.raises(SendFailed, match="there is no thread to be had for it"):
        full.setattr(threading.Thread, "start", refused)
        await to.send(EVENT)
    await to.send(EVENT)


def test_without_apprise_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(ConfigError, match=r"^receivers\[0\]\.url: this needs apprise, which is not installed: pip"):
        apprise_notify(f"slack://{SECRET}", "receivers[0].url")


needs_apprise = pytest.mark.skipif(
    importlib.util.find_spec("apprise") is None and not os.environ.get("CI"),
    reason="apprise is not installed here: make test installs it",
)


@needs_apprise
async def test_apprise_itself_sends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    received: list[dict[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        received.append(await request.json())
        return web.Response(status=200 if len(received) == 1 else 500)

    app = web.Application()
    app.router.add_post(f"/{SECRET}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        notify = await asyncio.to_thread(apprise_notify, f"json://{host}:{port}/{SECRET}", "url")
        to = channel(notify)
        await to.send(EVENT)
        with pytest.raises(SendFailed):
            await to.send(EVENT)
    finally:
        await runner.cleanup()
    assert [(one["title"], one["message"], one["type"]) for one in received] == [
        ("RunStuck: StagedUpdateRun shop/web (hub, /kedge)", "stuck", "warning")
    ] * 2
    assert SECRET not in caplog.text


@needs_apprise
def test_a_URL_that_apprise_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^url: apprise does not understand this URL") as refused:
        apprise_notify(f"nosuchservice://{SECRET}", "url")
    assert SECRET not in str(refused.value)
