"""Channel: one way to send an event to a receiver."""

from __future__ import annotations

from typing import Protocol

from kedge.kube.events import RecordedEvent


class SendFailed(Exception):
    """An event was not received. The message says why, without a URL.

    It is worth trying again, unless it is `final`: then the receiver does not want this event.
    """

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Channel(Protocol):
    """How a receiver is reached."""

    async def send(self, event: RecordedEvent) -> None:
        """Send it, or raise `SendFailed`. May be cancelled when it takes too long."""
        ...
