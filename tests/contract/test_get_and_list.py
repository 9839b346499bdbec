"""Get and list: what is there, which part of it, and as of when."""

from typing import Any, TypeAlias

import msgspec
import pytest

from contract.backend import CONFIG_MAPS, NAMESPACES, Api, rv

Raw: TypeAlias = dict[str, Any]

ONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MANY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


async def make_some(api: Api) -> None:
    await api.make("a", labels={"app": "web", "tier": "front", "n": "1"})
    await api.make("b", labels={"app": "web", "tier": "back", "n": "5"})
    await api.make("c", labels={"app": "db", "old": ""})
    await api.make("d")


async def test_an_object_that_is_not_there_is_not_found(api: Api) -> None:
    answer = await api.ask("GET", f"{api.deployments}/web")
    assert answer.refusal == (404, "NotFound", 'deployments.apps "web" not found')
    assert answer.body["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


async def test_get_takes_any_version_that_was(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("GET", f"{api.maps}/a", resourceVersion=made["metadata"]["resourceVersion"])
    assert answer.body == made


async def test_get_can_give_metadata_alone(api: Api) -> None:
    made = await api.make("a", labels={"app": "web"})
    answer = await api.ask("GET", f"{api.maps}/a", accept=ONE)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert answer.metadata == made["metadata"]
    assert "data" not in answer.body


async def test_a_list_says_what_it_is_and_is_sorted_by_name(api: Api) -> None:
    for name in ("b", "a.b", "a-b", "c", "a"):
        await api.make(name)
    answer = await api.ask("GET", api.maps)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert answer.names == ["a", "a-b", "a.b", "b", "c"]


async def test_an_empty_list_has_items_and_a_version(api: Api) -> None:
    answer = await api.ask("GET", api.maps)
    assert answer.body["items"] == []
    assert int(answer.metadata["resourceVersion"]) > 0


async def test_a_list_is_not_older_than_the_last_write(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("GET", api.maps)
    assert rv(answer.body) >= rv(made)
    assert answer.names == ["a"]


async def test_a_list_can_give_metadata_alone(api: Api) -> None:
    await make_some(api)
    answer = await api.ask("GET", api.maps, accept=MANY)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert answer.names == ["a", "b", "c", "d"]
    assert not any("data" in item for item in answer.body["items"])


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=web", "a b"),
        ("app==web", "a b"),
        ("app!=web", "c d"),
        ("app", "a b c"),
        ("!app", "d"),
        ("app in (web,db)", "a b c"),
        ("app in (web)", "a b"),
        ("app notin (web)", "c d"),
        ("app notin (web,db)", "d"),
        ("app=web,tier=front", "a"),
        ("app in (web, db),!old", "a b"),
        ("tier in (front,),app", "a"),
        ("old=", "c"),
        ("app=", ""),
        ("n>1", "b"),
        ("n<5", "a"),
        (" app = web , tier = back ", "b"),
        ("app=web,app=db", ""),
    ],
)
async def test_a_label_selector_selects(api: Api, selector: str, found: str) -> None:
    await make_some(api)
    assert (await api.ask("GET", api.maps, labelSelector=selector)).names == found.split()


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name!=a", "b c d"),
        ("metadata.name=nobody", ""),
        ("metadata.name!=a,metadata.name!=b", "c d"),
        ("metadata.namespace=elsewhere", ""),
    ],
)
async def test_a_field_selector_selects(api: Api, selector: str, found: str) -> None:
    await make_some(api)
    assert (await api.ask("GET", api.maps, fieldSelector=selector)).names == found.split()


async def test_both_selectors_must_hold(api: Api) -> None:
    await make_some(api)
    answer = await api.ask("GET", api.maps, labelSelector="app=web", fieldSelector="metadata.name!=a")
    assert answer.names == ["b"]


async def test_a_page_says_how_many_remain_and_how_to_go_on(api: Api) -> None:
    await make_some(api)
    first = await api.ask("GET", api.maps, limit="3")
    assert first.names == ["a", "b", "c"]
    assert first.metadata["remainingItemCount"] == 1
    second = await api.ask("GET", api.maps, limit="3", **{"continue": first.metadata["continue"]})
    assert second.names == ["d"]
    assert "continue" not in second.metadata
    assert "remainingItemCount" not in second.metadata


async def test_what_remains_is_counted_in_the_namespace_alone(api: Api) -> None:
    await make_some(api)
    behind = f"{api.namespace}z"
    await api.ask("POST", NAMESPACES.resource.path(), {"metadata": {"name": behind}})
    assert (await api.ask("POST", CONFIG_MAPS.resource.path(behind), {"metadata": {"name": "z"}})).code == 201
    assert (await api.ask("GET", api.maps, limit="3")).metadata["remainingItemCount"] == 1


async def test_from_whatever_is_at_hand_there_are_no_pages(api: Api) -> None:
    await make_some(api)
    query = {"resourceVersion": await api.version(), "resourceVersionMatch": "NotOlderThan"}
    assert (await api.ask("GET", api.maps, **query)).names == ["a", "b", "c", "d"]  # so that it is at hand
    answer = await api.ask("GET", api.maps, limit="3", resourceVersion="0")
    assert answer.names == ["a", "b", "c", "d"]
    assert "continue" not in answer.metadata


@pytest.mark.parametrize("name", ["", "/a"])
async def test_a_version_yet_to_come_is_waited_for_in_vain(api: Api, name: str) -> None:
    await make_some(api)
    answer = await api.ask("GET", f"{api.maps}{name}", resourceVersion="999999999")
    assert answer.refusal[:2] == (504, "Timeout")
    assert answer.refusal[2].startswith("Timeout: Too large resource version: 999999999, current: ")


async def test_all_pages_are_as_of_the_first(api: Api) -> None:
    await make_some(api)
    first = await api.ask("GET", api.maps, limit="2")
    await api.make("e")
    await api.ask("DELETE", f"{api.maps}/c")
    second = await api.ask("GET", api.maps, limit="9", **{"continue": first.metadata["continue"]})
    assert second.names == ["c", "d"]
    assert rv(second.body) == rv(first.body)


async def test_a_page_of_exactly_everything_is_the_last(api: Api) -> None:
    await make_some(api)
    assert "continue" not in (await api.ask("GET", api.maps, limit="4")).metadata


async def test_pages_of_a_selection_do_not_say_how_many_remain(api: Api) -> None:
    await make_some(api)
    answer = await api.ask("GET", api.maps, limit="1", labelSelector="app=web")
    assert answer.names == ["a"]
    assert answer.metadata["continue"]
    assert "remainingItemCount" not in answer.metadata


async def test_the_client_reads_pages_to_the_end(api: Api) -> None:
    await make_some(api)
    pages = [page async for page in api.client.pages(CONFIG_MAPS, api.namespace, page_size=3)]
    assert [[item["metadata"]["name"] for item in page.items] for page in pages] == [["a", "b", "c"], ["d"]]
    assert len({page.resource_version for page in pages}) == 1


async def test_an_exact_version_shows_what_was(api: Api) -> None:
    await api.make("a")
    then = await api.version()
    await api.make("b")
    answer = await api.ask("GET", api.maps, resourceVersion=then, resourceVersionMatch="Exact", limit="9")
    assert answer.names == ["a"]
    assert answer.metadata["resourceVersion"] == then


async def test_a_version_with_a_page_size_is_exact(api: Api) -> None:
    await api.make("a")
    then = await api.version()
    await api.make("b")
    assert (await api.ask("GET", api.maps, resourceVersion=then, limit="9")).names == ["a"]


async def test_not_older_than_a_version_has_all_that_was_there_then(api: Api) -> None:
    await api.make("a")
    query = {"resourceVersion": await api.version(), "resourceVersionMatch": "NotOlderThan"}
    assert (await api.ask("GET", api.maps, **query)).names == ["a"]


async def test_a_version_with_a_continue_token_is_refused(api: Api) -> None:
    await make_some(api)
    first = await api.ask("GET", api.maps, limit="2")
    query = {"continue": first.metadata["continue"], "resourceVersion": await api.version()}
    why = "specifying resource version is not allowed when using continue"
    assert (await api.ask("GET", api.maps, **query)).refusal == (400, "BadRequest", why)


async def test_a_continue_token_that_is_nonsense_is_refused(api: Api) -> None:
    answer = await api.ask("GET", api.maps, limit="2", **{"continue": "nonsense"})
    assert answer.refusal[:2] == (400, "BadRequest")
    assert "continue key is not valid" in answer.refusal[2]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            {"resourceVersionMatch": "Exact"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            {"resourceVersionMatch": "Nearly", "resourceVersion": "1"},
            'resourceVersionMatch: Unsupported value: "Nearly": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {"sendInitialEvents": "true"},
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
    ],
)
async def test_a_list_refuses_options_that_contradict_each_other(api: Api, query: dict[str, str], why: str) -> None:
    answer = await api.ask("GET", api.maps, **query)
    assert answer.refusal == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {why}')


async def test_a_list_across_namespaces_is_sorted_by_namespace_slash_name(api: Api) -> None:
    other = await api.make_namespace()
    mine = {"run": api.namespace}
    await api.make("b", labels=mine)
    await api.ask("POST", CONFIG_MAPS.resource.path(other), {"metadata": {"name": "a", "labels": mine}})
    answer = await api.ask("GET", "/api/v1/configmaps", labelSelector=f"run={api.namespace}")
    places = [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in answer.body["items"]]
    assert places == [f"{other}/a", f"{api.namespace}/b"]  # "-" comes before "/"


POD: Raw = {"spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "c:1"}]}}
EVENT: Raw = {"involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "x", "resourceVersion": "7"}}
SERVICE: Raw = {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}


@pytest.mark.parametrize(
    ("plural", "content", "selector", "found"),
    [
        ("events", {**EVENT, "source": {"component": "me"}}, "source=me", "a"),
        ("events", {**EVENT, "source": {"component": "me"}}, "source=you", ""),
        ("events", {**EVENT, "reportingComponent": "me"}, "source=me,reportingComponent=me", "a"),
        ("events", {**EVENT, "source": {"component": "me"}, "reportingComponent": "you"}, "source=you", ""),
        ("events", EVENT, "involvedObject.resourceVersion=7", "a"),
        ("events", EVENT, "source=", "a"),
        ("services", SERVICE, "spec.clusterIP=None,spec.type=ClusterIP", "a"),
        ("services", SERVICE, "spec.type=NodePort", ""),
        ("pods", POD, "spec.hostNetwork=true", "a"),
        ("pods", {"spec": {**POD["spec"], "hostNetwork": False}}, "spec.hostNetwork=false", "a"),
        ("pods", POD, "spec.hostNetwork!=true", ""),
    ],
)
async def test_kinds_have_fields_of_their_own_to_select_by(
    api: Api, plural: str, content: Raw, selector: str, found: str
) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/{plural}"
    if plural == "pods":
        await api.ask("POST", f"/api/v1/namespaces/{api.namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    body = msgspec.json.decode(msgspec.json.encode(content).replace(b"{ns}", api.namespace.encode()))
    assert (await api.ask("POST", path, {"metadata": {"name": "a"}, **body})).code == 201
    assert (await api.ask("GET", path, fieldSelector=selector)).names == found.split()


async def test_a_controllers_replicas_can_be_selected_by_and_a_replica_sets_cannot(api: Api) -> None:
    query = {"fieldSelector": "status.replicas=1"}
    old, new = "/api/v1", "/apis/apps/v1"
    assert (await api.ask("GET", f"{old}/namespaces/{api.namespace}/replicationcontrollers", **query)).names == []
    assert (await api.ask("GET", f"{new}/namespaces/{api.namespace}/replicasets", **query)).code == 400
