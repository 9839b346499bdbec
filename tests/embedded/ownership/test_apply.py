"""Server-side apply: what is applied is owned, and what is owned is guarded."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.ownership.things import DEPLOYMENT, LATER, MAP, NOW, THING, config_map, leaves, thing
from kedge.api.openapi.model import Schema
from kedge.embedded.ownership import field_set
from kedge.embedded.ownership.apply import ANNOTATION, ApplyRequest, ApplyResult, apply
from kedge.embedded.ownership.compare import applied_fields, compare
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.embedded.ownership.managed_fields import Entries, Entry, after_write, tracked_write
from kedge.embedded.statuses import Refused


def by(
    manager: str,
    ownership: KindOwnership,
    live: Any,
    entries: Entries,
    config: Any,
    *,
    force: bool = False,
    time: str = NOW,
) -> ApplyResult:
    return apply(ownership, live, entries, ApplyRequest(config, manager, time, force))


def owned(entries: Entries, manager: str, operation: str = "Apply") -> Any:
    found = (entry for entry in entries if (entry.manager, entry.operation) == (manager, operation))
    return next((entry.fields_v1 for entry in found), None)


def made_by_update(ownership: KindOwnership, obj: Any, manager: str = "maker") -> Entries:
    return after_write((), tracked_write(ownership, None, obj, manager=manager, time=NOW))


def live(data: Any, **metadata: Any) -> Any:
    return config_map(data, uid="u", **metadata)


def test_applying_what_is_not_there_makes_it() -> None:
    outcome = by("me", MAP, None, (), config_map({"k": "v"}))
    assert outcome.object == config_map({"k": "v"})
    assert outcome.entries == (Entry("me", "Apply", "v1", NOW, fields_v1={"f:data": leaves("k")}),)


def test_applying_again_changes_nothing() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v"}))
    again = by("me", MAP, live({"k": "v"}), first.entries, config_map({"k": "v"}), time=LATER)
    assert again.object == live({"k": "v"})
    assert again.entries == first.entries


def test_the_time_is_that_of_the_last_apply_that_changed_the_object() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v"}))
    (entry,) = by("me", MAP, live({"k": "v"}), first.entries, config_map({"k": "w"}), time=LATER).entries
    assert entry.time == LATER


def test_a_second_owner_of_the_same_value_has_no_time() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v"}))
    both = by("you", MAP, live({"k": "v"}), first.entries, config_map({"k": "v"}), time=LATER).entries
    assert [(entry.manager, entry.time) for entry in both] == [("me", NOW), ("you", "")]


def test_another_value_than_its_owner_applied_is_a_conflict() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v"}))
    with pytest.raises(Refused) as caught:
        by("you", MAP, live({"k": "v"}), first.entries, config_map({"k": "w"}))
    said = json.loads(caught.value.body())
    assert (said["code"], said["reason"]) == (409, "Conflict")
    assert said["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.k'
    assert said["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.k"}]
    }


def test_who_updates_is_named_with_the_version_and_the_subresource() -> None:
    entries = (
        Entry("kubectl", "Update", "apps/v1", NOW, fields_v1={"f:spec": leaves("replicas")}),
        Entry("hpa", "Update", "apps/v1", NOW, fields_v1={"f:spec": leaves("replicas", "paused")}, subresource="scale"),
    )
    there = {"metadata": {"name": "a", "uid": "u"}, "spec": {"replicas": 1, "paused": True}}
    config = {"metadata": {"name": "a"}, "spec": {"replicas": 2, "paused": False}}
    with pytest.raises(Refused) as caught:
        by("me", DEPLOYMENT, there, entries, config)
    assert str(caught.value) == (
        "Apply failed with 3 conflicts: "
        'conflicts with "hpa" with subresource "scale" using apps/v1:\n- .spec.paused\n- .spec.replicas\n'
        'conflicts with "kubectl" using apps/v1:\n- .spec.replicas'
    )


def test_a_conflict_that_is_forced_takes_the_field() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v", "l": "v"}))
    outcome = by("you", MAP, live({"k": "v", "l": "v"}), first.entries, config_map({"k": "w"}), force=True)
    assert outcome.object["data"] == {"k": "w", "l": "v"}
    assert owned(outcome.entries, "me") == {"f:data": leaves("l")}
    assert owned(outcome.entries, "you") == {"f:data": leaves("k")}


def test_one_who_has_lost_everything_has_no_entry() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v"}))
    outcome = by("you", MAP, live({"k": "v"}), first.entries, config_map({"k": "w"}), force=True)
    assert [entry.manager for entry in outcome.entries] == ["you"]


def test_what_is_left_out_is_removed() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v", "l": "v"}))
    outcome = by("me", MAP, live({"k": "v", "l": "v"}), first.entries, config_map({"l": "v"}))
    assert outcome.object["data"] == {"l": "v"}
    assert owned(outcome.entries, "me") == {"f:data": leaves("l")}


def test_what_somebody_else_owns_too_stays_when_left_out() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v", "l": "v"}))
    both = by("you", MAP, live({"k": "v", "l": "v"}), first.entries, config_map({"k": "v"}))
    outcome = by("me", MAP, live({"k": "v", "l": "v"}), both.entries, config_map({"l": "v"}))
    assert outcome.object["data"] == {"k": "v", "l": "v"}
    assert owned(outcome.entries, "me") == {"f:data": leaves("l")}
    assert owned(outcome.entries, "you") == {"f:data": leaves("k")}


def test_applying_nothing_gives_everything_up() -> None:
    first = by("me", MAP, None, (), config_map({"k": "v"}))
    outcome = by("me", MAP, live({"k": "v"}), first.entries, config_map())
    assert outcome.object == live(None)
    assert outcome.entries == ()


def test_who_updates_and_who_applies_under_one_name_are_two() -> None:
    entries = made_by_update(MAP, config_map({"k": "v"}), "me")
    with pytest.raises(Refused, match='conflict with "me" using v1'):
        by("me", MAP, live({"k": "v"}), entries, config_map({"k": "w"}))
    outcome = by("me", MAP, live({"k": "v"}), entries, config_map({"k": "v"}))
    assert owned(outcome.entries, "me", "Update") == {"f:data": {".": {}, "f:k": {}}}
    assert owned(outcome.entries, "me", "Apply") == {"f:data": leaves("k")}


def test_an_object_that_nobody_owns_is_owned_by_somebody_before_the_first_apply() -> None:
    outcome = by("me", MAP, live({"k": "v"}), (), config_map({"l": "v"}))
    assert owned(outcome.entries, "before-first-apply", "Update") == {"f:data": {".": {}, "f:k": {}}}
    with pytest.raises(Refused, match='conflict with "before-first-apply" using v1'):
        by("me", MAP, live({"k": "v"}), (), config_map({"k": "w"}))


def test_an_item_left_out_goes_and_those_of_others_stay() -> None:
    first = by("me", THING, None, (), thing({"parts": [{"name": "a"}, {"name": "b"}]}))
    there = thing({"parts": [{"name": "a", "kind": "plain"}, {"name": "b", "kind": "plain"}]}, uid="u")
    both = by("you", THING, there, first.entries, thing({"parts": [{"name": "c"}]}))
    outcome = by("me", THING, both.object, both.entries, thing({"parts": [{"name": "b"}]}))
    assert [part["name"] for part in outcome.object["spec"]["parts"]] == ["b", "c"]


def test_the_status_cannot_be_applied_beside_the_rest() -> None:
    config = {**thing({"count": 1}), "status": {"phase": "A"}}
    outcome = by("me", THING, None, (), config)
    assert owned(outcome.entries, "me") == {"f:spec": leaves("count")}


def test_the_status_is_applied_apart() -> None:
    first = by("me", THING, None, (), thing({"count": 1}))
    config = {**thing({"count": 5}), "status": {"phase": "A"}}
    asked = ApplyRequest(config, "me", NOW, subresource="status")
    outcome = apply(THING, thing({"count": 1}, uid="u"), first.entries, asked)
    assert [(entry.subresource, entry.fields_v1) for entry in outcome.entries] == [
        ("", {"f:spec": leaves("count")}),
        ("status", {"f:status": leaves("phase")}),
    ]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"nope": 1}, ".spec.nope: field not declared in schema"),
        ({"count": "x"}, ".spec.count: expected numeric (int or float), got string"),
        ({"text": 1}, ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        ({"table": 1}, ".spec.table: expected map, got &{1}"),
        ({"order": "x"}, ".spec.order: expected list, got &{x}"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, '.spec.parts: duplicate entries for key [kind="plain",name="a"]'),
        ({"parts": [1]}, ".spec.parts: element 0: associative list with keys may not have non-map elements"),
        (
            {"names": [None]},
            ".spec.names: element 0: associative list without keys has an element that's an explicit null",
        ),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(spec: Any, why: str) -> None:
    with pytest.raises(Refused) as caught:
        by("me", THING, None, (), thing(spec, namespace="n"))
    assert caught.value.code == 500
    kind = "ownership.kedge.dev/v1, Kind=Thing"
    assert str(caught.value) == f"failed to create typed patch object (n/a; {kind}): {why}"


def test_several_misfits_are_listed() -> None:
    with pytest.raises(Refused) as caught:
        by("me", THING, None, (), thing({"count": "x", "deep": {"z": 1}}))
    number, unknown = (
        ".spec.count: expected numeric (int or float), got string",
        ".spec.deep.z: field not declared in schema",
    )
    assert str(caught.value).endswith(f": errors:\n  {number}\n  {unknown}")


def test_parts_that_have_become_one_whole_are_owned_as_one() -> None:
    whole = {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}}
    now_whole = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"table": whole}}}}
    ownership = KindOwnership(THING.resource, Schema(now_whole), status=True, custom=True)
    first = by("me", THING, None, (), thing({"table": {"i": 1}}))
    outcome = by("you", ownership, thing({"table": {"i": 1}}, uid="u"), first.entries, thing({"table": {"i": 1}}))
    assert owned(outcome.entries, "me") == {"f:spec": leaves("table")}


# Moving from client-side to server-side apply, and back


def client_side(data: Any, last: Any) -> Any:
    return live(data, annotations={ANNOTATION: json.dumps(config_map(last))})


def test_what_client_side_apply_left_as_it_is_no_conflict_for_kubectl() -> None:
    there = client_side({"k": "v"}, {"k": "v"})
    entries = made_by_update(MAP, there, "kubectl-client-side-apply")
    outcome = by("kubectl", MAP, there, entries, config_map({"k": "w"}))
    assert outcome.object["data"] == {"k": "w"}
    with pytest.raises(Refused, match="Apply failed with 1 conflict"):
        by("somebody", MAP, there, entries, config_map({"k": "w"}))


def test_what_somebody_changed_since_is_a_conflict() -> None:
    there = client_side({"k": "changed", "l": "v"}, {"k": "v", "l": "v"})
    entries = made_by_update(MAP, there, "other")
    with pytest.raises(Refused) as caught:
        by("kubectl", MAP, there, entries, config_map({"k": "w", "l": "w"}))
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "other" using v1: .data.k'


@pytest.mark.parametrize(
    "annotation", ["", "{", "[]", "{}", json.dumps({**config_map({"k": "v"}), "apiVersion": "v2"})]
)
def test_an_annotation_that_says_nothing_excuses_nothing(annotation: str) -> None:
    there = live({"k": "v"}, annotations={ANNOTATION: annotation})
    with pytest.raises(Refused, match="conflict"):
        by("kubectl", MAP, there, made_by_update(MAP, there), config_map({"k": "w"}))


def test_the_annotation_is_kept_up_to_date_for_the_way_back() -> None:
    there = client_side({"k": "v"}, {"k": "v"})
    config = config_map({"k": "w"}, annotations={ANNOTATION: "mine"})
    outcome = by("kubectl", MAP, there, made_by_update(MAP, there), config, force=True)
    annotation = outcome.object["metadata"]["annotations"][ANNOTATION]
    assert (
        annotation
        == '{"apiVersion":"v1","data":{"k":"w"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"a"}}\n'
    )


def test_without_an_annotation_none_is_made() -> None:
    outcome = by("kubectl", MAP, live({"k": "v"}), (), config_map({"l": "v"}))
    assert "annotations" not in outcome.object["metadata"]


# Properties

specs = st.fixed_dictionaries(
    {"port": st.just(1)},  # nobody applies nothing: that is another story
    optional={
        "count": st.integers(0, 2),
        "order": st.lists(st.sampled_from("xy"), max_size=2),
        "names": st.lists(st.sampled_from("uvw"), unique=True, min_size=1),
        "table": st.dictionaries(st.sampled_from("ij"), st.integers(0, 1), min_size=1),
        "whole": st.dictionaries(st.sampled_from("ij"), st.integers(0, 1)),
        "parts": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("ab")},
                optional={"size": st.integers(0, 1), "more": st.fixed_dictionaries({"a": st.sampled_from("12")})},
            ),
            unique_by=lambda part: str(part["name"]),
            min_size=1,
        ),
    },
)
applies = st.lists(st.tuples(st.sampled_from(["me", "you", "they"]), specs), min_size=1, max_size=5)


def after(writes: list[tuple[str, Any]]) -> ApplyResult:
    """The object after these were applied by force, one after the other."""
    outcome = ApplyResult({}, ())
    for number, (manager, spec) in enumerate(writes):
        there = {**outcome.object, "metadata": {"name": "a", "uid": "u"}} if number else None
        outcome = by(manager, THING, there, outcome.entries, thing(spec), force=True)
    return outcome


@given(applies)
def test_applying_twice_is_applying_once(writes: list[tuple[str, Any]]) -> None:
    once, manager, spec = after(writes), *writes[-1]
    twice = by(manager, THING, once.object, once.entries, thing(spec), time=LATER)
    assert twice == once


def test_a_null_in_a_custom_kind_is_left_to_its_schema() -> None:
    assert by("me", THING, None, (), thing({"count": None})).object["spec"] == {"count": None}


@given(applies)
def test_what_was_applied_last_is_what_one_reads(writes: list[tuple[str, Any]]) -> None:
    config, found = thing(writes[-1][1]), after(writes).object
    changes = compare(THING.schema, found, config)
    covered = applied_fields(THING.schema, config)
    assert field_set.intersection(changes.given, covered) == {}


@given(applies)
def test_the_owners_together_cover_what_is_there(writes: list[tuple[str, Any]]) -> None:
    outcome = after(writes)
    everybody = field_set.field_set(way for entry in outcome.entries for way in field_set.paths(entry.fields_v1))
    there = field_set.recursive_difference(
        applied_fields(THING.schema, outcome.object),
        field_set.field_set([["f:metadata"], ["f:apiVersion"], ["f:kind"]]),
    )
    assert set(field_set.paths(there)) <= set(field_set.paths(everybody))


@given(applies, specs)
def test_giving_up_what_one_owned_alone_leaves_the_others_as_they_were(
    writes: list[tuple[str, Any]], mine: Any
) -> None:
    before = after([*writes, ("mine", mine)])
    left = by("mine", THING, {**before.object, "metadata": {"name": "a", "uid": "u"}}, before.entries, thing())
    others = [entry for entry in before.entries if entry.manager != "mine"]
    assert [entry.fields_v1 for entry in left.entries] == [entry.fields_v1 for entry in others]
    kept = field_set.field_set(way for entry in others for way in field_set.paths(entry.fields_v1))
    gone = compare(THING.schema, before.object, left.object)
    assert field_set.intersection(field_set.union(gone.given, gone.removed), kept) == {}
    alone = field_set.field_set(
        way for entry in before.entries if entry.manager == "mine" for way in field_set.paths(entry.fields_v1)
    )
    ends = field_set.intersection(applied_fields(THING.schema, before.object), gone.removed)
    assert set(field_set.paths(ends)) <= set(field_set.paths(alone))
