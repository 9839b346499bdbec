"""The judge of journeys notices what it is there for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fleet.bed import Bed
from fleet.journey import BAD, Record, Step, Stretch
from fleet.judging import (
    bad_releases,
    deletes_users,
    disruptions,
    other_clusters,
    other_end,
    removals,
    too_many_unavailable,
)
from fleet.traces import Fleet, Found
from fleet.watching import Happening

THREE = frozenset({"cluster-1", "cluster-2", "cluster-3"})


async def nothing(bed: Bed) -> None: ...


def deployment(where: str, revision: int, image: str = "app:1", available: int = 2, **other: Any) -> Happening:
    status = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": available, "observedGeneration": 1}
    template = {"spec": {"containers": [{"image": image}]}}
    meta = {"name": "web", "namespace": "test-ns", "uid": where, "generation": 1, "resourceVersion": str(revision)}
    obj = {"kind": "Deployment", "metadata": meta | other, "spec": {"replicas": 2, "template": template}}
    return Happening(float(revision), where, "MODIFIED", {**obj, "status": status})


def record(*later: Happening, holders: frozenset[str] = THREE) -> Record:
    """Placed on three clusters at revisions below 10; from then on a release, and what is given."""
    first = Step("first placed", nothing, "app:1", clusters=3, target=3, kills=0)
    second = Step("a release", nothing, "app:2", clusters=len(holders), target=3, kills=0, is_release=True)
    begun = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(3)]
    return Record(
        stretches=(Stretch(first, 0, begun[0], THREE), Stretch(second, 10, begun[1], holders)),
        ended=begun[2],
        deployments=(*(deployment(where, 1) for where in sorted(THREE)), *later),
        on_hub=(),
        configs={},
        rest=Fleet("", (), {}),
        killed=(),
    )


GOOD = record(
    deployment("cluster-1", 11, "app:2", 1), deployment("cluster-1", 12, "app:2"), deployment("cluster-2", 13, BAD)
)


def test_a_journey_that_went_well_is_not_blamed() -> None:
    found = [*removals(GOOD, GOOD), *disruptions(GOOD), *too_many_unavailable(GOOD), *bad_releases(GOOD)]
    assert [*found, *other_clusters(GOOD, GOOD), *other_end(GOOD, GOOD)] == []


def test_a_removal_from_a_cluster_that_stays_is_noticed() -> None:
    went = record(deployment("cluster-1", 11, deletionTimestamp="now"))
    assert list(removals(went, record())) == ["a release: Deployment web of cluster-1 was removed"]
    assert list(removals(went, record(holders=THREE - {"cluster-1"}))) == []


def test_a_deployment_made_anew_is_noticed() -> None:
    again = record(deployment("cluster-1", 11, uid="another"))
    assert [text.partition(":")[0] for text in other_clusters(again, record())] == ["cluster-1"]


def test_two_clusters_touched_at_once_are_noticed() -> None:
    both = record(deployment("cluster-1", 11, "app:2", 0), deployment("cluster-2", 12, "app:2", 0))
    assert list(disruptions(both)) == ["a release: cluster-2 was touched while only 1 others were available, not 2"]
    assert list(too_many_unavailable(both)) == [
        "a release: app:2 was not available on ['cluster-1', 'cluster-2'] at once"
    ]


def test_a_bad_release_on_two_clusters_is_noticed() -> None:
    spread = record(deployment("cluster-1", 11, BAD), deployment("cluster-2", 12, BAD))
    assert list(bad_releases(spread)) == ["the bad release reached ['cluster-1', 'cluster-2']"]


def test_what_is_left_over_or_missing_on_a_member_is_noticed() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}}
    left = msgspec.structs.replace(record(), rest=Fleet("", (Found("cluster-4", namespace),), {}))
    assert list(other_end(left, record())) == ["cluster-4/Namespace//test-ns should not be there"]
    assert len(list(other_end(record(), left))) == 1


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "code", "counts"),
    [
        ("delete", "deployments", "test-ns", 200, True),
        ("deletecollection", "configmaps", "test-ns", 200, True),
        ("delete", "deployments", "test-ns", 409, False),
        ("delete", "pods", "test-ns", 200, False),
        ("delete", "deployments", "other", 200, False),
        ("patch", "deployments", "test-ns", 200, False),
    ],
)
def test_deletes_of_what_users_placed_count(verb: str, resource: str, namespace: str, code: int, counts: bool) -> None:
    target = {"resource": resource, "namespace": namespace, "name": "web"}
    assert deletes_users({"verb": verb, "objectRef": target, "responseStatus": {"code": code}}) is counts
