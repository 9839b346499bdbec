"""Whether the hub is heard from, by its Lease; in virtual time, so that what clocks show says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kedge.api.coordination import Lease
from kedge.api.core import Namespace
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.cli.hub_lease import LEASE, LeaseWatcher, hub_silent_since
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from support.fleets import client_of, fleet_cluster
from support.virtual import run
from support.waiting import until

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
AFAR = datetime(2999, 1, 1, tzinfo=UTC)
DURATION = 15


def spec(renewed: datetime, holder: str = "me") -> dict[str, Any]:
    time = f"{renewed:%Y-%m-%dT%H:%M:%S}.000000Z"
    return {"holderIdentity": holder, "leaseDurationSeconds": DURATION, "renewTime": time}


async def take(client: Client, renewed: datetime, **how: Any) -> None:
    body = {"metadata": {"name": LEASE, "namespace": SYSTEM_NAMESPACE}, "spec": spec(renewed, **how)}
    await client.create(Lease, body)


async def renew(client: Client, renewed: datetime) -> None:
    await client.patch(Lease, LEASE, MergePatch({"spec": spec(renewed)}), SYSTEM_NAMESPACE)


def play(act: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": SYSTEM_NAMESPACE}})
            await act(client)

    run(main())


async def timed(client: Client) -> tuple[datetime | None, float]:
    started = asyncio.get_running_loop().time()
    found = await hub_silent_since(client)
    return found, asyncio.get_running_loop().time() - started


def test_a_hub_without_a_lease_is_not_doubted() -> None:
    async def act(client: Client) -> None:
        assert await hub_silent_since(client) is None

    play(act)


@pytest.mark.parametrize("renewed", [LONG_AGO, AFAR])
def test_a_lease_that_is_not_renewed_while_it_is_watched_is_a_silent_hub(renewed: datetime) -> None:
    async def act(client: Client) -> None:
        await take(client, renewed)
        since, took = await timed(client)
        assert since == renewed
        assert DURATION <= took < DURATION + 2

    play(act)


@pytest.mark.parametrize("renewed", [LONG_AGO, AFAR])
def test_a_lease_that_is_renewed_by_a_clock_that_differs_is_a_hub_at_work(renewed: datetime) -> None:
    async def act(client: Client) -> None:
        await take(client, renewed)
        looking = asyncio.create_task(timed(client))
        await asyncio.sleep(4.5)
        await renew(client, renewed.replace(second=2))
        since, took = await looking
        assert (since, took < DURATION) == (None, True)

    play(act)


def test_a_lease_that_was_given_up_is_a_silent_hub_at_once() -> None:
    async def act(client: Client) -> None:
        await take(client, LONG_AGO, holder="")
        since, took = await timed(client)
        assert (since, took < 0.5) == (LONG_AGO, True)

    play(act)


def test_who_listens_hears_that_a_hub_falls_silent_and_is_back() -> None:
    async def act(client: Client) -> None:
        await take(client, LONG_AGO)
        async with LeaseWatcher(client) as hub:
            assert hub.since is None
            await until(lambda: hub.since == LONG_AGO, 30)
            await renew(client, datetime.now(UTC))
            await until(lambda: hub.since is None, 30)

    play(act)
