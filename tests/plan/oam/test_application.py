"""What is made of an Application: components, a configuration, a revision."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.oam.applications import ApplicationRevision
from kedge.plan.oam.application import (
    application_revision,
    components_of,
    configuration,
    configuration_annotations,
    is_template,
    names_in,
    render,
    rolled_by_plan,
    rolling_components,
    rolling_now,
)
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.revisions import application_hash
from plan.oam.objects import application, configured, trait, web

PLAN = {"targetSize": 3}
DB = {**web("worker"), "name": "db"}
ROLLOUT = trait("rollout", targetSize=3)


def made(*components: Any) -> Any:
    app = application(*components)
    return configuration(app, "shop-v2", [(one, f"{one.name}-v1") for one in render(app)])


def test_a_configuration_always_names_the_revisions_of_its_components() -> None:
    found = made(web(), DB)
    assert found == {
        "apiVersion": "core.oam.dev/v1alpha2",
        "kind": "ApplicationConfiguration",
        "metadata": {
            "name": "shop-v2",
            "namespace": "prod",
            "labels": {"app.oam.dev/name": "shop", "app.oam.dev/appRevision": "shop-v2"},
        },
        "spec": {
            "components": [
                {"componentName": "web", "revisionName": "web-v1"},
                {"componentName": "db", "revisionName": "db-v1"},
            ]
        },
    }


@pytest.mark.parametrize(
    ("options", "annotations"),
    [
        ({}, {}),
        (
            {"annotations": {"app.oam.dev/creating": "true", "other": "x"}},
            {"app.oam.dev/creating": "true", "app.oam.dev/rolling-components": "web"},
        ),
        (
            {"annotations": {"app.oam.dev/creating": "true", "app.oam.dev/rolling-components": "db"}},
            {"app.oam.dev/creating": "true", "app.oam.dev/rolling-components": "db"},
        ),
        ({"rolloutPlan": PLAN}, {"app.oam.dev/rolling-components": "web"}),
        (
            {"rolloutPlan": PLAN, "annotations": {"app.oam.dev/rolling-components": "db, web"}},
            {"app.oam.dev/rolling-components": "web,db"},
        ),
    ],
)
def test_the_annotations_of_a_configuration(options: dict[str, Any], annotations: dict[str, str]) -> None:
    app = application(web(), DB, **options)
    assert configuration_annotations(app, upgrades=False, rolling=rolling_now(app)) == annotations
    upgraded = {"app.oam.dev/appconfig-rollout": "true", **annotations}
    assert configuration_annotations(app, upgrades=True, rolling=rolling_now(app)) == upgraded


def test_traits_and_objects_beside_the_workload_are_traits_of_the_configuration() -> None:
    given = web(image="web:1", ports=[{"port": 80, "expose": True}], traits=[trait("scaler", replicas=2)])
    (one,) = made(given)["spec"]["components"]
    assert [each["trait"]["kind"] for each in one["traits"]] == ["ManualScalerTrait", "Service"]


def test_a_component_may_name_its_revision() -> None:
    first, second = render(application({**web(), "externalRevision": "blue"}, DB))
    assert (first.revision, second.revision) == ("blue", "")


def test_only_the_first_component_is_rolled_out_by_the_plan_of_the_application() -> None:
    assert rolled_by_plan(application(web(), DB, rolloutPlan=PLAN)) == ("web",)
    assert rolled_by_plan(application(web(), DB)) == ()


@pytest.mark.parametrize(
    ("components", "spec", "message"),
    [
        ((web(), web()), {}, "two components have the name web: each needs a name of its own"),
        ((web(traits=[ROLLOUT, trait("scaler")]),), {}, "component web has Rollout and ManualScalerTrait"),
        ((web(traits=[ROLLOUT]),), {"rolloutPlan": PLAN}, "is rolled out by spec.rolloutPlan and Rollout"),
        ((web("helm"),), {}, "has the type 'helm'"),
        ((web(traits=[trait("hpa")]),), {}, "has the trait 'hpa'"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(components: Any, spec: Any, message: str) -> None:
    with pytest.raises(OamRefused, match=message):
        render(application(*components, **spec))


def test_an_application_without_components_is_refused() -> None:
    with pytest.raises(OamRefused, match="the Application has no components"):
        render(msgspec.structs.replace(application(), spec=msgspec.structs.replace(application().spec, components=())))


def test_a_second_component_may_have_what_conflicts_with_the_plan_of_the_first() -> None:
    assert len(render(application(web(), {**DB, "traits": [trait("scaler")]}, rolloutPlan=PLAN))) == 2


@pytest.mark.parametrize(("value", "held"), [("true", True), ("false", False), ("", False), (None, False)])
def test_only_the_word_true_makes_a_template(value: str | None, held: bool) -> None:
    given = {} if value is None else {"app.oam.dev/rollout-template": value}
    assert is_template(application(annotations=given)) is held


ROLLED = {"componentName": "web", "traits": [{"trait": {"apiVersion": "standard.oam.dev/v1alpha1", "kind": "Rollout"}}]}
PLAIN = {"componentName": "db", "traits": [{"trait": {"apiVersion": "v1", "kind": "Service"}}]}


@pytest.mark.parametrize(
    ("components", "annotations", "rolling"),
    [
        ((PLAIN,), {}, set()),
        ((ROLLED, PLAIN), {}, {"web"}),
        (({**ROLLED, "traits": [*PLAIN["traits"], *ROLLED["traits"]]},), {}, {"web"}),
        ((PLAIN, ROLLED), {"app.oam.dev/rolling-components": "db"}, {"db", "web"}),
        ((PLAIN,), {"app.oam.dev/creating": "true"}, set()),
        ((PLAIN,), {"app.oam.dev/appconfig-rollout": "true"}, set()),
    ],
)
def test_which_components_are_only_written_frozen(components: Any, annotations: Any, rolling: set[str]) -> None:
    assert rolling_components(configured(*components, annotations=annotations)) == rolling


@pytest.mark.parametrize(("listed", "names"), [("", ()), ("a", ("a",)), ("a, b,,c ", ("a", "b", "c")), (" ", ())])
def test_names_are_separated_by_commas(listed: str, names: tuple[str, ...]) -> None:
    assert names_in(listed) == names


def test_a_revision_keeps_the_application_without_its_plan_and_what_was_made_of_it() -> None:
    app = application(web(traits=[trait("scaler", replicas=2)]), DB)
    components = render(app)
    made_of_it = configuration(app, "shop-v2", [(one, f"{one.name}-v1") for one in components])
    owner = {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "name": "shop", "uid": "u1"}
    planned = msgspec.structs.replace(app, spec=application(web(), DB, rolloutPlan=PLAN).spec)
    assert "rolloutPlan" not in application_revision(planned, "shop-v2", (), {}, owner)["spec"]["application"]["spec"]

    body: Any = application_revision(app, "shop-v2", components, made_of_it, owner)
    assert body["metadata"] == {
        "name": "shop-v2",
        "namespace": "prod",
        "labels": {"app.oam.dev/name": "shop"},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    kept = body["spec"]["application"]
    assert (kept["apiVersion"], kept["kind"]) == ("core.oam.dev/v1beta1", "Application")
    assert kept["metadata"] == {"name": "shop", "namespace": "prod"}
    assert application_hash(kept["spec"]) == application_hash(msgspec.to_builtins(app.spec))

    read = components_of(msgspec.convert(body, ApplicationRevision))
    assert [(one.name, one.revision, len(one.traits)) for one in read] == [("web", "web-v1", 1), ("db", "db-v1", 0)]
    assert read[0].component["spec"]["workload"] == components[0].workload
    assert read[0].component["metadata"] == {"name": "web", "namespace": "prod"}
    assert (read[0].component["apiVersion"], read[0].component["kind"]) == ("core.oam.dev/v1alpha2", "Component")


@pytest.mark.parametrize("configured", [None, {}, {"spec": {"components": [{"componentName": "gone"}]}}])
def test_a_revision_that_others_made_may_have_no_components(configured: Any) -> None:
    spec = {"application": {}, "applicationConfiguration": configured}
    assert components_of(msgspec.convert({"spec": spec}, ApplicationRevision)) == ()


def test_traits_that_cannot_be_read_are_passed_over() -> None:
    traits = [{"trait": {"kind": "Service"}}, {"trait": "x"}, {}]
    listed = {"componentName": "web", "revisionName": "web-v1", "traits": traits}
    spec = {
        "application": {},
        "components": [{"raw": {"metadata": {"name": "web"}}}],
        "applicationConfiguration": {"spec": {"components": [listed]}},
    }
    (found,) = components_of(msgspec.convert({"spec": spec}, ApplicationRevision))
    assert found.traits == ({"kind": "Service"},)
