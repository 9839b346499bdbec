"""What holds for any object at all."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.availability import Verdict, judge, rule_problem
from kedge.plan.availability.kinds import KINDS
from plan.availability.objects import daemon_set, deployment, made, stateful_set

NUMBERED = ("updatedReplicas", "availableReplicas", "unavailableReplicas", "replicas", "currentReplicas")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
words = st.sampled_from(
    (
        *("replicas", "updateStrategy", "type", "rollingUpdate", "partition", "suspend", "completions", "clusterIPs"),
        *("observedGeneration", "conditions", "loadBalancer", "ingress", "disruptionsAllowed", "reason", "status"),
        *("annotations", "generation", "name", "namespace", "networking.fleet.azure.com/weight", *NUMBERED),
    )
)
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5))
apis = st.sampled_from([f"{group}/v1" if group else "v1" for group, _ in KINDS]) | anything
kinds = st.sampled_from([kind for _, kind in KINDS]) | anything
objects = st.fixed_dictionaries(
    {}, optional={"apiVersion": apis, "kind": kinds, "metadata": anything, "spec": anything, "status": anything}
)
counts = st.integers(0, 4)


@given(objects)
def test_any_object_is_judged(obj: dict[str, Any]) -> None:
    assert isinstance(judge(obj), Verdict)


@given(objects, st.sampled_from(["self.spec.replicas == self.status.replicas", "self.status.type", "true", "self"]))
def test_any_object_with_a_rule_is_judged(obj: dict[str, Any], rule: str) -> None:
    ruled = {**obj, "metadata": {"annotations": {"kedge.dev/available-when": rule}}}
    assert judge(ruled).trackable


@given(st.text(max_size=40) | st.text("self.tru()[]'\"&|!=0123 ", max_size=30))
def test_any_text_is_a_rule_or_has_a_problem(text: str) -> None:
    verdict = judge(made("example.com/v1", "Widget", annotations={"kedge.dev/available-when": text}))
    assert verdict.trackable
    assert not (verdict.available and rule_problem(text))


@given(st.integers(0, 5), st.sampled_from([deployment, stateful_set, daemon_set]))
def test_nothing_is_available_by_a_status_of_another_generation(seen: int, make: Any) -> None:
    assert judge(make(observedGeneration=seen)).available == (seen == 2)


@given(st.fixed_dictionaries(dict.fromkeys(NUMBERED, counts)), counts)
def test_an_available_deployment_has_all_it_asks_for(status: dict[str, int], desired: int) -> None:
    if judge(deployment({"replicas": desired}, **status)).available:
        assert status["updatedReplicas"] == status["availableReplicas"] == desired
        assert status["unavailableReplicas"] == 0


@given(st.fixed_dictionaries(dict.fromkeys(NUMBERED, counts)), counts, counts)
def test_an_available_stateful_set_has_updated_what_its_strategy_would(
    status: dict[str, int], desired: int, held: int
) -> None:
    spec = {"replicas": desired, "updateStrategy": {"rollingUpdate": {"partition": held}}}
    if judge(stateful_set(spec, **status)).available:
        assert status["availableReplicas"] == desired
        assert status["updatedReplicas"] >= desired - held
