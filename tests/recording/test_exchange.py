"""Exchanges are kept short, and come back as they were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.kube.transport import Request, Response
from support.recording.exchange import LONG, answered, asked, body, changed, difference, raw

NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.dictionaries(NAMES, inner) | st.lists(inner, max_size=3),
)
OBJECTS = st.dictionaries(NAMES, VALUES)


def put(sent: Any, got: Any) -> tuple[Any, Request]:
    request = Request("PUT", "/a", body=msgspec.json.encode(sent))
    return answered(request, Response(200, msgspec.json.encode(got))), request


@given(OBJECTS, OBJECTS)
def test_what_differs_turns_the_one_into_the_other(before: Any, after: Any) -> None:
    assert changed(before, difference(before, after)) == after


@given(OBJECTS, OBJECTS)
def test_an_answer_comes_back_as_it_was(sent: Any, got: Any) -> None:
    kept, request = put(sent, got)
    assert msgspec.json.decode(kept.response(request.body).body) == got


def test_of_an_answer_that_gives_back_what_was_sent_only_the_changes_are_kept() -> None:
    sent = {"kind": "ConfigMap", "data": {"k": "v"}}
    kept, _ = put(sent, {**sent, "metadata": {"uid": "u"}})
    assert kept.answer == {"changes": {"metadata": {"uid": "u"}}}


def test_a_refusal_is_kept_whole() -> None:
    kept, _ = put({"kind": "ConfigMap"}, {"kind": "Status", "code": 422})
    assert kept.answer == {"json": {"kind": "Status", "code": 422}}


def test_a_null_that_was_sent_does_not_get_lost() -> None:
    kept, request = put({"kind": "A", "a": None}, {"kind": "A", "a": None, "b": 1})
    assert msgspec.json.decode(kept.response(request.body).body) == {"kind": "A", "a": None, "b": 1}


def test_what_is_long_is_sent_as_a_digest_and_still_tells_two_requests_apart() -> None:
    one, other = (asked(Request("POST", "/a", body=msgspec.json.encode({"k": letter * LONG}))) for letter in "ab")
    assert one.sent.keys() == {"digest"}
    assert one.request != other.request


def test_the_same_request_in_another_order_of_keys_is_the_same() -> None:
    one, other = (asked(Request("POST", "/a", body=text)) for text in (b'{"a":1,"b":2}', b'{"b":2,"a":1}'))
    assert one.request == other.request


def test_descriptions_of_a_published_schema_are_left_out() -> None:
    published = {"properties": {"description": {"type": "string", "description": "long"}}}
    kept = answered(Request("GET", "/openapi/v3/api/v1"), Response(200, msgspec.json.encode(published)))
    assert kept.answer == {"json": {"properties": {"description": {"type": "string"}}}}


@pytest.mark.parametrize("content", [b"", b'{"a":1}', b"plain words", b"\xff\x00"])
def test_any_content_can_be_kept(content: bytes) -> None:
    assert raw(body(content)) == content
