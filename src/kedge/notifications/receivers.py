"""Receivers: what a configuration stands for.

made = prepare(config)                          # before the event loop: may import apprise, which takes a while
receivers = made(outbound, clock)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kedge.kube.clock import Clock
from kedge.kube.connect.outbound import Outbound
from kedge.notifications.apprise_channel import AppriseChannel, Notify, apprise_notify
from kedge.notifications.channel import Channel
from kedge.notifications.config import NotificationsConfig, ReceiverConfig
from kedge.notifications.dispatcher import Receiver
from kedge.notifications.webhook_channel import WebhookChannel

Prepared: TypeAlias = Callable[[Outbound, Clock], Sequence[Receiver]]
"""All receivers, as soon as there is a way out, and a clock to sign with."""


def prepare(config: NotificationsConfig) -> Prepared:
    """Check what only apprise can check (`ConfigError`), and say how receivers are made."""
    notifiers = {
        receiver.name: apprise_notify(receiver.url, f"receivers[{index}].url")
        for index, receiver in enumerate(config.receivers)
        if receiver.webhook is None
    }

    def made(outbound: Outbound, clock: Clock) -> Sequence[Receiver]:
        return [
            Receiver(receiver.name, _channel(receiver, config.source, notifiers, outbound, clock), receiver.events)
            for receiver in config.receivers
        ]

    return made


def _channel(
    receiver: ReceiverConfig, source: str, notifiers: Mapping[str, Notify], outbound: Outbound, clock: Clock
) -> Channel:
    if receiver.webhook is not None:
        return WebhookChannel(receiver.webhook, outbound, source=source, clock=clock)
    return AppriseChannel(notifiers[receiver.name], source=source)
