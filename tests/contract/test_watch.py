"""Watch: every change, once, in order, to those who asked for it."""

import msgspec
import pytest

from contract.backend import CONFIG_MAPS, END, HELD, LEASES, Api, rv, take
from contract.crds import own
from kedge.api.resource import Resource
from kedge.kube.codec import Bookmark, Event, metadata_of, untyped
from kedge.kube.errors import Gone, Status
from kedge.kube.transport import Request

MATCH = "resourceVersionMatch"


async def test_a_watch_tells_what_happened_since_a_version_in_order(api: Api) -> None:
    await api.make("before")
    since = await api.version()
    await api.make("a")
    await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})
    await api.make("b")
    await api.ask("DELETE", f"{api.maps}/a")
    async with api.events(resource_version=since) as events:
        told = await take(events, 4)
    assert told == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_versions_of_events_rise(api: Api) -> None:
    since = await api.version()
    await api.make("a")
    await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})
    await api.ask("DELETE", f"{api.maps}/a")
    async with api.events(resource_version=since) as events:
        versions = [rv((await anext(events)).object) for _ in range(3)]
    assert int(since) < versions[0] < versions[1] < versions[2]


async def test_an_event_carries_the_object_as_the_write_left_it(api: Api) -> None:
    since = await api.version()
    made = await api.make("a")
    changed = (await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})).body
    async with api.events(resource_version=since) as events:
        assert [(await anext(events)).object, (await anext(events)).object] == [made, changed]


async def test_a_deleted_object_comes_as_it_was_with_the_version_of_its_deletion(api: Api) -> None:
    made = await api.make("a")
    await api.ask("DELETE", f"{api.maps}/a")
    async with api.events(resource_version=made["metadata"]["resourceVersion"]) as events:
        told = await anext(events)
    assert told.type == "DELETED"
    assert told.object["data"] == {"k": "v"}
    assert rv(made) < rv(told.object) <= int(await api.version())


@pytest.mark.parametrize("version", [None, "0"])
async def test_a_watch_from_no_version_begins_with_what_is_there(api: Api, version: str | None) -> None:
    await api.make("a")
    async with api.events(resource_version=version) as events:
        assert await take(events, 1) == [("ADDED", "a")]
        await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})
        assert await take(events, 1) == [("MODIFIED", "a")]


async def test_initial_events_end_with_a_mark_and_changes_follow(api: Api) -> None:
    await api.make("a")
    await api.make("b")
    async with api.events(initial_events=True) as events:
        assert sorted(await take(events, 2)) == [("ADDED", "a"), ("ADDED", "b")]
        assert await take(events, 1) == [END]
        await api.make("c")
        assert await take(events, 1) == [("ADDED", "c")]


async def test_the_mark_after_initial_events_is_not_older_than_what_was_there(api: Api) -> None:
    made = await api.make("a")
    async with api.events(initial_events=True) as events:
        await anext(events)
        mark = await anext(events)
    assert rv(mark.object) >= rv(made)


async def test_initial_events_of_nothing_are_the_mark_alone(api: Api) -> None:
    async with api.events(initial_events=True) as events:
        assert await take(events, 1) == [END]


async def test_initial_events_are_only_those_selected(api: Api) -> None:
    await api.make("a", labels={"app": "web"})
    await api.make("b")
    async with api.events(initial_events=True, labels="app in (web)") as events:
        assert await take(events, 2) == [("ADDED", "a"), END]


async def test_leaving_a_selection_is_a_deletion_of_what_it_was(api: Api) -> None:
    since = (await api.make("a", labels={"app": "web"}))["metadata"]["resourceVersion"]
    changed = await api.merge(f"{api.maps}/a", {"metadata": {"labels": {"app": "db"}}, "data": {"k": "w"}})
    async with api.events(resource_version=since, labels={"app": "web"}) as events:
        told = await anext(events)
    assert told.short == ("DELETED", "a")
    assert told.object["metadata"]["labels"] == {"app": "web"}
    assert told.object["data"] == {"k": "v"}
    assert rv(told.object) == rv(changed.body)


async def test_entering_a_selection_is_an_addition(api: Api) -> None:
    since = (await api.make("a"))["metadata"]["resourceVersion"]
    changed = await api.merge(f"{api.maps}/a", {"metadata": {"labels": {"app": "web"}}})
    async with api.events(resource_version=since, labels={"app": "web"}) as events:
        told = await anext(events)
    assert told.short == ("ADDED", "a")
    assert told.object == changed.body


async def test_what_stays_in_a_selection_is_modified_and_what_stays_out_is_silent(api: Api) -> None:
    since = await api.version()
    await api.make("in", labels={"app": "web"})
    await api.make("out")
    await api.merge(f"{api.maps}/out", {"data": {"k": "w"}})
    await api.merge(f"{api.maps}/in", {"data": {"k": "w"}})
    await api.ask("DELETE", f"{api.maps}/out")
    await api.ask("DELETE", f"{api.maps}/in")
    async with api.events(resource_version=since, labels="app") as events:
        assert await take(events, 3) == [("ADDED", "in"), ("MODIFIED", "in"), ("DELETED", "in")]


async def test_a_watch_can_be_of_one_object(api: Api) -> None:
    since = await api.version()
    await api.make("a")
    await api.make("b")
    async with api.events(resource_version=since, fields={"metadata.name": "b"}) as events:
        assert await take(events, 1) == [("ADDED", "b")]


async def test_a_watch_of_a_namespace_tells_of_no_other(api: Api) -> None:
    other = await api.make_namespace()
    since = await api.version()
    await api.ask("POST", CONFIG_MAPS.resource.path(other), {"metadata": {"name": "there"}})
    await api.make("here")
    async with api.events(resource_version=since) as events:
        assert await take(events, 1) == [("ADDED", "here")]


async def test_a_watch_across_namespaces_tells_of_all(api: Api) -> None:
    other = await api.make_namespace()
    since = await api.version()
    mine = {"run": api.namespace}
    await api.ask("POST", CONFIG_MAPS.resource.path(other), {"metadata": {"name": "there", "labels": mine}})
    await api.make("here", labels=mine)
    async with api.events(None, resource_version=since, labels=mine) as events:
        assert await take(events, 2) == [("ADDED", "there"), ("ADDED", "here")]


async def test_a_watch_of_metadata_gives_no_more_than_that(api: Api) -> None:
    since = await api.version()
    made = await api.make("a", labels={"app": "web"})
    form = metadata_of(CONFIG_MAPS.resource)
    async with api.client.watch(form, api.namespace, resource_version=since) as events:
        told = await anext(events)
    assert isinstance(told, Event)
    assert told.type == "ADDED"
    assert told.object.metadata.uid == made["metadata"]["uid"]
    assert told.object.metadata.labels == {"app": "web"}


async def test_a_write_that_changes_nothing_tells_nothing(api: Api) -> None:
    since = (await api.make("a"))["metadata"]["resourceVersion"]
    await api.merge(f"{api.maps}/a", {"data": {"k": "v"}})
    await api.make("next")
    async with api.events(resource_version=since) as events:
        assert await take(events, 1) == [("ADDED", "next")]


async def test_a_held_object_is_modified_when_deleted_and_deleted_when_let_go(api: Api) -> None:
    since = (await api.make("a", finalizers=HELD))["metadata"]["resourceVersion"]
    await api.ask("DELETE", f"{api.maps}/a")
    await api.merge(f"{api.maps}/a", {"metadata": {"finalizers": None}})
    async with api.events(resource_version=since) as events:
        marked, gone = await anext(events), await anext(events)
    assert (marked.short, gone.short) == (("MODIFIED", "a"), ("DELETED", "a"))
    assert marked.object["metadata"]["deletionTimestamp"]
    assert rv(gone.object) > rv(marked.object)


async def test_deleting_a_collection_tells_of_each(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.make(name)
    since = await api.version()
    await api.ask("DELETE", api.maps)
    async with api.events(resource_version=since) as events:
        assert sorted(await take(events, 3)) == [("DELETED", "a"), ("DELETED", "b"), ("DELETED", "c")]


async def test_kinds_do_not_hear_of_each_other(api: Api) -> None:
    since = await api.version()
    await api.make("a")
    await api.make_lease("lead")
    async with api.client.watch(LEASES, api.namespace, resource_version=since) as events:
        told = await anext(events)
    assert isinstance(told, Event)
    assert isinstance(told.object, dict)
    assert told.object["metadata"]["name"] == "lead"


async def test_a_watch_ends_in_good_order_when_its_time_is_over(api: Api) -> None:
    await api.make("a")
    async with api.events(seconds=1) as events:
        assert [event.short async for event in events] == [("ADDED", "a")]


async def test_a_bookmark_says_how_far_the_server_has_got_and_a_watch_resumes_from_there(api: Api) -> None:
    since, other = await api.version(), await api.make_namespace()
    async with api.client.watch(CONFIG_MAPS, api.namespace, resource_version=since, seconds=4) as events:
        await api.ask("POST", CONFIG_MAPS.resource.path(other), {"metadata": {"name": "elsewhere"}})
        mark = await anext(events)  # it comes shortly before the end
    assert isinstance(mark, Bookmark)
    assert not mark.initial_events_end
    assert int(mark.resource_version) > int(since)
    await api.make("a")
    async with api.events(resource_version=mark.resource_version) as told:
        assert await take(told, 1) == [("ADDED", "a")]


async def test_a_watch_from_what_is_long_forgotten_is_gone(api: Api) -> None:
    async with own(api) as kind:
        await kind.make("x")
        for size in range(1001):
            await api.merge(kind.path("x"), {"spec": {"size": size}})
        widgets = untyped(Resource(kind.group, "v1", "Widget", "widgets"))
        with pytest.raises(Gone):
            async with api.client.watch(widgets, api.namespace, resource_version="1") as events:
                await anext(events)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            {"sendInitialEvents": "true"},
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
            f"{MATCH}: Forbidden: {MATCH} is forbidden for watch unless sendInitialEvents is provided",
        ),
    ],
)
async def test_a_watch_refuses_options_that_contradict_each_other(api: Api, query: dict[str, str], why: str) -> None:
    request = Request("GET", api.maps, (("watch", "true"), *query.items()))
    async with api.client.transport.stream(request, timeout=120.0, silence=120.0) as stream:
        assert stream.status == 422
        status = msgspec.json.decode(await stream.read(), type=Status)
    assert (status.reason, status.message) == ("Invalid", f'ListOptions.meta.k8s.io "" is invalid: {why}')
