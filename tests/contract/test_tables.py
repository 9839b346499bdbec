"""Tables: what `kubectl get` shows of the built-in kinds."""

from typing import Any

import msgspec
import pytest

from contract.backend import CONFIG_MAPS, Api
from contract.crds import TABLE
from kedge.kube.transport import Request


async def table(api: Api, path: str, **query: str) -> dict[str, Any]:
    answer = await api.ask("GET", path, accept=TABLE, **query)
    assert (answer.code, answer.body["kind"]) == (200, "Table"), answer
    found: dict[str, Any] = answer.body
    return found


def columns(found: dict[str, Any], *, wide: bool) -> list[str]:
    return [one["name"] for one in found["columnDefinitions"] if wide or not one["priority"]]


async def test_a_list_is_a_table_with_a_row_for_each(api: Api) -> None:
    await api.make("a", {"k": "v", "l": "w"})
    await api.make("b")
    found = await table(api, api.maps)
    assert columns(found, wide=False) == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in found["rows"]] == [["a", 2], ["b", 1]]


async def test_one_object_is_a_table_of_one_row(api: Api) -> None:
    made = await api.make("a")
    found = await table(api, f"{api.maps}/a")
    assert [row["cells"][0] for row in found["rows"]] == ["a"]
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_some_columns_are_only_for_those_who_want_it_wide(api: Api) -> None:
    found = await table(api, api.deployments)
    shown = ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert columns(found, wide=False) == shown
    assert columns(found, wide=True) == [*shown, "Containers", "Images", "Selector"]


async def test_a_workload_shows_how_far_it_is_and_what_it_runs(api: Api) -> None:
    await api.make_deployment("web")
    (row,) = (await table(api, api.deployments))["rows"]
    assert row["cells"][:4] == ["web", "0/2", 0, 0]
    assert row["cells"][5:] == ["web", "web:1", "app=web"]


async def test_a_name_is_a_name_and_a_count_a_number(api: Api) -> None:
    daemon_sets = f"/apis/apps/v1/namespaces/{api.namespace}/daemonsets"
    found = {one["name"]: one for one in (await table(api, daemon_sets))["columnDefinitions"]}
    assert (found["Name"]["type"], found["Name"]["format"]) == ("string", "name")
    assert found["Available"]["type"] == "integer"


async def test_a_row_carries_the_metadata_of_its_object(api: Api) -> None:
    await api.make("a", labels={"app": "web"})
    (row,) = (await table(api, api.maps))["rows"]
    assert (row["object"]["kind"], row["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert row["object"]["metadata"]["labels"] == {"app": "web"}
    assert "data" not in row["object"]


@pytest.mark.parametrize(("beside", "kind"), [("Object", "ConfigMap"), ("None", None)])
async def test_a_row_carries_what_was_asked_for(api: Api, beside: str, kind: str | None) -> None:
    await api.make("a")
    (row,) = (await table(api, api.maps, includeObject=beside))["rows"]
    assert (row["object"] or {}).get("kind") == kind


async def test_a_table_comes_in_pages_and_is_selected_as_a_list_is(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.make(name, labels={"is": name})
    found = await table(api, api.maps, limit="2")
    assert [row["cells"][0] for row in found["rows"]] == ["a", "b"]
    assert found["metadata"]["remainingItemCount"] == 1
    found = await table(api, api.maps, labelSelector="is=c")
    assert [row["cells"][0] for row in found["rows"]] == ["c"]


async def test_a_watch_of_tables_says_what_the_columns_are_once(api: Api) -> None:
    await api.make("a")
    await api.make("b")
    query = (("watch", "true"), ("timeoutSeconds", "1"))
    request = Request("GET", CONFIG_MAPS.resource.path(api.namespace), query, accept=TABLE)
    async with api.client.transport.stream(request, timeout=120.0, silence=120.0) as stream:
        told = [msgspec.json.decode(line)["object"] async for line in stream.lines()]
    assert [row["cells"][0] for one in told for row in one["rows"]] == ["a", "b"]
    assert [bool(one["columnDefinitions"]) for one in told] == [True, False]
