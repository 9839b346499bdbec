"""How a rollout takes Applications over from their controller, and gives them back."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.oam.keys import CREATING, ROLLING_COMPONENTS, ROLLOUT_TEMPLATE
from kedge.plan.batching.app_control import AppOwner, ControlledApplication, awaits, bring_in, release, taken_by
from kedge.plan.batching.moves import WorkloadRef, Write
from kedge.plan.fields import patched

OWNER = AppOwner("core.oam.dev/v1alpha2", "ApplicationDeployment", "web", "uid-1")
REFERENCE = {
    "apiVersion": "core.oam.dev/v1alpha2",
    "kind": "ApplicationDeployment",
    "name": "web",
    "uid": "uid-1",
    "controller": True,
    "blockOwnerDeletion": False,
}
OTHERS = {"apiVersion": "v1", "kind": "ConfigMap", "name": "team", "uid": "uid-2"}


def application(owners: Any = None, **annotations: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "shop", "namespace": "prod", "uid": "u", "resourceVersion": "7"}
    if annotations:
        meta["annotations"] = {f"app.oam.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    if owners is not None:
        meta["ownerReferences"] = owners
    return {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "metadata": meta}


def target(obj: dict[str, Any], *, is_current: bool = True) -> ControlledApplication:
    return ControlledApplication(obj, "web", is_target=True, is_current=is_current)


def old(obj: dict[str, Any], *, had_pods: bool = True) -> ControlledApplication:
    return ControlledApplication(obj, "web", had_pods=had_pods)


def meta_of(write: Write | None) -> Any:
    """What a write changes of the metadata; it names the version it is for."""
    assert write is not None
    assert write.ref == WorkloadRef("core.oam.dev/v1beta1", "Application", "prod", "shop")
    assert (write.uid, write.resource_version) == ("u", "7")
    assert write.patch is not None
    assert list(write.patch) == ["metadata"]
    return write.patch["metadata"]


# Bringing in


@pytest.mark.parametrize(
    ("template", "newest", "revision", "awaited"),
    [
        ("true", None, "shop-v1", True),
        ("true", 1, "shop-v2", True),
        ("true", 1, "shop-v1", False),
        ("true", 1, "shop-v3", False),
        ("true", None, "shop-v2", False),
        ("true", None, "shop", False),
        ("true", None, "store-v1", False),
        ("false", None, "shop-v1", False),
        (None, None, "shop-v1", False),
    ],
)
def test_an_application_awaits_the_rollout_to_its_next_revision(
    template: str | None, newest: int | None, revision: str, awaited: bool
) -> None:
    found = application() if template is None else application(rollout_template=template)
    status = {} if newest is None else {"status": {"latestRevision": {"name": f"shop-v{newest}", "revision": newest}}}
    assert awaits({**found, **status}, revision) is awaited


def test_the_names_of_the_keys() -> None:
    keys = {ROLLING_COMPONENTS, CREATING, ROLLOUT_TEMPLATE}
    assert keys == {f"app.oam.dev/{name}" for name in ("rolling-components", "creating", "rollout-template")}


def test_an_application_is_told_which_component_is_rolled_out() -> None:
    found = bring_in(old(application()))
    assert meta_of(found) == {"annotations": {ROLLING_COMPONENTS: "web"}}
    assert meta_of(bring_in(old(application(rolling_components="api")))) == {
        "annotations": {ROLLING_COMPONENTS: "api,web"}
    }
    assert bring_in(old(application(rolling_components="web"))) is None
    assert bring_in(old(application(rolling_components="web,api"))) is None


def test_a_template_is_handed_to_its_controller_after_everything_else_was_written() -> None:
    template = application(rollout_template="true")
    first = meta_of(bring_in(target(template), OWNER))
    assert first == {"annotations": {ROLLING_COMPONENTS: "web", CREATING: "true"}, "ownerReferences": [REFERENCE]}
    noted = patched(template, {"metadata": first})
    assert meta_of(bring_in(target(noted), OWNER)) == {"annotations": {ROLLOUT_TEMPLATE: None}}
    handed = patched(noted, {"metadata": {"annotations": {ROLLOUT_TEMPLATE: None}}})
    assert bring_in(target(handed), OWNER) is None


def test_an_old_application_keeps_what_makes_it_a_template() -> None:
    template = application(rollout_template="true")
    assert meta_of(bring_in(old(template), OWNER)) == {"annotations": {ROLLING_COMPONENTS: "web"}}
    assert bring_in(old(application(rollout_template="true", rolling_components="web")), OWNER) is None


def test_a_target_that_is_no_template_is_not_being_created() -> None:
    for value in ("false", ""):
        found = bring_in(target(application(rollout_template=value)))
        assert meta_of(found) == {"annotations": {ROLLING_COMPONENTS: "web"}}


@pytest.mark.parametrize(
    ("owners", "added"),
    [
        (None, [REFERENCE]),
        ("not a list", [REFERENCE]),
        ([OTHERS], [OTHERS, REFERENCE]),
        ([{**OTHERS, "controller": True}], [{**OTHERS, "controller": True}, {**REFERENCE, "controller": False}]),
        ([{**OTHERS, "controller": False}], [{**OTHERS, "controller": False}, REFERENCE]),
        (
            [OTHERS, {**OTHERS, "uid": "uid-3", "controller": True}],
            [OTHERS, {**OTHERS, "uid": "uid-3", "controller": True}, {**REFERENCE, "controller": False}],
        ),
    ],
)
def test_a_target_belongs_to_the_rollout_beside_its_other_owners(owners: Any, added: Any) -> None:
    found = bring_in(target(application(owners, rolling_components="web")), OWNER)
    assert meta_of(found) == {"ownerReferences": added}


def test_a_target_that_belongs_to_the_rollout_already_or_to_none_is_left() -> None:
    assert bring_in(target(application([OTHERS, REFERENCE], rolling_components="web")), OWNER) is None
    assert bring_in(target(application(rolling_components="web"))) is None


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        (None, ""),
        ([REFERENCE], ""),
        ([{**REFERENCE, "uid": "uid-9", "name": "other"}], "ApplicationDeployment other"),
        ([REFERENCE, {**REFERENCE, "uid": "uid-9", "name": "other"}], "ApplicationDeployment other"),
        ([{**REFERENCE, "uid": "uid-9", "controller": False}], ""),
        ([{**OTHERS, "controller": True}], ""),
    ],
)
def test_an_application_that_another_rollout_brings_in_is_taken(owners: Any, found: str) -> None:
    assert taken_by(application(owners), OWNER) == found


# Giving back

ROLLED = {"rolling_components": "api,web", "creating": "true"}
FREED = {ROLLING_COMPONENTS: "api"}


@pytest.mark.parametrize(
    ("one", "succeeded", "reverted", "annotations"),
    [
        (target(application(**ROLLED)), True, False, {**FREED, CREATING: None}),
        (target(application(**ROLLED), is_current=False), True, False, {CREATING: None}),
        (target(application(**ROLLED)), False, False, {CREATING: None}),
        (target(application(**ROLLED)), False, True, {CREATING: None}),  # else its controller would finish it at once
        (target(application(rolling_components="web")), True, False, {ROLLING_COMPONENTS: None}),
        (old(application(**ROLLED)), False, True, FREED),
        (old(application(rolling_components="web")), False, True, {ROLLING_COMPONENTS: None}),
    ],
)
def test_what_is_given_back_at_the_end(
    one: ControlledApplication, succeeded: bool, reverted: bool, annotations: dict[str, Any]
) -> None:
    found = meta_of(release(one, "uid-1", succeeded=succeeded, reverted=reverted))
    assert found == {"annotations": annotations}


@pytest.mark.parametrize(
    ("one", "succeeded", "reverted"),
    [
        (old(application(**ROLLED)), True, False),  # nothing brings back the pods that it lost
        (old(application(**ROLLED), had_pods=False), False, True),
        (target(application()), True, False),
        (target(application(rolling_components="api,web")), False, False),
    ],
)
def test_an_application_that_is_still_held_or_given_back_already_is_left(
    one: ControlledApplication, succeeded: bool, reverted: bool
) -> None:
    assert release(one, "uid-1", succeeded=succeeded, reverted=reverted) is None


@pytest.mark.parametrize(
    ("owners", "left"), [([REFERENCE], None), ([OTHERS, REFERENCE], [OTHERS]), ([REFERENCE, OTHERS], [OTHERS])]
)
def test_the_rollout_is_no_owner_any_more(owners: Any, left: Any) -> None:
    found = release(target(application(owners)), "uid-1", succeeded=False, reverted=False)
    assert meta_of(found) == {"ownerReferences": left}
    assert release(target(application([OTHERS])), "uid-1", succeeded=False, reverted=False) is None
