"""Webhook channel: events as signed CloudEvents, posted to a URL.

A receiver accepts with any status 2xx. It refuses an event for good with another status below 500, except those that
ask to come again (408, 425, 429).
"""

from __future__ import annotations

from typing import Final

from yarl import URL

from kedge.kube.clock import Clock
from kedge.kube.connect.outbound import Call, Outbound, OutboundFailed
from kedge.kube.events import RecordedEvent
from kedge.notifications import cloud_event
from kedge.notifications.channel import SendFailed
from kedge.notifications.config import WebhookTarget

TIMEOUT: Final = 10.0
_TRY_AGAIN: Final = frozenset({408, 425, 429})


class WebhookChannel:
    """Posts to one URL."""

    def __init__(self, target: WebhookTarget, outbound: Outbound, *, source: str, clock: Clock) -> None:
        self._target = target
        self._outbound = outbound
        self._source = source
        self._clock = clock

    async def send(self, event: RecordedEvent) -> None:
        body = cloud_event.encode(cloud_event.cloud_event(event, self._source))
        signed = cloud_event.headers(body, self._target.secret, self._clock.now())
        call = Call("POST", self._target.url, headers=signed, body=body, name="the webhook")
        try:
            answer = await self._outbound.fetch(call, timeout=TIMEOUT)
        except OutboundFailed as error:
            raise SendFailed(self._without_host(str(error))) from None  # its cause may show the URL
        if not 200 <= answer.status < 300:
            final = answer.status < 500 and answer.status not in _TRY_AGAIN
            raise SendFailed(f"the webhook answered {answer.status}", final=final)

    def _without_host(self, text: str) -> str:
        """What went wrong, without the host: some errors name it, and the whole URL is a secret."""
        return text.replace(URL(self._target.url).host or "//", "its host")
