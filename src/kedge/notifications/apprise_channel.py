"""Apprise channel: events as short messages to whatever apprise knows: chats, mail, phones.

Apprise is an optional package (`kedge[notify]`), imported only if a receiver has a `url`. It blocks, so each message is
sent in a thread of its own. A thread that hangs cannot be ended: until it ends by itself, further attempts fail, so
that there is never more than one for each receiver, and the process does not wait for it at its end.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from kedge.kube.events import WARNING, RecordedEvent
from kedge.notifications.channel import SendFailed
from kedge.notifications.config import ConfigError
from kedge.plan.text import object_name

INSTALL: Final = "pip install 'kedge[notify]'"
_LOG_URLS: Final = ("apprise", "urllib3", "urllib3.connectionpool", "requests_oauthlib", "oauthlib", "slixmpp")

Notify: TypeAlias = Callable[[str, str, bool], bool]
"""Sends a title and a text, which is a warning or not, and says whether that worked. Blocks."""


def apprise_notify(url: str, field: str) -> Notify:
    """How apprise sends to this URL, which the configuration has in this field."""
    try:
        apprise: Any = importlib.import_module("apprise")
    except ImportError:
        raise ConfigError(f"{field}: this needs apprise, which is not installed: {INSTALL}") from None
    for name in _LOG_URLS:
        logging.getLogger(name).disabled = True
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # those below it as well
    service = apprise.Apprise()
    if not service.add(url):
        raise ConfigError(f"{field}: apprise does not understand this URL: its pages list what it knows")

    def notify(title: str, text: str, warns: bool) -> bool:
        kind = apprise.NotifyType.WARNING if warns else apprise.NotifyType.INFO
        return bool(service.notify(body=text, title=title, notify_type=kind))

    return notify


class AppriseChannel:
    """Sends to one URL of apprise."""

    def __init__(self, notify: Notify, *, source: str) -> None:
        self._notify = notify
        self._source = source
        self._is_sending = False

    async def send(self, event: RecordedEvent) -> None:
        if self._is_sending:
            raise SendFailed("the attempt before still hangs")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()

        def work() -> None:
            worked = False
            with suppress(Exception):  # whatever it says may show the URL
                worked = self._notify(title(event, self._source), text(event), event.type == WARNING)
            self._is_sending = False  # the thread itself may live on for a moment
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_resolve, done, worked)

        self._is_sending = True
        try:
            threading.Thread(target=work, name="notification", daemon=True).start()
        except RuntimeError:
            self._is_sending = False
            raise SendFailed("there is no thread to be had for it") from None
        if not await done:
            raise SendFailed("apprise could not send it")


def title(event: RecordedEvent, source: str) -> str:
    """`RunStuck: StagedUpdateRun shop/web (hub, /kedge)`."""
    about = event.about
    named = object_name(about.kind, about.namespace, about.name)
    return f"{event.reason}: {named} ({event.cluster}, {source})"


def text(event: RecordedEvent) -> str:
    """What happened; services refuse an empty text."""
    return event.message or event.reason


def _resolve(done: asyncio.Future[bool], worked: bool) -> None:
    if not done.done():
        done.set_result(worked)
