"""A cluster's caches: shared, and let go of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kedge.api.core import ConfigMap
from kedge.api.resource import Resource
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.logs import JsonFormatter, about
from kedge.kube.writes import recording
from support.fleets import fleet_cluster, managed
from support.virtual import run
from support.waiting import until

WIDGETS = untyped(Resource("example.com", "v1", "Widget", "widgets"))


@asynccontextmanager
async def connected() -> AsyncIterator[Cluster]:
    async with fleet_cluster(kinds=False) as server, managed() as manager:
        yield await manager.connect("hub", server.transport())


def following() -> list[str]:
    return sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name() == "hub: configmaps")


def test_a_cache_that_is_dropped_is_no_longer_followed_and_made_anew_when_asked_for() -> None:
    async def main() -> None:
        async with connected() as hub:
            first = hub.cache(ConfigMap)
            await first.synced()
            assert len(following()) == 1
            hub.drop(first)
            await until(lambda: not following())
            second = hub.cache(ConfigMap)
            assert second is not first
            await second.synced()

    run(main())


def test_nobody_waits_for_a_dropped_cache_to_show_a_write() -> None:
    async def main() -> None:
        async with connected() as hub:
            maps = hub.cache(ConfigMap)
            await maps.synced()
            with recording() as footprint:
                await hub.client.create(ConfigMap, {"metadata": {"name": "a", "namespace": "default"}})
            assert not footprint.shown()
            hub.drop(maps)
            assert footprint.shown()

    run(main())


def test_trouble_with_an_optional_cache_is_none_of_the_clusters() -> None:
    async def main() -> None:
        async with connected() as hub:
            widgets = hub.cache(WIDGETS, optional=True)
            await until(lambda: widgets.problem and widgets.problem.startswith("404"))
            assert hub.problems() == []
            needed = hub.cache(untyped(Resource("example.com", "v1", "Gadget", "gadgets")))
            await until(lambda: needed.problem and needed.problem.startswith("404"))
            assert hub.problems() == [f"gadgets.example.com: {needed.problem}"]

    run(main())


def test_what_a_cache_says_is_not_about_whoever_asked_for_it_first(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(JsonFormatter())

    async def main() -> None:
        async with connected() as hub:
            with about(controller="snapshots", name="web"):
                hub.cache(WIDGETS, optional=True)
            await until(lambda: "watching widgets" in caplog.text)

    run(main())
    said = json.loads(next(line for line in caplog.text.splitlines() if "watching widgets" in line))
    assert (said["cluster"], said.get("controller"), said.get("name")) == ("hub", None, None)
