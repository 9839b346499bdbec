"""Protobuf: what is sent in it is taken as if it had been sent as JSON, and refused in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import Api, deployment, with_metadata
from embedded.protobuf.sending import NAMED, PROTOBUF, body, message

YAML = "application/yaml"
ACCEPTED = f"application/json, {YAML}, {PROTOBUF}"
UNKNOWN_FORMAT = f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NOT_HANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
NO_MESSAGE = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
CUT = body("v1", "ConfigMap", NAMED)[:-8]
HERE = "/api/v1/namespaces/{ns}"


def _deployment(name: str) -> bytes:
    """`contract.backend.deployment`, with the nothings that Go writes."""
    labels = message(_1=b"app", _2=b"web")
    container = message(_1=b"web", _2=b"web:1", _5=b"", _8=b"", _13=b"", _14=b"", _16=0, _17=0, _18=0, _20=b"")
    pod = message(_2=[container], _3=b"", _6=b"", _8=b"", _9=b"", _10=b"", _11=0, _12=0, _13=0, _16=b"", _19=b"")
    template = message(_1=message(_1=b"", _2=b"", _3=b"", _8=b"", _11=labels), _2=pod)
    spec = message(_1=2, _2=message(_1=labels), _3=template, _4=message(_1=b""), _5=0, _7=0)
    metadata = message(_1=name.encode(), _2=b"", _3=b"", _4=b"", _5=b"", _6=b"", _7=0, _8=b"")
    status = message(_1=0, _2=0, _3=0, _4=0, _5=0, _7=0)
    return body("apps/v1", "Deployment", message(_1=metadata, _2=spec, _3=status))


async def test_an_object_is_created_as_from_json(api: Api) -> None:
    sent = await api.ask("POST", api.deployments, _deployment("a"), PROTOBUF, fieldValidation="Strict")
    told = await api.ask("POST", api.deployments, deployment("b"))
    assert (sent.code, told.code) == (201, 201)
    assert _alike(sent.body) == _alike(told.body)


def _alike(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without what is its own."""
    own = dict.fromkeys(("name", "uid", "resourceVersion", "creationTimestamp", "managedFields"))
    fields = [(entry["operation"], entry["fieldsV1"]) for entry in obj["metadata"]["managedFields"]]
    return {**with_metadata(obj, **own), "fields": fields}


async def test_an_object_may_leave_out_what_it_is(api: Api) -> None:
    made = await api.ask("POST", api.maps, body("", "", NAMED), PROTOBUF)
    assert (made.code, made.metadata["name"]) == (201, "abc")


async def test_an_object_is_replaced(api: Api) -> None:
    await api.make("abc")
    data = message(_2=message(_1=b"x", _2="ä".encode()), _3=message(_1=b"y", _2=b"\xff"))
    answer = await api.ask("PUT", f"{api.maps}/abc", body("v1", "ConfigMap", NAMED + data), PROTOBUF)
    assert (answer.code, answer.body["data"], answer.body["binaryData"]) == (200, {"x": "ä"}, {"y": "/w=="})


async def test_bytes_that_are_no_text_become_marks(api: Api) -> None:
    data = message(_2=message(_1=b"k", _2=b"a\xff\xfeb\xe2"))
    answer = await api.ask("POST", api.maps, body("v1", "ConfigMap", NAMED + data), PROTOBUF)
    mark = "\N{REPLACEMENT CHARACTER}"
    assert (answer.code, answer.body["data"]) == (201, {"k": f"a{mark}{mark}b{mark}"})


async def test_a_scale_is_replaced(api: Api) -> None:
    await api.make_deployment("abc")
    scale = body("autoscaling/v1", "Scale", NAMED + message(_2=message(_1=5)))
    answer = await api.ask("PUT", f"{api.deployments}/abc/scale", scale, PROTOBUF)
    assert (answer.code, answer.body["spec"]) == (200, {"replicas": 5})


async def test_delete_options_are_read(api: Api) -> None:
    await api.make("abc")
    path = f"{api.maps}/abc"
    other = body("v1", "DeleteOptions", message(_2=message(_1=b"another")))
    assert (await api.ask("DELETE", path, other, PROTOBUF)).code == 409
    tried = body("apps/v1", "DeleteOptions", message(_5=[b"All"]))
    assert (await api.ask("DELETE", path, tried, PROTOBUF)).code == 200
    assert await api.is_there(path)
    assert (await api.ask("DELETE", path, b"kind: DeleteOptions\napiVersion: v1\n", YAML)).code == 200
    assert not await api.is_there(path)


async def test_a_question_is_answered(api: Api) -> None:
    attributes = message(_1=b"", _2=b"get", _3=b"", _4=b"", _5=b"pods", _6=b"", _7=b"")
    asked = body("authorization.k8s.io/v1", "SelfSubjectAccessReview", message(_1=b"", _2=message(_1=attributes)))
    answer = await api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked, PROTOBUF)
    assert (answer.code, answer.body["status"]["allowed"]) == (201, True)
    assert answer.body["spec"] == {"resourceAttributes": {"resource": "pods", "verb": "get"}}


async def test_yaml_is_taken_too(api: Api) -> None:
    made = await api.ask("POST", api.maps, b"metadata:\n  name: a\ndata:\n  k: v\n", YAML)
    assert (made.code, made.body["data"]) == (201, {"k": "v"})


REFUSED = [
    ("JSON", b"hello", f"{UNRECOGNIZED}{NO_MESSAGE} (68656c6c6f)"),
    ("a cut envelope", CUT, f"{UNRECOGNIZED}unexpected EOF ({CUT.hex()})"),
    (
        "a long cut envelope",
        b"k8s\0\x0a\x7f" + b"a" * 50,
        f"{UNRECOGNIZED}unexpected EOF (6b3873000a7f{'61' * 24} ...)",
    ),
    ("a cut object", body("v1", "ConfigMap", NAMED[:-1]), f"{NOT_HANDLED}unexpected EOF"),
    ("a number without end", body("v1", "ConfigMap", b"\xff" * 20), f"{NOT_HANDLED}proto: integer overflow"),
    ("no field", body("v1", "ConfigMap", b"\x02\x00"), f"{NOT_HANDLED}proto: ConfigMap: illegal tag 0 (wire type 2)"),
]


@pytest.mark.parametrize(("sent", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_what_cannot_be_read_is_refused(api: Api, sent: bytes, why: str) -> None:
    assert (await api.ask("POST", api.maps, sent, PROTOBUF)).refusal == (400, "BadRequest", why)


async def test_another_kind_is_refused(api: Api) -> None:
    for kind in ("Secret", "Widget"):
        code, reason, why = (await api.ask("POST", api.maps, body("v1", kind, NAMED), PROTOBUF)).refusal
        assert (code, reason) == (400, "BadRequest")
        assert why.startswith(f'{kind} in version "v1" cannot be handled as a ConfigMap: ')


async def test_an_amount_that_is_none_is_refused(api: Api) -> None:
    hard = message(_1=message(_1=b"cpu", _2=message(_1=b"lots")))
    sent = body("v1", "ResourceQuota", NAMED + message(_2=hard))
    answer = await api.ask("POST", f"/api/v1/namespaces/{api.namespace}/resourcequotas", sent, PROTOBUF)
    assert answer.refusal == (
        400,
        "BadRequest",
        f'ResourceQuota in version "v1" cannot be handled as a ResourceQuota: {NO_QUANTITY}',
    )


async def test_options_that_are_none_are_refused(api: Api) -> None:
    await api.make("abc")
    path = f"{api.maps}/abc"
    assert (await api.ask("DELETE", path, b"{}", PROTOBUF)).refusal == (400, "BadRequest", NO_MESSAGE)
    other = (await api.ask("DELETE", path, body("v1", "ConfigMap", NAMED), PROTOBUF)).refusal
    assert other[:2] == (400, "BadRequest")
    assert other[2].startswith('no kind "ConfigMap" is registered for version "v1"')
    assert await api.is_there(path)


WRITES = [
    ("POST", f"{HERE}/configmaps"),
    ("PUT", f"{HERE}/configmaps/a"),
    ("DELETE", f"{HERE}/configmaps/a"),
    ("POST", f"{HERE}/pods/a/eviction"),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
]


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_a_body_of_another_type_is_refused_with_the_types_there_are(api: Api, method: str, path: str) -> None:
    answer = await api.ask(method, path.format(ns=api.namespace), b"{}", "text/plain")
    assert answer.refusal == (415, "UnsupportedMediaType", UNKNOWN_FORMAT)
