"""What is written for the traits of a component."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.fields import patched
from kedge.plan.oam.emission import APPLIED, WantedComponent
from kedge.plan.oam.refused import OamRefused
from kedge.plan.oam.trait_objects import check_owner, is_applied, rollout_sources, trait_body
from plan.oam.objects import AUTOSCALER, DEPLOYMENT, component

INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "door", "labels": {"a": "b"}}}
ROLLOUT = {"apiVersion": "standard.oam.dev/v1alpha1", "kind": "RolloutTrait", "spec": {"rolloutPlan": {}}}
WORKLOAD = patched(DEPLOYMENT, {"metadata": {"name": "web-v2"}})


def wanted(app_revision: str = "shop-v2") -> WantedComponent:
    return WantedComponent(component(DEPLOYMENT), "web-v2", "shop", app_revision)


def body(trait: Any, *sources: str, app_revision: str = "shop-v2") -> Any:
    return trait_body(trait, wanted(app_revision), WORKLOAD, sources)


def test_a_trait_has_a_name_a_namespace_and_the_labels_of_its_component() -> None:
    found = body(INGRESS)
    assert found["metadata"]["annotations"].keys() == {APPLIED}
    assert found == {
        **INGRESS,
        "metadata": {
            "name": "door",
            "namespace": "prod",
            "labels": {
                "a": "b",
                "app.oam.dev/name": "shop",
                "app.oam.dev/component": "web",
                "app.oam.dev/appRevision": "shop-v2",
            },
            "annotations": found["metadata"]["annotations"],
        },
    }
    assert body(AUTOSCALER)["metadata"]["name"] == "web"


def test_an_autoscaler_gets_the_workload_as_its_target_unless_it_has_one() -> None:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}
    assert body(AUTOSCALER)["spec"] == {"maxReplicas": 5, "scaleTargetRef": ref}
    own = {**AUTOSCALER, "spec": {"scaleTargetRef": {"name": "other"}}}
    assert body(own)["spec"] == {"scaleTargetRef": {"name": "other"}}
    bare = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    assert body(bare)["spec"] == {"scaleTargetRef": ref}


def test_a_rollout_gets_the_revision_of_its_component() -> None:
    found = body(ROLLOUT, "web-v1")["spec"]
    assert (found["targetRef"]["name"], [one["name"] for one in found["sourceRef"]]) == ("web-v2", ["web-v1"])


def test_a_trait_is_applied_again_only_when_it_changes() -> None:
    live = body(INGRESS)
    assert is_applied(body(INGRESS), live)
    assert is_applied(body(INGRESS, app_revision="shop-v3"), live)
    assert not is_applied(body({**INGRESS, "spec": {"rules": []}}), live)
    assert not is_applied(body(INGRESS), None)
    assert not is_applied(body(INGRESS), INGRESS)


def test_a_trait_of_another_namespace_or_owner_is_refused() -> None:
    with pytest.raises(
        OamRefused, match="component web: its trait Ingress has another namespace than prod: leave it out"
    ):
        body(patched(INGRESS, {"metadata": {"namespace": "test"}}))
    assert body(patched(INGRESS, {"metadata": {"namespace": "prod"}}))["metadata"]["namespace"] == "prod"
    check_owner(None, wanted())
    check_owner(body(INGRESS), wanted())
    with pytest.raises(OamRefused, match="its trait Ingress door exists already and belongs to somebody else"):
        check_owner(INGRESS, wanted())


def rolled(target: str, *sources: str, state: str = "rollingInBatches") -> Any:
    refs = [{"name": name} for name in sources]
    return {"spec": {"targetRef": {"name": target}, "sourceRef": refs}, "status": {"rollingState": state}}


@pytest.mark.parametrize(
    ("live", "running", "sources"),
    [
        (None, [], ()),
        (None, ["web-v1", "web-v1", "", "web-v3"], ("web-v1",)),
        (rolled("web-v3", "web-v1"), ["web-v2"], ("web-v1",)),  # stays while the target is the same
        (rolled("web-v3"), ["web-v2"], ()),
        (rolled("web-v2", "web-v1"), [], ("web-v1", "web-v2")),  # replaced midway
        (rolled("web-v2", "web-v1", state="rolloutFailed"), [], ("web-v1", "web-v2")),
        (rolled("web-v2", "web-v1", state="rolloutSucceed"), [], ("web-v2",)),
        (rolled("web-v2", "web-v3"), [], ("web-v2",)),  # back midway
    ],
)
def test_a_rollout_moves_from_what_runs(live: Any, running: list[str], sources: tuple[str, ...]) -> None:
    assert rollout_sources(live, "web-v3", running) == sources


def test_a_rollout_without_references_has_no_sources() -> None:
    assert rollout_sources({"spec": {}}, "web-v3", ["web-v1"]) == ()
