"""Reading protobuf: JSON forms, what Go leaves out and writes, and what is no message."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.protobuf.sending import NAMED, body, decode_object, message
from kedge.embedded.protobuf.messages import read_message
from kedge.embedded.protobuf.object_decoding import Malformed, decode_content, open_envelope

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
TIME, MICRO_TIME = f"{META}.ObjectMeta", "io.k8s.api.coordination.v1.LeaseSpec"
SERVICE_PORT = "io.k8s.api.core.v1.ServicePort"
DEPLOYMENT_SPEC = "io.k8s.api.apps.v1.DeploymentSpec"
SECURITY = "io.k8s.api.core.v1.PodSecurityContext"
CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
SCHEMA = f"{CRD}.JSONSchemaProps"
MINUS_ONE = 2**64 - 1


def test_an_object_says_what_it_is() -> None:
    assert decode_object(body("v1", "ConfigMap", NAMED)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "abc"},
    }


def test_an_envelope_may_leave_out_what_is_in_it() -> None:
    envelope = open_envelope(body("", "", NAMED)).or_else("v1", "Secret")
    assert decode_content(envelope) == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "abc"}}


def test_delete_options_are_of_every_group() -> None:
    assert decode_object(body("apps/v1", "DeleteOptions", message(_1=0, _4=b"Orphan"))) == {
        "apiVersion": "apps/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
    }


FORMS: list[tuple[str, bytes, Any]] = [
    (TIME, message(_8=b""), {}),
    (TIME, message(_8=message(_1=0, _2=0)), {"creationTimestamp": "1970-01-01T00:00:00Z"}),
    (TIME, message(_8=message(_1=1893456000, _2=5)), {"creationTimestamp": "2030-01-01T00:00:00Z"}),
    (TIME, message(_8=message(_1=MINUS_ONE)), {"creationTimestamp": "1969-12-31T23:59:59Z"}),
    (TIME, message(_8=message(_1=2**64 - 62135596800)), {}),  # the beginning of the year 1
    (MICRO_TIME, message(_4=message(_1=1, _2=2999)), {"renewTime": "1970-01-01T00:00:01.000002Z"}),
    (SERVICE_PORT, message(_4=message(_1=0, _2=MINUS_ONE, _3=b"")), {"targetPort": -1}),
    (SERVICE_PORT, message(_4=message(_1=1, _2=0, _3=b"http")), {"targetPort": "http"}),
    (SERVICE_PORT, message(_4=b""), {"targetPort": 0}),
    (SERVICE_PORT, message(_3=2**32 + 80), {"port": 80}),  # what is beyond four bytes is dropped
    ("io.k8s.api.apps.v1.ControllerRevision", message(_2=message(_1=b'{"a":[1]}')), {"data": {"a": [1]}}),
    ("io.k8s.api.apps.v1.ControllerRevision", message(_2=b""), {}),
    (f"{META}.ManagedFieldsEntry", message(_7=message(_1=b'{"f:a":{}}')), {"fieldsV1": {"f:a": {}}}),
    ("io.k8s.api.core.v1.Secret", message(_2=message(_1=b"k", _2=b"\xff")), {"data": {"k": "/w=="}}),
    ("io.k8s.api.core.v1.Secret", message(_2=message(_1=b"k")), {"data": {"k": ""}}),
    (
        "io.k8s.api.core.v1.ResourceQuotaSpec",
        message(_1=message(_1=b"a", _2=message(_1=b"1Gi"))),
        {"hard": {"a": "1Gi"}},
    ),
    ("io.k8s.api.core.v1.ResourceQuotaSpec", message(_1=message(_1=b"a")), {"hard": {"a": "0"}}),
    (
        "io.k8s.api.core.v1.ConfigMap",
        message(_2=message(_1=b"k", _2=b"a\xffb")),
        {"data": {"k": "a\N{REPLACEMENT CHARACTER}b"}},
    ),
    (SECURITY, message(_4=[]) + b"\x20\x01\x20\x02", {"supplementalGroups": [1, 2]}),
    (SECURITY, message(_4=b"\x01\x02"), {"supplementalGroups": [1, 2]}),  # packed
    (SCHEMA, b"\x49" + bytes.fromhex("000000000000f83f"), {"maximum": 1.5}),
    (SCHEMA, message(_8=message(_1=b'"x"')), {"default": "x"}),
    (SCHEMA, message(_3=b"#/a"), {"$ref": "#/a"}),
    (SCHEMA, message(_30=message(_1=0)), {"additionalProperties": False}),
    (SCHEMA, message(_30=message(_1=1)), {"additionalProperties": True}),
    (SCHEMA, message(_30=message(_1=1, _2=message(_5=b"string"))), {"additionalProperties": {"type": "string"}}),
    (SCHEMA, message(_24=message(_1=message(_5=b"string"))), {"items": {"type": "string"}}),
    (SCHEMA, message(_24=message(_1=message(_1=b"", _10=0, _3=b""))), {"items": {"$ref": ""}}),
    (SCHEMA, message(_24=message(_2=[message(_5=b"string")])), {"items": [{"type": "string"}]}),
    (SCHEMA, message(_32=message(_1=b"a", _2=message(_2=[b"b", b"c"]))), {"dependencies": {"a": ["b", "c"]}}),
    ("io.k8s.api.core.v1.Volume", message(_1=b"v", _2=message(_2=b"")), {"name": "v", "emptyDir": {}}),
    ("io.k8s.api.authorization.v1.SubjectAccessReviewSpec", message(_5=message(_1=b"a")), {"extra": {"a": []}}),
]


@pytest.mark.parametrize(("name", "data", "expected"), FORMS)
def test_a_message_reads_as_its_json(name: str, data: bytes, expected: Any) -> None:
    assert read_message(name, data) == expected


def test_what_holds_nothing_is_there_where_it_was_written() -> None:
    assert read_message(DEPLOYMENT_SPEC, message(_1=0, _7=0)) == {"replicas": 0, "paused": False}


def test_a_message_that_comes_twice_is_one() -> None:
    twice = message(_1=[message(_1=b"a"), message(_3=b"b")])
    assert read_message("io.k8s.api.core.v1.Pod", twice) == {"metadata": {"name": "a", "namespace": "b"}}


@pytest.mark.parametrize(
    "stray",
    [
        message(_900=b"abc"),
        message(_900=5),
        b"\xa1\x38" + bytes(8),
        b"\xa5\x38" + bytes(4),
        b"\xa3\x38\xa3\x38\x08\x01\x12\x01a\xa4\x38\xa4\x38",
    ],
    ids=["bytes", "number", "eight bytes", "four bytes", "groups"],
)
def test_fields_that_nobody_knows_are_passed_over(stray: bytes) -> None:
    data = stray + message(_1=b"a") + stray
    assert read_message(f"{META}.ObjectMeta", data) == {"name": "a"}


def _nested(depth: int) -> bytes:
    schema = b""
    for _ in range(depth):
        schema = message(_28=schema)  # not
    return schema


MALFORMED: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "empty data"),
    ("JSON", b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
    ("a cut envelope", body("v1", "ConfigMap", NAMED)[:-8], "unexpected EOF"),
    ("a cut object", body("v1", "ConfigMap", NAMED[:-1]), "unexpected EOF"),
    ("a cut number", body("v1", "ConfigMap", b"\x18\x80"), "unexpected EOF"),
    ("a stretch beyond its message", body("v1", "ConfigMap", b"\x0a\x02\x0a\x03abc"), "unexpected EOF"),
    ("a number beyond its message", body("v1", "Secret", b"\x0a\x02\x38\x80\x01"), "unexpected EOF"),
    ("a number without end", body("v1", "ConfigMap", b"\xff" * 20), "proto: integer overflow"),
    ("a field of another type", body("v1", "ConfigMap", b"\x08\x01"), "proto: wrong wireType = 0 for field 1"),
    ("a field without number", body("v1", "ConfigMap", b"\x02\x00"), "proto: ConfigMap: illegal tag 0 (wire type 2)"),
    ("a type there is not", body("v1", "ConfigMap", b"\x0f\x00"), "proto: illegal wireType 7"),
    ("the end of no group", body("v1", "ConfigMap", b"\x0c"), "proto: illegal wireType 4"),
    ("a group without end", body("v1", "ConfigMap", b"\xa3\x38\x08"), "unexpected EOF"),
    ("a kind nobody knows", body("v1", "Widget", NAMED), 'no kind "Widget" is registered for version "v1"'),
    (
        "a kind never sent",
        body("meta.k8s.io/v1", "Status", b""),
        'no kind "Status" is registered for version "meta.k8s.io/v1"',
    ),
    (
        "a kind of a like group",
        body("apps.example.com/v1", "Deployment", NAMED),
        'no kind "Deployment" is registered for version "apps.example.com/v1"',
    ),
    ("no kind", body("", "", NAMED), 'no kind "" is registered for version ""'),
    (
        "JSON within that is none",
        body("apps/v1", "ControllerRevision", message(_2=message(_1=b"{"))),
        "JSON within the message: Input data was truncated",
    ),
    (
        "a time beyond all times",
        body("v1", "Pod", message(_1=message(_8=message(_1=2**62)))),
        "a time 4611686018427387904 seconds after 1970 is beyond the year 9999, or before the year 1",
    ),
]


@pytest.mark.parametrize(("data", "why"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_what_is_no_message_is_malformed(data: bytes, why: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode_object(data)
    assert str(refused.value) == why


def test_messages_may_be_nested_as_deep_as_is_of_use() -> None:
    assert read_message(SCHEMA, _nested(50))["not"]["not"]["not"]
    with pytest.raises(Malformed, match="nested more than 100 deep"):
        read_message(SCHEMA, _nested(101))


POD = body(
    "v1",
    "Pod",
    message(
        _1=message(_1=b"a", _8=message(_1=5), _11=[message(_1=b"k", _2=b"v")]),
        _2=message(
            _1=[message(_1=b"v", _2=message(_2=b""))], _2=[message(_1=b"c", _2=b"i", _6=message(_3=80))], _5=2**64 - 3
        ),
    ),
)


@given(st.binary(max_size=200))
def test_garbage_is_read_or_malformed(garbage: bytes) -> None:
    for data in (garbage, b"k8s\x00" + garbage, body("v1", "Pod", garbage)):
        _read_or_malformed(data)


@given(st.integers(0, len(POD) - 1), st.integers(0, 255))
def test_a_changed_byte_is_read_or_malformed(at: int, byte: int) -> None:
    _read_or_malformed(POD[:at] + bytes([byte]) + POD[at + 1 :])


def test_every_truncation_of_an_envelope_is_malformed_or_holds_less() -> None:
    whole = decode_object(POD)
    for end in range(len(POD)):
        found = _read_or_malformed(POD[:end])
        assert found in (None, whole) or found == {"apiVersion": "v1", "kind": "Pod"}


def _read_or_malformed(data: bytes) -> Any:
    try:
        return decode_object(data)
    except Malformed:
        return None
