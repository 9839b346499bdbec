"""Each handler on its kind: counts, strategy, limits, and the patches that freeze, partition and scale."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.workloads import Limits, Replicas, Strategy, WorkloadHandler
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.jobs import Jobs
from kedge.plan.workloads.registry import BUILT_IN
from kedge.plan.workloads.replica_sets import ReplicaSets
from kedge.plan.workloads.stateful_sets import StatefulSets, ordinal_of

DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, JOB = (
    Deployments(),
    StatefulSets(),
    DaemonSets(),
    ReplicaSets(),
    Jobs(),
)
ROLLING: list[WorkloadHandler] = [DEPLOYMENT, STATEFUL_SET, DAEMON_SET]
EVERY: list[WorkloadHandler] = [*ROLLING, REPLICA_SET, JOB]
FIELD = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
COUNTED = {
    "observedGeneration": 2,
    "updatedReplicas": 1,
    "fullyLabeledReplicas": 6,
    "readyReplicas": 2,
    "availableReplicas": 3,
    "desiredNumberScheduled": 5,
    "updatedNumberScheduled": 1,
    "numberReady": 2,
    "numberAvailable": 3,
}


def made(spec: Any = None, status: Any = None) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "spec": spec or {}, "status": status or {}}


def rolling(handler: WorkloadHandler, replicas: int | None = None, **numbers: Any) -> dict[str, Any]:
    """A workload that rolls with these numbers."""
    spec: dict[str, Any] = {FIELD[handler.kind]: {"type": "RollingUpdate", "rollingUpdate": numbers}}
    if replicas is not None:
        spec["replicas"] = replicas
    return made(spec, {"desiredNumberScheduled": replicas} if handler.kind == "DaemonSet" else None)


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386), applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


# Counts


@pytest.mark.parametrize(
    ("handler", "spec", "counts"),
    [
        (DEPLOYMENT, {"replicas": 4}, Replicas(4, observed=True, updated=1, ready=2, available=3)),
        (DEPLOYMENT, {"replicas": 0}, Replicas(0, observed=True, updated=1, ready=2, available=3)),
        (DEPLOYMENT, {}, Replicas(1, observed=True, updated=1, ready=2, available=3)),
        (STATEFUL_SET, {"replicas": 4}, Replicas(4, observed=True, updated=1, ready=2, available=3)),
        (STATEFUL_SET, {}, Replicas(1, observed=True, updated=1, ready=2, available=3)),
        (DAEMON_SET, {}, Replicas(5, observed=True, updated=1, ready=2, available=3)),
        (REPLICA_SET, {"replicas": 7}, Replicas(7, observed=True, updated=6, ready=2, available=3)),
    ],
)
def test_pods_are_counted(handler: WorkloadHandler, spec: dict[str, Any], counts: Replicas) -> None:
    assert handler.replicas(made(spec, COUNTED)) == counts


@pytest.mark.parametrize(
    ("spec", "desired"),
    [
        ({"completions": 4, "parallelism": 2}, 4),
        ({"completions": 4}, 4),
        ({"parallelism": 2}, 2),
        ({"parallelism": 0}, 0),
        ({}, 1),
    ],
)
def test_pods_of_a_job_count_once_they_succeeded(spec: dict[str, Any], desired: int) -> None:
    found = JOB.replicas(made(spec, {"active": 3, "ready": 2, "succeeded": 1}))
    assert found == Replicas(desired, observed=True, updated=4, ready=3, available=1)


@pytest.mark.parametrize("seen", [1, 3, None])
@pytest.mark.parametrize("handler", [DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET], ids=lambda one: one.kind)
def test_a_status_of_another_generation_counts_nothing(handler: WorkloadHandler, seen: int | None) -> None:
    found = handler.replicas(made({"replicas": 5}, {**COUNTED, "observedGeneration": seen}))
    assert found == Replicas(5)


@pytest.mark.parametrize("handler", EVERY, ids=lambda one: one.kind)
def test_an_empty_object_is_read(handler: WorkloadHandler) -> None:
    assert handler.replicas({}).available == 0
    assert handler.template({}) == {}
    assert handler.template({"spec": {"template": "x"}}) == {}
    assert handler.strategy({}).paused is False
    assert handler.limits({}).max_surge in (0, 1)


@pytest.mark.parametrize("handler", EVERY, ids=lambda one: one.kind)
def test_every_handler_is_registered_by_its_kind_and_gives_the_template(handler: WorkloadHandler) -> None:
    assert BUILT_IN[handler.group, handler.kind] == handler
    assert handler.template({"spec": {"template": {"spec": {"a": 1}}}}) == {"spec": {"a": 1}}


# Strategy


@pytest.mark.parametrize("handler", ROLLING, ids=lambda one: one.kind)
def test_a_strategy_is_read_as_it_is_written(handler: WorkloadHandler) -> None:
    found = handler.strategy(rolling(handler, maxUnavailable="25%", maxSurge=0, partition=3))
    assert found == Strategy("RollingUpdate", "25%", 0, 3)
    assert handler.strategy(made()) == Strategy()
    assert handler.strategy(made({FIELD[handler.kind]: {"type": "OnDelete"}})) == Strategy(type="OnDelete")


def test_a_paused_deployment_says_so() -> None:
    assert DEPLOYMENT.strategy(made({"paused": True})).paused
    assert not DEPLOYMENT.strategy(made({"paused": False})).paused


@pytest.mark.parametrize("handler", [REPLICA_SET, JOB], ids=lambda one: one.kind)
def test_what_replaces_no_pods_has_no_strategy_to_set(handler: WorkloadHandler) -> None:
    assert handler.strategy(made()) == Strategy(type="OnDelete")
    assert handler.limits(made()) == Limits(0)
    assert handler.with_strategy(Strategy()) is None
    assert handler.freeze(made({"replicas": 3})) == {}


@pytest.mark.parametrize(
    ("strategy", "desired", "updates"),
    [
        (Strategy(), 3, 3),
        (Strategy(partition=1), 3, 2),
        (Strategy(partition=5), 3, 0),
        (Strategy(type="OnDelete"), 3, 0),
        (Strategy(type="Recreate"), 3, 3),
    ],
)
def test_a_strategy_says_how_many_pods_it_updates(strategy: Strategy, desired: int, updates: int) -> None:
    assert strategy.updates(desired) == updates


@pytest.mark.parametrize(
    ("handler", "replicas", "numbers", "limits"),
    [
        (DEPLOYMENT, 10, {}, Limits(2, 3)),  # 25 %: unavailable rounded down, surge up
        (DEPLOYMENT, 10, {"maxUnavailable": "15%", "maxSurge": "15%"}, Limits(1, 2)),
        (DEPLOYMENT, 3, {"maxUnavailable": 0, "maxSurge": 0}, Limits(1, 0)),
        (DEPLOYMENT, 3, {"maxUnavailable": 0, "maxSurge": 2}, Limits(0, 2)),
        (DEPLOYMENT, 3, {"maxUnavailable": "10%", "maxSurge": 0}, Limits(1, 0)),
        (DEPLOYMENT, 3, {"maxUnavailable": 9}, Limits(3, 1)),
        (DEPLOYMENT, 0, {"maxUnavailable": 0, "maxSurge": 0}, Limits(0, 0)),
        (DEPLOYMENT, 10, {"maxUnavailable": "nonsense", "maxSurge": -1}, Limits(2, 3)),
        (STATEFUL_SET, 10, {}, Limits(1)),
        (STATEFUL_SET, 10, {"maxUnavailable": "39%"}, Limits(3)),
        (STATEFUL_SET, 10, {"maxUnavailable": "1%"}, Limits(1)),
        (STATEFUL_SET, 10, {"maxUnavailable": 4}, Limits(4)),
        (STATEFUL_SET, 10, {"maxUnavailable": 4, "maxSurge": 2}, Limits(4)),
        (DAEMON_SET, 10, {}, Limits(1, 0)),
        (DAEMON_SET, 10, {"maxUnavailable": "11%"}, Limits(2, 0)),
        (DAEMON_SET, 10, {"maxUnavailable": 0, "maxSurge": "11%"}, Limits(0, 2)),
        (DAEMON_SET, 10, {"maxUnavailable": 0}, Limits(1, 0)),
        (DAEMON_SET, 10, {"maxSurge": 2}, Limits(1, 2)),
    ],
)
def test_limits_are_rounded_as_the_controller_of_the_kind_does(
    handler: WorkloadHandler, replicas: int, numbers: dict[str, Any], limits: Limits
) -> None:
    assert handler.limits(rolling(handler, replicas, **numbers)) == limits


def test_a_deployment_that_recreates_takes_all_pods_down() -> None:
    assert DEPLOYMENT.limits(made({"replicas": 3, "strategy": {"type": "Recreate"}})) == Limits(3, 0)


# Patches


@pytest.mark.parametrize(
    ("handler", "spec", "patch"),
    [
        (DEPLOYMENT, {"replicas": 3}, {"paused": True}),
        (
            STATEFUL_SET,
            {"replicas": 3},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}},
        ),
        (STATEFUL_SET, {}, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}),
        (
            STATEFUL_SET,
            {"replicas": 0},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
        ),
        (
            STATEFUL_SET,
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 5}}},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}}},
        ),
        (DAEMON_SET, {}, {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}),
    ],
)
def test_a_kind_is_frozen_in_its_own_way(handler: WorkloadHandler, spec: dict[str, Any], patch: dict[str, Any]) -> None:
    assert handler.freeze(made(spec)) == {"spec": patch}


def test_a_stateful_set_that_waits_for_deletion_is_frozen_already() -> None:
    assert STATEFUL_SET.freeze(made({"replicas": 3, "updateStrategy": {"type": "OnDelete"}})) == {}


@pytest.mark.parametrize(
    ("handler", "partition", "scale"),
    [
        (DEPLOYMENT, None, {"spec": {"replicas": 4}}),
        (
            STATEFUL_SET,
            {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 4}}}},
            {"spec": {"replicas": 4}},
        ),
        (DAEMON_SET, None, None),
        (REPLICA_SET, None, {"spec": {"replicas": 4}}),
        (JOB, None, {"spec": {"parallelism": 4}}),
    ],
)
def test_a_kind_is_partitioned_and_scaled_if_it_can_be(handler: WorkloadHandler, partition: Any, scale: Any) -> None:
    assert handler.with_partition(4) == partition
    assert handler.scale(4) == scale


def test_only_a_rolling_update_has_numbers() -> None:
    assert DEPLOYMENT.with_strategy(Strategy("Recreate", max_surge=1)) == {
        "spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}, "paused": None}
    }


numbers = st.none() | st.integers(0, 9) | st.integers(0, 100).map(lambda number: f"{number}%")
partitions = st.none() | st.integers(0, 9)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[WorkloadHandler, dict[str, Any]]:
    """A workload with any strategy its kind knows."""
    handler = draw(st.sampled_from(ROLLING))
    given = {"maxUnavailable": draw(numbers)}
    given |= {"partition": draw(partitions)} if handler is STATEFUL_SET else {"maxSurge": draw(numbers)}
    rolls = {name: number for name, number in given.items() if number is not None}
    other = {"type": "Recreate" if handler is DEPLOYMENT else "OnDelete"}
    strategies = [None, {"type": "RollingUpdate", "rollingUpdate": rolls}, {"rollingUpdate": rolls}, other]
    spec: dict[str, Any] = {"template": {"spec": {}}}
    if (chosen := draw(st.sampled_from(strategies))) is not None:
        spec[FIELD[handler.kind]] = chosen
    if (replicas := draw(st.none() | st.integers(0, 9))) is not None:
        spec["replicas"] = replicas
    if handler is DEPLOYMENT and draw(st.booleans()):
        spec["paused"] = True
    return handler, made(spec)


@given(workloads())
def test_writing_back_the_strategy_undoes_a_freeze(workload: tuple[WorkloadHandler, dict[str, Any]]) -> None:
    handler, obj = workload
    untouched, before = deepcopy(obj), handler.strategy(obj)
    frozen = merged(obj, handler.freeze(obj))
    assert obj == untouched
    patch = handler.with_strategy(before)
    assert patch is not None
    again = merged(frozen, patch)
    assert handler.strategy(again) == before
    assert handler.limits(again) == handler.limits(obj)


@given(workloads())
def test_what_is_frozen_replaces_no_pods(workload: tuple[WorkloadHandler, dict[str, Any]]) -> None:
    handler, obj = workload
    after = handler.strategy(merged(obj, handler.freeze(obj)))
    assert after.paused or after.updates(handler.replicas(obj).desired) == 0


@given(workloads())
def test_limits_leave_a_rollout_something_to_do(workload: tuple[WorkloadHandler, dict[str, Any]]) -> None:
    handler, obj = workload
    limits = handler.limits(obj)
    assert limits.max_unavailable >= 0
    assert limits.max_surge >= 0
    assert limits.max_unavailable + limits.max_surge > 0 or handler.replicas(obj).desired == 0


# Names of pods


@pytest.mark.parametrize(
    ("pod", "ordinal"), [("db-0", 0), ("db-10", 10), ("db", None), ("db-x", None), ("db-a-1", None), ("other-1", None)]
)
def test_a_pod_of_a_stateful_set_has_a_number(pod: str, ordinal: int | None) -> None:
    assert ordinal_of(pod, "db") == ordinal
