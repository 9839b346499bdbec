"""What of Karmada's policies is not followed here, in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.overrides import OverrideSpec
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy, PropagationSpec
from kedge.plan.aligning.supporting import AnyPolicy, idle_selectors, override_problems, policy_problems

SELECTED: dict[str, Any] = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]}
FIELDS: dict[str, Any] = {"fieldSelector": {"matchExpressions": []}}


def divided(**scheduling: Any) -> dict[str, Any]:
    return {"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", **scheduling}}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"propagateDeps": True}, "spec.propagateDeps is set"),
        ({"association": True}, "spec.propagateDeps is set"),
        ({"dependentOverrides": ["x"]}, "spec.dependentOverrides is set"),
        ({"failover": {}}, "spec.failover is set"),
        ({"activationPreference": "Lazy"}, "spec.activationPreference Lazy is set"),
        ({"schedulePriority": {}}, "spec.schedulePriority is set"),
        ({"schedulerName": "mine"}, "spec.schedulerName is mine"),
        ({"placement": {"clusterAffinities": [{}]}}, "placement.clusterAffinities is set"),
        ({"placement": {"spreadConstraints": [{}]}}, "placement.spreadConstraints is set"),
        ({"placement": {"workloadAffinity": {}}}, "placement.workloadAffinity is set"),
        ({"placement": {"clusterAffinity": FIELDS}}, "clusterAffinity.fieldSelector is set"),
        (divided(replicaDivisionPreference="Aggregated"), "replicaDivisionPreference Aggregated needs an estimate"),
        (divided(weightPreference={"dynamicWeight": "AvailableReplicas"}), "dynamicWeight AvailableReplicas needs"),
        (
            divided(weightPreference={"staticWeightList": [{"targetCluster": FIELDS, "weight": 1}]}),
            "clusterAffinity.fieldSelector is set",
        ),
    ],
)
def test_each_field_that_is_not_followed_has_its_sentence(spec: dict[str, Any], message: str) -> None:
    (problem,) = policy_problems(msgspec.convert({**SELECTED, **spec}, PropagationSpec))
    assert problem.startswith(message)
    assert ": " in problem  # what to do about it


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"schedulerName": "default-scheduler", "preemption": "Always", "priority": 3},
        {"suspension": {"dispatching": True}, "preserveResourcesOnDeletion": True},
        {
            "placement": {
                "clusterTolerations": [{"key": "x", "operator": "Exists"}],
                "clusterAffinity": {"exclude": ["a"]},
            }
        },
        divided(replicaDivisionPreference="Weighted", weightPreference={"staticWeightList": []}),
    ],
)
def test_what_is_followed_has_none(spec: dict[str, Any]) -> None:
    assert policy_problems(msgspec.convert({**SELECTED, **spec}, PropagationSpec)) == ()


ROLES = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
SECRETS = {"apiVersion": "v1", "kind": "Secret"}


@pytest.mark.parametrize(
    ("selectors", "sentences"),
    [
        ([SECRETS, {**SECRETS, "namespace": "shop"}], ()),
        (
            [SECRETS, {**SECRETS, "namespace": "play"}],
            ("It means no Secret of the namespace play: that takes a ClusterPropagationPolicy.",),
        ),
        (
            [ROLES, {**ROLES, "name": "view"}],
            ("It means no ClusterRole, which is of the whole cluster: that takes a ClusterPropagationPolicy.",),
        ),
        ([{**ROLES, "apiVersion": "roles.example/v1"}], ()),
    ],
)
def test_a_policy_says_what_it_can_never_mean(selectors: list[dict[str, Any]], sentences: tuple[str, ...]) -> None:
    body = {"metadata": {"name": "all", "namespace": "shop"}, "spec": {"resourceSelectors": selectors}}
    of_cluster = {(ROLES["apiVersion"], ROLES["kind"])}
    assert idle_selectors(msgspec.convert(body, PropagationPolicy), of_cluster) == sentences
    assert idle_selectors(msgspec.convert(body, ClusterPropagationPolicy), of_cluster) == ()


@pytest.mark.parametrize("kind", [PropagationPolicy, ClusterPropagationPolicy])
def test_a_policy_says_which_kinds_stay_on_the_hub(kind: type[AnyPolicy]) -> None:
    pods = {"apiVersion": "v1", "kind": "Pod"}
    body = {"metadata": {"name": "all", "namespace": "shop"}, "spec": {"resourceSelectors": [pods, SECRETS]}}
    found = idle_selectors(msgspec.convert(body, kind), (), {("v1", "Pod")})
    assert found == ("It means no Pod: that kind stays on the hub.",)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"overriders": {}}, "an older form"),
        ({"targetCluster": {}}, "an older form"),
        ({"overrideRules": [{"overriders": {}, "targetCluster": FIELDS}]}, "targetCluster.fieldSelector is set"),
        *(
            ({"overrideRules": [{"overriders": {name: [{}]}}] * 2}, f"{name} is not known here")
            for name in (
                *("commandOverrider", "argsOverrider", "labelsOverrider"),
                *("annotationsOverrider", "fieldOverrider"),
            )
        ),
    ],
)
def test_an_override_that_is_not_known_is_refused(spec: dict[str, Any], message: str) -> None:
    (problem,) = override_problems(msgspec.convert(spec, OverrideSpec))
    assert message in problem


def test_an_override_that_is_known_is_taken() -> None:
    rule = {"overriders": {"plaintext": [{"path": "/a", "operator": "add"}]}, "targetCluster": {"clusterNames": ["a"]}}
    assert override_problems(msgspec.convert({"overrideRules": [rule]}, OverrideSpec)) == ()
