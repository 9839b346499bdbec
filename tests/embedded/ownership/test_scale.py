"""Writes to the scale: the replicas of the object behind it change hands."""

from typing import Any

import pytest

from embedded.ownership.things import DEPLOYMENT, NOW
from kedge.embedded.ownership.apply import ApplyRequest
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners, after_create
from kedge.embedded.ownership.scale_ownership import owners_after_scale, owners_after_scale_apply
from kedge.embedded.statuses import Refused

REPLICAS: Any = {"f:spec": {"f:replicas": {}}}
PAUSED: Any = {"f:spec": {"f:paused": {}}}


def deployment(**spec: Any) -> Any:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def scale(replicas: int) -> Any:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"replicas": replicas},
    }


def applied_by(manager: str, **spec: Any) -> FieldOwners:
    return NO_OWNERS.after_apply(DEPLOYMENT, None, ApplyRequest(deployment(**spec), manager, NOW)).owners


def told(owners: FieldOwners) -> list[tuple[str, str, str, bool, Any]]:
    shown = ("manager", "operation", "subresource")
    return [
        (*(entry.get(name, "") for name in shown), "time" in entry, entry["fieldsV1"])
        for entry in owners.entries()
        if entry["apiVersion"] == "apps/v1"
    ]


def test_scaling_takes_the_replicas_and_leaves_no_time() -> None:
    found = owners_after_scale(applied_by("me", replicas=1, paused=True), DEPLOYMENT, scale(1), scale(3), manager="hpa")
    assert told(found) == [("me", "Apply", "", True, PAUSED), ("hpa", "Update", "scale", False, REPLICAS)]


def test_scaling_to_what_it_is_takes_nothing() -> None:
    first = applied_by("me", replicas=1, paused=True)
    found = owners_after_scale(first, DEPLOYMENT, scale(1), scale(1), manager="hpa")
    assert found.entries() == first.entries()


def test_replicas_that_nobody_owns_are_not_tracked() -> None:
    first = applied_by("me", paused=True)
    assert owners_after_scale(first, DEPLOYMENT, scale(1), scale(3), manager="hpa").entries() == first.entries()


def test_scaling_again_hands_them_on() -> None:
    first = owners_after_scale(applied_by("me", replicas=1), DEPLOYMENT, scale(1), scale(3), manager="hpa")
    found = owners_after_scale(first, DEPLOYMENT, scale(3), scale(4), manager="kubectl")
    assert told(found) == [("kubectl", "Update", "scale", False, REPLICAS)]


def test_applying_to_the_scale_conflicts_with_the_owner() -> None:
    first = owners_after_scale(applied_by("me", replicas=1), DEPLOYMENT, scale(1), scale(3), manager="hpa")
    with pytest.raises(Refused) as caught:
        owners_after_scale_apply(first, DEPLOYMENT, scale(3), ApplyRequest(scale(5), "ap", NOW, subresource="scale"))
    who = '"hpa" with subresource "scale" using autoscaling/v1'
    assert str(caught.value) == f"Apply failed with 1 conflict: conflict with {who}: .spec.replicas"


def test_applying_to_the_scale_by_force_takes_them() -> None:
    first = owners_after_scale(applied_by("me", replicas=1, paused=True), DEPLOYMENT, scale(1), scale(3), manager="hpa")
    asked = ApplyRequest(scale(5), "ap", NOW, force=True, subresource="scale")
    found = owners_after_scale_apply(first, DEPLOYMENT, scale(3), asked)
    assert found.object["spec"] == {"replicas": 5}
    assert told(found.owners) == [("ap", "Apply", "scale", False, REPLICAS), ("me", "Apply", "", True, PAUSED)]


def test_applying_what_it_is_owns_it_together() -> None:
    asked = ApplyRequest(scale(1), "ap", NOW, subresource="scale")
    found = owners_after_scale_apply(applied_by("me", replicas=1), DEPLOYMENT, scale(1), asked)
    assert told(found.owners) == [("ap", "Apply", "scale", False, REPLICAS), ("me", "Apply", "", True, REPLICAS)]


def test_replicas_that_nobody_owns_are_owned_by_somebody_before_the_first_apply() -> None:
    first = applied_by("me", paused=True)
    with pytest.raises(Refused, match='conflict with "before-first-apply" with subresource "scale"'):
        owners_after_scale_apply(first, DEPLOYMENT, scale(1), ApplyRequest(scale(5), "ap", NOW, subresource="scale"))


def test_one_who_updates_loses_the_replicas_to_itself_for_a_moment() -> None:
    """As in Kubernetes: two entries for one manager, of which the last counts at the next write."""
    first = after_create(DEPLOYMENT, deployment(replicas=1, paused=True), manager="me", time=NOW)
    found = owners_after_scale_apply(
        first, DEPLOYMENT, scale(1), ApplyRequest(scale(1), "ap", NOW, subresource="scale")
    )
    assert told(found.owners) == [
        ("ap", "Apply", "scale", False, REPLICAS),
        ("me", "Update", "", False, REPLICAS),
        ("me", "Update", "", True, PAUSED),
    ]
    again = owners_after_scale_apply(
        found.owners, DEPLOYMENT, scale(1), ApplyRequest(scale(1), "aq", NOW, subresource="scale")
    )
    assert [(entry[0], entry[4]) for entry in told(again.owners)] == [
        ("ap", REPLICAS),
        ("aq", REPLICAS),
        ("me", PAUSED),
    ]
