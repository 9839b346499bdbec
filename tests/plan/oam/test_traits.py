"""What becomes of traits, and which cannot work together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.oam.applications import ApplicationTrait
from kedge.api.oam.rollouts import Rollout
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.traits import (
    conflict,
    is_rollout,
    is_scaler,
    named,
    rollout_spec,
    scaled_to,
    target_revision,
    trait_object,
)
from plan.oam.objects import AUTOSCALER, trait

KEDA = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
ROLLOUT_TRAIT = {"apiVersion": "standard.oam.dev/v1alpha1", "kind": "RolloutTrait"}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "door"}}


def made(type: str, **properties: Any) -> Any:  # noqa: A002
    return trait_object("web", msgspec.convert(trait(type, **properties), ApplicationTrait))


ROLLOUT = made("rollout", targetSize=3)
SCALER = made("scaler", replicas=4)


def test_a_rollout_is_a_rollout_of_the_component() -> None:
    found = made("rollout", targetRevision="web-v2", targetSize=3, rolloutBatches=[{"replicas": 1}], batchPartition=0)
    assert found == {
        "apiVersion": "standard.oam.dev/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web"},
        "spec": {
            "targetRevisionName": "web-v2",
            "componentName": "web",
            "rolloutPlan": {"targetSize": 3, "rolloutBatches": [{"replicas": 1}], "batchPartition": 0},
        },
    }
    assert msgspec.convert(found, Rollout).spec.rollout_plan.target_size == 3
    assert "targetRevisionName" not in ROLLOUT["spec"]


def test_all_fields_of_a_plan_can_be_reached() -> None:
    plan = {"rolloutStrategy": "DecreaseFirst", "paused": True, "numBatches": 2}
    assert made("rollout", **plan)["spec"]["rolloutPlan"] == plan


def test_a_scaler_asks_for_replicas() -> None:
    assert SCALER["spec"] == {"replicaCount": 4}
    assert made("scaler")["spec"] == {"replicaCount": 1}
    assert made("scaler", replicas=0)["spec"] == {"replicaCount": 0}
    assert (scaled_to([INGRESS, SCALER]), scaled_to([INGRESS]), scaled_to([])) == (4, None, None)
    assert scaled_to([made("scaler", replicas=0)]) == 0


def test_a_raw_trait_is_taken_as_it_is_and_v1alpha2_calls_the_type_name() -> None:
    assert made("raw", **INGRESS) == INGRESS
    old = ApplicationTrait(name="scaler", properties={"replicas": 4})
    assert trait_object("web", old) == SCALER


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (trait("hpa", max=3), "component web has the trait 'hpa', which is not known here: use rollout or scaler, or"),
        (trait("", x=1), "component web has the trait '', which"),
        (
            trait("rollout", size=3),
            "component web: a rollout has no property 'size', only batchPartition, canaryMetric",
        ),
        (
            trait("rollout", targetSize="3"),
            "component web: its rollout cannot be read: Expected `int | null`, got `str`",
        ),
        (trait("scaler", min=3), "component web: a scaler has the property replicas and no other"),
        (trait("scaler", replicas="3"), "component web: the replicas of its scaler must be a number, 0 or more"),
        (trait("scaler", replicas=-1), "must be a number"),
        (trait("raw", kind="Ingress"), "component web: the properties of its trait raw must be a whole object"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(given: Any, message: str) -> None:
    with pytest.raises(OamRefused, match=message.replace("|", r"\|")):
        trait_object("web", msgspec.convert(given, ApplicationTrait))


@pytest.mark.parametrize(
    ("traits", "rolled_by", "problem"),
    [
        ([], "", ""),
        ([ROLLOUT, INGRESS], "", ""),
        ([SCALER, AUTOSCALER], "", ""),
        ([INGRESS], "spec.rolloutPlan", ""),
        ([ROLLOUT, SCALER], "", "component web has Rollout and ManualScalerTrait, which both set its replicas: remove"),
        ([AUTOSCALER, ROLLOUT_TRAIT], "", "component web has RolloutTrait and HorizontalPodAutoscaler, which both"),
        ([ROLLOUT, KEDA, SCALER], "", "component web has Rollout and ScaledObject and ManualScalerTrait, which both"),
        ([SCALER], "spec.rolloutPlan", "component web has spec.rolloutPlan and ManualScalerTrait, which both"),
        ([ROLLOUT], "spec.rolloutPlan", "component web is rolled out by spec.rolloutPlan and Rollout: only one can"),
        ([ROLLOUT, ROLLOUT_TRAIT], "", "component web is rolled out by Rollout and RolloutTrait: only one can"),
    ],
)
def test_a_rollout_and_what_scales_cannot_be_together(traits: list[Any], rolled_by: str, problem: str) -> None:
    found = conflict("web", traits, rolled_by=rolled_by)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_kinds_of_other_groups_are_something_else() -> None:
    other = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    assert (is_rollout(other), is_rollout(ROLLOUT), is_rollout(ROLLOUT_TRAIT)) == (False, True, True)
    assert (is_scaler(SCALER), is_scaler({"apiVersion": "v1", "kind": "ManualScalerTrait"})) == (True, False)


def test_a_rollout_gets_the_revision_of_its_component_unless_it_names_one() -> None:
    assert rollout_spec(ROLLOUT, "web", "web-v2", ["web-v1"]) == {
        "targetRevisionName": "web-v2",
        "componentName": "web",
        "rolloutPlan": {"targetSize": 3},
    }
    back = made("rollout", targetRevision="web-v1")
    assert rollout_spec(back, "web", "web-v2")["targetRevisionName"] == "web-v1"
    assert (target_revision([INGRESS, back], "web-v2"), target_revision([ROLLOUT], "web-v2")) == ("web-v1", "web-v2")


def test_a_rollout_trait_refers_to_component_revisions() -> None:
    def ref(name: str) -> dict[str, str]:
        return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "name": name}

    plan = {"rolloutPlan": {"targetSize": 3}}
    given = {**ROLLOUT_TRAIT, "spec": plan}
    assert rollout_spec(given, "web", "web-v2", ["web-v1"]) == {
        "targetRef": ref("web-v2"),
        "sourceRef": [ref("web-v1")],
        **plan,
    }
    assert rollout_spec(given, "web", "web-v1") == {"targetRef": ref("web-v1"), **plan}
    own = {**ROLLOUT_TRAIT, "spec": {"targetRef": ref("x"), **plan}}
    assert rollout_spec(own, "web", "web-v1")["targetRef"] == ref("x")


def test_a_trait_without_a_name_is_called_as_its_component() -> None:
    assert (named(INGRESS, "web"), named(AUTOSCALER, "web")) == ("door", "web")
