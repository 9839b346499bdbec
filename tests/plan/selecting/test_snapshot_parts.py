"""What a snapshot holds, how it is told from another, and how it is divided."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.selecting.selection import manifests_digest
from kedge.plan.selecting.snapshots import MAX_PART_BYTES, count_envelopes, resource_hash, split_into_parts


def manifest(name: str, size: int = 0) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x" * size}}


def test_the_resource_hash_is_of_json_as_go_writes_it() -> None:
    found = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"page": "<a href='x'>&</a>"}}
    text = (
        rb'{"selectedResources":[{"apiVersion":"v1","data":{"page":"\u003ca href='
        rb"'x'\u003e\u0026\u003c/a\u003e"
        rb'"},"kind":"ConfigMap"}]}'
    )
    assert resource_hash([found]) == hashlib.sha256(text).hexdigest()


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    assert resource_hash([{"a": 1, "b": 2}]) == resource_hash([{"b": 2, "a": 1}])
    assert resource_hash([{"a": 1}, {"b": 2}]) != resource_hash([{"b": 2}, {"a": 1}])
    assert manifests_digest([manifest("a"), manifest("b")]) != manifests_digest([manifest("b"), manifest("a")])


def test_no_manifests_give_one_empty_part() -> None:
    assert split_into_parts([]) == ((),)


def test_a_part_may_be_exactly_as_large_as_allowed() -> None:
    one = len(msgspec.json.encode(manifest("a")))
    three = [manifest(name) for name in "abc"]
    assert [len(part) for part in split_into_parts(three, 2 * one)] == [2, 1]
    assert [len(part) for part in split_into_parts(three, 2 * one - 1)] == [1, 1, 1]
    assert [len(part) for part in split_into_parts([*three, *three], 2 * one)] == [2, 2, 2]
    assert MAX_PART_BYTES == 819_200


def test_a_single_object_that_is_too_large_has_a_part_of_its_own() -> None:
    names = [
        [each["metadata"]["name"] for each in part]
        for part in split_into_parts([manifest("a"), manifest("b", 1000)], 500)
    ]
    assert names == [["a"], ["b"]]


@given(st.lists(st.integers(0, 300), max_size=30))
def test_parts_are_within_the_limit_and_lose_nothing(sizes: list[int]) -> None:
    found = [manifest(str(number), size) for number, size in enumerate(sizes)]
    divided = split_into_parts(found, 1000)
    assert [each for part in divided for each in part] == found
    assert all(sum(len(msgspec.json.encode(each)) for each in part) <= 1000 for part in divided)
    assert all(divided) or not found


def test_envelopes_are_counted() -> None:
    group = "placement.kubernetes-fleet.io/v1beta1"
    found = [
        {"apiVersion": group, "kind": "ResourceEnvelope"},
        {"apiVersion": group, "kind": "ClusterResourceEnvelope"},
    ]
    assert count_envelopes([*found, {"apiVersion": "example.com/v1", "kind": "ResourceEnvelope"}, manifest("a")]) == 2
