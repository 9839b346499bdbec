"""The handler of CloneSets: how the partition and the limits are rounded, and the patches that freeze and partition."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.workloads import Limits, Replicas, Strategy, find_handler
from kedge.plan.workloads.clone_sets import CloneSets, partition_pods, update_limits
from plan.workloads.test_handlers import COUNTED, made, merged

HANDLER = CloneSets()


def clone_set(replicas: int | None = None, **strategy: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"updateStrategy": strategy} if strategy else {}
    return made(spec if replicas is None else {**spec, "replicas": replicas})


def test_it_is_registered() -> None:
    assert find_handler("apps.kruise.io", "CloneSet") == HANDLER


@pytest.mark.parametrize(
    ("partition", "replicas", "kept"),
    [
        (None, 10, 0),
        (0, 10, 0),
        (4, 10, 4),
        (10, 10, 10),
        (11, 10, 10),  # at most all
        ("0%", 10, 0),
        ("1%", 10, 1),  # rounded up
        ("40%", 10, 4),
        ("41%", 10, 5),
        ("99%", 10, 9),  # rounds to all: one goes nevertheless
        ("100%", 10, 10),
        ("50%", 1, 1),  # a single pod is kept
        ("99%", 2, 1),
        ("100%", 2, 2),
        ("100%", 0, 0),
        ("99%", 0, 0),
        ("4", 10, 4),
        ("10", 10, 10),  # a number as text is no percentage
        (-1, 10, 0),
        ("nonsense", 10, 0),
        ("200%", 10, 9),
    ],
)
def test_a_partition_keeps_pods_back(partition: Any, replicas: int, kept: int) -> None:
    assert partition_pods(partition, replicas) == kept


@pytest.mark.parametrize(
    ("unavailable", "surge", "replicas", "limits"),
    [
        (None, None, 10, Limits(2, 0)),  # 20 %, and no surge
        (None, None, 11, Limits(3, 0)),  # rounded up without surge
        (None, 1, 11, Limits(2, 1)),  # and down with it
        ("15%", "15%", 10, Limits(1, 2)),
        ("15%", "0%", 10, Limits(2, 0)),
        (0, 2, 10, Limits(0, 2)),
        (3, 0, 10, Limits(3, 0)),
        (3, 0, 0, Limits(3, 0)),
        ("nonsense", -1, 10, Limits(2, 0)),
    ],
)
def test_limits_are_rounded(unavailable: Any, surge: Any, replicas: int, limits: Limits) -> None:
    assert update_limits(unavailable, surge, replicas, paused=False) == limits
    given = {"maxUnavailable": unavailable, "maxSurge": surge, "paused": False}
    assert HANDLER.limits(clone_set(replicas, **given)) == limits


def test_a_pause_forbids_surge() -> None:
    assert HANDLER.limits(clone_set(11, maxSurge=2)) == Limits(2, 2)
    assert HANDLER.limits(clone_set(11, maxSurge=2, paused=True)) == Limits(3, 0)


def test_pods_are_counted() -> None:
    assert HANDLER.replicas(made({"replicas": 4}, COUNTED)) == Replicas(
        4, observed=True, updated=1, ready=2, available=3
    )
    assert HANDLER.replicas(made({}, {**COUNTED, "observedGeneration": 1})) == Replicas(1)


def test_an_empty_object_is_read() -> None:
    assert HANDLER.replicas({}) == Replicas(1)
    assert HANDLER.template({}) == {}
    assert HANDLER.template({"spec": {"template": {"spec": {"a": 1}}}}) == {"spec": {"a": 1}}
    assert HANDLER.strategy({}) == Strategy(type="ReCreate")
    assert HANDLER.strategy({"spec": {"updateStrategy": "x"}}) == Strategy(type="ReCreate")
    assert HANDLER.limits({}) == Limits(1, 0)


def test_a_strategy_is_read_as_it_is_written_and_its_partition_in_pods() -> None:
    found = HANDLER.strategy(
        clone_set(10, type="InPlaceIfPossible", partition="40%", maxUnavailable="25%", maxSurge=1, paused=True)
    )
    assert found == Strategy("InPlaceIfPossible", "25%", 1, 4, paused=True)
    assert found.updates(10) == 6
    assert HANDLER.strategy(clone_set(10, type="OnDelete")).updates(10) == 0


def test_only_true_is_a_pause() -> None:
    assert not HANDLER.strategy(clone_set(1, paused=False)).paused
    assert not HANDLER.strategy(clone_set(1, paused="true")).paused


# Patches


def test_it_is_frozen_by_a_pause_and_by_keeping_all_pods_back() -> None:
    frozen = {"spec": {"updateStrategy": {"paused": True, "partition": "100%"}}}
    assert HANDLER.freeze(clone_set(3)) == frozen
    assert HANDLER.freeze(clone_set(3, type="InPlaceOnly", partition=1)) == frozen
    assert HANDLER.freeze(clone_set(3, type="OnDelete")) == {}


def test_it_is_partitioned_and_scaled() -> None:
    assert HANDLER.with_partition(4) == {"spec": {"updateStrategy": {"partition": 4}}}
    assert HANDLER.scale(4) == {"spec": {"replicas": 4}}


def test_a_strategy_is_written() -> None:
    assert HANDLER.with_strategy(Strategy()) == {
        "spec": {
            "updateStrategy": {
                "type": "ReCreate",
                "partition": None,
                "maxUnavailable": None,
                "maxSurge": None,
                "paused": None,
            }
        }
    }
    written = HANDLER.with_strategy(Strategy("InPlaceOnly", 1, 0, 2, paused=True))["spec"]["updateStrategy"]
    assert written == {"type": "InPlaceOnly", "partition": 2, "maxUnavailable": 1, "maxSurge": 0, "paused": True}


percentages = st.integers(0, 100).map(lambda number: f"{number}%")
numbers = st.none() | st.integers(0, 9) | percentages


@st.composite
def clone_sets(draw: st.DrawFn) -> dict[str, Any]:
    given = {
        "type": draw(st.sampled_from([None, "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"])),
        "partition": draw(numbers),
        "maxUnavailable": draw(numbers),
        "maxSurge": draw(numbers),
        "paused": draw(st.sampled_from([None, True])),
    }
    strategy = {name: value for name, value in given.items() if value is not None}
    return clone_set(draw(st.none() | st.integers(0, 9)), **strategy)


@given(clone_sets())
def test_writing_back_the_strategy_undoes_a_freeze(obj: dict[str, Any]) -> None:
    untouched, before = deepcopy(obj), HANDLER.strategy(obj)
    frozen = merged(obj, HANDLER.freeze(obj))
    assert obj == untouched
    again = merged(frozen, HANDLER.with_strategy(before))
    assert HANDLER.strategy(again) == before
    assert HANDLER.limits(again) == HANDLER.limits(obj)


@given(clone_sets())
def test_what_is_frozen_updates_no_pods(obj: dict[str, Any]) -> None:
    after = HANDLER.strategy(merged(obj, HANDLER.freeze(obj)))
    assert after.paused or after.type == "OnDelete"
    assert after.updates(HANDLER.replicas(obj).desired) == 0


@given(numbers, st.integers(0, 50))
def test_a_partition_is_never_more_than_all_and_all_only_if_it_says_so(partition: Any, replicas: int) -> None:
    kept = partition_pods(partition, replicas)
    assert 0 <= kept <= replicas
    if isinstance(partition, str) and partition != "100%" and replicas > 1:
        assert kept < replicas
