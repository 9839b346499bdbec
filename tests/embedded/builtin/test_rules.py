"""The rules of built-in kinds, as far as they can be held without a real server: what each promises of every object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedded.builtin.world import Context, changed, documents, made, merged, problems, rules_of
from kedge.embedded.builtin.initial_objects import initial_objects, namespace_objects
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.builtin.rules_by_kind import RULES_BY_KIND
from kedge.embedded.schema.type_errors import TypeMismatch
from kedge.embedded.statuses import Refused
from kedge.kube.codec import Untyped

GOOD: list[Untyped] = [
    {**doc, "metadata": {**doc["metadata"], "namespace": "here"}} for doc in documents("good.yaml", HERE="here")
]
BAD = documents("bad.yaml", HERE="here")[0]
CONTEXT = Context(*namespace_objects("here", "-"), *(made(doc, Context()) for doc in initial_objects()))
LATER = ("apiextensions.k8s.io", "authentication.k8s.io", "authorization.k8s.io")


def _id(doc: Untyped) -> str:
    return f"{doc['kind']}/{doc['metadata']['name']}"


def test_every_rule_belongs_to_a_kind_that_is_served() -> None:
    assert {(kind.resource.group, kind.resource.kind) for kind in BUILT_IN} >= RULES_BY_KIND.keys()


def test_every_kind_has_a_manifest_to_be_held_to() -> None:
    shown = {(doc["apiVersion"], doc["kind"]) for doc in GOOD}
    kinds = [kind.resource for kind in BUILT_IN if kind.resource.group not in LATER]
    lacking = [one.kind for one in kinds if (one.api_version, one.kind) not in shown]
    assert lacking == ["Namespace"]


@pytest.mark.parametrize("doc", GOOD, ids=_id)
def test_completing_twice_is_completing_once_and_gives_the_very_same_object(doc: Untyped) -> None:
    whole = made(doc, CONTEXT)
    assert rules_of(doc).with_defaults(whole) is whole


@pytest.mark.parametrize("doc", GOOD, ids=_id)
def test_nothing_is_changed_in_place(doc: Untyped) -> None:
    before = deepcopy(doc)
    whole = made(doc, CONTEXT)
    shown = deepcopy(whole)
    changed(whole, doc, CONTEXT)
    problems(whole, whole)
    assert (doc, whole) == (before, shown)


@pytest.mark.parametrize("doc", GOOD, ids=_id)
def test_a_good_object_has_no_problems_and_may_stay_as_it_is(doc: Untyped) -> None:
    whole = made(doc, CONTEXT)
    assert problems(whole) == []
    again = changed(whole, whole, CONTEXT)
    assert again == whole
    assert problems(again, whole) == []


@pytest.mark.parametrize(
    "case", documents("bad.yaml", HERE="here")[0], ids=lambda case: f"{case['of']}: {case['with']}"[:90]
)
def test_a_bad_manifest_is_refused(case: Mapping[str, Any]) -> None:
    of = case["of"] if "/" in case["of"] else f"{case['of']}/least"
    good = next(doc for doc in GOOD if _id(doc) == of)
    bad = _taken(lambda: made(merged(good, case["with"]), CONTEXT))
    assert bad is None or problems(bad)


def test_every_service_gets_an_address_until_there_are_none() -> None:
    services: list[Untyped] = []
    for number in range(254):
        doc = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"s{number}"},
            "spec": {"ports": [{"port": 1}]},
        }
        services.append(made(doc, Context(*services)))
    assert len({service["spec"]["clusterIP"] for service in services}) == 254
    assert services[0]["spec"]["clusterIP"] == "10.0.0.16"  # the lowest are for those who ask for them
    with pytest.raises(Refused, match="range is full"):
        made({**services[0], "metadata": {"name": "last"}, "spec": {"ports": [{"port": 1}]}}, Context(*services))


def test_the_default_class_is_given_to_who_names_none() -> None:
    default = {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    classes = [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "plain"}},
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "usual", **default["metadata"]},
        },
    ]
    claim = next(doc for doc in GOOD if _id(doc) == "PersistentVolumeClaim/least")
    assert made(claim, Context(*classes))["spec"]["storageClassName"] == "usual"
    assert "storageClassName" not in made(claim, Context(classes[0]))["spec"]


def test_a_template_that_was_seen_before_is_filled_the_same() -> None:
    deployment = next(doc for doc in GOOD if _id(doc) == "Deployment/least")
    first, second = (rules_of(deployment).with_defaults(deepcopy(deployment)) for _ in range(2))
    assert first == second
    assert first["spec"]["template"] is second["spec"]["template"]


@st.composite
def damaged(draw: st.DrawFn) -> Untyped:
    """A good manifest with some of its members left out, emptied, or turned into others of their type."""
    doc: Untyped = deepcopy(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(doc))
        if places:
            holder, key = draw(st.sampled_from(places))
            _damage(draw, holder, key)
    return doc


def _damage(draw: st.DrawFn, holder: Any, key: Any) -> None:
    if draw(st.booleans()):
        del holder[key]
        return
    match holder[key]:
        case bool():
            holder[key] = not holder[key]
        case int():
            holder[key] = draw(st.sampled_from([0, -1, 1, 70000]))
        case str():
            holder[key] = (
                holder[key] if holder[key][-1:] in ("i", "m", "Z", "=") else draw(st.sampled_from(["", "1", "1234"]))
            )
        case dict() | list():
            holder[key] = type(holder[key])()


def _places(value: Any) -> Any:
    """Where something can be damaged: every member of every object and list, below the names of things."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        if key not in ("apiVersion", "kind", "metadata"):
            yield value, key
        if key != "metadata":
            yield from _places(inner)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(), st.data())
def test_whatever_fits_its_schema_is_taken_or_refused_but_never_stumbled_over(
    doc: Untyped, data: st.DataObject
) -> None:
    whole = _taken(lambda: made(doc, CONTEXT))
    if whole is None:
        return
    assert rules_of(doc).with_defaults(whole) == whole
    assert all(cause.field and cause.reason and cause.message for cause in problems(whole))
    other = data.draw(st.sampled_from([doc, *_same_kind(doc)]))
    after = _taken(lambda: changed(whole, {**other, "metadata": doc["metadata"]}, CONTEXT))
    assert after is None or all(cause.field for cause in problems(after, whole))


def _taken(write: Callable[[], Untyped]) -> Untyped | None:
    """What came of a write; None if it was refused, or could not be read."""
    try:
        return write()
    except (Refused, TypeMismatch):
        return None


def _same_kind(doc: Untyped) -> list[Untyped]:
    return [one for one in GOOD if one["kind"] == doc["kind"]]
