"""The client's verbs, and what becomes of a request that does not go well."""

import asyncio
import random

import msgspec
import pytest

from kedge.api.core import ConfigMap
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import Bookmark, Event, Unreadable, metadata_of, untyped
from kedge.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    NotUnderstood,
    RequestTooLarge,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kedge.kube.limits import BackoffSteps, Retry
from kedge.kube.patches import JsonPatch, MergePatch, Patch, StrategicPatch
from kedge.kube.transport import Response
from support.scripted import DOWN, RESET, Answer, Scripted, ScriptedStream, answer, bookmark, config_map, line, refused

NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
FOUND = answer(200, config_map("web", 7, color="blue"))


def client(transport: Scripted) -> Client:
    return Client(transport, rng=random.Random(1), retry=Retry(wait=BackoffSteps(0.001, 0.01)))


async def test_get_reads_a_typed_object() -> None:
    transport = Scripted([FOUND])
    found = await client(transport).get(ConfigMap, "web", "shop")
    assert (found.metadata.name, found.metadata.resource_version, found.data) == ("web", "7", {"color": "blue"})
    assert str(transport.asked[0]) == "GET /api/v1/namespaces/shop/configmaps/web"


async def test_get_reads_an_untyped_object_whole() -> None:
    found = await client(Scripted([FOUND])).get(untyped(ConfigMap.resource), "web", "shop")
    assert found["apiVersion"] == "v1"
    assert found["data"] == {"color": "blue"}


async def test_metadata_alone_is_all_that_is_asked_for() -> None:
    transport = Scripted([FOUND])
    found = await client(transport).get(metadata_of(ConfigMap.resource), "web", "shop")
    assert found.metadata.name == "web"
    assert transport.asked[0].accept == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


async def test_a_namespaced_kind_without_a_namespace_is_refused_before_it_is_sent() -> None:
    transport = Scripted([FOUND])
    with pytest.raises(ValueError, match="ConfigMap is namespaced"):
        await client(transport).get(ConfigMap, "web")
    assert transport.asked == []


async def test_a_cluster_scoped_kind_needs_no_namespace() -> None:
    transport = Scripted([answer(200, {"metadata": {"name": "n1"}})])
    await client(transport).get(untyped(NODE), "n1")
    assert transport.asked[0].path == "/api/v1/nodes/n1"


async def test_a_list_is_read_in_pages_and_keeps_the_version_of_the_whole() -> None:
    first = {"metadata": {"resourceVersion": "9", "continue": "t"}, "items": [config_map("a", 1)]}
    second = {"metadata": {"resourceVersion": "9"}, "items": [config_map("b", 2)]}
    transport = Scripted([answer(200, first), answer(200, second)])
    found = await client(transport).list(ConfigMap, labels={"app": "web"}, page_size=1)
    assert [item.metadata.name for item in found.items] == ["a", "b"]
    assert found.resource_version == "9"
    assert transport.asked[0].query == (("labelSelector", "app=web"), ("limit", "1"))
    assert ("continue", "t") in transport.asked[1].query


async def test_one_object_that_does_not_fit_its_type_does_not_spoil_a_list() -> None:
    bad = {"metadata": {"name": "bad", "namespace": "shop"}, "data": {"a": 7}}
    page = {"metadata": {"resourceVersion": "9"}, "items": [config_map("a", 1), bad, config_map("b", 2)]}
    found = await client(Scripted([answer(200, page)])).list(ConfigMap)
    assert [item.metadata.name for item in found.items] == ["a", "b"]
    assert [item.metadata.name for item in found.unreadable] == ["bad"]
    assert "data" in found.unreadable[0].problem


async def test_items_may_be_null() -> None:
    found = await client(Scripted([answer(200, {"metadata": {"resourceVersion": "3"}, "items": None})])).list(ConfigMap)
    assert (found.items, found.resource_version) == ((), "3")


async def test_create_says_what_it_is() -> None:
    transport = Scripted([FOUND])
    body = ConfigMap(metadata=ObjectMeta(name="web", namespace="shop"), data={"color": "blue"})
    await client(transport).create(ConfigMap, body, manager="me", dry_run=True, strict=True)
    request = transport.asked[0]
    assert str(request) == "POST /api/v1/namespaces/shop/configmaps?fieldManager=me&dryRun=All&fieldValidation=Strict"
    sent = msgspec.json.decode(request.body)
    assert sent == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "namespace": "shop"},
        "data": {"color": "blue"},
    }


async def test_apply_names_its_manager_and_a_subresource() -> None:
    transport = Scripted([FOUND])
    body = {"metadata": {"name": "web", "namespace": "shop"}, "data": {}}
    await client(transport).apply(ConfigMap, body, manager="me", force=True, subresource="status")
    request = transport.asked[0]
    assert str(request) == "PATCH /api/v1/namespaces/shop/configmaps/web/status?fieldManager=me&force=true"
    assert request.content_type == "application/apply-patch+yaml"
    assert msgspec.json.decode(request.body)["kind"] == "ConfigMap"


@pytest.mark.parametrize(
    ("patch", "sent"),
    [
        (MergePatch({"data": {"a": None}}), {"data": {"a": None}, "metadata": {"uid": "u", "resourceVersion": "7"}}),
        (
            StrategicPatch({"metadata": {"labels": {"a": "b"}}}),
            {"metadata": {"labels": {"a": "b"}, "uid": "u", "resourceVersion": "7"}},
        ),
        (
            JsonPatch([{"op": "remove", "path": "/data/a"}]),
            [
                {"op": "remove", "path": "/data/a"},
                {"op": "add", "path": "/metadata/uid", "value": "u"},
                {"op": "add", "path": "/metadata/resourceVersion", "value": "7"},
            ],
        ),
    ],
)
async def test_a_patch_carries_its_preconditions(patch: Patch, sent: object) -> None:
    transport = Scripted([FOUND])
    await client(transport).patch(ConfigMap, "web", patch, "shop", uid="u", resource_version="7")
    assert msgspec.json.decode(transport.asked[0].body) == sent
    assert transport.asked[0].content_type == patch.content_type


async def test_an_amendment_is_of_the_very_version_that_was_seen() -> None:
    transport = Scripted([FOUND])
    seen = ObjectMeta(name="web", namespace="shop", uid="u", resource_version="7")
    await client(transport).amend(ConfigMap, seen, {"data": {"a": None}}, manager="kedge", subresource="status")
    asked, sent = transport.asked[0], {"data": {"a": None}, "metadata": {"uid": "u", "resourceVersion": "7"}}
    assert str(asked) == "PATCH /api/v1/namespaces/shop/configmaps/web/status?fieldManager=kedge"
    assert msgspec.json.decode(asked.body) == sent


async def test_delete_carries_its_preconditions() -> None:
    transport = Scripted([answer(200, {"kind": "Status"})])
    await client(transport).delete(
        ConfigMap, "web", "shop", uid="u", resource_version="7", propagation="Foreground", grace_seconds=0
    )
    assert msgspec.json.decode(transport.asked[0].body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }


async def test_what_is_removed_is_the_very_version_that_was_seen() -> None:
    transport = Scripted([answer(200, {"kind": "Status"})])
    seen = ObjectMeta(name="web", namespace="shop", uid="u", resource_version="7")
    await client(transport).remove(ConfigMap, seen, propagation="Background")
    assert str(transport.asked[0]) == "DELETE /api/v1/namespaces/shop/configmaps/web"
    assert msgspec.json.decode(transport.asked[0].body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Background",
    }


async def test_what_is_gone_need_not_be_removed() -> None:
    transport = Scripted([answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})])
    await client(transport).remove(ConfigMap, ObjectMeta(name="web", namespace="shop", uid="u"))
    assert len(transport.asked) == 1


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (413, "RequestEntityTooLarge", RequestTooLarge),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
    ],
)
async def test_every_refusal_says_what_was_asked_and_answered(code: int, reason: str, error: type[KubeError]) -> None:
    with pytest.raises(error) as caught:
        await client(Scripted([refused(code, reason, "because")])).get(ConfigMap, "web", "shop")
    assert "GET /api/v1/namespaces/shop/configmaps/web" in str(caught.value)
    assert f"{code} {reason}: because" in str(caught.value)


async def test_an_answer_of_something_in_between_is_an_error_too() -> None:
    with pytest.raises(ServerError, match="<h1>bad gateway"):
        await client(Scripted([Response(502, b"<h1>bad gateway</h1>")])).get(ConfigMap, "web", "shop")


async def test_an_answer_that_is_no_such_object_is_an_error() -> None:
    with pytest.raises(NotUnderstood, match="no ConfigMap"):
        await client(Scripted([answer(200, {"data": 5})])).get(ConfigMap, "web", "shop")


async def test_invalid_lists_its_causes() -> None:
    details = {"causes": [{"field": "spec.replicas", "message": "must be positive", "reason": "FieldValueInvalid"}]}
    body = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "no", "details": details}
    with pytest.raises(Invalid) as caught:
        await client(Scripted([answer(422, body)])).get(ConfigMap, "web", "shop")
    assert caught.value.causes[0].field == "spec.replicas"


READ, WRITE = "read", "write"


@pytest.mark.parametrize(
    ("verb", "failure", "sent"),
    [
        (READ, DOWN, 2),
        (READ, RESET, 2),
        (READ, refused(500, "InternalError"), 2),
        (READ, refused(503, "ServiceUnavailable"), 2),
        (READ, refused(429, "TooManyRequests", retry_after="0"), 2),
        (READ, refused(404, "NotFound"), 1),
        (READ, refused(409, "Conflict"), 1),
        (WRITE, DOWN, 2),
        (WRITE, RESET, 1),
        (WRITE, refused(500, "InternalError"), 1),
        (WRITE, refused(503, "ServiceUnavailable", retry_after="0"), 2),
        (WRITE, refused(429, "TooManyRequests"), 2),
        (WRITE, refused(409, "Conflict"), 1),
    ],
)
async def test_only_what_cannot_be_done_twice_is_sent_again(verb: str, failure: Answer, sent: int) -> None:
    transport = Scripted([failure, FOUND])
    call = client(transport).get(ConfigMap, "web", "shop")
    if verb == WRITE:
        call.close()
        call = client(transport).patch(ConfigMap, "web", MergePatch({}), "shop")
    if sent == 1:
        with pytest.raises(KubeError):
            await call
    else:
        await call
    assert len(transport.asked) == sent


async def test_a_request_is_not_sent_again_for_ever() -> None:
    transport = Scripted([DOWN])
    with pytest.raises(Unreachable, match="connection refused") as caught:
        await client(transport).get(ConfigMap, "web", "shop")
    assert len(transport.asked) == 5
    assert not caught.value.maybe_done


async def test_a_write_without_an_answer_says_that_it_may_have_been_done() -> None:
    with pytest.raises(Unreachable) as caught:
        await client(Scripted([RESET])).create(ConfigMap, {"metadata": {"name": "a"}}, "shop")
    assert caught.value.maybe_done


async def test_a_watch_brings_changes_marks_and_what_cannot_be_read() -> None:
    lines = [
        line("ADDED", config_map("a", 5)),
        line("MODIFIED", {"metadata": {"name": "b"}, "data": {"a": 7}}),
        bookmark(9, end=True),
        line("DELETED", config_map("a", 11)),
    ]
    transport = Scripted(streams=[ScriptedStream(200, lines)])
    async with client(transport).watch(ConfigMap, resource_version="4") as events:
        seen = [event async for event in events]
    first, second, third, last = seen
    assert isinstance(first, Event)
    assert isinstance(first.object, ConfigMap)
    assert isinstance(second, Event)
    assert isinstance(second.object, Unreadable)
    assert third == Bookmark("9", initial_events_end=True)
    assert isinstance(last, Event)
    assert last.type == "DELETED"
    assert ("allowWatchBookmarks", "true") in transport.streamed[0].query


async def test_an_error_in_a_watch_is_raised() -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    transport = Scripted(streams=[ScriptedStream(200, [line("ADDED", config_map("a", 5)), line("ERROR", gone)])])
    with pytest.raises(Gone, match="too old resource version"):
        async with client(transport).watch(ConfigMap) as events:
            async for _ in events:
                pass


async def test_a_watch_that_is_refused_raises_before_it_opens() -> None:
    body = msgspec.json.encode({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})
    with pytest.raises(Forbidden):
        async with client(Scripted(streams=[ScriptedStream(403, [], body)])).watch(ConfigMap):
            pytest.fail("a refused watch does not open")


async def test_a_watch_that_breaks_says_so() -> None:
    transport = Scripted(streams=[ScriptedStream(200, [line("ADDED", config_map("a", 5)), RESET])])
    with pytest.raises(Unreachable, match="connection reset"):
        async with client(transport).watch(ConfigMap) as events:
            async for _ in events:
                pass


async def test_answers_are_counted() -> None:
    counted: list[tuple[str, int]] = []
    transport = Scripted([DOWN, refused(503, "x"), FOUND])
    counting = Client(
        transport,
        retry=Retry(wait=BackoffSteps(0.001, 0.01)),
        on_answer=lambda method, code: counted.append((method, code)),
    )
    await counting.get(ConfigMap, "web", "shop")
    assert counted == [("GET", 0), ("GET", 503), ("GET", 200)]


async def test_each_warning_of_the_server_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    transport = Scripted([answer(200, config_map("a", 1), warning='299 - "v1beta1 is old"')])
    asking = client(transport)
    await asking.get(ConfigMap, "a", "shop")
    await asking.get(ConfigMap, "a", "shop")
    assert [record.getMessage() for record in caplog.records] == ["the API server warns: v1beta1 is old"]


async def test_a_cancelled_request_is_cancelled() -> None:
    transport = Scripted([DOWN])
    slow = Client(transport, retry=Retry(wait=BackoffSteps(60.0, 60.0)))
    asking = asyncio.create_task(slow.get(ConfigMap, "web", "shop"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
