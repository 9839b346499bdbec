"""A configuration laid over an object, and what its owner gave up taken out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.ownership.things import MAP, THING, thing
from kedge.embedded.ownership import field_set
from kedge.embedded.ownership.compare import applied_fields
from kedge.embedded.ownership.merge import merge_applied, remove_unapplied, without_nulls


def laid(live: Any, config: Any) -> Any:
    return merge_applied(THING.schema, thing(live), thing(config))["spec"]


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ({"count": 1}, {"text": "a"}, {"count": 1, "text": "a"}),
        ({"count": 1}, {"count": 2}, {"count": 2}),
        ({"order": ["x"]}, {"order": ["y"]}, {"order": ["y"]}),
        ({"whole": {"i": 1}}, {"whole": {"j": 1}}, {"whole": {"j": 1}}),
        ({"table": {"i": 1}}, {"table": {"j": 1}}, {"table": {"i": 1, "j": 1}}),
        ({"table": {"i": 1}}, {"table": {}}, {"table": {"i": 1}}),
        ({"table": {"i": 1}}, {"table": None}, {"table": {"i": 1}}),
        ({"text": "a"}, {"text": None}, {"text": None}),
        ({"free": {"m": {"p": 1}}}, {"free": {"m": {"q": 2}}}, {"free": {"m": {"p": 1, "q": 2}}}),
        ({"free": {"m": {"p": 1}}}, {"free": {"m": [1]}}, {"free": {"m": [1]}}),
        ({"free": {"m": [1]}}, {"free": {"m": {"p": 1}}}, {"free": {"m": {"p": 1}}}),
        ({"free": {"m": [1, 2]}}, {"free": {"m": [3]}}, {"free": {"m": [3]}}),
        (
            {"parts": [{"name": "a", "size": 1}, {"name": "b"}]},
            {"parts": [{"name": "a", "more": {"a": "1"}}]},
            {"parts": [{"name": "a", "size": 1, "more": {"a": "1"}}, {"name": "b"}]},
        ),
        (
            {"parts": [{"name": "a", "kind": "plain", "size": 1}]},
            {"parts": [{"name": "a", "size": 2}, {"name": "a", "kind": "other"}]},
            {"parts": [{"name": "a", "kind": "plain", "size": 2}, {"name": "a", "kind": "other"}]},
        ),
    ],
)
def test_what_is_applied_lies_over_what_is_there(live: Any, config: Any, result: Any) -> None:
    assert laid(live, config) == result


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("ab", "ab", "ab"),
        ("ab", "ba", "ba"),
        ("ab", "abc", "abc"),
        ("ab", "cab", "cab"),
        ("xab", "ab", "xab"),
        ("axb", "ab", "axb"),
        ("axb", "ba", "xba"),
        ("abx", "ba", "bxa"),
        ("abx", "ban", "bxan"),
        ("xay", "nam", "xnaym"),
        ("abcd", "dcba", "dcba"),
        ("axbycz", "cab", "xyczab"),
    ],
)
def test_items_come_in_the_order_applied_and_others_keep_their_place(live: str, config: str, result: str) -> None:
    found = laid({"names": list(live)}, {"names": list(config)})
    assert "".join(found["names"]) == result


texts = st.text(alphabet="abcdef", max_size=6).filter(lambda text: len(set(text)) == len(text))


@given(texts, texts)
def test_a_merged_list_holds_both_once_each_in_its_own_order(live: str, config: str) -> None:
    found = laid({"names": list(live)}, {"names": list(config)}).get("names", [])
    assert sorted(found) == sorted({*live, *config})
    assert [name for name in found if name in config] == list(config)
    assert [name for name in found if name not in config] == [name for name in live if name not in config]


@given(texts, texts)
def test_merging_twice_is_merging_once(live: str, config: str) -> None:
    once = laid({"names": list(live)}, {"names": list(config)})
    assert laid(once, {"names": list(config)}) == once


def without(value: Any, last: Any, *owned: Any) -> Any:
    """What is left of a spec when its applier owned what `last` covers, and others own what the rest covers."""
    covered = [applied_fields(THING.schema, thing(part)) for part in owned]
    everybody = field_set.field_set(way for part in covered for way in field_set.paths(part))
    return remove_unapplied(THING.schema, thing(value), applied_fields(THING.schema, thing(last)), everybody).get(
        "spec"
    )


@pytest.mark.parametrize(
    ("value", "last", "owned", "left"),
    [
        ({"count": 1, "text": "a"}, {"count": 1}, {"text": "a"}, {"text": "a"}),
        ({"count": 1, "text": "a"}, {"count": 1}, {"count": 1}, {"count": 1, "text": "a"}),
        ({"count": 1, "text": "a"}, {"count": 1}, {}, {"text": "a"}),
        ({"table": {"i": 1, "j": 2}}, {"table": {"i": 1}}, {"table": {"j": 2}}, {"table": {"j": 2}}),
        ({"table": {"i": 1, "j": 2}}, {"table": {"i": 1}}, {}, None),
        ({"order": ["x"], "count": 1}, {"order": ["x"]}, {"count": 1}, {"count": 1}),
        ({"names": ["u", "v"]}, {"names": ["u"]}, {"names": ["v"]}, {"names": ["v"]}),
        (
            {"parts": [{"name": "a", "size": 1}, {"name": "b"}], "count": 1},
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "b"}], "count": 1},
            {"parts": [{"name": "b"}], "count": 1},
        ),
        (
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a"}]},
            {"parts": [{"name": "a"}]},
        ),
        (
            {"free": {"m": {"p": 1, "q": 2}}},
            {"free": {"m": {"p": 1}}},
            {"free": {"m": {"q": 2}}},
            {"free": {"m": {"q": 2}}},
        ),
    ],
)
def test_what_its_owner_gave_up_goes_unless_somebody_else_owns_it(value: Any, last: Any, owned: Any, left: Any) -> None:
    assert without(value, last, owned) == left


def test_null_is_nothing_and_in_a_map_the_empty_text() -> None:
    value = {"data": {"a": None, "b": "1"}, "binaryData": None, "metadata": {"creationTimestamp": None}}
    assert without_nulls(MAP.schema, value) == {"data": {"a": "", "b": "1"}, "metadata": {}}


def test_a_value_without_null_is_left_alone() -> None:
    value = {"data": {"a": "1"}}
    assert without_nulls(MAP.schema, value) is value
