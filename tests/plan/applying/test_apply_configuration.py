"""What is written for a manifest, to the byte; whose it is; and how its fields are handed over."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.fleet import LAST_APPLIED, SPEC_HASH
from kedge.api.resource import Resource
from kedge.api.rollout import ApplyStrategy, ApplyType, WhenToApply, WhenToTakeOver
from kedge.plan.applying.apply_configuration import (
    MAX_ANNOTATION_BYTES,
    last_applied,
    merged_object,
    upgraded_managed_fields,
    with_last_applied,
    with_owner_and_hash,
    without_last_applied,
)
from kedge.plan.applying.manifests import DesiredObject, read_manifests
from kedge.plan.applying.ownership import WorkOwner, is_applied_work, refusal, unsupported

OWNER = WorkOwner("crp-work", "UUID")
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"labels": {"kubernetes.io/metadata.name": "test-ns"}, "name": "test-ns"},
    "spec": {"finalizers": ["kubernetes"]},
}
RECORDED = (
    '{"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"kubernetes-fleet.io/spec-hash":"SHA256"},'
    '"labels":{"kubernetes.io/metadata.name":"test-ns"},"name":"test-ns","ownerReferences":['
    '{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","blockOwnerDeletion":true,"kind":"AppliedWork",'
    '"name":"crp-work","uid":"UUID"}]},"spec":{"finalizers":["kubernetes"]}}\n'
)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
THINGS = Resource("apps.example.com", "v1", "Deployment", "deployments")


def placed(body: dict[str, Any], resource: Resource) -> DesiredObject:
    (found,) = read_manifests([body], lambda *_: resource)
    assert isinstance(found, DesiredObject)
    return found


def config(**data: str) -> DesiredObject:
    metadata = {"name": "x", "namespace": "shop"}
    return placed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, CONFIG_MAPS)


def test_the_last_applied_annotation_equals_kubefleets_to_the_byte() -> None:
    found = placed(NAMESPACE, Resource("", "v1", "Namespace", "namespaces", namespaced=False))
    wanted = with_last_applied(with_owner_and_hash(replace(found, digest="SHA256"), OWNER))
    assert wanted is not None
    assert wanted["metadata"]["annotations"] == {SPEC_HASH: "SHA256", LAST_APPLIED: RECORDED}


def test_the_last_applied_annotation_is_json_as_go_writes_it() -> None:
    wanted = with_last_applied(with_owner_and_hash(config(a="<b> & \u2028 ü"), OWNER))
    assert wanted is not None
    assert r'"a":"\u003cb\u003e \u0026 \u2028 ü"' in wanted["metadata"]["annotations"][LAST_APPLIED]
    assert last_applied(wanted)["data"] == {"a": "<b> & \u2028 ü"}


def test_a_configuration_too_large_for_an_annotation_is_not_remembered() -> None:
    assert with_last_applied(with_owner_and_hash(config(a="x" * (MAX_ANNOTATION_BYTES - 1000)), OWNER)) is not None
    assert with_last_applied(with_owner_and_hash(config(a="x" * MAX_ANNOTATION_BYTES), OWNER)) is None
    assert with_last_applied(with_owner_and_hash(config(a="ü" * (MAX_ANNOTATION_BYTES // 2)), OWNER)) is None


def test_a_configuration_just_small_enough_is_remembered() -> None:
    assert MAX_ANNOTATION_BYTES == 262_144
    empty = with_last_applied(with_owner_and_hash(config(a=""), OWNER))
    assert empty is not None
    room = MAX_ANNOTATION_BYTES - sum(
        len(name) + len(value) for name, value in empty["metadata"]["annotations"].items()
    )
    assert with_last_applied(with_owner_and_hash(config(a="x" * room), OWNER)) is not None
    assert with_last_applied(with_owner_and_hash(config(a="x" * (room + 1)), OWNER)) is None


def test_only_the_last_applied_annotation_is_removed() -> None:
    obj = {"kind": "X", "metadata": {"name": "x", "annotations": {LAST_APPLIED: "{}", "mine": "1"}}, "spec": {}}
    assert without_last_applied(obj) == {
        "kind": "X",
        "metadata": {"name": "x", "annotations": {"mine": "1"}},
        "spec": {},
    }


def test_other_owners_of_an_object_stay() -> None:
    wanted = with_owner_and_hash(config(a="1"), OWNER)
    live = {"metadata": {"name": "x", "ownerReferences": [owned_by()]}}
    assert merged_object(CONFIG_MAPS, wanted, live, OWNER)["metadata"]["ownerReferences"] == [owned_by(), OURS]
    assert merged_object(CONFIG_MAPS, wanted, {"metadata": {}}, OWNER)["metadata"]["ownerReferences"] == [OURS]


@pytest.mark.parametrize(
    "resource",
    [
        Resource("apps", "v1", "Deployment", "deployments"),
        Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False),
        Resource("apps", "v9", "Deployment", "deployments"),
        THINGS,
    ],
)
def test_finalizers_of_others_stay_for_every_kind(resource: Resource) -> None:
    wanted = {"metadata": {"name": "x", "finalizers": ["ours"]}}
    live = {"metadata": {"name": "x", "finalizers": ["theirs"]}}
    assert merged_object(resource, wanted, live, OWNER)["metadata"]["finalizers"] == ["ours", "theirs"]


def test_lists_of_a_known_kind_merge() -> None:
    def pod(*names: str) -> dict[str, Any]:
        containers = [{"name": name} for name in names]
        return {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": containers}}}}

    found = merged_object(Resource("apps", "v1", "Deployment", "deployments"), pod("b"), pod("a"), OWNER)
    assert found["spec"]["template"]["spec"]["containers"] == [{"name": "b"}, {"name": "a"}]
    rules = {"metadata": {"name": "x"}, "rules": [{"host": "b"}]}
    ingress = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
    assert merged_object(ingress, rules, {"metadata": {}, "rules": [{"host": "a"}]}, OWNER)["rules"] == [{"host": "b"}]


def test_a_last_applied_annotation_in_a_manifest_does_not_nest() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "shop", "annotations": {LAST_APPLIED: "{}", "mine": "1"}},
    }
    config = with_owner_and_hash(placed(body, CONFIG_MAPS), OWNER)
    assert set(config["metadata"]["annotations"]) == {"mine", SPEC_HASH}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '"x"', "\ud800"])
def test_an_unreadable_last_applied_annotation_counts_as_none(text: str) -> None:
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: text}}}) == {}


def test_a_custom_kind_named_like_a_built_in_one_has_no_schema_of_it() -> None:
    body = {
        "apiVersion": "apps.example.com/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "b"}]}}},
    }
    wanted = with_last_applied(with_owner_and_hash(placed(body, THINGS), OWNER))
    assert wanted is not None
    live = {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    assert merged_object(THINGS, wanted, live, OWNER)["spec"]["template"]["spec"]["containers"] == [{"name": "b"}]


# Owners


def owned_by(
    kind: str = "Deployment", name: str = "web", uid: str = "1", api_version: str = "apps/v1"
) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


OURS = OWNER.reference
ANOTHER = WorkOwner("other-work", "2").reference
BEFORE = WorkOwner("crp-work", "of another time").reference
SHARING = ApplyStrategy(allow_co_ownership=True)
NEVER = ApplyStrategy(when_to_take_over=WhenToTakeOver.never)
IF_NO_DIFF = ApplyStrategy(when_to_take_over=WhenToTakeOver.if_no_diff)

MAY: list[tuple[list[dict[str, Any]], ApplyStrategy, str]] = [
    ([], ApplyStrategy(), ""),
    ([OURS], ApplyStrategy(), ""),
    ([OURS], NEVER, ""),
    ([OURS], IF_NO_DIFF, ""),
    ([BEFORE], ApplyStrategy(), ""),
    ([owned_by()], SHARING, ""),
    ([owned_by(), OURS], SHARING, ""),
    ([], NEVER, "NotTakenOver"),
    ([ANOTHER], NEVER, "NotTakenOver"),
    ([], IF_NO_DIFF, "FailedToTakeOver"),
    ([owned_by()], ApplyStrategy(), "FailedToTakeOver"),
    ([owned_by(), OURS], ApplyStrategy(), "ManifestApplyFailed"),
    ([ANOTHER], ApplyStrategy(), "FailedToTakeOver"),
    ([ANOTHER], SHARING, "FailedToTakeOver"),
    ([ANOTHER, OURS], SHARING, "ManifestApplyFailed"),
]


@pytest.mark.parametrize(("owners", "strategy", "reason"), MAY)
def test_which_objects_may_be_written(owners: list[dict[str, Any]], strategy: ApplyStrategy, reason: str) -> None:
    found = refusal(owners, OWNER, strategy)
    assert (found.reason if found else "") == reason


def test_the_owner_that_blocks_a_write_is_named() -> None:
    found = refusal([ANOTHER], OWNER, ApplyStrategy())
    assert found is not None
    assert found.message.startswith("AppliedWork other-work owns it on the member")
    for other in (owned_by(kind="AppliedWork"), owned_by(api_version="placement.kubernetes-fleet.io/v1beta1")):
        assert not is_applied_work(other)
    assert is_applied_work(ANOTHER)


def test_our_owner_reference_appears_once_and_replaces_an_earlier_one() -> None:
    assert OWNER.among([]) == [OURS]
    assert OWNER.among([owned_by()]) == [owned_by(), OURS]
    assert OWNER.among([BEFORE, owned_by(), OURS]) == [OURS, owned_by()]
    assert OWNER.without([BEFORE, owned_by(), OURS]) == [owned_by()]


@pytest.mark.parametrize(
    ("strategy", "is_supported"),
    [
        (ApplyStrategy(), True),
        (ApplyStrategy(type=ApplyType.server_side_apply), True),
        (ApplyStrategy(type=ApplyType.report_diff), False),
        (ApplyStrategy(when_to_apply=WhenToApply.if_not_drifted), False),
    ],
)
def test_unsupported_apply_strategies_are_refused(strategy: ApplyStrategy, is_supported: bool) -> None:
    assert (unsupported(strategy) is None) is is_supported


# Handing over


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def test_updates_become_applies_and_entries_of_others_and_of_the_status_stay() -> None:
    theirs = entry("kubectl", "Update", {"f:x": {}})
    of_status = entry("me", "Update", {"f:status": {}}, subresource="status")
    found = upgraded_managed_fields(
        [entry("me", "Update", {"f:a": {"f:b": {}}}), theirs, of_status, entry("me", "Apply", {"f:a": {"f:c": {}}})],
        "me",
    )
    assert found == [theirs, of_status, entry("me", "Apply", {"f:a": {"f:b": {}, "f:c": {}}})]


def test_an_update_without_an_apply_becomes_one() -> None:
    found = upgraded_managed_fields([entry("me", "Update", {"f:a": {}}, time="then")], "me")
    assert found == [entry("me", "Apply", {"f:a": {}}, time="then")]
    both = [entry("me", "Update", {}, time="then"), entry("me", "Apply", {}, time="later")]
    assert upgraded_managed_fields(both, "me") == [entry("me", "Apply", {}, time="later")]


@pytest.mark.parametrize("entries", [[], [entry("me", "Apply", {})], [entry("other", "Update", {})]])
def test_without_an_update_there_is_nothing_to_upgrade(entries: list[dict[str, Any]]) -> None:
    assert upgraded_managed_fields(entries, "me") is None
