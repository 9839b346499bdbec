"""Which clusters belong to which stage, and in which order."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.dialect import Dialect
from kedge.api.selector import LabelSelector, LabelSelectorRequirement
from kedge.api.stage import Stage, StageTask, StageTaskType, StrategySpec
from kedge.plan.staging.grouping import BadStages, grouped, most_at_once, selected
from plan.staging.making import APPROVAL, stage, timed


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"c": "2", "b": "10", "a": "3"}, "cab"),
        ({"c": "1", "b": "1", "a": "1"}, "abc"),
        ({"a": "x", "b": "10", "c": "2"}, "cba"),
        ({"a": "beta", "b": "alpha", "c": ""}, "cba"),
        ({"a": "-1", "b": "0", "c": "-2"}, "cab"),
        ({"a": None, "b": "zz", "c": "5"}, "cba"),
    ],
)
def test_clusters_come_by_their_label_and_then_by_name(values: Mapping[str, str | None], wanted: str) -> None:
    labels = {name: {"order": value} if value is not None else {} for name, value in values.items()}
    found = selected(Stage(name="all", label_selector=LabelSelector(), sorting_label_key="order"), labels, Dialect.seed)
    assert "".join(found) == wanted


def test_without_a_sorting_label_clusters_come_by_name() -> None:
    every = Stage(name="all", label_selector=LabelSelector())
    assert selected(every, {"b": {}, "a": {}}, Dialect.seed) == ("a", "b")


def test_a_stage_without_a_selector_selects_nothing() -> None:
    assert selected(Stage(name="none"), {"a": {}}, Dialect.seed) == ()


@pytest.mark.parametrize("value", ["x", "", "1.5"])
def test_in_the_kubefleet_dialect_a_sorting_label_has_to_be_a_whole_number(value: str) -> None:
    every = Stage(name="all", label_selector=LabelSelector(), sorting_label_key="order")
    with pytest.raises(BadStages, match=f"the sorting label `order:{value}` on cluster `a` is not valid"):
        selected(every, {"a": {"order": value}}, Dialect.kubefleet)


def test_in_the_kubefleet_dialect_the_first_by_name_of_those_that_are_no_numbers_is_told() -> None:
    every = Stage(name="all", label_selector=LabelSelector(), sorting_label_key="order")
    labels = {name: {"order": value} for name, value in {"d": "x", "c": "y", "b": "10", "a": "2"}.items()}
    with pytest.raises(BadStages, match="the sorting label `order:y` on cluster `c` is not valid"):
        selected(every, labels, Dialect.kubefleet)
    numbers = {name: labels[name] for name in "ba"}
    assert selected(every, numbers, Dialect.kubefleet) == ("a", "b")


def test_of_the_stages_that_select_a_cluster_the_first_two_are_told() -> None:
    every = [Stage(name=name, label_selector=LabelSelector()) for name in ("two", "three", "four")]
    with pytest.raises(BadStages, match=r"cluster `a` appears in more than one stages: two and three$"):
        grouped(StrategySpec(stages=(stage("one"), *every)), {"b": {}, "a": {}}, Dialect.seed)


def test_a_cluster_in_two_stages_is_a_mistake() -> None:
    both = StrategySpec(stages=(stage("one"), Stage(name="all", label_selector=LabelSelector())))
    with pytest.raises(BadStages, match="cluster `a` appears in more than one stages: one and all"):
        grouped(both, {"a": {"stage": "one"}}, Dialect.seed)


def test_clusters_that_no_stage_selects_are_told() -> None:
    found = grouped(StrategySpec(stages=(stage("one"),)), {"a": {"stage": "one"}, "c": {}, "b": {}}, Dialect.seed)
    assert (found.stages, found.unmatched) == ({"one": ("a",)}, ("b", "c"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ((stage("one"), stage("one")), "stage `one` is there more than once"),
        ((stage("b"), stage("b"), stage("a"), stage("a")), "stage `a` is there more than once"),
        (
            (stage("one", before_stage_tasks=(StageTask(type=StageTaskType.approval, wait_time="1h"),)),),
            "beforeStageTasks takes one task of type Approval, without a waitTime",
        ),
        (
            (stage("one", before_stage_tasks=(StageTask(type=StageTaskType.timed_wait),)),),
            "beforeStageTasks takes one task of type Approval",
        ),
        ((stage("one", before_stage_tasks=(APPROVAL, APPROVAL)),), "beforeStageTasks takes one task of type Approval"),
        ((stage("one", before_stage_tasks=(timed("1h"),)),), "beforeStageTasks takes one task of type Approval"),
        ((stage("one", after_stage_tasks=(APPROVAL, APPROVAL)),), "two tasks of the same type"),
        ((stage("one", after_stage_tasks=(timed("0s"),)),), "needs a waitTime of more than 0"),
        ((stage("one", after_stage_tasks=(StageTask(type=StageTaskType.timed_wait),)),), "needs a waitTime"),
        ((stage("one", after_stage_tasks=(timed("soon"),)),), "waitTime 'soon' is not a duration"),
        (
            (stage("one", after_stage_tasks=(StageTask(type=StageTaskType.approval, wait_time="1h"),)),),
            "Approval takes no waitTime",
        ),
        ((stage("one", max_concurrency="some"),), "maxConcurrency 'some' is neither a number"),
        (
            (
                stage(
                    "one",
                    label_selector=LabelSelector(
                        match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)
                    ),
                ),
            ),
            "stage `one`: labelSelector: operator 'Near'",
        ),
    ],
)
@pytest.mark.parametrize("clusters", [{"a": {"stage": "one"}}, {}], ids=["one cluster", "no cluster"])
def test_stages_that_cannot_be_followed_are_refused(
    wrong: tuple[Stage, ...], told: str, clusters: Mapping[str, Mapping[str, str]]
) -> None:
    with pytest.raises(BadStages, match=told):
        grouped(StrategySpec(stages=wrong), clusters, Dialect.seed)


@pytest.mark.parametrize(
    ("wanted", "clusters", "most"),
    [(1, 10, 1), (3, 10, 3), (3, 2, 3), ("50%", 10, 5), ("50%", 3, 1), ("1%", 10, 1), ("100%", 7, 7), ("34%", 3, 1)],
)
def test_a_share_is_rounded_down_to_no_less_than_one(wanted: int | str, clusters: int, most: int) -> None:
    assert most_at_once(stage("one", max_concurrency=wanted), clusters) == most


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["one", "two", "three", ""]), max_size=8))
def test_every_cluster_is_in_exactly_one_stage_or_told(labels: Mapping[str, str]) -> None:
    given_ = {name: {"stage": value} for name, value in labels.items()}
    found = grouped(StrategySpec(stages=(stage("one"), stage("two"), stage("three"))), given_, Dialect.seed)
    assert sorted([name for names in found.stages.values() for name in names] + [*found.unmatched]) == sorted(labels)
