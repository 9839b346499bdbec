"""Until when clusters that are to be left are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import BindingSpec, BindingStatus
from kedge.plan.aligning.evicting import remaining_tasks, seconds_until_end

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def spec(*tasks: dict[str, Any], clusters: tuple[str, ...] = ("b", "c")) -> BindingSpec:
    body = {
        "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"},
        "clusters": [{"name": name} for name in clusters],
        "gracefulEvictionTasks": [{"fromCluster": "a", **one} for one in tasks],
    }
    return msgspec.convert(body, BindingSpec)


def status(**health: str) -> BindingStatus:
    items = [{"clusterName": name, "applied": True, "health": value} for name, value in health.items()]
    return msgspec.convert({"aggregatedStatus": items}, BindingStatus)


def since(minutes: float) -> dict[str, Any]:
    return {"creationTimestamp": (NOW - timedelta(minutes=minutes)).isoformat()}


@pytest.mark.parametrize(
    ("task", "health", "stays"),
    [
        (since(1), {"b": "Healthy"}, True),
        (since(1), {"b": "Healthy", "c": "Unhealthy"}, True),
        (since(1), {"b": "Healthy", "c": "Healthy"}, False),
        (since(9.9), {}, True),
        (since(10), {}, False),
        ({**since(9.9), "gracePeriodSeconds": 60}, {}, False),
        ({**since(30), "gracePeriodSeconds": 3600}, {}, True),
        ({}, {}, True),
        ({**since(30), "suppressDeletion": True}, {"b": "Healthy", "c": "Healthy"}, True),
    ],
)
def test_a_task_ends_when_all_others_are_healthy_or_its_time_is_over(
    task: dict[str, Any], health: dict[str, str], *, stays: bool
) -> None:
    assert bool(remaining_tasks(spec(task), status(**health), NOW)) is stays


def test_nobody_takes_over_where_nothing_is_scheduled() -> None:
    assert remaining_tasks(spec(since(1), clusters=()), status(), NOW)


def test_the_next_task_that_ends_by_itself_is_waited_for() -> None:
    assert seconds_until_end(spec(), NOW) is None
    assert seconds_until_end(spec({**since(30), "suppressDeletion": True}, {}), NOW) is None
    assert seconds_until_end(spec(since(4), since(7)), NOW) == 180.0
    assert seconds_until_end(spec(since(40)), NOW) == 0.0
