"""Writes to the scale: the replicas of the object behind it change hands."""

from typing import Any

from embedded.ownership.things import DEPLOYMENT, NOW
from kedge.embedded.ownership.apply import ApplyRequest
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners
from kedge.embedded.scale_subresource import owners_after_scale

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
