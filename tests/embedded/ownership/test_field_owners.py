"""Owners put off what they can, and nobody can tell."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.ownership.things import DEPLOYMENT, LATER, MAP, MUCH_LATER, NOW, THING, config_map, thing
from kedge.embedded.ownership import managed_fields as lists
from kedge.embedded.ownership.apply import ApplyRequest, apply
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners, after_create
from kedge.embedded.ownership.managed_fields import Entries, after_write, tracked_write

ENTRY = {"manager": "z", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}


def made(data: Any, **metadata: Any) -> FieldOwners:
    return after_create(MAP, config_map(data, **metadata), manager="me", time=NOW)


def told(found: FieldOwners) -> Any:
    """Who owns which keys of a ConfigMap's data."""
    keys = {entry["manager"]: entry["fieldsV1"].get("f:data", {}) for entry in found.entries()}
    return {manager: "".join(sorted(key[2:] for key in data if key != ".")) for manager, data in keys.items()}


def test_the_entries_are_as_in_managed_fields() -> None:
    assert made({"k": "v"}).entries() == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:k": {}}},
        }
    ]


def test_asking_twice_tells_the_same() -> None:
    found = made({"k": "v"})
    assert found.encoded() == found.encoded()
    assert FieldOwners(found.encoded()).entries() == found.entries()


def test_an_object_that_nobody_owns_is_not_tracked() -> None:
    found = made(None)
    assert found.untracked
    assert found.after_update(MAP, config_map(), config_map({"k": "v"}), manager="me", time=NOW).entries() == []


def test_applying_to_it_starts_the_tracking() -> None:
    found = NO_OWNERS.after_apply(MAP, config_map({"k": "v"}, uid="u"), ApplyRequest(config_map({"l": "v"}), "me", NOW))
    assert told(found.owners) == {"me": "l", "before-first-apply": "k"}


def test_what_loses_its_last_owner_is_not_tracked_any_more() -> None:
    one, none = config_map({"k": "v"}), config_map()
    found = made({"k": "v"}).after_update(MAP, one, none, manager="you", time=NOW)
    assert found.after_update(MAP, none, one, manager="you", time=NOW).entries() == []


def test_a_write_to_the_status_does_not_say_who_owns_what() -> None:
    old, new = thing({"count": 1}), {**thing({"count": 1}, managedFields=[{}]), "status": {"phase": "A"}}
    first = after_create(THING, old, manager="me", time=NOW)
    found = first.after_update(THING, old, new, manager="you", time=NOW, subresource="status")
    assert [entry["manager"] for entry in found.entries()] == ["me", "you"]


# What clients say in managedFields


@pytest.mark.parametrize("cleared", [[], [{}]])
def test_a_client_can_have_all_owners_forgotten(cleared: Any) -> None:
    old, new = config_map({"k": "v"}), config_map({"k": "w"}, managedFields=cleared)
    assert made({"k": "v"}).after_update(MAP, old, new, manager="you", time=NOW).entries() == []


def test_a_client_can_say_who_the_owners_are() -> None:
    old, new = config_map({"k": "v"}), config_map({"k": "v", "l": "v"}, managedFields=[ENTRY])
    found = made({"k": "v"}).after_update(MAP, old, new, manager="you", time=NOW)
    assert [entry["manager"] for entry in found.entries()] == ["z", "you"]


def test_a_client_that_sends_the_owners_back_changes_nothing() -> None:
    first = made({"k": "v"})
    same = config_map({"k": "v"}, managedFields=first.entries())
    assert first.after_update(MAP, config_map({"k": "v"}), same, manager="you", time=LATER) is first


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        "x",
        {},
        [1],
        [{"manager": "z"}],
        [{**ENTRY, "operation": "Nope"}],
        [{**ENTRY, "apiVersion": ""}],
        [{**ENTRY, "fieldsType": ""}],
        [{**ENTRY, "fieldsV1": {"data": {}}}],
        [ENTRY, {**ENTRY, "fieldsV1": {"f:data": 1}}],
    ],
)
def test_a_client_that_makes_no_sense_is_not_heard(nonsense: Any) -> None:
    old, new = config_map({"k": "v"}), config_map({"k": "v", "l": "v"}, managedFields=nonsense)
    found = made({"k": "v"}).after_update(MAP, old, new, manager="you", time=NOW)
    assert told(found) == {"me": "k", "you": "l"}


def test_entries_of_versions_that_are_not_served_and_empty_ones_are_dropped() -> None:
    sent = [{**ENTRY, "apiVersion": "v9"}, {**ENTRY, "manager": "y", "fieldsV1": {}}, {**ENTRY, "manager": "x"}]
    old, new = config_map({"k": "v"}), config_map({"k": "v"}, managedFields=sent)
    found = made({"k": "v"}).after_update(MAP, old, new, manager="you", time=NOW)
    assert [entry["manager"] for entry in found.entries()] == ["x"]


def test_whoever_makes_an_object_can_say_who_owns_it_too() -> None:
    found = made({"k": "v"}, managedFields=[{**ENTRY, "fieldsV1": {"f:data": {"f:q": {}}}}])
    assert [entry["manager"] for entry in found.entries()] == ["z", "me"]


def test_kubectl_moves_from_client_side_to_server_side_apply() -> None:
    """It rewrites the entry of its client-side self, so that what it leaves out later goes."""
    there = config_map({"k": "v", "l": "v"}, uid="u")
    first = after_create(MAP, there, manager="kubectl-client-side-apply", time=NOW)
    renamed = [{**entry, "manager": "kubectl", "operation": "Apply"} for entry in first.entries()]
    patched = config_map({"k": "v", "l": "v"}, uid="u", managedFields=renamed)
    moved = first.after_update(MAP, there, patched, manager="kubectl", time=LATER)
    applied = moved.after_apply(MAP, there, ApplyRequest(config_map({"k": "v"}), "kubectl", LATER))
    assert applied.object["data"] == {"k": "v"}
    assert told(applied.owners) == {"kubectl": "k"}


# When a write is none


def test_owners_can_be_the_same_but_for_the_time() -> None:
    one, other = made({"k": "v"}), after_create(MAP, config_map({"k": "v"}), manager="me", time=LATER)
    assert one.same_but_for_times(other)
    assert not one.same_but_for_times(made({"l": "v"}))


# Putting off


def test_a_long_run_of_writes_is_worked_in_now_and_then() -> None:
    found = made({"k": "0"}, labels={"a": "b"})
    for number in range(100):
        old, new = config_map({"k": str(number)}), config_map({"k": str(number + 1)})
        found = found.after_update(MAP, old, new, manager=f"m{number % 3}", time=NOW)
        assert len(found._pending) <= 16
    assert told(found)["m0"] == "k"


def test_writes_of_one_manager_are_held_as_one() -> None:
    found = made({"k": "0"}, labels={"a": "b"})
    for number in range(9):
        old, new = config_map({"k": str(number)}), config_map({"k": str(number + 1)})
        found = found.after_update(MAP, old, new, manager="you", time=NOW)
    assert len(found._pending) == 2


def test_a_write_that_changes_nothing_leaves_the_owners_as_they_are() -> None:
    first = made({"k": "v"}, labels={"a": "b"})
    assert first.after_update(MAP, config_map({"k": "v"}), config_map({"k": "v"}), manager="you", time=LATER) is first


def test_what_is_kept_of_a_write_does_not_grow_with_the_object() -> None:
    big = {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1}}
    first = after_create(DEPLOYMENT, big, manager="me", time=NOW)
    new = {**big, "status": {"replicas": 2}}
    found = first.after_update(DEPLOYMENT, big, new, manager="you", time=NOW, subresource="status")
    written = found._pending[-1]
    assert (written.given, written.removed) == (b'{"f:status":{"f:replicas":{}}}', b"{}")  # type: ignore[union-attr]


class Eager:
    """The same, worked in at once."""

    def __init__(self, obj: Any) -> None:
        self.entries: Entries = after_write((), tracked_write(THING, None, obj, manager="me", time=NOW))

    def update(self, old: Any, new: Any, manager: str, time: str, subresource: str) -> None:
        if self.entries:
            found = tracked_write(THING, old, new, manager=manager, time=time, subresource=subresource)
            self.entries = after_write(self.entries, found, THING.served)

    def apply(self, live: Any, asked: ApplyRequest) -> None:
        self.entries = apply(THING, live, self.entries, asked).entries


specs = st.fixed_dictionaries(
    {},
    optional={
        "count": st.integers(0, 2),
        "table": st.dictionaries(st.sampled_from("ij"), st.integers(0, 1)),
        "names": st.lists(st.sampled_from("uv"), unique=True),
    },
)
objects = st.builds(
    lambda spec, phase: {**thing(spec, uid="u"), **({"status": {"phase": phase}} if phase else {})},
    st.none() | specs,
    st.sampled_from(["", "A", "B"]),
)
names = st.sampled_from(["me", "you"]) | st.integers(0, 13).map(lambda number: f"m{number}")
times = st.sampled_from([NOW, LATER, MUCH_LATER])
writes = st.lists(
    st.tuples(st.sampled_from(["update", "update", "status", "apply", "read"]), objects, names, times), max_size=25
)


@given(objects, writes)
def test_put_off_or_worked_in_at_once_is_the_same(first: Any, then: list[tuple[str, Any, str, str]]) -> None:
    lazy, eager, live = after_create(THING, first, manager="me", time=NOW), Eager(first), first
    for how, obj, manager, time in then:
        if how == "read":
            assert lazy.encoded() == lists.encode_entries(eager.entries)
        elif how == "apply":
            asked = ApplyRequest(obj, manager, time, force=True)
            applied = lazy.after_apply(THING, live, asked)
            eager.apply(live, asked)
            lazy, live = applied.owners, applied.object
        else:
            subresource = "status" if how == "status" else ""
            lazy = lazy.after_update(THING, live, obj, manager=manager, time=time, subresource=subresource)
            eager.update(live, obj, manager, time, subresource)
            live = obj
    assert lazy.encoded() == lists.encode_entries(eager.entries)
