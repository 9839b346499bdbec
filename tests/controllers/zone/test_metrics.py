"""What is counted about rollout groups."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest

from kedge.controllers.zone.metrics import GroupMetrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PREFIX = "rollout_operator"


def value(registry: CollectorRegistry, name: str, group: str = "ingester", **labels: str) -> float | None:
    return registry.get_sample_value(f"{PREFIX}_{name}", {"rollout_group": group, **labels})


def test_every_series_is_there_from_the_first_reconcile_on() -> None:
    registry = CollectorRegistry()
    GroupMetrics(registry).start("ingester")
    assert value(registry, "group_reconciles_total") == 1
    assert value(registry, "group_reconciles_failed_total") == 0
    assert value(registry, "last_successful_group_reconcile_timestamp_seconds") == 0


def test_a_reconcile_counts_by_how_it_ended() -> None:
    registry = CollectorRegistry()
    metrics = GroupMetrics(registry)
    metrics.start("ingester")
    metrics.success("ingester", 0.02, NOW)
    metrics.start("ingester")
    metrics.failed("ingester", 7.0)
    assert value(registry, "group_reconciles_total") == 2
    assert value(registry, "group_reconciles_failed_total") == 1
    assert value(registry, "group_reconcile_duration_seconds_count") == 2
    assert value(registry, "group_reconcile_duration_seconds_bucket", le="0.025") == 1
    assert value(registry, "group_reconcile_duration_seconds_bucket", le="10.0") == 2
    assert value(registry, "last_successful_group_reconcile_timestamp_seconds") == NOW.timestamp()


def test_a_group_that_is_gone_leaves_no_series() -> None:
    registry = CollectorRegistry()
    metrics = GroupMetrics(registry)
    for group in ("ingester", "store"):
        metrics.start(group)
        metrics.success(group, 0.1, NOW)
    metrics.start("never-ended")
    for group in ("ingester", "never-ended", "never-seen", "ingester"):
        metrics.forget(group)
    text = generate_latest(registry).decode()
    assert "ingester" not in text
    assert "never" not in text
    assert value(registry, "group_reconciles_total", "store") == 1
    assert metrics.groups == {"store"}
