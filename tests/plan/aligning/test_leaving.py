"""What a cluster that is being deleted waits for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.works import Work
from kedge.api.meta import ObjectMeta
from kedge.plan.aligning.leaving import LeavingReason, Remaining, leaving_condition

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PLACEMENT = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
PROPOSED = {
    "apiVersion": "karmada.io/v1alpha2",
    "kind": "ResourceBinding",
    "name": "web",
    "uid": "u",
    "controller": True,
}
FAILED = [
    {
        "type": "Scheduled",
        "status": "False",
        "reason": "NoClusterFit",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
]


def remaining(
    name: str = "web",
    clusters: tuple[str, ...] = ("a", "b"),
    kind: type[Any] = ResourceBinding,
    *,
    conditions: list[Any] | None = None,
    placement: dict[str, Any] | None = None,
    **meta: Any,
) -> Remaining:
    """A Work in cluster `a`, and its binding."""
    spec = {
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "clusters": [{"name": one, "replicas": 1} for one in clusters],
        "placement": placement or {},
    }
    place = {"namespace": "shop"} if kind is ResourceBinding else {}
    body = {"metadata": {"name": name, **place, **meta}, "spec": spec, "status": {"conditions": conditions or []}}
    work = Work(metadata=ObjectMeta(name=name, namespace="karmada-es-a"))
    return Remaining(work, msgspec.convert(body, kind))


GOING = Work(metadata=ObjectMeta(name="web", namespace="karmada-es-a", deletion_timestamp=NOW))


def said(*found: Remaining) -> tuple[str, str]:
    condition = leaving_condition(Cluster(metadata=ObjectMeta(name="a")), found, NOW)
    assert (condition.type, condition.status) == ("Leaving", "True")
    return condition.reason, condition.message


HAND = "ResourceBinding shop/web names it in spec.clusters: take it out there"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (remaining(), HAND),
        (remaining(clusters=("b",)), ""),
        (remaining(deletionTimestamp="2030-01-01T00:00:00Z"), ""),
        (remaining(placement=PLACEMENT), ""),
        (remaining(placement=PLACEMENT, clusters=("b",), conditions=FAILED), ""),
        (
            remaining(placement=PLACEMENT, conditions=FAILED),
            "ResourceBinding shop/web has no other cluster: its condition Scheduled says why",
        ),
        (remaining(kind=ClusterResourceBinding), "ClusterResourceBinding web names it in spec.clusters"),
        (remaining(ownerReferences=[PROPOSED]), "ResourceBinding shop/web of karmada.io names it in spec.clusters"),
        (Remaining(GOING, None), ""),
        (Remaining(remaining().work, None), "Work karmada-es-a/web is of no binding: delete it"),
    ],
)
def test_what_stays_until_somebody_changes_it_is_told_from_what_is_on_its_way(one: Remaining, words: str) -> None:
    reason, message = said(one)
    assert reason == (LeavingReason.bindings_remain if words else LeavingReason.replicas_move)
    assert words in message
    assert "ResourceBinding shop/web" in message or one.binding is None or one.binding.metadata.namespace is None


def test_what_somebody_has_to_change_comes_before_what_is_on_its_way() -> None:
    _, message = said(remaining("z"), remaining("web"), remaining("b", clusters=("b",)))
    assert message == f"It stays until nothing runs here: {HAND}; {HAND.replace('shop/web', 'shop/z')}"


def test_of_many_bindings_the_first_few_are_named() -> None:
    many = [remaining(f"web-{number}") for number in range(9)]
    assert said(*many)[1].endswith("; and 6 more")
    assert said(*many) == said(*reversed(many))
    moving = [remaining(f"web-{number}", clusters=("b",)) for number in range(9)]
    assert "shop/web-0, ResourceBinding shop/web-1, ResourceBinding shop/web-2 and 6 more" in said(*moving)[1]
