"""OpenAPI documents, as built: shared, addressed by their content, and of custom kinds too."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.custom.served_versions import served_kinds
from kedge.embedded.kind import Registry
from kedge.embedded.openapi_documents import OpenApiDocuments

SPEC = {"type": "object", "properties": {"teeth": {"type": "integer"}}}
SHAPE = {"type": "object", "properties": {"spec": SPEC}}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SHAPE}}
NAMES = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
CRD: dict[str, Any] = {
    "metadata": {"name": "gears.x.example.com"},
    "spec": {"group": "x.example.com", "scope": "Namespaced", "names": NAMES, "versions": [VERSION]},
}
GEAR = served_kinds(CRD)[0]
APPS = "/openapi/v3/apis/apps/v1"


def urls(documents: OpenApiDocuments) -> dict[str, str]:
    response = documents.response("/openapi/v3", {})
    assert response is not None
    return {path: entry["serverRelativeURL"] for path, entry in msgspec.json.decode(response.body)["paths"].items()}


def test_an_address_has_the_content_it_names() -> None:
    documents = OpenApiDocuments(BUILT_IN)
    for url in urls(documents).values():
        path, _, query = url.partition("?")
        response = documents.response(path, dict(parse_qsl(query)))
        assert response is not None
        assert response.status == 200
        assert response.headers["etag"].strip('"') in url
        assert "immutable" in response.headers["cache-control"]


def test_an_address_with_another_content_leads_to_the_right_one() -> None:
    response = OpenApiDocuments(BUILT_IN).response(APPS, {"hash": "ABC"})
    assert response is not None
    assert response.status == 301
    assert response.headers["location"] == urls(OpenApiDocuments(BUILT_IN))["apis/apps/v1"]


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        (APPS, "application/json", 200),
        (APPS, "application/json, */*", 200),
        (APPS, "application/json;q=0.9", 200),
        (APPS, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", 406),
        ("/openapi/v3/apis/nobody/v1", "application/json", 404),
        ("/openapi/v3/", "application/json", 404),
    ],
)
def test_a_document_is_asked_for(path: str, accept: str, status: int) -> None:
    response = OpenApiDocuments(BUILT_IN).response(path, {}, accept)
    assert response is not None
    assert response.status == status


@pytest.mark.parametrize(
    ("accept", "begins"),
    [("application/json", b"{"), ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", b"\x0a\x032.0")],
)
def test_the_older_form_says_nothing_in_two_ways(accept: str, begins: bytes) -> None:
    response = OpenApiDocuments(BUILT_IN).response("/openapi/v2", {}, accept)
    assert response is not None
    assert (response.status, response.body[: len(begins)]) == (200, begins)


def test_other_paths_are_not_ours() -> None:
    assert OpenApiDocuments(BUILT_IN).response("/openapi", {}) is None
    assert OpenApiDocuments(BUILT_IN).response("/apis", {}) is None


def test_servers_of_the_same_kinds_share_their_documents() -> None:
    one, other = (
        OpenApiDocuments(Registry(BUILT_IN).kinds()).response(APPS, {}),
        OpenApiDocuments(Registry(BUILT_IN).kinds()).response(APPS, {}),
    )
    assert one is not None
    assert other is not None
    assert one.body is other.body


def test_a_document_does_not_say_what_only_we_say() -> None:
    response = OpenApiDocuments(BUILT_IN).response(APPS, {})
    assert response is not None
    assert b"x-go-" not in response.body


def test_a_custom_kind_has_a_document_of_its_own() -> None:
    response = OpenApiDocuments([*BUILT_IN, GEAR]).response("/openapi/v3/apis/x.example.com/v1", {})
    assert response is not None
    schemas = msgspec.json.decode(response.body)["components"]["schemas"]
    gear = schemas["com.example.x.v1.Gear"]
    assert gear["properties"]["spec"] == SPEC
    assert gear["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert "com.example.x.v1.GearList" in schemas


def test_a_new_kind_does_not_change_the_documents_of_others() -> None:
    before, after = urls(OpenApiDocuments(BUILT_IN)), urls(OpenApiDocuments([*BUILT_IN, GEAR]))
    assert after.keys() - before.keys() == {"apis/x.example.com/v1"}
    assert all(after[path] == url for path, url in before.items())
