"""Where a binding stands that is aligned beside a Karmada."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import ALIGN, CLUSTER_POLICY_NAME, POLICY_NAME, POLICY_NAMESPACE
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.plan.aligning.beside import BesideInput, plan_beside
from kedge.plan.aligning.beside_policies import PolicyName, asks_for_alignment, override_name, policy_name
from kedge.plan.aligning.binding_story import BindingStory, PodShare, tell_beside
from kedge.plan.aligning.binding_text import binding_line, explained_binding
from kedge.plan.state import State
from plan.aligning.test_beside import Case, Karmada

RESOURCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}


def binding(karmada: Karmada, **meta: Any) -> ResourceBinding:
    clusters = [{"name": name, "replicas": number} for name, number in karmada.wanted.items()]
    given = {"name": "web-deployment", "namespace": "shop", **meta}
    return msgspec.convert({"metadata": given, "spec": {"resource": RESOURCE, "clusters": clusters}}, ResourceBinding)


def observed(karmada: Karmada) -> BesideInput:
    works = {site.name: site.work for site in karmada.sites}
    template = karmada.template(sum(karmada.wanted.values()))
    return BesideInput(binding(karmada).spec, template, works, set(works), karmada.record)


def look(karmada: Karmada) -> BindingStory:
    """What is told, and then done; and what Karmada does about that at once."""
    story = tell_beside(binding(karmada), observed(karmada))
    found = plan_beside(observed(karmada))
    karmada.record, karmada.overrides = found.record, dict(found.overrides)
    karmada.suspended = set(karmada.wanted) - set(found.open)
    for site in karmada.sites:
        karmada.look(site)
        site.written()
        site.execute()
    return story


def at_rest() -> Karmada:
    karmada = Karmada(Case((4, 6), 2, 1), 1, tells_seq=False)
    while not karmada.is_at_rest:
        look(karmada)
    return karmada


def test_at_rest_all_is_available_and_nothing_is_held() -> None:
    story = look(at_rest())
    assert (story.state, story.is_done, story.in_flight) == (State.available, True, PodShare())
    assert binding_line(story) == (
        "Deployment shop/web in 2 clusters: 10 of 10 pods updated, available 10 (>= 8), pods 10 (<= 11);"
        " in flight 0+0 of 2+1, proven 10"
    )


def test_in_a_release_one_cluster_has_its_turn_and_the_other_says_whom_it_waits_for() -> None:
    karmada = at_rest()
    karmada.release("v2")
    look(karmada)
    granted = look(karmada)
    assert [(one.state, str(one.granted)) for one in granted.clusters] == [
        (State.waiting, "None"),
        (State.next, "2+1"),
    ]
    turn = look(karmada)
    waits, moving = turn.clusters
    assert moving.why == "it is let through: it has not reported yet that it acts on what it was granted"
    assert (moving.state, moving.in_flight, moving.written, moving.acknowledged) == (State.moving, PodShare(2, 1), 1, 0)
    assert waits.why.endswith("c1 holds that until new pods there are available")
    assert explained_binding(turn)[-1] == "  write 1 is not acknowledged: its last report is about none of them"


def test_a_cluster_without_a_work_is_told_as_well() -> None:
    karmada = at_rest()
    seen = observed(karmada)
    story = tell_beside(binding(karmada), msgspec.structs.replace(seen, works={"c0": seen.works["c0"]}))
    assert [(one.name, one.state) for one in story.clusters] == [("c0", State.available), ("c1", State.moving)]
    assert story.clusters[1].why == "Karmada has not written its Work yet"
    assert not story.is_done


def test_what_keeps_a_binding_from_being_aligned_is_told() -> None:
    karmada = at_rest()
    refused = tell_beside(binding(karmada), observed(karmada), "no")
    assert (refused.state, refused.why, refused.problems, len(refused.clusters)) == (State.failed, "no", ("no",), 2)
    gone = tell_beside(binding(karmada), None)
    assert (gone.state, gone.why) == (State.failed, "there is no Deployment shop/web")
    leaving = tell_beside(binding(karmada, deletionTimestamp="2030-01-01T00:00:00Z"), observed(karmada))
    assert leaving.state is State.leaving


# Policies


@pytest.mark.parametrize(
    ("notes", "named"),
    [
        ({}, None),
        ({POLICY_NAME: "web", POLICY_NAMESPACE: "shop"}, PolicyName(PropagationPolicy, "shop", "web")),
        ({CLUSTER_POLICY_NAME: "web"}, PolicyName(ClusterPropagationPolicy, None, "web")),
    ],
)
def test_the_policy_of_a_binding_is_named_in_its_annotations(notes: dict[str, str], named: PolicyName | None) -> None:
    found = binding(at_rest(), annotations=notes)
    assert policy_name(found) == named
    assert override_name(found) == "kedge-align-web-deployment"


@pytest.mark.parametrize(("note", "asks"), [("true", True), ("yes", False), (None, False)])
def test_a_policy_asks_for_alignment_by_an_annotation(note: str | None, asks: bool) -> None:
    notes = {ALIGN: note} if note is not None else {}
    body = {"metadata": {"name": "web", "annotations": notes}, "spec": {"resourceSelectors": []}}
    assert asks_for_alignment(msgspec.convert(body, PropagationPolicy)) is asks
