"""Plain writes: whoever gives a field a value owns it."""

from typing import Any

import pytest

from embedded.ownership.things import DEPLOYMENT, LATER, MAP, MUCH_LATER, NOW, POD, THING, config_map, leaves, thing
from kedge.embedded.ownership import managed_fields as lists
from kedge.embedded.ownership.field_set import Malformed
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.embedded.ownership.managed_fields import Entries, Entry, after_write, manager_name, tracked_write


@pytest.mark.parametrize(
    ("given", "agent", "name"),
    [
        ("me", "kubectl/v1.36", "me"),
        ("", "kubectl/v1.36.0 (linux/amd64) kubernetes/abc", "kubectl"),
        ("", "curl", "curl"),
        ("", "my agent/1", "my agent"),
        ("", "a\tb\x00c/1", "abc"),
        ("", "", "unknown"),
        ("", "/1", "unknown"),
        ("", "x" * 200, "x" * 128),
        ("", "é" * 100, "é" * 64),
        ("", "x" + "é" * 100, "x" + "é" * 63),
    ],
)
def test_who_does_not_say_who_they_are_is_called_as_their_program(given: str, agent: str, name: str) -> None:
    assert manager_name(given, agent) == name


def write(
    entries: Entries,
    ownership: KindOwnership,
    old: Any,
    new: Any,
    manager: str = "me",
    time: str = NOW,
    subresource: str = "",
) -> Entries:
    return after_write(
        entries,
        tracked_write(ownership, old, new, manager=manager, time=time, subresource=subresource),
        ownership.served,
    )


def owned(entries: Entries, manager: str = "me") -> Any:
    return next((entry.fields_v1 for entry in entries if entry.manager == manager), None)


def test_whoever_makes_an_object_owns_all_of_it_but_its_identity() -> None:
    identity = {"uid": "u", "namespace": "n", "generation": 1, "creationTimestamp": NOW, "resourceVersion": "1"}
    (entry,) = write((), MAP, None, config_map({"k": "v"}, labels={"a": "b"}, **identity))
    assert entry == Entry(
        "me",
        "Update",
        "v1",
        NOW,
        fields_v1={"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:data": {".": {}, "f:k": {}}},
    )


def test_an_object_of_which_there_is_nothing_to_own_has_no_entry() -> None:
    assert write((), MAP, None, config_map()) == ()


def test_whoever_changes_a_field_takes_it_from_its_owner() -> None:
    first = write((), MAP, None, config_map({"k": "1", "l": "1"}))
    second = write(first, MAP, config_map({"k": "1", "l": "1"}), config_map({"k": "2", "l": "1"}), "you")
    assert owned(second) == {"f:data": {".": {}, "f:l": {}}}
    assert owned(second, "you") == {"f:data": {"f:k": {}}}


def test_whoever_removes_a_field_takes_it_from_its_owner_and_owns_nothing() -> None:
    first = write((), MAP, None, config_map({"k": "1", "l": "1"}))
    second = write(first, MAP, config_map({"k": "1", "l": "1"}), config_map({"l": "1"}), "you")
    assert [entry.manager for entry in second] == ["me"]
    assert owned(second) == {"f:data": {".": {}, "f:l": {}}}


def test_an_owner_with_nothing_left_has_no_entry() -> None:
    first = write((), MAP, None, config_map({"k": "1"}))
    second = write(first, MAP, config_map({"k": "1"}), config_map({}), "you")
    assert owned(second) == {"f:data": {}}
    assert write(second, MAP, config_map({}), config_map(), "you") == ()


def test_writing_what_is_there_changes_no_owner_and_no_time() -> None:
    first = write((), MAP, None, config_map({"k": "1"}))
    assert write(first, MAP, config_map({"k": "1"}), config_map({"k": "1"}), "you", LATER) == first


def test_the_time_is_that_of_the_last_write_that_gave_a_value() -> None:
    first = write((), MAP, None, config_map({"k": "1"}))
    (entry,) = write(first, MAP, config_map({"k": "1"}), config_map({"k": "2"}), time=LATER)
    assert entry.time == LATER
    (same,) = write((entry,), MAP, config_map({"k": "2", "l": "1"}), config_map({"k": "2"}), time=MUCH_LATER)
    assert same.time == LATER


def test_the_status_is_written_by_another_manager_of_the_same_name() -> None:
    first = write((), THING, None, thing({"count": 1}))
    both = write(
        first, THING, thing({"count": 1}), {**thing({"count": 1}), "status": {"phase": "A"}}, subresource="status"
    )
    assert [(entry.subresource, entry.fields_v1) for entry in both] == [
        ("", {"f:spec": {".": {}, "f:count": {}}}),
        ("status", {"f:status": {".": {}, "f:phase": {}}}),
    ]


CHANGED: Any = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "ownerReferences": [{"uid": "u"}]},
    "spec": {"paused": True, "nodeName": "n", "count": 1},
    "status": {"phase": "A"},
}
LABELS: Any = {"f:labels": {".": {}, "f:a": {}}}
ANNOTATIONS: Any = {"f:annotations": {".": {}, "f:a": {}}}
OWNER_REFERENCES: Any = {"f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}}}
METADATA = {"f:metadata": {**LABELS, **ANNOTATIONS, **OWNER_REFERENCES}}
NO_STATUS = KindOwnership(THING.resource, None, status=False, custom=True)


@pytest.mark.parametrize(
    ("ownership", "subresource", "taken"),
    [
        (THING, "", {**METADATA, "f:spec": {".": {}, **leaves("paused", "nodeName", "count")}}),
        (THING, "status", {"f:status": {".": {}, "f:phase": {}}}),
        (
            NO_STATUS,
            "",
            {
                **METADATA,
                "f:spec": {".": {}, **leaves("paused", "nodeName", "count")},
                "f:status": {".": {}, "f:phase": {}},
            },
        ),
        (DEPLOYMENT, "", {**METADATA, "f:spec": leaves("paused", "nodeName", "count")}),
        (DEPLOYMENT, "status", {"f:metadata": {**ANNOTATIONS, **OWNER_REFERENCES}, "f:status": leaves("phase")}),
        (POD, "", {**METADATA, "f:spec": leaves("paused", "nodeName", "count")}),
        (POD, "status", {"f:metadata": {**LABELS, **ANNOTATIONS}, "f:status": leaves("phase")}),
    ],
)
def test_what_a_write_cannot_change_it_cannot_own(ownership: KindOwnership, subresource: str, taken: Any) -> None:
    there = ownership.empty
    (entry,) = write((), ownership, there, {**there, **CHANGED}, subresource=subresource)
    assert entry.fields_v1 == taken


def test_the_oldest_of_more_than_ten_who_update_are_put_together() -> None:
    entries: Entries = ()
    old: Any = None
    data: dict[str, str] = {}
    for number in range(14):
        data = {**data, f"k{number}": "v"}
        entries = write(entries, MAP, old, config_map(data), f"m{number:02}")
        old = config_map(data)
    names = [entry.manager for entry in lists.sorted_entries(entries)]
    assert names == ["ancient-changes", *(f"m{number:02}" for number in range(5, 14))]
    assert owned(entries, "ancient-changes") == {"f:data": {".": {}, **leaves("k0", "k1", "k2", "k3", "k4")}}


def test_who_applies_is_not_put_together() -> None:
    applying = tuple(Entry(f"a{number}", "Apply", "v1", fields_v1=leaves("x")) for number in range(12))
    assert lists.merge_oldest_updaters(applying) == applying


def test_those_who_speak_other_versions_are_put_together_apart() -> None:
    one, two = ("v1", "v2")
    many = tuple(Entry(f"m{n:02}", "Update", (one, two)[n % 2], NOW, fields_v1=leaves(f"x{n}")) for n in range(12))
    found = {(entry.manager, entry.api_version): entry.fields_v1 for entry in lists.merge_oldest_updaters(many)}
    assert len(found) == 10
    assert found["ancient-changes", one] == leaves("x0", "x2")
    assert found["ancient-changes", two] == leaves("x1", "x3")


def test_owners_who_speak_a_version_that_is_not_served_are_forgotten() -> None:
    old = Entry("old", "Apply", "v0", fields_v1=leaves("data"))
    entries = write((old,), MAP, config_map({"k": "1"}), config_map({"k": "2"}))
    assert [entry.manager for entry in entries] == ["me"]


def test_owners_who_speak_another_version_of_a_custom_kind_are_remembered() -> None:
    old = Entry("old", "Apply", "ownership.kedge.dev/v0", fields_v1={"f:spec": leaves("text")})
    entries = write((old,), THING, thing({"count": 1}), thing({"count": 2}))
    assert [entry.manager for entry in entries] == ["old", "me"]
    said = KindOwnership(THING.resource, None, status=True, custom=True, served=["ownership.kedge.dev/v2"])
    assert [entry.manager for entry in write((old,), said, thing({"count": 1}), thing({"count": 2}))] == ["me"]


def test_entries_are_listed_by_operation_time_and_name() -> None:
    told = [
        ("b", "Update", NOW),
        ("a", "Update", LATER),
        ("c", "Apply", LATER),
        ("d", "Apply", ""),
        ("a", "Update", NOW),
    ]
    entries = [Entry(name, operation, "v1", time) for name, operation, time in told]  # type: ignore[arg-type]
    listed = [(entry.manager, entry.operation, entry.time) for entry in lists.sorted_entries(entries)]
    assert listed == [told[3], told[2], told[4], told[0], told[1]]


def test_entries_are_written_as_kubernetes_writes_them() -> None:
    entry = Entry("me", "Apply", "v1", fields_v1={"f:b": {}, "f:a": {}}, subresource="status")
    assert lists.encode_entries((entry,)) == (
        b'[{"manager":"me","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",'
        b'"fieldsV1":{"f:a":{},"f:b":{}},"subresource":"status"}]'
    )
    assert lists.decode_entries(lists.encode_entries((entry,))) == (entry,)


GOOD = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Nope"},
        {"operation": ""},
        {"apiVersion": ""},
        {"apiVersion": None},
        {"fieldsType": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsV1": {"a": {}}},
        {"fieldsV1": {"f:a": {"x": {}}}},
        {"fieldsV1": []},
        {"manager": 1},
    ],
)
def test_entries_that_make_no_sense_are_not_read(wrong: Any) -> None:
    with pytest.raises(Malformed):
        lists.parse_entries([GOOD, {**GOOD, **wrong}])


@pytest.mark.parametrize("raw", [{}, "x", 1, [1], ["x"], [None], None])
def test_what_is_no_list_of_entries_is_not_read(raw: Any) -> None:
    with pytest.raises(Malformed):
        lists.parse_entries(raw)


def test_of_two_entries_for_one_manager_the_last_counts() -> None:
    (entry,) = lists.parse_entries([GOOD, {**GOOD, "fieldsV1": {"f:b": {}}}])
    assert entry.fields_v1 == leaves("b")
