"""What a write does to the number of replicas: the rows of the peer, and whatever else may come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.admission import AdmissionRequest, ResourceName
from kedge.plan.zoning.replica_change import (
    ALLOWED,
    NIL_REPLICAS,
    CannotDecode,
    Downscale,
    HasNoReplicas,
    RuleVerdict,
    replica_change,
    scaled,
)

STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale"}


def having(replicas: object, kind: str = "StatefulSet") -> dict[str, Any]:
    version = "autoscaling/v1" if kind == "Scale" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {"replicas": replicas}}


def asked(old: Any, new: Any, resource: str = "statefulsets") -> AdmissionRequest:
    named = ResourceName(group="apps", version="v1", resource=resource)
    return AdmissionRequest(uid="u", resource=named, name="x", namespace="ns", old_object=old, object=new)


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment", "ReplicaSet", "Scale"])
@pytest.mark.parametrize(
    ("old", "new", "is_downscale"),
    [(3, 3, False), (3, 4, False), (0, 0, False), (0, 5, False), (3, 2, True), (1, 0, True)],
)
def test_only_fewer_replicas_are_a_downscale(kind: str, old: int, new: int, is_downscale: bool) -> None:
    change = replica_change(asked(having(old, kind), having(new, kind)))
    assert isinstance(change, Downscale) == is_downscale
    if isinstance(change, Downscale):
        assert (change.old, change.new, change.before.is_scale) == (old, new, kind == "Scale")
    else:
        assert change == ALLOWED


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, None, ALLOWED, id="both are not set"),
        pytest.param(None, 1, RuleVerdict(True, warnings=(NIL_REPLICAS,)), id="set for the first time"),
        pytest.param(1, None, RuleVerdict(True, warnings=(NIL_REPLICAS,)), id="not set any more"),
    ],
)
def test_replicas_that_are_not_set_are_no_downscale(old: int | None, new: int | None, expected: RuleVerdict) -> None:
    assert NIL_REPLICAS == "old/new replicas is nil, allowing the change"
    assert replica_change(asked(having(old), having(new))) == expected
    without = {**STATEFUL_SET, "metadata": {"name": "x"}}
    before, after = (without if number is None else having(number) for number in (old, new))
    assert replica_change(asked(before, after)) == expected


def test_a_scale_that_names_no_replicas_has_none() -> None:
    change = replica_change(asked(having(2, "Scale"), {**SCALE, "spec": {}}))
    assert isinstance(change, Downscale)
    assert change.new == 0


def test_a_downscale_is_said_with_the_plural_of_its_kind() -> None:
    change = replica_change(asked(having(5), having(3)))
    assert isinstance(change, Downscale)
    assert change.text == "downscale of statefulsets/x in ns from 5 to 3 replicas"
    assert change.denied("it rains.").message == (
        "downscale of statefulsets/x in ns from 5 to 3 replicas is not allowed because it rains."
    )


@pytest.mark.parametrize(
    ("name", "namespace", "named"),
    [
        ("x", "ns", True),
        ("x-0.y", "ns", True),
        ("", "ns", False),
        ("x", "", False),
        ("x/y", "ns", False),
        ("x", "evil.example/?", False),
        ("X", "ns", False),
        ("x-", "ns", False),
        ("x\n", "ns", False),
    ],
)
def test_whether_names_may_become_parts_of_a_url(name: str, namespace: str, named: bool) -> None:
    old, new = ({**having(number), "metadata": {}} for number in (2, 1))
    change = replica_change(replace(asked(old, new), name=name, namespace=namespace))
    assert isinstance(change, Downscale)
    assert (change.name, change.namespace, change.is_named) == (name, namespace, named)


@pytest.mark.parametrize(
    ("names", "before", "after", "found"),
    [
        pytest.param(("x", "ns"), ("y", "other"), ("z", "third"), ("x", "ns"), id="the request says it"),
        pytest.param(("", "ns"), ("y", "other"), ("z", "third"), ("y", "ns"), id="it says no name"),
        pytest.param(("x", ""), ("y", "other"), ("z", "third"), ("x", "other"), id="it says no namespace"),
        pytest.param(("", ""), ("", ""), ("z", "third"), ("z", "third"), id="only the new object says it"),
        pytest.param(("", ""), ("", ""), ("", ""), ("", ""), id="nobody says it"),
    ],
)
def test_a_request_without_names_is_about_the_object_that_it_brings(
    names: tuple[str, str], before: tuple[str, str], after: tuple[str, str], found: tuple[str, str]
) -> None:
    said = ({"name": name, "namespace": namespace} for name, namespace in (before, after))
    old, new = ({**having(number), "metadata": meta} for number, meta in zip((2, 1), said, strict=True))
    change = replica_change(replace(asked(old, new), name=names[0], namespace=names[1]))
    assert isinstance(change, Downscale)
    assert (change.name, change.namespace) == found


@pytest.mark.parametrize("odd", ["x", [1], 3, True, ""])
def test_what_is_no_object_is_allowed_with_a_warning(odd: object) -> None:
    for which, change in (
        ("old", replica_change(asked(odd, having(1)))),
        ("new", replica_change(asked(having(1), odd))),
    ):
        text = f"can't decode {which} object, allowing the change, err: it is not a JSON object"
        assert change == RuleVerdict(True, warnings=(text,))


UNKNOWN = {"apiVersion": "batch/v1", "kind": "Job"}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet"}


@pytest.mark.parametrize(
    ("old", "new", "merged", "warning"),
    [
        pytest.param(
            None, having(1), False, "can't decode old object, allowing the change, err: there is no object", id="no old"
        ),
        pytest.param(
            having(1), None, False, "can't decode new object, allowing the change, err: there is no object", id="no new"
        ),
        pytest.param(
            {"spec": {}},
            having(1),
            False,
            "can't decode old object, allowing the change, err: Object 'Kind' is missing",
            id="no kind",
        ),
        pytest.param(
            {"kind": "StatefulSet"},
            having(1),
            False,
            "can't decode old object, allowing the change, err: Object 'apiVersion' is missing",
            id="no version",
        ),
        pytest.param(
            having(1),
            UNKNOWN,
            False,
            'can\'t decode new object, allowing the change, err: no kind "Job" is registered for version "batch/v1"',
            id="unknown kind",
        ),
        pytest.param(
            DAEMON_SET,
            DAEMON_SET,
            False,
            "can't get old replicas, allowing the change, err: "
            "unsupported type apps/v1, Kind=DaemonSet (go type *v1.DaemonSet)",
            id="old without replicas",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "ControllerRevision"},
            having(1),
            False,
            "can't get old replicas, allowing the change, err: "
            "unsupported type apps/v1, Kind=ControllerRevision (go type *v1.ControllerRevision)",
            id="a revision",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": ""},
            having(1),
            False,
            "can't decode old object, allowing the change, err: Object 'Kind' is missing",
            id="an empty kind",
        ),
        pytest.param(
            {"apiVersion": "", "kind": "StatefulSet"},
            having(1),
            False,
            "can't decode old object, allowing the change, err: Object 'apiVersion' is missing",
            id="an empty version",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": 1},
            having(1),
            False,
            "can't decode old object, allowing the change, err: Object 'Kind' is missing",
            id="a kind that is a number",
        ),
        pytest.param(
            {"apiVersion": 1, "kind": "StatefulSet"},
            having(1),
            False,
            "can't decode old object, allowing the change, err: Object 'apiVersion' is missing",
            id="a version that is a number",
        ),
        pytest.param(
            having(1),
            DAEMON_SET,
            False,
            "can't get new replicas, allowing the change, err: "
            "unsupported type apps/v1, Kind=DaemonSet (go type *v1.DaemonSet)",
            id="new without replicas",
        ),
        pytest.param(
            DAEMON_SET,
            having(1),
            True,
            "can't decode old object, allowing the change, err: "
            "unsupported type apps/v1, Kind=DaemonSet (go type *v1.DaemonSet)",
            id="old without replicas, for prepare-downscale",
        ),
    ],
)
def test_what_cannot_be_read_is_allowed_with_a_warning(old: Any, new: Any, merged: bool, warning: str) -> None:
    assert replica_change(asked(old, new), decode_says_it_all=merged) == RuleVerdict(True, warnings=(warning,))
    if not merged:
        assert replica_change(asked(old, new)) == RuleVerdict(True, warnings=(warning,))


def test_the_largest_numbers_are_numbers() -> None:
    change = replica_change(asked(having(2**31 - 1), having(-(2**31))))
    assert isinstance(change, Downscale)
    assert (change.old, change.new) == (2**31 - 1, -(2**31))


@pytest.mark.parametrize(
    "obj",
    [
        having("3"),
        having(2.5),
        having(True),
        having(2**31),
        having(-(2**31) - 1),
        having([]),
        {**STATEFUL_SET, "spec": 1},
        {**STATEFUL_SET, "spec": []},
        {**STATEFUL_SET, "metadata": "x"},
        {**STATEFUL_SET, "metadata": {"labels": ["a"]}},
        {**STATEFUL_SET, "metadata": {"labels": {"a": 1}}},
        {"apiVersion": 1, "kind": "StatefulSet"},
        {"apiVersion": "apps/v1", "kind": None},
    ],
    ids=str,
)
def test_wrong_types_are_allowed_with_a_warning(obj: Any) -> None:
    change = replica_change(asked(obj, having(0)))
    assert isinstance(change, RuleVerdict)
    assert change.allowed
    assert change.warnings[0].startswith("can't decode old object, allowing the change, err: ")


def test_an_object_nested_very_deep_is_allowed_with_a_warning() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    change = replica_change(asked({**having(3), "status": deep}, having(1)))
    assert isinstance(change, RuleVerdict)
    assert change.warnings[0].startswith("can't decode old object")


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["apiVersion", "kind", "metadata", "spec", "replicas", "labels", "apps/v1", "StatefulSet"]),
            inner,
        )
    ),
    max_leaves=12,
)
OBJECT = st.none() | st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec"]), JSON)


@given(OBJECT, OBJECT, st.booleans())
def test_nothing_that_comes_breaks_it_and_nothing_but_a_downscale_is_held_up(old: Any, new: Any, merged: bool) -> None:
    change = replica_change(asked(old, new), decode_says_it_all=merged)
    assert isinstance(change, Downscale) or change.allowed


@given(OBJECT)
def test_an_object_is_read_or_refused_in_one_of_two_ways(obj: Any) -> None:
    try:
        found = scaled(obj)
    except (CannotDecode, HasNoReplicas):
        return
    assert found.replicas is None or -(2**31) <= found.replicas < 2**31


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.sampled_from(["StatefulSet", "Scale"]))
def test_of_two_numbers_a_smaller_new_one_is_a_downscale(old: int, new: int, kind: str) -> None:
    assert isinstance(replica_change(asked(having(old, kind), having(new, kind))), Downscale) == (new < old)
