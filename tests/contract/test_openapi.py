"""OpenAPI v3: what a client can learn about the kinds a server serves, before it sends anything."""

import asyncio
from typing import Any
from urllib.parse import parse_qsl

import pytest

from contract.backend import Answer, Api
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.kind import Kind
from kedge.kube.transport import Request

GROUPS = sorted({kind.resource.root.removeprefix("/") for kind in BUILT_IN})
DEPLOYMENT = {"group": "apps", "version": "v1", "kind": "Deployment"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def index(api: Api) -> dict[str, str]:
    """The address of each document."""
    answer = await api.ask("GET", "/openapi/v3")
    assert answer.code == 200
    return {path: entry["serverRelativeURL"] for path, entry in answer.body["paths"].items()}


async def follow(api: Api, url: str) -> Answer:
    path, _, query = url.partition("?")
    return await api.ask("GET", path, **dict(parse_qsl(query)))


async def document(api: Api, path: str) -> Any:
    answer = await api.ask("GET", f"/openapi/v3/{path}")
    assert answer.code == 200
    return answer.body


def schema_of(doc: Any, group: str, version: str, kind: str) -> Any:
    identity = {"group": group, "version": version, "kind": kind}
    found = [
        schema
        for schema in doc["components"]["schemas"].values()
        if schema.get("x-kubernetes-group-version-kind") == [identity]
    ]
    assert len(found) == 1
    return found[0]


def named(doc: Any, name: str) -> Any:
    return doc["components"]["schemas"][name]


async def test_the_index_names_every_group_and_version(api: Api) -> None:
    assert set(GROUPS) <= set(await index(api))


async def test_an_address_in_the_index_says_which_content_it_has(api: Api) -> None:
    for path, url in (await index(api)).items():
        assert url.startswith(f"/openapi/v3/{path}?hash=")


@pytest.mark.parametrize("path", GROUPS)
async def test_every_address_in_the_index_has_a_document(api: Api, path: str) -> None:
    answer = await follow(api, (await index(api))[path])
    assert answer.code == 200
    assert answer.body["openapi"] == "3.0.0"
    assert answer.body == await document(api, path)


async def test_an_address_of_content_that_is_no_longer_leads_to_what_is(api: Api) -> None:
    address = (await index(api))["apis/apps/v1"]
    request = Request("GET", "/openapi/v3/apis/apps/v1", (("hash", "0" * 128),))
    response = await api.client.transport.send(request, timeout=120.0)
    assert (response.status, response.headers.get("location")) == (301, address)


async def test_a_group_that_is_not_served_has_no_document(api: Api) -> None:
    assert (await api.ask("GET", "/openapi/v3/apis/nobody.kedge.test/v1")).code == 404


async def test_documents_are_json(api: Api) -> None:
    assert (await api.ask("GET", "/openapi/v3/apis/apps/v1", accept="text/html")).code == 406


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.resource.kind)
async def test_every_built_in_kind_is_described(api: Api, kind: Kind) -> None:
    resource = kind.resource
    doc = await document(api, resource.root.removeprefix("/"))
    schema = schema_of(doc, resource.group, resource.version, resource.kind)
    assert {"apiVersion", "kind", "metadata"} <= schema["properties"].keys()
    assert schema["type"] == "object"


async def test_every_reference_in_a_document_leads_somewhere(api: Api) -> None:
    doc = await document(api, "apis/apps/v1")
    assert _references(doc) <= {f"#/components/schemas/{name}" for name in doc["components"]["schemas"]}


def _references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_references, node))
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
    return own.union(*map(_references, node.values()))


async def test_lists_say_by_what_they_merge(api: Api) -> None:
    containers = named(await document(api, "apis/apps/v1"), "io.k8s.api.core.v1.PodSpec")["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


async def test_required_members_are_said_to_be(api: Api) -> None:
    spec = named(await document(api, "apis/apps/v1"), "io.k8s.api.apps.v1.DeploymentSpec")
    assert sorted(spec["required"]) == ["selector", "template"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/apis/apps/v1/deployments", {"get"}),
        ("/apis/apps/v1/namespaces/{namespace}/deployments", {"get", "post", "delete"}),
        ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}", {"get", "put", "patch", "delete"}),
        ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status", {"get", "put", "patch"}),
        ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", {"get", "put", "patch"}),
        ("/apis/apps/v1/namespaces/{namespace}/controllerrevisions/{name}", {"get", "put", "patch", "delete"}),
    ],
)
async def test_a_path_says_what_can_be_done_there(api: Api, path: str, methods: set[str]) -> None:
    item = (await document(api, "apis/apps/v1"))["paths"][path]
    assert item.keys() - {"parameters"} == methods


async def test_a_path_says_which_kind_is_there(api: Api) -> None:
    item = (await document(api, "apis/apps/v1"))["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    for method in ("get", "put", "patch", "delete"):
        assert item[method]["x-kubernetes-group-version-kind"] == DEPLOYMENT
        assert item[method]["x-kubernetes-action"] == method


@pytest.mark.parametrize("method", ["put", "patch"])
async def test_writes_say_that_they_validate_fields(api: Api, method: str) -> None:
    item = (await document(api, "apis/apps/v1"))["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert {"dryRun", "fieldManager", "fieldValidation"} <= {one["name"] for one in item[method]["parameters"]}


async def test_a_patch_says_which_patches_it_takes(api: Api) -> None:
    item = (await document(api, "apis/apps/v1"))["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert {
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    } <= item["patch"]["requestBody"]["content"].keys()


async def test_a_custom_kind_is_described_by_its_definition(api: Api) -> None:
    group = f"{api.namespace}.kedge.test"
    names = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    spec = {"type": "object", "required": ["teeth"], "properties": {"teeth": {"type": "integer", "minimum": 3}}}
    shape = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": shape}}
    crd = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    before = await index(api)
    made = await api.ask("POST", CRDS, {"metadata": {"name": f"gears.{group}"}, "spec": crd})
    assert made.code == 201, made
    path = f"apis/{group}/v1"
    async with asyncio.timeout(30):
        while path not in (found := await index(api)):
            await asyncio.sleep(0.05)
    assert path not in before
    doc = (await follow(api, found[path])).body
    schema = schema_of(doc, group, "v1", "Gear")
    assert schema["properties"]["spec"] == spec
    assert schema["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    item = doc["paths"][f"/apis/{group}/v1/namespaces/{{namespace}}/gears/{{name}}"]
    assert "fieldValidation" in {one["name"] for one in item["patch"]["parameters"]}
    assert "application/strategic-merge-patch+json" not in item["patch"]["requestBody"]["content"]
    assert (await follow(api, before["apis/apps/v1"])).code == 200
