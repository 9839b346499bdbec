"""The workload that one component revision asks a rollout for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kedge.api.apps import ControllerRevision
from kedge.api.meta import ObjectMeta
from kedge.api.oam.keys import (
    APP_REVISION_LABEL,
    COMPONENT_LABEL,
    FROZEN,
    NAME_LABEL,
    REVISION_LABEL,
    SKIP_GC,
)
from kedge.plan.fields import patched
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revised_workloads import application_in, component_of, owner_problem, revised_workload
from plan.oam.objects import DEPLOYMENT, STATEFUL_SET, component

OWNERS = ({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "name": "shop", "uid": "u1"},)


def revision(workload: Mapping[str, Any] = DEPLOYMENT) -> ControllerRevision:
    return ControllerRevision(data=component(workload), metadata=ObjectMeta(name="web-v2", namespace="prod"))


# What a revision asks for


def test_a_workload_is_named_labelled_owned_and_not_frozen() -> None:
    found = revised_workload(
        revision(), component="web", application="shop", app_revision="shop-v2", owners=list(OWNERS)
    )
    assert (found["apiVersion"], found["kind"]) == ("apps/v1", "Deployment")
    assert found["metadata"] == {
        "name": "web-v2",
        "namespace": "prod",
        "labels": {
            NAME_LABEL: "shop",
            COMPONENT_LABEL: "web",
            REVISION_LABEL: "web-v2",
            APP_REVISION_LABEL: "shop-v2",
        },
        "annotations": {SKIP_GC: "true"},
        "ownerReferences": list(OWNERS),
    }
    assert found["spec"]["replicas"] == 3
    assert component_of(found) == "web"


def test_one_of_no_application_has_neither_its_labels_nor_owners() -> None:
    found = revised_workload(revision())
    assert found["metadata"]["labels"] == {COMPONENT_LABEL: "web", REVISION_LABEL: "web-v2"}
    assert "ownerReferences" not in found["metadata"]


def test_its_application_is_that_of_the_rollout_or_else_of_the_revision() -> None:
    labelled = patched(DEPLOYMENT, {"metadata": {"labels": {NAME_LABEL: "store"}}})
    assert application_in(revised_workload(revision())) == ""
    assert application_in(revised_workload(revision(labelled))) == "store"
    assert application_in(revised_workload(revision(labelled), application="shop")) == "shop"


def test_one_that_is_changed_in_place_is_called_as_its_component() -> None:
    found = revised_workload(revision(STATEFUL_SET))
    assert found["metadata"]["name"] == "web"
    assert FROZEN not in found["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("workload", "asked", "said"),
    [
        (DEPLOYMENT, "api", "the ControllerRevision web-v2 is a revision of the component web, not of api"),
        (
            {"apiVersion": "v1", "kind": "Secret"},
            "web",
            "the workload kind `Secret` of the ControllerRevision web-v2 is not supported",
        ),
    ],
)
def test_a_revision_of_something_else_is_refused(workload: Mapping[str, Any], asked: str, said: str) -> None:
    with pytest.raises(OamRefused) as refused:
        revised_workload(revision(workload), component=asked)
    assert str(refused.value) == said


# What is there already


def live(
    application: str = "shop", of: str = "web", revised: str = "web-v2", kind: str = "Deployment"
) -> dict[str, Any]:
    labels = {NAME_LABEL: application, COMPONENT_LABEL: of, REVISION_LABEL: revised}
    meta = {"name": "web-v2", "namespace": "prod", "labels": {key: value for key, value in labels.items() if value}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta}


MINE = revised_workload(revision(), application="shop")
FIX = "delete it, or give the component another name"


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, ""),
        (live(), ""),
        (live("other"), f"Deployment prod/web-v2 exists already and belongs to the Application other: {FIX}"),
        (live(""), f"Deployment prod/web-v2 exists already and was made by somebody else: {FIX}"),
        (live(of="api"), f"Deployment prod/web-v2 exists already and belongs to the Application shop: {FIX}"),
        (live(revised="web-v1"), "Deployment prod/web-v2 exists already and is of web-v1, not of web-v2: delete it"),
        (live(revised=""), "Deployment prod/web-v2 exists already and is of no revision, not of web-v2: delete it"),
    ],
)
def test_a_workload_of_this_name_is_the_one_or_whose_it_is(found: dict[str, Any] | None, problem: str) -> None:
    assert owner_problem(found, MINE) == problem


def test_one_that_is_changed_in_place_may_be_of_another_revision() -> None:
    wanted = revised_workload(revision(STATEFUL_SET), application="shop")
    assert owner_problem(live(revised="web-v1", kind="StatefulSet"), wanted) == ""
