"""Lists: of one moment, in pages, by selector."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.world import CONFIG_MAPS, PODS, World, meta, pod, virtually
from kedge.api.core import ConfigMap
from kedge.kube.codec import metadata_of
from kedge.kube.errors import Gone
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

CM = "/api/v1/namespaces/default/configmaps"
ALL = "/api/v1/configmaps"


def listed(world: World, path: str = CM, **query: str) -> Any:
    answer = world.ask("GET", path, query=query)
    assert answer.status == 200, answer.body
    return msgspec.json.decode(answer.body)


def names(page: Any) -> list[str]:
    return [meta(item)["name"] for item in page["items"]]


async def with_maps(*wanted: str, **options: Any) -> World:
    world = World(**options)
    for name in wanted:
        await world.config_map(name, labels={"letter": name[0]})
    return world


@virtually
async def test_a_list_says_what_it_is_and_of_when() -> None:
    world = await with_maps("a")
    page = listed(world)
    assert (page["kind"], page["apiVersion"]) == ("ConfigMapList", "v1")
    assert page["metadata"] == {"resourceVersion": str(world.server.store.number)}


@virtually
async def test_a_list_is_in_the_order_of_its_keys() -> None:
    world = World()
    for place in ("default", "kube-system", "kube-public"):
        for name in ("b", "a"):
            await world.client.create(ConfigMap, {"metadata": {"name": name}}, place)
    found = [(meta(one)["namespace"], meta(one)["name"]) for one in listed(world, ALL)["items"]]
    assert found == list(itertools.product(("default", "kube-public", "kube-system"), ("a", "b")))


@virtually
async def test_a_list_in_pages_is_the_whole_list() -> None:
    world = await with_maps("a", "b", "c", "d", "e")
    pages = [page async for page in world.client.pages(ConfigMap, "default", page_size=2)]
    assert [[one.metadata.name for one in page.items] for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
    assert len({page.resource_version for page in pages}) == 1


@virtually
async def test_a_page_says_how_many_are_left() -> None:
    world = await with_maps("a", "b", "c")
    assert listed(world, limit="1")["metadata"]["remainingItemCount"] == 2
    assert "remainingItemCount" not in listed(world, limit="1", labelSelector="letter")["metadata"]
    assert "continue" not in listed(world, limit="3")["metadata"]


@virtually
async def test_a_list_with_a_selector_counts_only_what_it_wants() -> None:
    world = await with_maps("a1", "b1", "a2", "b2", "a3")
    query = {"labelSelector": "letter=a", "limit": "2"}
    first = listed(world, **query)
    second = listed(world, **query, **{"continue": first["metadata"]["continue"]})
    assert (names(first), names(second)) == (["a1", "a2"], ["a3"])


@virtually
async def test_pages_do_not_see_what_is_written_between_them() -> None:
    world = await with_maps("b", "d", "f")
    first = listed(world, limit="1")
    for name in ("a", "c", "e"):
        await world.config_map(name)
    await world.client.delete(ConfigMap, "d", "default")
    await world.client.patch(ConfigMap, "f", MergePatch({"data": {"new": "yes"}}), "default")
    second = listed(world, **{"continue": first["metadata"]["continue"]})
    assert names(first) + names(second) == ["b", "d", "f"]
    assert "data" not in second["items"][1]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


@given(st.data())
def test_pages_show_one_moment_whatever_is_written_between_them(data: st.DataObject) -> None:
    write = st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcdefgh"))

    @virtually
    async def paging_among_writes() -> None:
        world = World()

        async def write_some() -> None:
            for verb, name in data.draw(st.lists(write, max_size=6)):
                if verb == "delete":
                    world.ask("DELETE", f"{CM}/{name}")
                else:
                    body = {"metadata": {"name": name, "namespace": "default"}, "data": {"at": verb}}
                    await world.client.apply(CONFIG_MAPS, body, manager="me")

        await write_some()
        expected = listed(world)["items"]
        limit = str(data.draw(st.integers(1, 4)))
        page = listed(world, limit=limit)
        items, left = page["items"], page["metadata"].get("remainingItemCount", 0)
        assert len(items) + left == len(expected)
        while more := page["metadata"].get("continue"):
            await write_some()
            page = listed(world, limit=limit, **{"continue": more})
            items += page["items"]
            assert len(items) + page["metadata"].get("remainingItemCount", 0) == len(expected)
        assert items == expected

    paging_among_writes()


@virtually
async def test_pages_of_a_forgotten_moment_are_gone_but_can_go_on_as_of_now() -> None:
    world = await with_maps("a", "b", "c", history=3)
    first = listed(world, limit="1")
    for name in ("d", "e", "f", "g"):
        await world.config_map(name)
    answer = world.ask("GET", CM, query={"limit": "1", "continue": first["metadata"]["continue"]})
    status = msgspec.json.decode(answer.body)
    assert (answer.status, status["reason"]) == (410, "Expired")
    assert status["message"].startswith("The provided continue parameter is too old to display a consistent list")
    rest = listed(world, **{"continue": status["metadata"]["continue"]})
    assert names(rest) == ["b", "c", "d", "e", "f", "g"]
    assert rest["metadata"]["resourceVersion"] == str(world.server.store.number)


@virtually
async def test_the_client_says_so_when_a_list_took_too_long() -> None:
    world = await with_maps("a", "b", history=1)
    pages = world.client.pages(ConfigMap, "default", page_size=1)
    await anext(pages)
    for name in ("c", "d"):
        await world.config_map(name)
    with pytest.raises(Gone):
        await anext(pages)


@virtually
async def test_a_list_can_be_of_a_version() -> None:
    world = await with_maps("a")
    then = str(world.server.store.number)
    await world.config_map("b")
    now = str(world.server.store.number)
    cases = [
        ({"resourceVersion": then, "resourceVersionMatch": "Exact"}, ["a"], then),
        ({"resourceVersion": then, "resourceVersionMatch": "NotOlderThan"}, ["a", "b"], now),
        ({"resourceVersion": then, "resourceVersionMatch": "NotOlderThan", "limit": "1"}, ["a"], now),
        ({"resourceVersion": then}, ["a", "b"], now),
        ({"resourceVersion": then, "limit": "5"}, ["a"], then),
        ({"resourceVersion": "0"}, ["a", "b"], now),
        ({"resourceVersion": "0", "limit": "1"}, ["a", "b"], now),
    ]
    for query, expected, version in cases:
        page = listed(world, **query)
        assert (names(page), page["metadata"]["resourceVersion"]) == (expected, version), query


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact"}, 410, "provided list is too old"),
        ({"resourceVersion": "1", "limit": "1"}, 410, "provided list is too old"),
        ({"resourceVersion": "99"}, 504, "Too large resource version: 99, current: "),
        ({"resourceVersion": "99", "resourceVersionMatch": "Exact"}, 504, "Too large resource version: 99"),
        ({"resourceVersion": "6", "continue": "x"}, 400, "specifying resource version is not allowed when using"),
        (
            {"resourceVersion": "6", "continue": "x", "resourceVersionMatch": "Exact"},
            422,
            "resourceVersionMatch is forbidden when continue is provided",
        ),
    ],
)
@virtually
async def test_a_version_that_cannot_be_listed_is_refused(query: dict[str, str], code: int, message: str) -> None:
    world = await with_maps("a", "b", "c", history=1)
    answer = world.ask("GET", CM, query=query)
    assert (answer.status, message in answer.body.decode()) == (code, True)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"labelSelector": "letter in (a,c)"}, ["a", "c"]),
        ({"labelSelector": "letter!=a"}, ["b", "c"]),
        ({"labelSelector": "!letter"}, []),
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"fieldSelector": "metadata.name!=b,metadata.namespace=default"}, ["a", "c"]),
        ({"fieldSelector": "metadata.namespace=other"}, []),
        ({"labelSelector": "letter=a", "fieldSelector": "metadata.name=b"}, []),
        ({"limit": "-1"}, ["a", "b", "c"]),
    ],
)
@virtually
async def test_selectors_choose(query: dict[str, str], expected: list[str]) -> None:
    world = await with_maps("a", "b", "c")
    assert names(listed(world, **query)) == expected
    assert names(listed(world, ALL, **query)) == expected


@virtually
async def test_pods_are_found_by_their_node() -> None:
    world = World()
    for name, spec in {"a": {"nodeName": "n1"}, "b": {"nodeName": "n2"}, "c": {}}.items():
        await world.client.create(PODS, pod(name, spec))
    on_n1 = await world.client.list(PODS, fields={"spec.nodeName": "n1"})
    nowhere = await world.client.list(PODS, fields="spec.nodeName=,status.phase!=Failed")
    assert [meta(one)["name"] for one in (*on_n1.items, *nowhere.items)] == ["a", "c"]


@virtually
async def test_metadata_can_be_had_alone() -> None:
    world = await with_maps("a", "b")
    await world.client.patch(ConfigMap, "a", MergePatch({"data": {"k": "v"}}), "default")
    form = metadata_of(ConfigMap.resource)
    one = await world.client.get(form, "a", "default")
    page = await world.client.list(form, "default", page_size=1)
    assert [item.metadata.name for item in page.items] == ["a", "b"]
    assert page.items[0] == one
    assert one.metadata.labels == {"letter": "a"}


def test_the_form_of_a_list_is_named_as_a_list() -> None:
    server = World().server
    accept = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"

    def answer(path: str, form: str) -> Any:
        response = server.handle(Request("GET", path, accept=form))
        return response.status, msgspec.json.decode(response.body)["kind"]

    assert answer("/api/v1/namespaces", accept.format("List")) == (200, "PartialObjectMetadataList")
    assert answer("/api/v1/namespaces/default", accept.format("")) == (200, "PartialObjectMetadata")
    assert answer("/api/v1/namespaces", accept.format("")) == (406, "Status")
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    assert answer("/api/v1/namespaces", table) == (200, "Table")
    assert answer("/api/v1/namespaces", table.replace("v1", "v1beta1")) == (406, "Status")
    assert answer("/api/v1/namespaces", table.replace("v1", "v1beta1") + ",application/json") == (200, "NamespaceList")
