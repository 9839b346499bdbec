"""What a revision of an Application says to a rollout, and which of its components that moves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.oam.applications import ApplicationRevision
from kedge.plan.oam.app_revisions import (
    AppRevision,
    app_revision,
    component_names,
    latest_revision,
    rolled_component,
)
from kedge.plan.oam.application import RevisedComponent
from kedge.plan.oam.refused import OamRefused
from plan.oam.objects import DEPLOYMENT, component

OWNER = {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "name": "shop", "uid": "u1"}
WEB, API = component(DEPLOYMENT), component(DEPLOYMENT, "api")


def kept(*owners: dict[str, Any]) -> ApplicationRevision:
    configured = [
        {"componentName": "web", "revisionName": "web-v3", "traits": [{"trait": {"kind": "Service"}}]},
        {"componentName": "api", "revisionName": "api-v1"},
    ]
    spec = {
        "application": {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "metadata": {"name": "shop"}},
        "components": [{"raw": WEB}, {"raw": API}],
        "applicationConfiguration": {"spec": {"components": configured}},
    }
    meta = {"name": "shop-v2", "namespace": "prod", "ownerReferences": owners}
    return msgspec.convert({"metadata": meta, "spec": spec}, ApplicationRevision)


REVISED = (RevisedComponent("web", "web-v3", WEB, ({"kind": "Service"},)), RevisedComponent("api", "api-v1", API))


def test_what_a_revision_says() -> None:
    found = app_revision(kept({**OWNER, "controller": True, "blockOwnerDeletion": True}))
    assert found == AppRevision("shop", "shop-v2", REVISED, (OWNER,))
    assert found.names == ("web", "api")


@pytest.mark.parametrize("owners", [(), (OWNER,)])
def test_what_is_made_of_a_revision_that_nobody_controls_belongs_to_nobody(owners: tuple[dict[str, Any], ...]) -> None:
    assert app_revision(kept(*owners)).owners == ()


def test_a_component_is_found_by_its_name() -> None:
    found = AppRevision("shop", "shop-v2", REVISED)
    assert found.owners == ()
    assert [found.component(name) for name in ("web", "api", "web-v3", "")] == [*REVISED, None, None]


@pytest.mark.parametrize(
    ("application", "names"),
    [
        ({"spec": {"components": [{"name": "web"}, {"name": "api"}]}}, ("web", "api")),
        ({"spec": {"components": []}}, ()),
        ({"spec": {"components": "web"}}, ()),
        ({}, ()),
    ],
)
def test_the_components_of_an_application(application: dict[str, Any], names: tuple[str, ...]) -> None:
    assert component_names(application) == names


@pytest.mark.parametrize(("seen", "found"), [(3, "shop-v2"), (2, ""), (4, "")])
def test_the_newest_revision_counts_if_it_is_of_the_present_state(seen: int, found: str) -> None:
    status = {"observedGeneration": seen, "latestRevision": {"name": "shop-v2", "revision": 2}}
    assert latest_revision({"metadata": {"generation": 3}, "status": status}) == found
    assert latest_revision({"metadata": {"generation": 3}, "status": {"observedGeneration": 3}}) == ""


@pytest.mark.parametrize(
    ("target", "source", "asked", "chosen"),
    [
        (("web",), None, (), "web"),
        (("web", "api"), None, ("api",), "api"),
        (("web", "api"), ("api", "db"), (), "api"),
        (("web", "api"), ("web", "api"), ("web",), "web"),
    ],
)
def test_the_component_that_moves(
    target: tuple[str, ...], source: tuple[str, ...] | None, asked: tuple[str, ...], chosen: str
) -> None:
    assert rolled_component(target, source, asked) == chosen


@pytest.mark.parametrize(
    ("target", "source", "asked", "said"),
    [
        (("web", "api"), None, ("web", "api"), "only one component can be rolled out at a time"),
        (
            ("web", "api", "db"),
            ("api", "web"),
            (),
            "cannot find a default component, too many common components: [web api]",
        ),
        (
            ("web",),
            ("api", "db"),
            (),
            "cannot find a default component, there is no common component: the target has web, the source api and db",
        ),
        (
            (),
            None,
            (),
            "cannot find a default component, there is no common component: the target has none, the source none",
        ),
        (("web", "api"), None, ("db",), "componentList names db, and the target has only web and api"),
        ((), None, ("db",), "componentList names db, and the target has only no component"),
        (
            ("web", "api"),
            ("api",),
            ("web",),
            "componentList names web: it is not a common component in the application",
        ),
    ],
)
def test_it_refuses_to_guess(
    target: tuple[str, ...], source: tuple[str, ...] | None, asked: tuple[str, ...], said: str
) -> None:
    with pytest.raises(OamRefused) as refused:
        rolled_component(target, source, asked)
    assert str(refused.value) == said
