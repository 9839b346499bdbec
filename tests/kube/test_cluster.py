"""A cluster's caches: shared, and let go of."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kedge.api.core import ConfigMap
from kedge.api.resource import Resource
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.expectations import record_writes
from kedge.kube.logs import JsonFormatter, about
from kedge.kube.patches import MergePatch
from support.fleets import CRDS, client_of, fleet_cluster, managed
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
            with record_writes() as footprint:
                await hub.client.create(ConfigMap, {"metadata": {"name": "a", "namespace": "default"}})
            assert not footprint.shown()
            hub.drop(maps)
            assert footprint.shown()

    run(main())


@pytest.mark.parametrize(
    ("selected", "labels", "waits"),
    [
        ("app", {}, False),
        ("app", {"app": "web"}, True),
        ({"app": "web"}, {"app": "db"}, False),
        ({"app": "web"}, {"app": "web"}, True),
        ("app==web,tier=1", {"app": "web"}, False),
        ("app==web,tier=1", {"app": "web", "tier": "1"}, True),
        ("app in (web,db)", {}, True),
        ("!app", {"app": "web"}, True),
        (None, {}, True),
    ],
)
def test_nobody_waits_for_a_cache_that_will_not_show_a_write_by_its_labels(
    selected: str | dict[str, str] | None, labels: dict[str, str], waits: bool
) -> None:
    async def main() -> None:
        async with connected() as hub:
            await hub.cache(ConfigMap, labels=selected).synced()
            with record_writes() as footprint:
                meta = {"name": "a", "namespace": "default", "labels": labels}
                await hub.client.create(ConfigMap, {"metadata": meta})
            assert footprint.shown() is not waits

    run(main())


def test_an_object_that_a_cache_shows_and_that_is_selected_no_more_is_waited_for() -> None:
    async def main() -> None:
        async with connected() as hub:
            maps = hub.cache(ConfigMap, labels={"app": "web"})
            await maps.synced()
            meta = {"name": "a", "namespace": "default", "labels": {"app": "web"}}
            await hub.client.create(ConfigMap, {"metadata": meta})
            await until(lambda: maps.get("a", "default") is not None)
            with record_writes() as footprint:
                await hub.client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"app": None}}}), "default")
            assert not footprint.shown()

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
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        async with connected() as hub:
            with about(controller="snapshots", name="web"):
                hub.cache(WIDGETS, optional=True)
            await until(lambda: "watching widgets" in caplog.text)

    run(main())
    said = json.loads(next(line for line in caplog.text.splitlines() if "watching widgets" in line))
    assert (said["cluster"], said.get("controller"), said.get("name")) == ("hub", None, None)


def test_kinds_that_are_missing_are_said_once_for_all_with_what_to_do_and_when_they_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    kinds = [untyped(Resource("example.com", "v1", f"Kind{n}", f"kinds{n}", namespaced=False)) for n in range(9)]

    def said() -> list[tuple[str, str]]:
        return [(one.levelname, one.getMessage()) for one in caplog.records if "kind" in one.getMessage()]

    async def main() -> None:
        async with fleet_cluster(kinds=False) as server, managed() as manager:
            hub = await manager.connect("hub", server.transport(), if_missing="`kedge crds` prints them")
            caches = [hub.cache(kind) for kind in kinds]
            await asyncio.sleep(60)
            assert all(cache.kind_is_missing for cache in caches)
            words = (
                "hub does not serve 9 kinds that are needed (kinds0.example.com, kinds1.example.com, "
                "kinds2.example.com, …), and waits until it does: `kedge crds` prints them"
            )
            assert said() == [("ERROR", words)]
            async with client_of(server) as client:
                for n in range(9):
                    await client.create(CRDS, definition(n))
            await asyncio.gather(*(cache.synced() for cache in caches))
            await asyncio.sleep(2)
            assert not any(cache.kind_is_missing for cache in caches)
            assert said()[-1] == ("INFO", "hub serves all kinds that are needed now")

    run(main())


def test_optional_kinds_that_are_missing_are_one_line_for_all_and_followed_when_they_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    kinds = [untyped(Resource("example.com", "v1", f"Kind{n}", f"kinds{n}", namespaced=False)) for n in range(2)]

    def said() -> list[tuple[str, str]]:
        return [(one.levelname, one.getMessage()) for one in caplog.records if "kinds0" in one.getMessage()]

    async def main() -> None:
        async with fleet_cluster(kinds=False) as server, managed() as manager:
            hub = await manager.connect("hub", server.transport(), if_missing="`kedge crds` prints them")
            caches = [hub.cache(kind, optional=True) for kind in kinds]
            await asyncio.sleep(60)
            words = (
                "hub does not serve 2 kinds that are optional (kinds0.example.com, kinds1.example.com), "
                "and follows them as soon as it does"
            )
            assert said() == [("INFO", words)]
            async with client_of(server) as client:
                for n in range(2):
                    await client.create(CRDS, definition(n))
            await asyncio.gather(*(cache.synced() for cache in caches))
            await asyncio.sleep(2)
            assert caplog.records[-1].getMessage() == "hub serves all optional kinds now"

    run(main())


def definition(n: int) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": f"Kind{n}", "plural": f"kinds{n}"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    return {"metadata": {"name": f"kinds{n}.example.com"}, "spec": spec}
