"""What happens to a write while its webhooks are being asked: others write, the server stops, the client gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from embedded.admission.hooks import (
    ALLOWED,
    MAPS,
    Answers,
    Webhook,
    allow,
    configure,
    deny,
    fail,
    hook,
    hooked_cluster,
    make,
)
from kedge.kube.client import Client
from kedge.kube.codec import Untyped
from kedge.kube.errors import ApiError, Conflict, NotFound, Unreachable
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request
from support.virtual import run

MAP = MAPS.resource.path("default", "a")


def meanwhile(act: Callable[[], Awaitable[object]]) -> Answers:
    """Allows everything; something else happens the first time that it is asked about `a`."""
    done: list[bool] = []

    async def answer(request: Untyped) -> Untyped:
        if not done and request["name"] == "a":
            done.append(True)
            await act()
        return ALLOWED

    return answer


async def value(client: Client) -> object:
    return (await client.get(MAPS, "a", "default"))["data"]


def test_a_patch_is_made_again_of_what_somebody_else_wrote() -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (cluster, client):
            await make(client)
            await configure(client, hook("configmaps"))
            change = Request("PATCH", MAP, (), b'{"data": {"other": "x"}}', MergePatch.content_type)
            webhook.answers = meanwhile(lambda: _at_once(cluster.server.handle(change).status))
            await client.patch(MAPS, "a", MergePatch({"data": {"mine": "y"}}), "default")
            assert await value(client) == {"k": "v", "other": "x", "mine": "y"}
            assert [one["object"]["data"] for one in webhook.asked] == [
                {"k": "v", "mine": "y"},
                {"k": "v", "other": "x", "mine": "y"},
            ]

    run(main())


async def _at_once(found: object) -> object:
    return found


def test_a_put_of_what_somebody_else_changed_is_a_conflict() -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (cluster, client):
            old = await make(client)
            await configure(client, hook("configmaps"))
            change = Request("PATCH", MAP, (), b'{"data": {"other": "x"}}', MergePatch.content_type)
            webhook.answers = meanwhile(lambda: _at_once(cluster.server.handle(change).status))
            with pytest.raises(Conflict):
                await client.replace(MAPS, {**old, "data": {"mine": "y"}})
            assert await value(client) == {"k": "v", "other": "x"}

    run(main())


@pytest.mark.parametrize("way", ["patch", "delete"])
def test_what_somebody_else_deleted_is_not_found(way: str) -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (cluster, client):
            await make(client)
            await configure(client, hook("configmaps"))
            webhook.answers = meanwhile(lambda: _at_once(cluster.server.handle(Request("DELETE", MAP)).status))
            with pytest.raises(NotFound):
                if way == "patch":
                    await client.patch(MAPS, "a", MergePatch({"data": {"mine": "y"}}), "default")
                else:
                    await client.delete(MAPS, "a", "default")

    run(main())


def test_others_are_answered_meanwhile() -> None:
    async def main() -> None:
        async def slow(request: Untyped) -> Untyped:
            await asyncio.sleep(5)
            return ALLOWED

        async with hooked_cluster(Webhook(slow)) as (_, client):
            await configure(client, hook("configmaps"))
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.gather(*(make(client, name) for name in "abc"))
            assert loop.time() - began < 6

    run(main())


@pytest.mark.parametrize("is_back", [False, True])
@pytest.mark.parametrize("answer", ["allow", "fail"])
def test_a_server_that_stops_stores_nothing(answer: str, is_back: bool) -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (cluster, client):
            await configure(client, hook("configmaps", failurePolicy="Ignore"))

            async def stop(request: Untyped) -> Untyped:
                cluster.server.stop()
                if is_back:
                    cluster.server.start()
                return await (fail(request) if answer == "fail" else allow(request))

            webhook.answers = stop
            with pytest.raises(Unreachable):
                await make(client)
            cluster.server.start()
            with pytest.raises(NotFound):
                await client.get(MAPS, "a", "default")

    run(main())


def test_a_client_that_gives_up_has_written_nothing() -> None:
    async def main() -> None:
        async def slow(request: Untyped) -> Untyped:
            await asyncio.sleep(8)
            return ALLOWED

        async with hooked_cluster(Webhook(slow)) as (_, client):
            await configure(client, hook("configmaps"))
            body = b'{"metadata": {"name": "a"}}'
            with pytest.raises(ConnectionFailed, match="no answer in time"):
                await client.transport.send(Request("POST", MAPS.resource.path("default"), (), body), timeout=5.0)
            await asyncio.sleep(10)
            with pytest.raises(NotFound):
                await client.get(MAPS, "a", "default")

    run(main())


def test_garbage_is_collected_once_webhooks_allow_it() -> None:
    async def main() -> None:
        webhook = Webhook(deny)
        async with hooked_cluster(webhook) as (_, client):
            owner = await make(client, "owner")
            owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
            await make(client, "a", ownerReferences=[owned])
            await configure(client, hook("configmaps", operations=("DELETE",), objectSelector=_named("a")))
            await client.patch(MAPS, "a", MergePatch({"metadata": {"labels": {"name": "a"}}}), "default")
            await client.delete(MAPS, "owner", "default")
            await asyncio.sleep(10)
            assert 5 < len(webhook.calls) < 15, "it tries again, but not in a hurry"
            assert await value(client) == {"k": "v"}
            webhook.answers = Webhook().answers
            await asyncio.sleep(5)
            with pytest.raises(NotFound):
                await client.get(MAPS, "a", "default")

    run(main())


def test_dependents_are_orphaned_before_their_owner_is_gone() -> None:
    async def main() -> None:
        async def slow(request: Untyped) -> Untyped:
            await asyncio.sleep(2)
            return ALLOWED

        async with hooked_cluster(Webhook(slow)) as (_, client):
            owner = await make(client, "owner")
            owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
            await make(client, "a", ownerReferences=[owned])
            await configure(client, hook("configmaps"))
            await client.delete(MAPS, "owner", "default", propagation="Orphan")
            await asyncio.sleep(60)
            assert "ownerReferences" not in (await client.get(MAPS, "a", "default"))["metadata"]
            with pytest.raises(NotFound):
                await client.get(MAPS, "owner", "default")

    run(main())


def test_a_namespace_goes_when_its_content_may() -> None:
    async def main() -> None:
        webhook = Webhook(deny)
        async with hooked_cluster(webhook) as (cluster, client):
            await configure(client, hook("configmaps", operations=("DELETE",)))
            spaces = "/api/v1/namespaces"
            await client.transport.send(Request("POST", spaces, (), b'{"metadata": {"name": "x"}}'), timeout=5)
            await asyncio.sleep(1)
            await client.transport.send(Request("DELETE", f"{spaces}/x"), timeout=5)
            await asyncio.sleep(10)
            assert cluster.server.handle(Request("GET", f"{spaces}/x")).status == 200
            webhook.answers = Webhook().answers
            await asyncio.sleep(10)
            assert cluster.server.handle(Request("GET", f"{spaces}/x")).status == 404

    run(main())


def test_the_server_itself_asks_nobody() -> None:
    async def main() -> None:
        webhook = Webhook(deny)
        async with hooked_cluster(webhook) as (cluster, client):
            await configure(client, hook("*"))
            made = cluster.server.handle(
                Request("POST", MAPS.resource.path("default"), (), b'{"metadata":{"name":"a"}}')
            )
            assert made.status == 201
            with pytest.raises(ApiError):
                await make(client, "b")

    run(main())


def _named(name: str) -> Untyped:
    return {"matchLabels": {"name": name}}
