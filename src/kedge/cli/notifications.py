"""Notifications of a process: what `--notifications FILE` says, and the dispatcher that runs beside everything else."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
from prometheus_client import CollectorRegistry

from kedge.kube.clock import SystemClock
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.events import EventObserver
from kedge.notifications.config import ConfigError, load
from kedge.notifications.dispatcher import Dispatcher
from kedge.notifications.receivers import Prepared, prepare


def read_notifications(file: Path | None) -> Prepared | None:
    """The receivers in this file; None without one. An error for people if it cannot be used.

    To be called before there is an event loop: it reads, and may import apprise.
    """
    if file is None:
        return None
    try:
        config = load(file)
    except ConfigError as error:
        raise click.ClickException(f"--notifications: {error}") from None
    try:
        return prepare(config)
    except ConfigError as error:
        raise click.ClickException(f"--notifications: {file}: {error}") from None


@asynccontextmanager
async def notifying(
    prepared: Prepared | None, *, rng: random.Random, registry: CollectorRegistry
) -> AsyncIterator[EventObserver | None]:
    """Who is to be told of events, if anybody. What still waits at the end is sent, for a few seconds."""
    if prepared is None:
        yield None
        return
    async with AsyncExitStack() as stack:
        outbound = HttpOutbound()  # of its own: that of controllers measures paths, which are secrets here
        stack.push_async_callback(outbound.close)
        receivers = prepared(outbound, SystemClock())
        yield await stack.enter_async_context(Dispatcher(receivers, rng=rng, registry=registry))
