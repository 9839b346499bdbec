"""Field validation: what a kind does not know is dropped, and by `fieldValidation` told of, refused or passed over."""

import asyncio
from typing import Any

import msgspec
import pytest

from contract.backend import JSON_PATCH, MERGE, Answer, Api
from embedded.schema.sending import MISFITS, ROUND_TRIPS, UNREADABLE, at, deployment, odd
from kedge.kube.transport import JSON, Request

STRATEGIC = "application/strategic-merge-patch+json"
NOT_HANDLED = 'Deployment in version "v1" cannot be handled as a Deployment: '
STRICT = {"fieldValidation": "Strict"}
DRY = {"dryRun": "All"}
C = "spec.template.spec.containers.0"


async def told(
    api: Api, method: str, path: str, body: Any, kind: str = JSON, **query: str
) -> tuple[Answer, tuple[str, ...]]:
    """An answer and its warnings."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    request = Request(method, path, tuple(query.items()), raw, kind, JSON)
    response = await api.client.transport.send(request, timeout=120.0)
    return Answer(response.status, msgspec.json.decode(response.body)), response.warnings


def twice(obj: Any, *pairs: tuple[str, str]) -> bytes:
    """An object as text in which some text was replaced, so that it says things twice."""
    text = msgspec.json.encode(obj).decode()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text.encode()


MANY = odd("bar", 1, odd("spec.foo", 1, odd(f"{C}.baz", {}, odd("metadata.zed", 1))))
MANY_STRAYS = ["metadata.zed", "spec.template.spec.containers[0].baz", "spec.foo", "bar"]
TWICE = twice(
    deployment(),
    ('"replicas":2', '"replicas":2,"replicas":3,"replicas":4'),
    ('"name":"web","image"', '"name":"a","name":"web","image"'),
    ('{"app":"web"}', '{"app":"x","app":"web"}'),
)
TWICE_STRAYS = [
    "spec.replicas",
    "spec.selector.matchLabels.app",
    "spec.template.metadata.labels.app",
    "spec.template.spec.containers[0].name",
]


@pytest.mark.parametrize(("path", "value", "words"), MISFITS)
async def test_a_value_of_the_wrong_type_is_a_bad_request(api: Api, path: str, value: Any, words: str) -> None:
    answer = await api.ask("POST", api.deployments, odd(path, value), **DRY)
    assert answer.refusal == (400, "BadRequest", f"{NOT_HANDLED}json: cannot unmarshal {words}")


@pytest.mark.parametrize(("path", "value", "words"), UNREADABLE)
async def test_a_text_that_cannot_be_read_is_a_bad_request(api: Api, path: str, value: Any, words: str) -> None:
    answer = await api.ask("POST", api.deployments, odd(path, value), **DRY)
    assert answer.refusal == (400, "BadRequest", f"{NOT_HANDLED}{words}")


@pytest.mark.parametrize(("path", "value", "look", "then"), ROUND_TRIPS)
async def test_a_value_is_kept_in_its_canonical_form(api: Api, path: str, value: Any, look: str, then: Any) -> None:
    answer = await api.ask("POST", api.deployments, odd(path, value), **DRY)
    assert answer.code == 201, answer
    assert at(answer.body, look) == then


@pytest.mark.parametrize("asked", [{}, {"fieldValidation": ""}, {"fieldValidation": "Warn"}])
async def test_unknown_fields_are_dropped_and_told_of(api: Api, asked: dict[str, str]) -> None:
    answer, warnings = await told(api, "POST", api.deployments, MANY, **asked)
    assert answer.code == 201
    assert list(warnings) == [f'unknown field "{path}"' for path in MANY_STRAYS]
    assert "foo" not in answer.body["spec"]
    assert "bar" not in answer.body


async def test_unknown_fields_are_refused_if_asked(api: Api) -> None:
    answer, warnings = await told(api, "POST", api.deployments, MANY, **STRICT)
    strays = ", ".join(f'unknown field "{path}"' for path in MANY_STRAYS)
    assert answer.refusal == (400, "BadRequest", f"{NOT_HANDLED}strict decoding error: {strays}")
    assert warnings == ()


async def test_unknown_fields_are_passed_over_if_asked(api: Api) -> None:
    answer, warnings = await told(api, "POST", api.deployments, MANY, fieldValidation="Ignore")
    assert (answer.code, warnings) == (201, ())
    assert "foo" not in answer.body["spec"]


async def test_no_more_than_a_hundred_are_told_of(api: Api) -> None:
    spec = {**deployment()["spec"], **{f"u{index}": 1 for index in range(120)}}
    answer = await api.ask("POST", api.deployments, odd("spec", spec), **STRICT)
    assert answer.refusal[2].count("unknown field") == 100


async def test_duplicate_fields_are_told_of_and_the_last_one_counts(api: Api) -> None:
    answer, warnings = await told(api, "POST", api.deployments, TWICE)
    assert list(warnings) == [f'duplicate field "{path}"' for path in TWICE_STRAYS]
    assert answer.body["spec"]["replicas"] == 4


async def test_duplicate_fields_are_refused_if_asked(api: Api) -> None:
    answer, _ = await told(api, "POST", api.deployments, TWICE, **STRICT)
    strays = ", ".join(f'duplicate field "{path}"' for path in TWICE_STRAYS)
    assert answer.refusal == (400, "BadRequest", f"{NOT_HANDLED}strict decoding error: {strays}")


async def test_what_is_twice_inside_something_unknown_is_only_unknown(api: Api) -> None:
    body = twice(deployment(), ('"replicas":2', '"replicas":2,"foo":{"a":1,"a":2},"foo":3'))
    answer, _ = await told(api, "POST", api.deployments, body, **STRICT)
    assert answer.refusal[2] == f'{NOT_HANDLED}strict decoding error: unknown field "spec.foo"'


async def test_a_quote_in_a_name_is_escaped(api: Api) -> None:
    answer, warnings = await told(api, "POST", api.deployments, odd('spec.foo"x', 1))
    assert answer.code == 201
    assert warnings == ('unknown field "spec.foo\\"x"',)


async def test_a_wrong_type_counts_before_an_unknown_field(api: Api) -> None:
    answer = await api.ask("POST", api.deployments, odd("spec.foo", 1, odd("spec.replicas", "x")), **STRICT)
    assert answer.refusal[2] == f"{NOT_HANDLED}json: cannot unmarshal {MISFITS[0][2]}"


async def test_a_put_is_read_as_strictly(api: Api) -> None:
    made = await api.make_deployment()
    answer = await api.ask("PUT", f"{api.deployments}/web", odd("spec.foo", 1, made), **STRICT)
    assert answer.refusal[2] == f'{NOT_HANDLED}strict decoding error: unknown field "spec.foo"'


async def test_a_put_to_status_is_read_as_strictly(api: Api) -> None:
    made = await api.make_deployment()
    answer = await api.ask("PUT", f"{api.deployments}/web/status", odd("spec.foo", 1, made), **STRICT)
    assert answer.refusal[2] == f'{NOT_HANDLED}strict decoding error: unknown field "spec.foo"'


PATCHES = [
    (MERGE, {"spec": {"foo": 1}, "bar": 1}, ['unknown field "bar"', 'unknown field "spec.foo"']),
    (JSON_PATCH, [{"op": "add", "path": "/spec/foo", "value": 1}], ['unknown field "spec.foo"']),
    (STRATEGIC, {"spec": {"foo": 1}}, ['unknown field "spec.foo"']),
    (MERGE, b'{"spec":{"replicas":3,"replicas":4}}', ['duplicate field "spec.replicas"']),
    (STRATEGIC, b'{"spec":{"replicas":3,"replicas":4}}', ['duplicate field "spec.replicas"']),
    (
        JSON_PATCH,
        b'[{"op":"add","path":"/spec/paused","value":true,"op":"add"}]',
        ['json patch duplicate field "[0].op"'],
    ),
]


@pytest.mark.parametrize(("kind", "patch", "strays"), PATCHES)
async def test_a_patch_is_told_of_what_it_leaves_out(api: Api, kind: str, patch: Any, strays: list[str]) -> None:
    await api.make_deployment()
    answer, warnings = await told(api, "PATCH", f"{api.deployments}/web", patch, kind)
    assert answer.code == 200
    assert list(warnings) == strays


@pytest.mark.parametrize(("kind", "patch", "strays"), PATCHES)
async def test_a_strict_patch_is_invalid_if_it_leaves_something_out(
    api: Api, kind: str, patch: Any, strays: list[str]
) -> None:
    await api.make_deployment()
    answer, _ = await told(api, "PATCH", f"{api.deployments}/web", patch, kind, **STRICT)
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.refusal[2].startswith(' "" is invalid: patch: Invalid value: "')
    assert answer.refusal[2].endswith(f'": strict decoding error: {", ".join(strays)}')
    assert answer.fields == [("FieldValueInvalid", "patch")]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [(MERGE, {"spec": {"replicas": "x"}}), (JSON_PATCH, [{"op": "add", "path": "/spec/replicas", "value": "x"}])],
)
async def test_a_patch_to_the_wrong_type_is_invalid(api: Api, kind: str, patch: Any) -> None:
    await api.make_deployment()
    answer = await api.ask("PATCH", f"{api.deployments}/web", patch, kind)
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.refusal[2].endswith(f'": json: cannot unmarshal {MISFITS[0][2]}')


@pytest.mark.parametrize(
    ("method", "kind", "options"), [("POST", JSON, "CreateOptions"), ("PATCH", MERGE, "PatchOptions")]
)
async def test_another_field_validation_is_invalid(api: Api, method: str, kind: str, options: str) -> None:
    await api.make_deployment()
    path = api.deployments if method == "POST" else f"{api.deployments}/web"
    answer = await api.ask(method, path, {}, kind, fieldValidation="Foo")
    why = 'Unsupported value: "Foo": supported values: "", "Ignore", "Strict", "Warn"'
    assert answer.refusal == (422, "Invalid", f'{options}.meta.k8s.io "" is invalid: fieldValidation: {why}')


# Custom kinds

_ANY = {"x-kubernetes-preserve-unknown-fields": True}
_THING = {"type": "object", "properties": {"k": {"type": "string"}}}
_SPEC = {
    "size": {"type": "integer"},
    "free": {"type": "object", **_ANY, "properties": {"inner": _THING}},
    "tags": {"type": "array", "items": _THING},
    "map": {"type": "object", "additionalProperties": _THING},
    "bare": {"type": "object"},
    "whole": {"type": "object", "x-kubernetes-embedded-resource": True, **_ANY},
}
STRAYED = {
    "size": 1,
    "foo": 1,
    "free": {"z": 1, "inner": {"k": "x", "b": 1}},
    "tags": [{"k": "a", "z": 1}, {"y": 1}],
    "map": {"m": {"k": "x", "u": 1}},
    "bare": {"q": 1},
    "whole": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "zed": 1}, "spec": {"a": 1}},
}
PRUNED = {
    "size": 1,
    "free": {"z": 1, "inner": {"k": "x"}},
    "tags": [{"k": "a"}, {}],
    "map": {"m": {"k": "x"}},
    "bare": {},
    "whole": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}},
}
CUSTOM_STRAYS = [
    "metadata.zed",
    "bar",
    "spec.bare.q",
    "spec.foo",
    "spec.free.inner.b",
    "spec.map.m.u",
    "spec.tags[0].z",
    "spec.tags[1].y",
    "spec.whole.metadata.zed",
]


async def widgets(api: Api) -> str:
    """The path of a custom kind of one's own."""
    group = f"{api.namespace}.kedge.test"
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    shape = {"type": "object", "properties": {"spec": {"type": "object", "properties": _SPEC}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": shape}}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = await api.ask("POST", crds, {"metadata": {"name": f"widgets.{group}"}, "spec": spec})
    assert made.code == 201, made
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/widgets"
    async with asyncio.timeout(30):
        while (await api.ask("POST", path, widget(path), **DRY)).code != 201:
            await asyncio.sleep(0.05)
    return path


def widget(path: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    api_version = path.removeprefix("/apis/").partition("/namespaces")[0]
    return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "w", **metadata}, "spec": spec or {}}


async def test_a_custom_object_is_pruned_and_its_strays_told_of(api: Api) -> None:
    path = await widgets(api)
    sent = {**widget(path, STRAYED, zed=1), "bar": 1}
    answer, warnings = await told(api, "POST", path, sent)
    assert answer.body["spec"] == PRUNED
    assert list(warnings) == [f'unknown field "{stray}"' for stray in CUSTOM_STRAYS]

    strict, _ = await told(api, "POST", path, sent, **STRICT)
    strays = ", ".join(f'unknown field "{stray}"' for stray in CUSTOM_STRAYS)
    not_handled = 'Widget in version "v1" cannot be handled as a Widget: strict decoding error'
    assert strict.refusal == (400, "BadRequest", f"{not_handled}: {strays}")

    body = twice(widget(path, {"size": 1, "foo": 1}), ('"size":1', '"size":1,"size":2'))
    _, warnings = await told(api, "POST", path, body, **DRY)
    assert warnings == ('duplicate field "spec.size"', 'unknown field "spec.foo"')

    ignored, warnings = await told(api, "POST", path, sent, fieldValidation="Ignore", **DRY)
    assert (ignored.body["reason"], warnings) == ("AlreadyExists", ())

    answer, warnings = await told(api, "PATCH", f"{path}/w", {"spec": {"foo": 1, "size": 2}}, MERGE)
    assert (answer.body["spec"]["size"], warnings) == (2, ('unknown field "spec.foo"',))

    types = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    known = f"the body of the request was in an unknown format - accepted media types include: {types}"
    strategic = await api.ask("PATCH", f"{path}/w", {"spec": {"size": 3}}, STRATEGIC)
    assert strategic.refusal == (415, "UnsupportedMediaType", known)


async def test_metadata_of_a_custom_object_has_types(api: Api) -> None:
    path = await widgets(api)
    start = 'Widget in version "v1" cannot be handled as a Widget: '
    rows: list[tuple[dict[str, Any], str]] = [
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        ({"name": 1}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        (
            {"finalizers": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
        ),
    ]
    for metadata, words in rows:
        answer = await api.ask("POST", path, widget(path, **metadata))
        assert answer.refusal == (400, "BadRequest", start + words)
    inside = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}
    answer = await api.ask("POST", path, widget(path, {"whole": inside}))
    where = 'spec.whole.metadata: Invalid value: {"labels":{"a":1}}: '
    assert answer.refusal == (400, "BadRequest", start + where + rows[0][1])
    answer = await api.ask("POST", path, widget(path, {"size": 1.0}))
    assert answer.body["spec"] == {"size": 1}
