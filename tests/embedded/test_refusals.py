"""Refusals: the code, reason, words and details of kube-apiserver (as v1.36 gives them) for what cannot be done."""

from typing import Any

import msgspec
import pytest

from embedded.world import World
from kedge.kube.transport import Request, Response

CM = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

NO_RESOURCE = "the server could not find the requested resource"
NO_METHOD = "the server does not allow this method on the requested resource"
NAMED: dict[str, Any] = {"metadata": {"name": "a"}}
WHO = (("fieldManager", "me"),)


def ask(method: str, path: str, body: object = b"", kind: str = "application/json", **query: str) -> Request:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Request(method, path, tuple(query.items()), raw, kind)


def refusal(request: Request) -> tuple[Response, Any]:
    """How a server with one ConfigMap, "a", answers."""
    world = World()
    assert world.server.handle(ask("POST", CM, NAMED)).status == 201
    response = world.server.handle(request)
    return response, msgspec.json.decode(response.body)


REFUSALS: list[tuple[Request, int, str, str, Any]] = [
    (ask("GET", "/api/v1/things"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", "/api/v9/configmaps"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", "/apis/apps/v1/things"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", "/api/v1/configmaps/a"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", "/api/v1/namespaces/default/nodes"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", f"{CM}/a/status"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", f"{CM}/a/b/c"), 404, "NotFound", NO_RESOURCE, {}),
    (ask("GET", f"{CM}/b"), 404, "NotFound", 'configmaps "b" not found', {"name": "b", "kind": "configmaps"}),
    (ask("PUT", f"{CM}/b", {"metadata": {"name": "b"}}), 404, "NotFound", 'configmaps "b" not found', ...),
    (ask("DELETE", f"{CM}/b"), 404, "NotFound", 'configmaps "b" not found', ...),
    (ask("PATCH", f"{CM}/b", {}, MERGE), 404, "NotFound", 'configmaps "b" not found', ...),
    (
        ask("GET", f"{DEPLOYMENTS}/b"),
        404,
        "NotFound",
        'deployments.apps "b" not found',
        {"name": "b", "group": "apps", "kind": "deployments"},
    ),
    (ask("POST", f"{CM}/a", NAMED), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("PUT", CM, NAMED), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("POST", "/api/v1/configmaps", NAMED), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("DELETE", "/api/v1/configmaps"), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("DELETE", "/api/v1/namespaces"), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("POST", "/version", {}), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("HEAD", f"{CM}/a"), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("DELETE", f"{DEPLOYMENTS}/a/status"), 405, "MethodNotAllowed", NO_METHOD, {}),
    (ask("PATCH", "/api/v1/namespaces/default/finalize", {}, MERGE), 405, "MethodNotAllowed", NO_METHOD, {}),
    (
        ask("POST", CM, NAMED),
        409,
        "AlreadyExists",
        'configmaps "a" already exists',
        {"name": "a", "kind": "configmaps"},
    ),
    (
        ask("POST", CM, {"metadata": {"name": "b", "namespace": "other"}}),
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        None,
    ),
    (
        ask("POST", CM, {"metadata": {"name": "b", "resourceVersion": "5"}}),
        500,
        "",
        "resourceVersion should not be set on objects to be created",
        None,
    ),
    (
        ask("PUT", f"{CM}/a", {"metadata": {"name": "b"}}),
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
        None,
    ),
    (
        ask("PUT", f"{CM}/a", {"metadata": {}}),
        400,
        "BadRequest",
        "the name of the object (a based on URL) was undeterminable: name must be provided",
        None,
    ),
    (
        ask("PATCH", f"{CM}/a", {"metadata": None}, MERGE),
        400,
        "BadRequest",
        "the name of the object (a based on URL) was undeterminable: name must be provided",
        None,
    ),
    (
        ask("PUT", f"{CM}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}),
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes '
            "to the latest version and try again"
        ),
        {"name": "a", "kind": "configmaps"},
    ),
    (
        ask("PATCH", f"{CM}/a", [{"op": "test", "path": "/metadata/uid", "value": "x"}], JSON_PATCH),
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        {},
    ),
    (
        ask("PATCH", "/apis/t.io/v1/namespaces/default/things/a", {"data": {}}, STRATEGIC),
        415,
        "UnsupportedMediaType",
        (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        ),
        None,
    ),
    (
        ask("POST", CM, NAMED, "text/plain"),
        415,
        "UnsupportedMediaType",
        (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        ),
        None,
    ),
    (
        ask("PATCH", f"{CM}/a", {"apiVersion": "v1", "kind": "ConfigMap", **NAMED}, APPLY),
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        {
            "group": "meta.k8s.io",
            "kind": "PatchOptions",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value: is required for apply patch",
                    "field": "fieldManager",
                }
            ],
        },
    ),
    (
        ask("POST", CM, NAMED, dryRun="Some"),
        422,
        "Invalid",
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
        ...,
    ),
    (
        ask("DELETE", f"{CM}/a", {"propagationPolicy": "Sometimes"}),
        422,
        "Invalid",
        (
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sometimes": supported '
            'values: "Foreground", "Background", "Orphan", "nil"'
        ),
        ...,
    ),
    (
        ask("DELETE", f"{CM}/a", propagationPolicy="Orphan", orphanDependents="true"),
        422,
        "Invalid",
        (
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and '
            "deletionPropagation cannot be both set"
        ),
        ...,
    ),
    (
        ask("GET", f"{CM}/a", resourceVersion="99999"),
        504,
        "Timeout",
        "Timeout: Too large resource version: 99999, current: 9",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    ),
    (
        ask("GET", CM, resourceVersionMatch="Exact"),
        422,
        "Invalid",
        (
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden '
            "unless resourceVersion is provided"
        ),
        ...,
    ),
    (
        ask("GET", CM, resourceVersion="1", resourceVersionMatch="Foo"),
        422,
        "Invalid",
        (
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Foo": supported values: '
            '"Exact", "NotOlderThan", ""'
        ),
        ...,
    ),
    (
        ask("GET", CM, resourceVersion="0", resourceVersionMatch="Exact"),
        422,
        "Invalid",
        (
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is '
            'forbidden for resourceVersion "0"'
        ),
        ...,
    ),
    (
        ask("GET", CM, sendInitialEvents="true"),
        422,
        "Invalid",
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
        ...,
    ),
]


@pytest.mark.parametrize(
    ("request_", "code", "reason", "message", "details"),
    REFUSALS,
    ids=[f"{case[0]} {case[1]}" for case in REFUSALS],
)
def test_a_refusal_says_why(request_: Request, code: int, reason: str, message: str, details: Any) -> None:
    response, status = refusal(request_)
    assert response.status == status["code"] == code
    assert response.headers["content-type"] == "application/json"
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status.get("reason", ""), status["message"]) == (reason, message)
    if details is not ...:
        assert status.get("details") == details


UNREADABLE = [
    ask("POST", CM, b"{nope"),
    ask("POST", CM, b""),
    ask("POST", CM, [1]),
    ask("POST", CM, b'"\xff"'),
    ask("POST", CM, b"[" * 5000),
    ask("POST", CM, {"metadata": 5}),
    ask("POST", CM, {"metadata": {"name": 5}}),
    ask("POST", CM, {"metadata": {"name": "b", "labels": {"a": 1}}}),
    ask("POST", CM, {"metadata": {"name": "b", "finalizers": "x"}}),
    ask("POST", CM, {"kind": "Secret", "metadata": {"name": "b"}}),
    ask("POST", CM, {"apiVersion": "apps/v1", "metadata": {"name": "b"}}),
    ask("POST", CM, {"apiVersion": 1, "metadata": {"name": "b"}}),
    ask("PUT", f"{CM}/a", b"nope"),
    ask("PATCH", f"{CM}/a", b"{x", MERGE),
    ask("PATCH", f"{CM}/a", [1], MERGE),
    ask("PATCH", f"{CM}/a", {"op": "add"}, JSON_PATCH),
    ask("PATCH", f"{CM}/a", [5], JSON_PATCH),
    Request("PATCH", f"{CM}/a", WHO, b"{x", APPLY),
    Request("PATCH", f"{CM}/a", WHO, msgspec.json.encode(NAMED), APPLY),
    ask("DELETE", f"{CM}/a", b"nope"),
    ask("DELETE", f"{CM}/a", {"preconditions": 5}),
    ask("DELETE", f"{CM}/a", gracePeriodSeconds="x"),
    ask("GET", CM, limit="x"),
    ask("GET", CM, labelSelector="a b"),
    ask("GET", CM, fieldSelector="spec.x=y"),
    ask("GET", CM, **{"continue": "abc"}),
    ask("GET", CM, **{"continue": "eyJydiI6MX0"}),
    ask("GET", CM, resourceVersion="abc"),
    ask("GET", CM, watch="true"),
]


@pytest.mark.parametrize("request_", UNREADABLE, ids=lambda request: f"{request} {request.body[:40]!r}")
def test_what_cannot_be_read_is_a_bad_request(request_: Request) -> None:
    response, status = refusal(request_)
    assert (response.status, status["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    "request_",
    [
        ask("GET", f"{CM}/a", resourceVersion="abc"),
        ask("PUT", f"{CM}/a", {"metadata": {"name": "a", "resourceVersion": "x"}}),
        ask("PUT", f"{CM}/a", {"metadata": {"name": "a", "resourceVersion": "-1"}}),
        ask("PUT", f"{CM}/a", {"metadata": {"name": "a", "resourceVersion": "²"}}),
    ],
    ids=str,
)
def test_a_version_that_is_no_number_is_an_error_as_in_kubernetes(request_: Request) -> None:
    response, _ = refusal(request_)
    assert response.status == 500


@pytest.mark.parametrize("change", [{"kind": "Secret"}, {"apiVersion": "v2"}, {"kind": None}])
def test_a_patch_cannot_turn_an_object_into_another_kind(change: dict[str, Any]) -> None:
    response, status = refusal(ask("PATCH", f"{CM}/a", change, MERGE))
    assert (response.status, status["details"]["causes"][0]["field"]) == (422, "patch")


def test_a_managed_apply_is_refused() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}
    _, status = refusal(Request("PATCH", f"{CM}/a", WHO, msgspec.json.encode(body), APPLY))
    assert (status["code"], status["message"]) == (400, "metadata.managedFields must be nil")


@pytest.mark.parametrize("path", ["/nowhere", "/apis/nope.io/v1/things", "/apis/nope.io", "/"])
def test_a_path_of_no_known_api_is_no_page(path: str) -> None:
    response = World().server.handle(Request("GET", path))
    assert (response.status, response.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_the_server_says_that_it_is_well(path: str) -> None:
    response = World().server.handle(Request("GET", path))
    assert (response.status, response.body) == (200, b"ok")


def test_the_server_says_its_version() -> None:
    response = World().server.handle(Request("GET", "/version"))
    version = msgspec.json.decode(response.body)
    assert (version["major"], version["minor"]) == ("1", "36")


def test_nothing_is_written_by_a_request_whose_answer_nobody_could_read() -> None:
    world = World()
    number = world.server.store.number
    body = msgspec.json.encode(NAMED)
    response = world.server.handle(Request("POST", CM, body=body, accept="text/html"))
    assert (response.status, world.server.store.number) == (406, number)
