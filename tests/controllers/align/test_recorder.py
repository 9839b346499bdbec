"""What the recorder counts of pods that their ReplicaSet is to delete, and of watches that are late."""

from __future__ import annotations

import pytest

from controllers.align.recorder import Kept, Seen, in_order
from kedge.api.apps import ReplicaSet, ReplicaSetSpec
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.pods import Pod


def replica_set(version: int, replicas: int, *, at: float = 0.0, name: str = "old") -> Seen:
    meta = ObjectMeta(name=name, uid=name, resource_version=str(version))
    return Seen(at, "a", False, ReplicaSet(metadata=meta, spec=ReplicaSetSpec(replicas=replicas)))


def pod(version: int, name: str, *, at: float = 0.0, of: str = "old", is_gone: bool = False) -> Seen:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=of, uid=of, controller=True)
    meta = ObjectMeta(name=name, resource_version=str(version), owner_references=(owner,))
    return Seen(at, "a", is_gone, Pod(metadata=meta))


OLD_ONES = (replica_set(1, 2), pod(2, "one"), pod(3, "two"))
HISTORIES = {
    "all that are asked for": (OLD_ONES, 2),
    "one is to be deleted, and still there": ((*OLD_ONES, replica_set(4, 1)), 1),
    "one was created before another was deleted": (
        (*OLD_ONES, replica_set(4, 1), replica_set(5, 1, name="new"), pod(6, "three", of="new")),
        2,
    ),
    "one was created that nobody made room for": ((*OLD_ONES, pod(4, "three", of="new")), 3),
    "one is gone": ((*OLD_ONES, pod(4, "two", is_gone=True)), 1),
    "of nobody": ((pod(1, "one", of=""), pod(2, "two", of="")), 2),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_pods_that_are_to_be_deleted_do_not_count(name: str) -> None:
    history, expected = HISTORIES[name]
    kept = Kept()
    for seen in history:
        kept.take(seen)
    assert kept.count() == expected


def test_a_watch_that_is_late_does_not_change_the_order_of_a_server() -> None:
    created, asked = pod(6, "three", at=1.0), replica_set(4, 1, at=2.0)
    ordered = in_order([created, asked])
    assert [seen.obj for seen in ordered] == [asked.obj, created.obj]
    assert [seen.at for seen in ordered] == [2.0, 2.0]
