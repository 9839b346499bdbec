"""What is written for a manifest, to the byte; whose it is; and how its fields are handed over."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.fleet import LAST_APPLIED, SPEC_HASH
from kedge.api.resource import Resource
from kedge.api.rollout import ApplyStrategy, ApplyType, WhenToApply, WhenToTakeOver
from kedge.plan.applying.configuration import MOST, configured, last_applied, remembered, target, without_last_applied
from kedge.plan.applying.handover import handed_over
from kedge.plan.applying.manifests import Placed, understand
from kedge.plan.applying.owning import Owner, is_applied_work, refusal, unsupported

OWNER = Owner("crp-work", "UUID")
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


def placed(body: dict[str, Any], resource: Resource) -> Placed:
    (found,) = understand([body], lambda *_: resource)
    assert isinstance(found, Placed)
    return found


def config(**data: str) -> Placed:
    metadata = {"name": "x", "namespace": "shop"}
    return placed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, CONFIG_MAPS)


def test_what_is_remembered_is_what_was_recorded_to_the_byte() -> None:
    found = placed(NAMESPACE, Resource("", "v1", "Namespace", "namespaces", namespaced=False))
    wanted = remembered(configured(replace(found, digest="SHA256"), OWNER))
    assert wanted is not None
    assert wanted["metadata"]["annotations"] == {SPEC_HASH: "SHA256", LAST_APPLIED: RECORDED}


def test_text_is_remembered_as_go_writes_it() -> None:
    wanted = remembered(configured(config(a="<b> & \u2028 ü"), OWNER))
    assert wanted is not None
    assert r'"a":"\u003cb\u003e \u0026 \u2028 ü"' in wanted["metadata"]["annotations"][LAST_APPLIED]
    assert last_applied(wanted)["data"] == {"a": "<b> & \u2028 ü"}


def test_what_is_too_large_is_not_remembered() -> None:
    assert remembered(configured(config(a="x" * (MOST - 1000)), OWNER)) is not None
    assert remembered(configured(config(a="x" * MOST), OWNER)) is None
    assert remembered(configured(config(a="ü" * (MOST // 2)), OWNER)) is None


def test_what_is_just_small_enough_is_remembered() -> None:
    assert MOST == 262_144
    empty = remembered(configured(config(a=""), OWNER))
    assert empty is not None
    room = MOST - sum(len(name) + len(value) for name, value in empty["metadata"]["annotations"].items())
    assert remembered(configured(config(a="x" * room), OWNER)) is not None
    assert remembered(configured(config(a="x" * (room + 1)), OWNER)) is None


def test_what_is_no_longer_kept_up_is_taken_away_and_nothing_else() -> None:
    obj = {"kind": "X", "metadata": {"name": "x", "annotations": {LAST_APPLIED: "{}", "mine": "1"}}, "spec": {}}
    assert without_last_applied(obj) == {
        "kind": "X",
        "metadata": {"name": "x", "annotations": {"mine": "1"}},
        "spec": {},
    }


def test_an_object_keeps_the_owners_it_has_beside_us() -> None:
    wanted = configured(config(a="1"), OWNER)
    live = {"metadata": {"name": "x", "ownerReferences": [owned_by()]}}
    assert target(CONFIG_MAPS, wanted, live, OWNER)["metadata"]["ownerReferences"] == [owned_by(), OURS]
    assert target(CONFIG_MAPS, wanted, {"metadata": {}}, OWNER)["metadata"]["ownerReferences"] == [OURS]


@pytest.mark.parametrize(
    "resource",
    [
        Resource("apps", "v1", "Deployment", "deployments"),
        Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False),
        Resource("apps", "v9", "Deployment", "deployments"),
        THINGS,
    ],
)
def test_finalizers_of_others_stay_whatever_the_kind(resource: Resource) -> None:
    wanted = {"metadata": {"name": "x", "finalizers": ["ours"]}}
    live = {"metadata": {"name": "x", "finalizers": ["theirs"]}}
    assert target(resource, wanted, live, OWNER)["metadata"]["finalizers"] == ["ours", "theirs"]


def test_lists_of_a_known_kind_merge() -> None:
    def pod(*names: str) -> dict[str, Any]:
        containers = [{"name": name} for name in names]
        return {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": containers}}}}

    found = target(Resource("apps", "v1", "Deployment", "deployments"), pod("b"), pod("a"), OWNER)
    assert found["spec"]["template"]["spec"]["containers"] == [{"name": "b"}, {"name": "a"}]
    rules = {"metadata": {"name": "x"}, "rules": [{"host": "b"}]}
    ingress = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
    assert target(ingress, rules, {"metadata": {}, "rules": [{"host": "a"}]}, OWNER)["rules"] == [{"host": "b"}]


def test_an_annotation_of_another_agent_in_a_manifest_does_not_nest() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "shop", "annotations": {LAST_APPLIED: "{}", "mine": "1"}},
    }
    config = configured(placed(body, CONFIG_MAPS), OWNER)
    assert set(config["metadata"]["annotations"]) == {"mine", SPEC_HASH}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '"x"', "\ud800"])
def test_what_cannot_be_read_back_was_nothing(text: str) -> None:
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: text}}}) == {}


def test_a_kind_of_ones_own_with_a_known_name_is_not_taken_for_the_known_one() -> None:
    body = {
        "apiVersion": "apps.example.com/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "b"}]}}},
    }
    wanted = remembered(configured(placed(body, THINGS), OWNER))
    assert wanted is not None
    live = {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    assert target(THINGS, wanted, live, OWNER)["spec"]["template"]["spec"]["containers"] == [{"name": "b"}]


# Owners


def owned_by(
    kind: str = "Deployment", name: str = "web", uid: str = "1", api_version: str = "apps/v1"
) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


OURS = OWNER.reference
ANOTHER = Owner("other-work", "2").reference
BEFORE = Owner("crp-work", "of another time").reference
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
def test_who_may_be_written(owners: list[dict[str, Any]], strategy: ApplyStrategy, reason: str) -> None:
    found = refusal(owners, OWNER, strategy)
    assert (found.reason if found else "") == reason


def test_whoever_placed_it_is_named() -> None:
    found = refusal([ANOTHER], OWNER, ApplyStrategy())
    assert found is not None
    assert found.message.startswith("AppliedWork other-work owns it on the member")
    for other in (owned_by(kind="AppliedWork"), owned_by(api_version="placement.kubernetes-fleet.io/v1beta1")):
        assert not is_applied_work(other)
    assert is_applied_work(ANOTHER)


def test_we_come_once_among_the_owners_and_take_the_place_of_one_we_were_before() -> None:
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
def test_what_is_not_supported_yet_says_so(strategy: ApplyStrategy, is_supported: bool) -> None:
    assert (unsupported(strategy) is None) is is_supported


# Handing over


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def test_updates_become_applies_and_those_of_others_and_of_a_status_stay() -> None:
    theirs = entry("kubectl", "Update", {"f:x": {}})
    of_status = entry("me", "Update", {"f:status": {}}, subresource="status")
    found = handed_over(
        [entry("me", "Update", {"f:a": {"f:b": {}}}), theirs, of_status, entry("me", "Apply", {"f:a": {"f:c": {}}})],
        "me",
    )
    assert found == [theirs, of_status, entry("me", "Apply", {"f:a": {"f:b": {}, "f:c": {}}})]


def test_what_was_only_updated_is_applied_from_now_on() -> None:
    found = handed_over([entry("me", "Update", {"f:a": {}}, time="then")], "me")
    assert found == [entry("me", "Apply", {"f:a": {}}, time="then")]
    both = [entry("me", "Update", {}, time="then"), entry("me", "Apply", {}, time="later")]
    assert handed_over(both, "me") == [entry("me", "Apply", {}, time="later")]


@pytest.mark.parametrize("entries", [[], [entry("me", "Apply", {})], [entry("other", "Update", {})]])
def test_there_may_be_nothing_to_hand_over(entries: list[dict[str, Any]]) -> None:
    assert handed_over(entries, "me") is None
