"""Whose the claims of a StatefulSet are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.api.apps import RetentionPolicy, StatefulSet, StatefulSetSpec
from kedge.api.core import PersistentVolumeClaim
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.pods import Pod
from kedge.embedded.workloads.owned import reference_to
from kedge.embedded.workloads.stateful_pods import claim_owners, is_left_over

POD = Pod(metadata=ObjectMeta(name="web-1", uid="pod"))
STRANGER = OwnerReference(api_version="v1", kind="Backup", name="nightly", uid="x", controller=True)
FRIEND = replace(STRANGER, controller=None)


def stateful_set(when_scaled: str, when_deleted: str) -> StatefulSet:
    policy = RetentionPolicy(when_scaled=when_scaled, when_deleted=when_deleted)
    spec = StatefulSetSpec(persistent_volume_claim_retention_policy=policy)
    return StatefulSet(metadata=ObjectMeta(name="web", uid="set"), spec=spec)


def claim(*owned_by: OwnerReference) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name="data-web-1", owner_references=owned_by))


@pytest.mark.parametrize(
    ("when_scaled", "when_deleted", "surplus", "owner"),
    [
        ("Retain", "Retain", False, None),
        ("Retain", "Retain", True, None),
        ("Retain", "Delete", False, "web"),
        ("Retain", "Delete", True, "web"),
        ("Delete", "Retain", False, None),
        ("Delete", "Retain", True, "web-1"),
        ("Delete", "Delete", False, "web"),
        ("Delete", "Delete", True, "web-1"),
    ],
)
def test_the_policy_says_whose_a_claim_is(
    when_scaled: str, when_deleted: str, surplus: bool, owner: str | None
) -> None:
    seen = stateful_set(when_scaled, when_deleted)
    before = {None: claim(FRIEND, reference_to(seen)), "web": claim(FRIEND), "web-1": claim(FRIEND)}[owner]
    new = claim_owners(seen, POD, before, surplus=surplus)
    assert new is not None
    assert [one.name for one in new] == ["nightly", *([owner] if owner else [])]
    assert claim_owners(seen, POD, claim(*new), surplus=surplus) is None  # and then it stays so


def test_claims_of_others_are_left_alone() -> None:
    seen = stateful_set("Delete", "Delete")
    former = replace(reference_to(seen), uid="former")
    assert claim_owners(seen, POD, claim(STRANGER), surplus=False) is None
    assert claim_owners(seen, POD, claim(former), surplus=False) is None


def test_a_pod_waits_for_the_claim_of_the_one_before_it_to_go() -> None:
    left = claim(reference_to(POD))
    assert is_left_over(stateful_set("Delete", "Retain"), "web-1", left)
    assert not is_left_over(stateful_set("Retain", "Retain"), "web-1", left)
    assert not is_left_over(stateful_set("Delete", "Retain"), "web-1", claim())
