"""Which clusters a placement is to be on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kedge.api.dialect import Dialect
from plan.placing.members_and_bindings import (
    NOW,
    agent,
    binding,
    created,
    fleet,
    given_up,
    having,
    labelled,
    member,
    place,
    policy,
    preferring,
    reasons,
    requiring,
)

FOUR = fleet("cluster-1", "cluster-2", "cluster-3", "cluster-4")
PROD = policy("PickN", affinity=requiring(labelled(env="prod")))
SILENT = (agent(heard=6),)


# PickAll


def test_without_a_policy_every_cluster_is_picked_sorted_by_name() -> None:
    made = place(None, reversed(FOUR))
    assert created(made) == ["cluster-1", "cluster-2", "cluster-3", "cluster-4"]
    assert made.fulfilled
    assert made.create[0].reason == (
        'Successfully scheduled resources for placement in "cluster-1" '
        "(affinity score: 0, topology spread score: 0): picked by scheduling policy"
    )


def test_pick_all_is_fulfilled_even_without_clusters() -> None:
    made = place(policy(), [])
    assert made.fulfilled
    assert made.decisions == ()


def test_pick_all_says_why_clusters_do_not_match() -> None:
    members = [
        member("a", {"env": "test"}),
        member("b", {"env": "prod"}, agents=SILENT),
        member("c", {"env": "prod"}, taints=("gpu=yes",)),
        member("d", {"env": "prod"}, leaving=True),
        member("e", {"env": "prod"}),
    ]
    made = place(policy(affinity=requiring(labelled(env="prod"))), members)
    assert created(made) == ["e"]
    left = "ClusterUnschedulable, cluster"
    silent = "no recent heartbeat signals (last received at 2030-01-01T11:54:00Z)"
    assert reasons(made) | {"e": ""} == {
        "a": f"{left} does not match with any of the required cluster affinity terms",
        "b": f"{left} is not connected to the fleet: {silent}",
        "c": "ClusterUnschedulable, taint gpu=yes:NoSchedule cannot be tolerated",
        "d": f"{left} has left the fleet",
        "e": "",
    }


def test_no_more_than_twenty_reasons_and_a_thousand_decisions_are_kept() -> None:
    good, bad = fleet(*(f"a{n:04}" for n in range(990))), [member(f"b{n:02}", taints=("no",)) for n in range(30)]
    assert len(place(None, [*good, *bad]).unselected or ()) == 20
    kept = place(None, [*good, *bad]).decisions
    assert (len(kept), sum(each.selected for each in kept)) == (1000, 990)
    kept = place(None, [*good[:5], *bad]).decisions
    assert (len(kept), sum(each.selected for each in kept)) == (25, 5)


def test_pick_all_lists_old_and_new_clusters_by_name() -> None:
    made = place(None, fleet("a", "b", "c"), [binding("b")])
    assert (created(made), [each.cluster_name for each in made.selected]) == (["a", "c"], ["a", "b", "c"])


# PickN


def test_larger_names_win_where_scores_are_equal() -> None:
    made = place(policy("PickN"), FOUR, number=3)
    assert created(made) == ["cluster-4", "cluster-3", "cluster-2"]
    assert [each.cluster_name for each in made.decisions] == ["cluster-4", "cluster-3", "cluster-2", "cluster-1"]
    assert made.decisions[-1].reason == (
        'Cluster "cluster-1" does not score high enough (affinity score: 0, topology spread score: 0)'
    )


def test_clusters_with_the_highest_affinity_come_first() -> None:
    members = [member("a", {"x": "1", "y": "1"}), member("b", {"y": "1"}), member("c", {"bad": "1"}), member("d")]
    likes = preferring((30, labelled(x="1")), (10, labelled(y="1")), (-20, labelled(bad="1")))
    assert created(place(policy("PickN", affinity=likes), members, number=3)) == ["a", "b", "d"]


def test_too_few_matching_clusters_are_all_picked() -> None:
    members = [member("a", {"env": "prod"}), member("b", {"env": "test"})]
    made = place(PROD, members, number=4)
    assert created(made) == ["a"]
    assert not made.fulfilled


def test_a_larger_number_adds_to_the_picked_clusters() -> None:
    made = place(policy("PickN"), FOUR, [binding("cluster-1"), binding("cluster-3", "Scheduled")], number=3)
    assert created(made) == ["cluster-4"]
    assert [each.cluster_name for each in made.selected] == ["cluster-4", "cluster-3", "cluster-1"]
    assert given_up(made) == []


@pytest.mark.parametrize(
    ("number", "gone"),
    [
        (3, ["b"]),  # nothing is placed there yet
        (2, ["b", "d"]),  # the lowest score of those that have something
        (1, ["a", "b", "d"]),  # of equal scores the smaller name
        (0, ["a", "b", "c", "d"]),
    ],
)
def test_a_smaller_number_removes_the_unplaced_then_the_lowest_scores(number: int, gone: list[str]) -> None:
    bindings = [
        binding("a", score=(0, 5)),
        binding("b", "Scheduled", score=(9, 9)),
        binding("c", score=(0, 5)),
        binding("d", score=(-1, 50)),
    ]
    made = place(policy("PickN"), fleet("a", "b", "c", "d", "e"), bindings, number=number)
    assert given_up(made) == gone
    assert created(made) == []
    assert made.fulfilled
    assert made.unselected is None  # as the peer, which looks for nothing then
    assert [each.cluster_name for each in made.selected] == [name for name in "acd" if name not in gone]


def test_a_cluster_picked_without_a_score_is_removed_before_those_with_one() -> None:
    bindings = [binding("a", score=None), binding("b", score=(-5, 0))]
    assert given_up(place(policy("PickN"), fleet("a", "b"), bindings, number=1)) == ["a"]


def test_an_eviction_does_not_shorten_the_decisions() -> None:
    made = place(policy("PickN"), fleet("a", "b", "c"), [binding("c"), binding("a", leaving=True)], number=1)
    assert {each.cluster_name for each in made.unselected or ()} == {"a", "b"}


def test_after_scaling_down_the_decisions_stay_the_same() -> None:
    bindings = [binding("c"), binding("a", "Unscheduled")]
    assert place(policy("PickN"), fleet("a", "b", "c"), bindings, number=1).unselected is None


def test_removals_by_another_policy_or_of_members_that_left_do_not_count_as_scaling_down() -> None:
    for gone in (binding("a", "Unscheduled", policy="crp-x"), binding("z", "Unscheduled")):
        made = place(policy("PickN"), fleet("a", "b", "c"), [binding("c"), gone], number=1)
        assert {each.cluster_name for each in made.unselected or ()} == {"a", "b"}


def test_pick_n_without_a_number_changes_nothing_and_says_so() -> None:
    made = place(policy("PickN"), FOUR, [binding("cluster-1")])
    assert (made.create, made.unschedule, made.fulfilled) == ((), (), False)
    assert made.problem == "spec.policy.numberOfClusters is missing: say how many clusters PickN is to take"


# PickFixed


def test_pick_fixed_picks_the_named_clusters() -> None:
    made = place(policy("PickFixed", clusterNames=["cluster-3", "cluster-1"]), FOUR)
    assert created(made) == ["cluster-3", "cluster-1"]
    assert made.fulfilled
    assert made.create[0].cluster_score is None
    assert made.create[0].reason == (
        'Successfully scheduled resources for placement in "cluster-3": picked by scheduling policy'
    )


def test_a_named_cluster_that_cannot_be_picked_has_a_reason() -> None:
    members = [member("a"), member("b", agents=()), member("c", taints=("no",))]
    made = place(policy("PickFixed", clusterNames=["nowhere", "b", "c", "a"]), members)
    assert created(made) == ["c", "a"]  # taints do not matter to who names a cluster
    assert not made.fulfilled
    silent = "cluster is not connected to the fleet: member agent not online yet"
    assert [(each.cluster_name, each.reason) for each in made.decisions[2:]] == [
        ("b", f'Cluster "b" is not eligible for resource placement yet: {silent}'),
        ("nowhere", 'Specified cluster "nowhere" is not found'),
    ]


def test_named_clusters_are_listed_in_the_order_of_their_names_in_the_policy() -> None:
    made = place(policy("PickFixed", clusterNames=["c", "b", "a"]), fleet("a", "b", "c"), [binding("b")])
    assert (created(made), [each.cluster_name for each in made.selected]) == (["c", "a"], ["c", "b", "a"])


def test_clusters_no_longer_named_are_unscheduled() -> None:
    old = [binding("cluster-1", policy="crp-x"), binding("cluster-2", policy="crp-x")]
    made = place(policy("PickFixed", clusterNames=["cluster-2", "cluster-3"]), FOUR, old)
    assert (created(made), given_up(made)) == (["cluster-3"], ["cluster-1"])
    assert [each.binding.spec.target_cluster for each in made.reuse] == ["cluster-2"]


def test_a_cluster_that_stays_named_keeps_its_resources_while_it_is_silent() -> None:
    old = [binding("a", policy="crp-x"), binding("b", policy="crp-x")]
    made = place(policy("PickFixed", clusterNames=["a", "b"]), [member("a"), member("b", agents=SILENT)], old)
    assert given_up(made) == []
    assert made.fulfilled


def test_without_names_everything_is_unscheduled() -> None:
    made = place(policy("PickFixed"), FOUR, [binding("cluster-1", policy="crp-x")])
    assert (given_up(made), made.fulfilled) == (["cluster-1"], True)


# What stays


@pytest.mark.parametrize("state", ["Bound", "Scheduled"])
@pytest.mark.parametrize("kind", ["PickAll", "PickN"])
@pytest.mark.parametrize(
    "became",
    [
        member("a", {"env": "test"}),
        member("a", {"env": "prod"}, taints=("no",)),
        member("a", {"env": "prod"}, properties={"p": "nonsense"}),
    ],
)
def test_a_picked_cluster_stays_picked_when_its_labels_or_taints_change(became: Any, kind: str, state: str) -> None:
    needs = requiring(labelled(env="prod") | having("p", "Gt", "1"))
    made = place(policy(kind, affinity=needs), [became, member("b")], [binding("a", state)], number=1)
    assert (made.create, made.unschedule, made.reuse) == ((), (), ())
    assert made.fulfilled


@pytest.mark.parametrize("kind", ["PickAll", "PickN"])
def test_a_cluster_that_becomes_silent_keeps_its_resources(kind: str) -> None:
    made = place(policy(kind), [member("a", agents=SILENT)], [binding("a")], number=1)
    assert (made.create, made.unschedule) == ((), ())
    assert made.fulfilled


def test_a_binding_of_an_earlier_policy_is_reused_if_its_cluster_is_picked_again() -> None:
    old = [binding(name, policy="crp-x") for name in ("cluster-1", "cluster-2", "cluster-4")]
    made = place(policy("PickN"), FOUR, old, number=2)
    assert created(made) == []
    assert [each.binding.spec.target_cluster for each in made.reuse] == ["cluster-4", "cluster-2"]
    assert [each.state for each in made.reuse] == ["Bound", "Bound"]
    assert given_up(made) == ["cluster-1"]


def test_having_the_resources_only_decides_between_equal_scores() -> None:
    likes = preferring((1, labelled(x="1")))
    members = [member("a", {"x": "1"}), member("b"), member("c")]
    made = place(policy("PickN", affinity=likes), members, [binding("b", policy="crp-x")], number=1)
    assert (created(made), given_up(made)) == (["a"], ["b"])


def test_bindings_of_an_earlier_policy_go_once_this_policy_has_enough() -> None:
    made = place(policy("PickN"), FOUR, [binding("cluster-1"), binding("cluster-2", policy="crp-x")], number=1)
    assert given_up(made) == ["cluster-2"]


@pytest.mark.parametrize("gone", [[], [member("a", leaving=True)]])
@pytest.mark.parametrize("kind", ["PickAll", "PickN", "PickFixed"])
def test_a_cluster_that_leaves_is_unscheduled_at_once(kind: str, gone: list[Any]) -> None:
    names = {"clusterNames": ["a", "b"]} if kind == "PickFixed" else {}
    made = place(policy(kind, **names), [*gone, member("b")], [binding("a")], number=1)
    assert (created(made), given_up(made)) == (["b"], ["a"])


@pytest.mark.parametrize("kind", ["PickAll", "PickN", "PickFixed"])
def test_in_the_kubefleet_dialect_a_cluster_that_leaves_is_unscheduled_when_it_has_left(kind: str) -> None:
    names = {"clusterNames": ["a"]} if kind == "PickFixed" else {}
    placed = [binding("a")]
    for members, gone in (([member("a", leaving=True)], []), ([], ["a"])):
        made = place(policy(kind, **names), members, placed, number=1, dialect=Dialect.kubefleet)
        assert given_up(made) == gone
    assert created(place(None, [member("a", leaving=True)], dialect=Dialect.kubefleet)) == []


def test_a_member_that_cannot_be_read_is_not_taken_for_gone() -> None:
    made = place(None, [member("b")], [binding("a")], unreadable={"a"})
    assert (created(made), given_up(made)) == (["b"], [])


def test_an_unscheduled_binding_is_reused_if_its_cluster_is_picked_again() -> None:
    was = [binding("a", "Unscheduled", before="Bound"), binding("b", "Unscheduled", before="Scheduled")]
    made = place(None, fleet("a", "b", "c"), [*was, binding("c", "Unscheduled", resources="crp-0-snapshot")])
    assert created(made) == []
    assert {each.binding.spec.target_cluster: each.state for each in made.reuse} == {
        "a": "Bound",
        "b": "Scheduled",
        "c": "Bound",
    }


@pytest.mark.parametrize("state", ["Scheduled", "Bound"])
def test_a_binding_picked_again_before_it_was_unscheduled_keeps_its_state(state: str) -> None:
    other = {"Scheduled": "Bound", "Bound": "Scheduled"}[state]
    [again] = place(None, fleet("a"), [binding("a", state, policy="crp-x", before=other)]).reuse
    assert again.state == state


def test_a_binding_in_an_unknown_state_breaks_nothing() -> None:
    made = place(None, fleet("a", "b"), [binding("a", "Odd", policy="crp-x"), binding("b", "Odd")])
    assert [(each.binding.spec.target_cluster, each.state) for each in made.reuse] == [("a", "Scheduled")]
    assert (created(made), given_up(made)) == ([], [])


def test_a_binding_being_deleted_does_not_count_and_is_released() -> None:
    made = place(policy("PickN"), FOUR, [binding("cluster-4", leaving=True)], number=1)
    assert created(made) == ["cluster-4"]
    assert [each.metadata.name for each in made.release] == ["crp-cluster-4-0"]
    assert given_up(made) == []


def test_a_released_binding_is_not_released_again() -> None:
    assert place(None, FOUR, [binding("cluster-4", leaving=True, held=False)]).release == ()


@pytest.mark.parametrize(
    ("pair", "goes"),
    [
        ([binding("a", suffix="1"), binding("a", "Scheduled", suffix="2", born=90)], "crp-a-2"),
        ([binding("a", "Scheduled", suffix="1", born=5), binding("a", "Scheduled", suffix="2", born=9)], "crp-a-1"),
        ([binding("a", suffix="1"), binding("a", suffix="2")], "crp-a-2"),
        ([binding("a", suffix="1", policy="crp-x"), binding("a", "Scheduled", suffix="2")], "crp-a-2"),
    ],
)
def test_of_two_bindings_for_one_cluster_the_one_with_resources_stays(pair: list[Any], goes: str) -> None:
    for order in (pair, pair[::-1]):
        made = place(None, fleet("a"), order)
        assert [each.metadata.name for each in made.unschedule] == [goes]
        assert created(made) == []


# A cluster that falls silent before anything is there (kubefleet.md §14, #15)


def test_a_cluster_that_becomes_silent_before_anything_is_placed_is_replaced() -> None:
    members = [member("a", agents=SILENT), member("b"), member("c")]
    made = place(policy("PickN"), members, [binding("a", "Scheduled"), binding("b")], number=2)
    assert (created(made), given_up(made)) == (["c"], ["a"])
    assert made.fulfilled


def test_a_silent_cluster_is_not_replaced_without_a_better_one() -> None:
    members = [member("a", agents=SILENT), member("b")]
    made = place(policy("PickN"), members, [binding("a", "Scheduled"), binding("b")], number=2)
    assert (created(made), given_up(made), made.fulfilled) == ([], [], True)


def test_a_silent_cluster_that_is_not_replaced_is_listed_once() -> None:
    members = [member("a"), member("z", agents=SILENT)]
    made = place(policy("PickN"), members, [binding("a"), binding("z", "Scheduled")], number=2)
    assert ([each.cluster_name for each in made.selected], made.unselected) == (["z", "a"], ())
    assert given_up(made) == []


def test_a_silent_cluster_is_not_replaced_under_staged_runs() -> None:
    made = place(
        policy("PickN"), [member("a", agents=SILENT), member("b")], [binding("a", "Scheduled")], 1, replace_silent=False
    )
    assert (created(made), given_up(made), made.requeue_at) == ([], [], None)


def test_a_silent_cluster_is_removed_first_when_fewer_are_wanted() -> None:
    members = [member("a"), member("b"), member("z", agents=SILENT)]
    bindings = [binding("a", "Scheduled"), binding("b", "Scheduled"), binding("z", "Scheduled", score=(9, 9))]
    assert given_up(place(policy("PickN"), members, bindings, number=2)) == ["z"]


def test_the_scheduler_requeues_for_when_a_waiting_cluster_becomes_ineligible() -> None:
    members = [member("a", agents=(agent(heard=2),)), member("b", agents=(agent(heard=4),))]
    made = place(policy("PickN"), members, [binding("a", "Scheduled"), binding("b")], number=2)
    assert made.requeue_at == NOW + timedelta(minutes=3)


@pytest.mark.parametrize(
    ("heard", "minutes"), [((2, 4), 1), ((4, 2), 1), ((6, 2), 3), ((5, 2), 0), ((None, 2), 3), ((6, 6), None)]
)
def test_the_requeue_is_for_the_first_cluster_that_becomes_ineligible(
    heard: tuple[float | None, float], minutes: int | None
) -> None:
    members = [member(name, agents=(agent(heard=each),)) for name, each in zip("ab", heard, strict=True)]
    made = place(policy("PickN"), members, [binding("a", "Scheduled"), binding("b", "Scheduled")], number=2)
    assert made.requeue_at == (None if minutes is None else NOW + timedelta(minutes=minutes))


def test_of_two_bindings_with_resources_the_one_of_the_current_policy_stays() -> None:
    for older, newer in (("crp-x", "crp-0"), ("crp-0", "crp-x")):
        pair = [binding("a", policy=older, suffix="1", born=60), binding("a", policy=newer, suffix="2", born=30)]
        [gone] = place(policy(), fleet("a"), pair).unschedule
        assert gone.spec.scheduling_policy_snapshot_name == "crp-x"


# Namespaces, tolerations, problems


@pytest.mark.parametrize(
    ("status", "namespace", "why"),
    [
        ({}, "shop", None),
        ({"known": True, "namespaces": {"shop": ""}}, "shop", None),
        ({"known": True, "namespaces": {"web": ""}}, "shop", "target namespace does not exist on cluster"),
        ({"known": True}, "shop", "cluster has no namespace information available"),
        ({"known": True}, None, None),
    ],
)
def test_a_cluster_that_reports_its_namespaces_must_have_the_placements_namespace(
    status: dict[str, Any], namespace: str | None, why: str | None
) -> None:
    known = {"type": "NamespaceCollectionSucceeded", "status": "False", "reason": "Degraded", "message": ""}
    told = {"namespaces": status.get("namespaces", {})}
    if status.get("known"):
        told["conditions"] = [known | {"lastTransitionTime": "2030-01-01T00:00:00Z"}]
    made = place(None, [member("a", status=told)], namespace=namespace)
    assert created(made) == ([] if why else ["a"])
    assert why is None or reasons(made)["a"] == f"ClusterUnschedulable, {why}"


@pytest.mark.parametrize(
    ("taints", "tolerations", "fits"),
    [
        (("a=1",), [], False),
        (("a=1",), [{"key": "a", "value": "1"}], True),
        (("a=1",), [{"key": "a", "value": "2"}], False),
        (("a=1",), [{"key": "a"}], False),
        (("a",), [{"key": "a"}], True),
        (("a=1",), [{"key": "a", "operator": "Exists"}], True),
        (("a=1",), [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}], True),
        (("a=1", "b"), [{"key": "a", "operator": "Exists"}], False),
        (("a=1", "b"), [{"operator": "Exists"}], True),
    ],
)
def test_a_taint_keeps_placements_off_unless_they_tolerate_it(taints: Any, tolerations: Any, fits: bool) -> None:
    made = place(policy(tolerations=tolerations), [member("c", taints=taints)])
    assert bool(created(made)) == fits


def test_a_taint_is_written_as_kubectl_writes_it() -> None:
    made = place(None, [member("a", taints=("gpu=yes",)), member("b", taints=("no",))])
    assert [each.rpartition("taint ")[2] for each in reasons(made).values()] == [
        "gpu=yes:NoSchedule cannot be tolerated",
        "no:NoSchedule cannot be tolerated",
    ]


def test_an_invalid_policy_removes_only_bindings_without_a_member() -> None:
    wrong = policy(affinity=requiring(having("p", "Is", "1")))
    old = [
        binding("cluster-1"),
        binding("gone"),
        binding("cluster-2", policy="crp-x"),
        binding("cluster-3", leaving=True),
    ]
    made = place(wrong, FOUR, old)
    assert (created(made), given_up(made), made.reuse) == ([], ["gone"], ())
    assert [each.metadata.name for each in made.release] == ["crp-cluster-3-0"]
    assert not made.fulfilled
    assert made.problem is not None
    assert made.problem.endswith("operator: 'Is' is none of Gt, Ge, Eq, Ne, Lt, Le")


def test_with_any_other_problem_nothing_is_picked() -> None:
    made = place(policy("PickN"), FOUR, [binding("cluster-1")], 3, problem="binding x cannot be read")
    assert (created(made), given_up(made), made.fulfilled) == ([], [], False)
    assert made.problem == "binding x cannot be read"


def test_a_cluster_with_an_invalid_quantity_does_not_affect_the_others() -> None:
    members = [member("a", properties={"p": "nonsense"}), member("b", properties={"p": "5"})]
    assert created(place(policy(affinity=requiring(having("p", "Gt", "1"))), members)) == ["b"]
