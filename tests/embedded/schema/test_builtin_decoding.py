"""Reading a sent object as a built-in kind: types, what Go leaves out, and canonical forms."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.schema.sending import MISFITS, ROUND_TRIPS, UNREADABLE, at, deployment, odd
from kedge.api.openapi.builtin import schema_of
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.schema.builtin_decoding import decode_struct
from kedge.embedded.schema.type_errors import TypeMismatch

DEPLOYMENT = schema_of("apps", "v1", "Deployment")


@pytest.mark.parametrize(("path", "value", "words"), MISFITS)
def test_a_value_of_the_wrong_type_is_a_misfit(path: str, value: Any, words: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        decode_struct(DEPLOYMENT, odd(path, value))
    assert str(caught.value) == f"json: cannot unmarshal {words}"


@pytest.mark.parametrize(("path", "value", "words"), UNREADABLE)
def test_a_text_that_cannot_be_read_is_a_misfit(path: str, value: Any, words: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        decode_struct(DEPLOYMENT, odd(path, value))
    assert str(caught.value) == words


@pytest.mark.parametrize(("path", "value", "look", "then"), ROUND_TRIPS)
def test_a_value_comes_out_as_go_would_write_it(path: str, value: Any, look: str, then: Any) -> None:
    sent = odd(path, value)
    before = copy.deepcopy(sent)
    assert at(decode_struct(DEPLOYMENT, sent).obj, look) == then
    assert sent == before


def test_an_object_in_order_is_given_back_itself() -> None:
    sent = deployment()
    reading = decode_struct(DEPLOYMENT, sent)
    assert reading.obj is sent
    assert not reading.has_unknown


def test_what_is_not_odd_is_shared() -> None:
    sent = odd("spec.template.spec.hostNetwork", value=False)
    found = decode_struct(DEPLOYMENT, sent).obj
    assert found["metadata"] is sent["metadata"]
    assert found["spec"]["template"]["spec"]["containers"] is sent["spec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize("path", ["bar", "spec.foo", "spec.template.spec.containers.0.baz", "metadata.zed"])
def test_a_member_that_is_not_known_is_dropped(path: str) -> None:
    reading = decode_struct(DEPLOYMENT, odd(path, 1))
    assert reading.obj == deployment()
    assert reading.has_unknown


def test_a_member_that_was_read_before_is_not_read_again() -> None:
    before = deployment()
    unread: Any = {"replicas": "x"}
    assert decode_struct(DEPLOYMENT, {**before, "spec": unread}, {**before, "spec": unread}).obj["spec"] is unread


def test_what_is_new_is_read_though_the_rest_was_before() -> None:
    before = deployment()
    reading = decode_struct(DEPLOYMENT, {**before, "metadata": {"name": "web", "zed": 1}}, before)
    assert reading.obj == before
    assert reading.has_unknown


def test_raw_members_are_kept_as_they_are() -> None:
    revision = schema_of("apps", "v1", "ControllerRevision")
    sent = {"metadata": {"name": "x"}, "data": {"a": {"b": None}, "c": 1.0}, "revision": 0}
    assert decode_struct(revision, sent).obj is sent


@pytest.mark.parametrize(
    ("data", "then"),
    [
        ({"a": "YQ=="}, "YQ=="),
        ({"a": "YW\nI="}, "YWI="),
        ({"a": "YR=="}, "YQ=="),
        ({"a": ""}, ""),
        ({"a": "YWJj"}, "YWJj"),
    ],
)
def test_bytes_are_read_as_base64(data: dict[str, str], then: str) -> None:
    secret = schema_of("", "v1", "Secret")
    assert decode_struct(secret, {"data": data}).obj["data"]["a"] == then


@pytest.mark.parametrize(
    ("text", "at_byte"),
    [("YQ", 0), ("YQ=", 3), ("YQ===", 4), ("Y", 0), ("YW I=", 2), ("-_-_", 0), ("YWJj!", 4), ("=", 0), ("YWJjZ", 4)],
)
def test_bytes_that_are_no_base64_are_a_misfit(text: str, at_byte: int) -> None:
    with pytest.raises(TypeMismatch) as caught:
        decode_struct(schema_of("", "v1", "Secret"), {"data": {"a": text}})
    assert str(caught.value) == f"illegal base64 data at input byte {at_byte}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2020-01-01T01:02:03Z", 'cannot parse "Z" as ".000000"'),
        ("x", 'cannot parse "x" as "2006"'),
        ("2020-01-01T01:02:03.1234567+02:00", 'cannot parse "7+02:00" as "Z07:00"'),
    ],
)
def test_a_lease_wants_microseconds(text: str, words: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        decode_struct(schema_of("coordination.k8s.io", "v1", "Lease"), {"spec": {"renewTime": text}})
    assert str(caught.value) == f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": {words}'


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.resource.kind)
def test_every_built_in_kind_reads_what_every_object_has(kind: Any) -> None:
    resource = kind.resource
    sent = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a", "zed": 1}}
    reading = decode_struct(schema_of(resource.group, resource.version, resource.kind), sent)
    assert reading.obj == {**sent, "metadata": {"name": "a"}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, width=16) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from([path for path, *_ in MISFITS + UNREADABLE])


@given(places, json_values)
def test_what_was_read_reads_as_itself(path: str, value: Any) -> None:
    try:
        once = decode_struct(DEPLOYMENT, odd(path, value)).obj
    except TypeMismatch as misfit:
        assert str(misfit)  # noqa: PT017 - either it reads, or it says why
        return
    again = decode_struct(DEPLOYMENT, once)
    assert again.obj == once
    assert not again.has_unknown
