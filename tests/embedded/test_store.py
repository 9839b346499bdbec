"""The store: versions, their history, and the past as it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.core import ConfigMap
from kedge.embedded.kind import Kind
from kedge.embedded.ownership.field_owners import NO_OWNERS
from kedge.embedded.store import AlreadyExists, HistoryExpired, StaleVersion, Store, Version, key_of

KIND = Kind(ConfigMap.resource)
KEYS = st.sampled_from(["a/x", "a/y", "a-b/x", "b/x", "b/y", "b/z"])


def obj(key: str, **fields: Any) -> dict[str, Any]:
    namespace, _, name = key.partition("/")
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


def put(store: Store, key: str) -> Version:
    """Create, or change, so that each time the object differs."""
    seen = store.all(KIND).get(key)
    if seen is None:
        return store.create(KIND, key, obj(key))
    return store.replace(KIND, seen, obj(key, data=store.number))


def everything(store: Store, number: int, prefix: str = "") -> list[Version]:
    return list(store.all(KIND).at(number).within(prefix))


def test_every_write_takes_the_next_number() -> None:
    store = Store()
    first = put(store, "a/x")
    second = put(store, "b/x")
    third = store.remove(KIND, first)
    assert [first.number, second.number, third.number, store.number] == [1, 2, 3, 3]
    assert third.decode() == {"metadata": {"name": "x", "namespace": "a", "resourceVersion": "3"}}


def test_a_name_is_taken_once() -> None:
    store = Store()
    there = put(store, "a/x")
    with pytest.raises(AlreadyExists) as taken:
        store.create(KIND, "a/x", obj("a/x"))
    assert taken.value.version is there
    assert store.number == 1


def test_a_write_from_an_old_version_fails_and_changes_nothing() -> None:
    store = Store()
    old = put(store, "a/x")
    new = put(store, "a/x")
    with pytest.raises(StaleVersion):
        store.replace(KIND, old, obj("a/x"))
    with pytest.raises(StaleVersion):
        store.remove(KIND, old)
    assert store.all(KIND).get("a/x") is new
    assert store.number == 2


def test_versions_are_encoded_once_and_shared() -> None:
    store = Store()
    heard: list[Version] = []
    store.all(KIND).subscribe(lambda change, _: heard.append(change.version))
    version = put(store, "a/x")
    assert heard[0] is version is everything(store, 1)[0] is store.all(KIND).since(0)[0].version


def test_who_stops_following_hears_no_more() -> None:
    store = Store()
    heard: list[int] = []
    stop = store.all(KIND).subscribe(lambda change, _: heard.append(change.version.number))
    put(store, "a/x")
    stop()
    stop()
    put(store, "a/x")
    assert heard == [1]


def test_a_store_that_remembers_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="history is 0"):
        Store(history=0)


@pytest.mark.parametrize(("place", "key"), [(("", "node-1"), "node-1"), (("shop", "web"), "shop/web")])
def test_keys_name_an_object_in_its_collection(place: tuple[str, str], key: str) -> None:
    version = Version(key_of(*place), 1, b"", {}, {}, NO_OWNERS)
    assert (version.key, (version.namespace, version.name)) == (key, place)


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=30), st.integers(1, 8))
def test_the_past_is_shown_as_it_was_or_not_at_all(writes: list[tuple[str, bool]], history: int) -> None:
    store = Store(history=history)
    past: list[list[Version]] = [[]]
    for key, gone in writes:
        seen = store.all(KIND).get(key)
        if gone and seen is not None:
            store.remove(KIND, seen)
        else:
            put(store, key)
        past.append(everything(store, store.number))
    for number, then in enumerate(past):
        if number >= store.number - history:
            assert everything(store, number) == then
        else:
            with pytest.raises(HistoryExpired) as forgotten:
                store.all(KIND).at(number)
            assert forgotten.value.oldest == store.number - history


@given(
    st.lists(st.tuples(KEYS, st.booleans()), max_size=20), st.integers(0, 20), st.sampled_from(["", "a/", "b/"]), KEYS
)
def test_what_is_counted_is_what_is_there(writes: list[tuple[str, bool]], back: int, prefix: str, start: str) -> None:
    store = Store()
    for key, gone in writes:
        seen = store.all(KIND).get(key)
        if gone and seen is not None:
            store.remove(KIND, seen)
        else:
            put(store, key)
    snapshot = store.all(KIND).at(max(0, store.number - back))
    found = [version.key for version in snapshot.within(prefix, start)]
    assert found == sorted(found)
    assert all(key.startswith(prefix) and key >= start for key in found)
    assert snapshot.count(prefix, start) == len(found)


@given(st.lists(KEYS, max_size=20), st.integers(0, 20))
def test_changes_since_a_version_are_all_of_them_in_order(keys: list[str], since: int) -> None:
    store = Store()
    for key in keys:
        put(store, key)
    found = [change.version.number for change in store.all(KIND).since(since)]
    assert found == list(range(since + 1, len(keys) + 1))
