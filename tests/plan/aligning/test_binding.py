"""One binding: what is kept in its ledger, what each cluster gets, and what a crash in between leaves to do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.binding import BindingInput, BindingPlan, BoundCluster, plan_binding
from kedge.plan.aligning.interpreter import revised, sequence_of
from kedge.plan.aligning.ledger import Spec
from kedge.plan.aligning.ledger_text import Ledger, ledger_text
from kedge.plan.aligning.scheduling import CandidateCluster


def deployment(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    labels = {"app": "demo"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "demo",
            "namespace": "shop",
            "uid": "u1",
            "resourceVersion": "7",
            "generation": 3,
            "labels": labels,
            "annotations": {"note": "kept"},
        },
        "spec": {
            "replicas": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}},
            **spec,
        },
        "status": {"replicas": 10},
    }


def bound(**replicas: int) -> BindingSpec:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo", "namespace": "shop"}
    clusters = [{"name": name, "replicas": number} for name, number in replicas.items()]
    return msgspec.convert({"resource": resource, "clusters": clusters}, BindingSpec)


def work(manifest: Any, *, updated: int | None = None, seq: int | None = None, generation: int = 4) -> Work:
    """A Work whose cluster reports that all its pods are available; of these, so many of the template."""
    number = int(manifest["spec"]["replicas"])
    status = {
        "generation": generation,
        "observedGeneration": 4,
        "alignmentSeq": sequence_of(manifest) if seq is None else seq,
        "replicas": number,
        "updatedReplicas": number if updated is None else updated,
        "availableReplicas": number,
    }
    identifier = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "demo"}
    return msgspec.convert(
        {
            "metadata": {"name": "demo-x"},
            "spec": {"workload": {"manifests": [manifest]}},
            "status": {"manifestStatuses": [{"identifier": identifier, "status": status}]},
        },
        Work,
    )


def seen(template: dict[str, Any] | None, works: dict[str, Work | None], **given: Any) -> BindingInput:
    clusters = {name: BoundCluster(CandidateCluster(name), work=one) for name, one in works.items()}
    return BindingInput(given.pop("spec", bound(a=4, b=6)), template, clusters, **given)


def deployed() -> tuple[BindingPlan, dict[str, Work | None]]:
    """The first release, in both clusters and available."""
    plan = plan_binding(seen(deployment(), {"a": None, "b": None}))
    return plan, {name: work(manifest) for name, manifest in plan.manifests.items()}


def strategy_of(manifest: Any) -> tuple[str, int, dict[str, int]]:
    spec = manifest["spec"]
    image = spec["template"]["spec"]["containers"][0]["image"]
    return image, spec["replicas"], spec["strategy"]["rollingUpdate"]


def test_the_first_release_goes_to_all_clusters_at_once_without_what_belongs_to_this_one() -> None:
    plan, _ = deployed()
    assert {name: one["spec"]["replicas"] for name, one in plan.manifests.items()} == {"a": 4, "b": 6}
    meta = plan.manifests["a"]["metadata"]
    assert {"uid", "resourceVersion", "generation"}.isdisjoint(meta)
    assert meta["annotations"]["note"] == "kept"
    assert meta["annotations"]["resourcetemplate.karmada.io/generation"] == "3"
    assert "status" not in plan.manifests["a"]
    assert {sequence_of(one) for one in plan.manifests.values()} == {1, 2}


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_workload_that_is_paused_is_paused_in_its_clusters_until_it_is_resumed(*, is_paused: bool) -> None:
    """They stop with what they have begun: no other pod is replaced, and they keep what they hold."""
    first, works = deployed()
    begun = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    works["b"] = work(begun.manifests["b"], updated=2)
    paused = plan_binding(seen(deployment("app:2", paused=True), works, ledger=ledger_text(begun.ledger)))
    assert strategy_of(paused.manifests["b"]) == strategy_of(begun.manifests["b"])
    assert [one["spec"].get("paused") for one in paused.manifests.values()] == [True, True]
    works = {name: work(one, updated=2 if name == "b" else None) for name, one in paused.manifests.items()}
    again = plan_binding(seen(deployment("app:2", paused=is_paused), works, ledger=ledger_text(paused.ledger)))
    assert [one["spec"].get("paused") for one in again.manifests.values()] == (
        [True, True] if is_paused else [None] * 2
    )
    assert again.ledger == begun.ledger


def test_the_next_release_goes_to_one_cluster_and_the_other_keeps_what_it_has() -> None:
    first, works = deployed()
    plan = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    assert strategy_of(plan.manifests["b"]) == ("app:2", 6, {"maxUnavailable": 2, "maxSurge": 1})
    assert strategy_of(plan.manifests["a"])[:2] == ("app:1", 4)
    assert plan.manifests["a"] == first.manifests["a"]
    assert plan.waiting["a"].code == AlignCode.budget_spent


def test_what_was_kept_in_the_ledger_and_not_written_is_written_by_the_next_look() -> None:
    first, works = deployed()
    given = seen(deployment("app:2"), works, ledger=ledger_text(first.ledger))
    plan = plan_binding(given)
    again = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(plan.ledger)))
    assert again.manifests == plan.manifests
    assert again.ledger == plan.ledger


def test_a_release_that_nobody_has_any_more_is_charged_and_left_behind() -> None:
    first, works = deployed()
    second = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    third = plan_binding(seen(deployment("app:3"), works, ledger=ledger_text(second.ledger)))
    assert len(third.ledger.specs["b"]) == 3
    assert strategy_of(third.manifests["b"])[0] == "app:3"
    assert strategy_of(third.manifests["a"])[0] == "app:1"


def test_several_releases_that_nobody_has_any_more_do_not_keep_the_next_one_waiting() -> None:
    first, works = deployed()
    ledger = first.ledger.with_spec("b", Spec(3, "gone", 6, 1), 1).with_spec("b", Spec(4, "gone too", 6, 1), 1)
    plan = plan_binding(seen(deployment("app:3"), works, ledger=ledger_text(ledger)))
    assert strategy_of(plan.manifests["b"])[0] == "app:3"
    assert [one.seq for one in plan.ledger.specs["b"]] == [1, 3, 4, 5]


def test_a_label_is_changed_without_another_grant() -> None:
    first, works = deployed()
    changed = deployment()
    changed["metadata"]["labels"] = {"app": "demo", "team": "x"}
    plan = plan_binding(seen(changed, works, ledger=ledger_text(first.ledger)))
    assert plan.ledger == first.ledger
    assert plan.manifests["a"]["metadata"]["labels"] == {"app": "demo", "team": "x"}
    assert sequence_of(plan.manifests["a"]) == sequence_of(first.manifests["a"])


def test_a_cluster_that_is_to_leave_is_emptied_before_its_work_goes() -> None:
    first, works = deployed()
    spec = bound(b=10)
    plan = plan_binding(seen(deployment(), works, ledger=ledger_text(first.ledger), spec=spec))
    assert plan.manifests["b"]["spec"]["replicas"] == 7  # one more than there may be too few of
    assert plan.manifests["a"]["spec"]["replicas"] == 2
    assert plan.delete == ()
    assert set(plan.ledger.specs) == {"a", "b"}


def test_a_cluster_that_is_to_have_none_and_has_no_work_gets_no_pods_by_what_the_ledger_says() -> None:
    """Either that was never written, or it is an older ledger that somebody put back."""
    first, works = deployed()
    spec = bound(a=0, b=6)
    plan = plan_binding(seen(deployment(), {**works, "a": None}, spec=spec, ledger=ledger_text(first.ledger)))
    assert plan.manifests["a"]["spec"]["replicas"] == 0
    assert sequence_of(plan.manifests["a"]) == 3
    again = plan_binding(seen(deployment(), {**works, "a": None}, spec=spec, ledger=ledger_text(plan.ledger)))
    assert again.ledger.specs["a"] == plan.ledger.specs["a"]  # until the cluster has heard of it
    assert again.manifests["a"] == plan.manifests["a"]


def test_a_cluster_without_pods_is_let_go() -> None:
    first, _ = deployed()
    ledger = ledger_text(Ledger({"a": (Spec(9, first.ledger.specs["a"][0].template, 0, 0, 1),)}))
    empty = dict(first.manifests["a"]["spec"], replicas=0)
    manifest = {**first.manifests["a"], "spec": empty}
    manifest["metadata"] = {**manifest["metadata"], "annotations": {SEQUENCE: "9"}}
    plan = plan_binding(seen(deployment(), {"a": work(manifest), "b": None}, ledger=ledger, spec=bound(b=10)))
    assert plan.delete == ("a",)
    assert set(plan.ledger.specs) == {"b"}


def test_a_binding_that_is_deleted_takes_its_works_along() -> None:
    first, works = deployed()
    for given in (
        seen(deployment(), works, ledger=ledger_text(first.ledger), is_deleting=True),
        seen(None, works, ledger=ledger_text(first.ledger)),
    ):
        plan = plan_binding(given)
        assert (plan.delete, plan.manifests, plan.ledger.specs) == (("a", "b"), {}, {})


def test_a_resource_without_pods_is_copied() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo"}, "data": {"a": "b"}}
    plan = plan_binding(seen(config, {"a": None, "b": None, "gone": work(deployment())}))
    assert {name: one["data"] for name, one in plan.manifests.items()} == {"a": {"a": "b"}, "b": {"a": "b"}}
    assert plan.delete == ("gone",)
    assert plan.problems == ()


def test_what_is_duplicated_is_copied_with_all_its_replicas() -> None:
    plan = plan_binding(seen(deployment(), {"a": None, "b": None}, is_divided=False))
    assert {one["spec"]["replicas"] for one in plan.manifests.values()} == {10}
    assert SEQUENCE not in plan.manifests["a"]["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (deployment() | {"kind": "Game", "apiVersion": "example.com/v1"}, "not a kind of workload"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, ""),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 4}}, "Job is not divided"),
    ],
)
def test_a_kind_with_replicas_that_nobody_knows_is_copied_and_said_so(template: dict[str, Any], problem: str) -> None:
    plan = plan_binding(seen(template, {"a": None, "b": None}))
    assert set(plan.manifests) == {"a", "b"}
    assert problem in " ".join(plan.problems)


def test_a_ledger_that_cannot_be_read_stops_the_binding() -> None:
    plan = plan_binding(seen(deployment(), {"a": None, "b": None}, ledger="{"))
    assert plan.manifests == {}
    assert "cannot be read" in plan.problems[0]


def test_a_cluster_that_does_not_exist_and_an_override_that_has_no_place_stop_nobody_else() -> None:
    rule = {"plaintext": [{"path": "/spec/x/y", "operator": "add", "value": 1}]}
    policy = {"overrideRules": [{"targetCluster": {"clusterNames": ["a"]}, "overriders": rule}]}
    override = msgspec.convert({"metadata": {"name": "bad"}, "spec": policy}, OverridePolicy)
    given = seen(deployment(), {"a": None, "b": None}, overrides=(override,), spec=bound(a=2, b=6, nowhere=2))
    plan = plan_binding(given)
    assert set(plan.manifests) == {"b"}
    assert [one.partition(":")[0] for one in plan.problems] == ["cluster a", "the cluster nowhere does not exist"]


def test_an_image_of_its_own_gives_a_cluster_a_template_of_its_own() -> None:
    rule = {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "9"}]}
    policy = {"overrideRules": [{"targetCluster": {"clusterNames": ["a"]}, "overriders": rule}]}
    override = msgspec.convert({"metadata": {"name": "tag"}, "spec": policy}, OverridePolicy)
    plan = plan_binding(seen(deployment(), {"a": None, "b": None}, overrides=(override,)))
    assert plan.overridden["a"].policies == ("tag",)
    assert strategy_of(plan.manifests["a"])[0] == "app:9"
    assert plan.ledger.specs["a"][0].template != plan.ledger.specs["b"][0].template


def test_a_cluster_that_is_to_leave_is_counted_by_the_template_that_it_would_have() -> None:
    first, works = deployed()
    given = seen(deployment("app:2"), works, ledger=ledger_text(first.ledger), spec=bound(b=10))
    plan = plan_binding(given)
    assert strategy_of(plan.manifests["a"])[0] == "app:1"  # it is not upgraded
    assert plan.overridden["a"].obj["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"
    assert plan.problems == ()


def test_a_copy_stays_where_it_is_scheduled_and_where_others_have_not_taken_over() -> None:
    works: dict[str, Work | None] = dict.fromkeys(("a", "b", "old", "gone"), work(deployment()))
    tasks = {"gracefulEvictionTasks": [{"fromCluster": "old"}]}
    spec = msgspec.convert({**msgspec.to_builtins(bound(a=10, b=10)), **tasks}, BindingSpec)
    plan = plan_binding(seen(deployment(), works, is_divided=False, spec=spec))
    assert plan.delete == ("gone",)
    assert set(plan.manifests) == {"a", "b"}


@pytest.mark.parametrize(("kind", "expected"), [("StatefulSet", True), ("Deployment", False)])
def test_the_pods_of_a_statefulset_are_counted_by_their_order(kind: str, *, expected: bool) -> None:
    plan = plan_binding(seen(deployment() | {"kind": kind}, {"a": None, "b": None}))
    assert {one.is_ordered for one in plan.members} == {expected}


def test_a_cluster_that_is_not_there_any_more_stays_in_the_ledger_and_is_not_written_to() -> None:
    first, works = deployed()
    del works["a"]
    plan = plan_binding(seen(deployment(), works, ledger=ledger_text(first.ledger), spec=bound(b=10)))
    assert set(plan.ledger.specs) == {"a", "b"}
    assert set(plan.manifests) == {"b"}


def test_a_spec_whose_template_nobody_has_any_more_is_not_written() -> None:
    first, works = deployed()
    second = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    clusters = {name: BoundCluster(CandidateCluster(name), name != "b", one) for name, one in works.items()}
    given = seen(deployment("app:3"), works, ledger=ledger_text(second.ledger))
    plan = plan_binding(msgspec.structs.replace(given, clusters=clusters))
    assert set(plan.manifests) == {"a"}
    assert plan.waiting["b"].code == AlignCode.unreachable


def test_what_belongs_to_the_hub_alone_is_not_sent_to_clusters() -> None:
    template = deployment()
    template["metadata"]["finalizers"] = ["example.com/wait"]
    template["metadata"].pop("generation")
    meta = plan_binding(seen(template, {"a": None, "b": None})).manifests["a"]["metadata"]
    assert "finalizers" not in meta
    assert meta["annotations"].keys() == {"note", SEQUENCE}


def test_a_kind_that_nobody_knows_gets_the_replicas_of_its_cluster() -> None:
    plan = plan_binding(seen(deployment() | {"kind": "Game", "apiVersion": "example.com/v1"}, {"a": None, "b": None}))
    assert {name: one["spec"]["replicas"] for name, one in plan.manifests.items()} == {"a": 4, "b": 6}


def test_a_cluster_that_leaves_is_to_have_no_replicas() -> None:
    first, works = deployed()
    plan = plan_binding(seen(deployment(), works, ledger=ledger_text(first.ledger), spec=bound(b=10)))
    assert plan.overridden["a"].obj["spec"]["replicas"] == 0


def test_only_works_that_are_there_are_deleted() -> None:
    _, works = deployed()
    assert plan_binding(seen(deployment(), {**works, "b": None}, is_deleting=True)).delete == ("a",)


def test_a_cluster_without_pods_that_is_wanted_again_stays() -> None:
    first, works = deployed()
    empty = Spec(9, first.ledger.specs["a"][0].template, 0, 0, 1)
    works["a"] = work(revised(first.manifests["a"], empty, {SEQUENCE: "9"}))
    ledger = ledger_text(Ledger({**first.ledger.specs, "a": (empty,)}))
    plan = plan_binding(seen(deployment(), works, ledger=ledger))
    assert plan.delete == ()
    assert plan.manifests["a"]["spec"]["replicas"] == 4


def override(path: str, value: Any, operator: str = "replace") -> OverridePolicy:
    """Of the cluster a alone."""
    rule = {"plaintext": [{"path": path, "operator": operator, "value": value}]}
    policy = {"overrideRules": [{"targetCluster": {"clusterNames": ["a"]}, "overriders": rule}]}
    return msgspec.convert({"metadata": {"name": "own"}, "spec": policy}, OverridePolicy)


def test_a_cluster_gets_the_strategy_that_a_policy_gives_it_when_the_budget_has_room_for_that() -> None:
    first, works = deployed()
    ledger, path = ledger_text(first.ledger), "/spec/strategy/rollingUpdate"
    too_much = override(f"{path}/maxSurge", 3)
    plan = plan_binding(seen(deployment("app:2"), works, ledger=ledger, overrides=(too_much,)))
    assert plan.waiting["a"].code == AlignCode.overridden
    alone = bound(a=10)
    own = override(path, {"maxUnavailable": 0, "maxSurge": 1})
    plan = plan_binding(seen(deployment("app:2"), {"a": None}, spec=alone, overrides=(own,)))
    assert strategy_of(plan.manifests["a"]) == ("app:2", 10, {"maxUnavailable": 0, "maxSurge": 1})


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_cluster_is_paused_by_itself(*, is_paused: bool) -> None:
    first, works = deployed()
    given = override("/spec/paused", is_paused, "add")
    plan = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger), overrides=(given,)))
    assert [plan.manifests[name]["spec"].get("paused") for name in "ab"] == [True if is_paused else None, None]
    assert plan.waiting["a"].code == (AlignCode.overridden if is_paused else AlignCode.budget_spent)


def test_a_cluster_whose_pods_would_be_replaced_by_hand_keeps_what_it_has() -> None:
    template = {**deployment(updateStrategy={"type": "RollingUpdate"}), "kind": "StatefulSet"}
    given = override("/spec/updateStrategy/type", "OnDelete")
    plan = plan_binding(seen(template, {"a": None, "b": None}, overrides=(given,)))
    assert plan.waiting["a"].code == AlignCode.overridden
    assert plan.problems == ("cluster a: StatefulSet replaces no pods by itself: its strategy is OnDelete",)


def test_a_policy_may_say_how_many_replicas_a_cluster_has() -> None:
    plan = plan_binding(seen(deployment(), {"a": None, "b": None}, overrides=(override("/spec/replicas", 1),)))
    assert {name: one["spec"]["replicas"] for name, one in plan.manifests.items()} == {"a": 1, "b": 6}
    assert plan.aim is not None
    assert plan.aim.replicas == 7


def test_a_workload_that_is_scaled_to_none_stays_where_it_is_scheduled() -> None:
    first, works = deployed()
    spec = bound(a=0, b=0)
    plan = plan_binding(seen(deployment(replicas=0), works, ledger=ledger_text(first.ledger), spec=spec))
    works = {name: work(manifest) for name, manifest in plan.manifests.items()}
    last = plan_binding(seen(deployment(replicas=0), works, ledger=ledger_text(plan.ledger), spec=spec))
    assert last.delete == ()
    assert {name: one["spec"]["replicas"] for name, one in last.manifests.items()} == {"a": 0, "b": 0}


def test_a_work_that_was_never_let_through_keeps_no_release_waiting() -> None:
    """Its cluster never heard of what it asks for, and nobody else has that template any more."""
    first, works = deployed()
    created = work(first.manifests["a"])
    meta, spec = replace(created.metadata, generation=1), replace(created.spec, suspend_dispatching=True)
    created = replace(created, metadata=meta, spec=spec, status=replace(created.status, manifest_statuses=()))
    plan = plan_binding(seen(deployment("app:2"), {**works, "a": created}, ledger=ledger_text(first.ledger)))
    image, replicas, _ = strategy_of(plan.manifests["a"])
    assert (image, replicas) == ("app:2", 4)


def test_a_deployment_is_paused_when_it_has_acknowledged_that_it_may_have_fewer_pods() -> None:
    """Paused before that, it would give up those that are more than it may have, whichever they are."""
    first, works = deployed()
    begun = plan_binding(seen(deployment("app:2"), works, ledger=ledger_text(first.ledger)))
    last = begun.ledger.specs["b"][-1]
    fewer = Spec(9, last.template, last.replicas, last.unavailable, 0)
    ledger = ledger_text(Ledger({**begun.ledger.specs, "b": (last, fewer)}))
    for acknowledged, is_paused in ((last.seq, None), (fewer.seq, True)):
        works["b"] = work(revised(begun.manifests["b"], fewer, {SEQUENCE: "9"}), updated=2, seq=acknowledged)
        plan = plan_binding(seen(deployment("app:2", paused=True), works, ledger=ledger))
        assert plan.manifests["b"]["spec"].get("paused") is is_paused
        assert plan.manifests["a"]["spec"]["paused"] is True
