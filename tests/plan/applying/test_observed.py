"""What is kept of a member's objects."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.applying.observed import content_of, is_placed, observe, status_of
from kedge.plan.applying.ownership import WorkOwner

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "shop"},
    "data": {"a": "b"},
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 1},
}


def with_metadata(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def test_a_status_and_what_the_server_counts_are_no_change_and_all_else_is() -> None:
    plain = DEPLOYMENT
    same = with_metadata({**plain, "status": {"replicas": 2}}, resourceVersion="9", generation=4, managedFields=[{}])
    assert content_of(same) == content_of(plain)
    assert status_of(same) != status_of(plain)
    others = [
        with_metadata(plain, labels={"a": "b"}),
        with_metadata(plain, annotations={"a": "b"}),
        with_metadata(plain, finalizers=["x"]),
        with_metadata(plain, ownerReferences=[WorkOwner("w", "1").reference]),
        {**plain, "spec": {"replicas": 2}},
    ]
    assert len({content_of(one) for one in (plain, *others)}) == len(others) + 1


def test_only_who_it_is_and_whose_is_kept() -> None:
    owners = [WorkOwner("w", "1").reference, {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2"}]
    kept = observe(with_metadata(DEPLOYMENT, uid="7", labels={"a": "b"}, ownerReferences=owners)).metadata
    assert (kept.name, kept.namespace, kept.uid, kept.labels) == ("web", "shop", "7", {})
    assert [owner.name for owner in kept.owner_references] == ["w"]


def test_what_no_work_placed_does_not_count() -> None:
    assert not is_placed(CONFIG)
    assert not is_placed(with_metadata(CONFIG, ownerReferences=[{"apiVersion": "x/v1", "kind": "AppliedWork"}]))
    assert is_placed(with_metadata(CONFIG, ownerReferences=[WorkOwner("w", "1").reference]))


DIFFERENCES: list[tuple[dict[str, Any], bool]] = [
    ({"resourceVersion": "9"}, False),
    ({"uid": "8"}, True),
    ({"deletionTimestamp": "2030-01-01T00:00:00Z"}, True),
    ({"labels": {"a": "b"}}, True),
    ({"generation": 2}, True),
]


@pytest.mark.parametrize(("metadata", "differs"), DIFFERENCES)
def test_only_versions_are_no_difference(metadata: dict[str, Any], differs: bool) -> None:
    before = with_metadata(CONFIG, uid="7", resourceVersion="1", generation=1)
    after = with_metadata(before, **metadata)
    assert observe(after).differs_from(observe(before)) is differs


def test_another_status_is_a_difference() -> None:
    assert observe({**DEPLOYMENT, "status": {"replicas": 1}}).differs_from(observe(DEPLOYMENT))
