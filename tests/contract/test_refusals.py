"""Refusals: the code, the reason and, where they are the server's own and not its parser's, the words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from contract.backend import JSON_PATCH, MERGE, NO_METHOD, NO_RESOURCE, Api

NAMED: dict[str, Any] = {"metadata": {"name": "a"}}
JSON = "application/json"
HERE = "/api/v1/namespaces/{ns}"
MAPS = f"{HERE}/configmaps"
APPS = "/apis/apps/v1/namespaces/{ns}/deployments"


class Row(Struct, frozen=True):
    """A request to a server with one ConfigMap, "a", and how it is refused; words that end in "..." only begin so."""

    what: str
    method: str
    path: str
    code: int
    reason: str
    message: str = "..."
    body: Any = b""
    kind: str = JSON
    query: dict[str, str] = {}


MEDIA = "the body of the request was in an unknown format - accepted media types include: ..."
OTHER_NAME = "the name of the object (b) does not match the name on the URL (a)"
ELSEWHERE = "the namespace of the provided object does not match the namespace sent on the request"
NAMELESS = "the name of the object (a based on URL) was undeterminable: name must be provided"
SELECTOR = "unable to parse requirement: ..."

ROWS = [
    Row("a resource that does not exist", "GET", "/api/v1/things", 404, "NotFound", NO_RESOURCE),
    Row("a resource that does not exist, in a namespace", "GET", f"{HERE}/things", 404, "NotFound", NO_RESOURCE),
    Row("a version that does not exist", "GET", "/apis/apps/v9/deployments", 404, "NotFound", NO_RESOURCE),
    Row("a subresource that does not exist", "GET", f"{MAPS}/a/things", 404, "NotFound", NO_RESOURCE),
    Row("a namespaced object without namespace", "GET", "/api/v1/configmaps/a", 404, "NotFound", NO_RESOURCE),
    Row("a cluster's object in a namespace", "GET", f"{HERE}/nodes", 404, "NotFound", NO_RESOURCE),
    Row("POST to an object", "POST", f"{MAPS}/a", 405, "MethodNotAllowed", NO_METHOD, NAMED),
    Row("PUT to a collection", "PUT", MAPS, 405, "MethodNotAllowed", NO_METHOD, NAMED),
    Row("PATCH to a collection", "PATCH", MAPS, 405, "MethodNotAllowed", NO_METHOD, NAMED, MERGE),
    Row("POST across namespaces", "POST", "/api/v1/configmaps", 405, "MethodNotAllowed", NO_METHOD, NAMED),
    Row("DELETE across namespaces", "DELETE", "/api/v1/configmaps", 405, "MethodNotAllowed", NO_METHOD),
    Row("a body that is no JSON", "POST", MAPS, 400, "BadRequest", body=b"{"),
    Row("a body that is no object", "POST", MAPS, 400, "BadRequest", body=b"[]"),
    Row("a PUT of no JSON", "PUT", f"{MAPS}/a", 400, "BadRequest", body=b"nonsense"),
    Row("another kind", "POST", MAPS, 400, "BadRequest", body={"kind": "Secret", "apiVersion": "v1", **NAMED}),
    Row("a group for none", "POST", MAPS, 400, "BadRequest", body={"kind": "ConfigMap", "apiVersion": "x/v1", **NAMED}),
    Row("labels of another shape", "POST", MAPS, 400, "BadRequest", body={"metadata": {"name": "b", "labels": ["a"]}}),
    Row(
        "a label that is a number",
        "POST",
        MAPS,
        400,
        "BadRequest",
        body={"metadata": {"name": "b", "labels": {"a": 1}}},
    ),
    Row("a name that is a number", "POST", MAPS, 400, "BadRequest", body={"metadata": {"name": 1}}),
    Row("another name", "PUT", f"{MAPS}/a", 400, "BadRequest", OTHER_NAME, {"metadata": {"name": "b"}}),
    Row("no name", "PUT", f"{MAPS}/a", 400, "BadRequest", NAMELESS, {"metadata": {}}),
    Row(
        "another namespace",
        "PUT",
        f"{MAPS}/a",
        400,
        "BadRequest",
        ELSEWHERE,
        {"metadata": {"name": "a", "namespace": "x"}},
    ),
    Row("a media type for none", "POST", MAPS, 415, "UnsupportedMediaType", MEDIA, NAMED, "text/plain"),
    Row("a PUT of text", "PUT", f"{MAPS}/a", 415, "UnsupportedMediaType", MEDIA, NAMED, "text/plain"),
    Row("a PATCH of plain JSON", "PATCH", f"{MAPS}/a", 415, "UnsupportedMediaType", body=NAMED, kind=JSON),
    Row(
        "a label selector without a value list",
        "GET",
        MAPS,
        400,
        "BadRequest",
        SELECTOR,
        query={"labelSelector": "a in"},
    ),
    Row("a label selector with a bad key", "GET", MAPS, 400, "BadRequest", SELECTOR, query={"labelSelector": "a b=c"}),
    Row("a label selector with a bad value", "GET", MAPS, 400, "BadRequest", SELECTOR, query={"labelSelector": "a=b$"}),
    Row("a label selector of commas", "GET", MAPS, 400, "BadRequest", query={"labelSelector": "a=b,,="}),
    Row("a label compared with a word", "GET", MAPS, 400, "BadRequest", query={"labelSelector": "a>b"}),
    Row(
        "a field selector without an operator", "GET", MAPS, 400, "BadRequest", query={"fieldSelector": "metadata.name"}
    ),
    Row("a field nobody selects by", "GET", MAPS, 400, "BadRequest", query={"fieldSelector": "data.k=v"}),
    Row(
        "a field of Deployments nobody selects by",
        "GET",
        APPS,
        400,
        "BadRequest",
        query={"fieldSelector": "spec.replicas=1"},
    ),
    Row("a limit that is no number", "GET", MAPS, 400, "BadRequest", query={"limit": "many"}),
    Row(
        "a list at no version",
        "GET",
        MAPS,
        400,
        "BadRequest",
        "invalid resource version: ...",
        query={"resourceVersion": "x"},
    ),
    Row(
        "a JSON patch with no such operation",
        "PATCH",
        f"{MAPS}/a",
        422,
        "Invalid",
        body=[{"op": "jump", "path": "/a"}],
        kind=JSON_PATCH,
    ),
    Row("delete options that are none", "DELETE", f"{MAPS}/a", 400, "BadRequest", body=b"{"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what.replace(" ", "-"))
async def test_refused(api: Api, row: Row) -> None:
    made = await api.make("a")
    answer = await api.ask(row.method, row.path.format(ns=api.namespace), row.body, row.kind, **row.query)
    code, reason, message = answer.refusal
    assert (code, reason) == (row.code, row.reason), message
    begins = row.message.removesuffix("...")
    assert message.startswith(begins) if begins != row.message else message == begins
    assert await api.look(f"{api.maps}/a") == made


async def test_a_group_that_does_not_exist_is_no_page(api: Api) -> None:
    answer = await api.ask("GET", "/apis/nobody.example.com/v1/things")
    assert (answer.code, answer.body) == (404, "404 page not found\n")


async def test_a_form_nobody_can_give_is_not_acceptable(api: Api) -> None:
    answer = await api.ask("GET", api.maps, accept="text/html")
    assert answer.refusal[:2] == (406, "NotAcceptable")


async def test_every_refusal_is_a_whole_status(api: Api) -> None:
    answer = await api.ask("GET", f"{api.leases}/lead")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'leases.coordination.k8s.io "lead" not found',
        "reason": "NotFound",
        "details": {"name": "lead", "group": "coordination.k8s.io", "kind": "leases"},
        "code": 404,
    }
