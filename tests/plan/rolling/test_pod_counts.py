"""How many pods a revision runs, and how many of them may be lacking while a cluster moves to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kedge.api.fleet import POD_COUNTS
from kedge.api.meta import ObjectMeta
from kedge.plan.rolling import pod_counts
from kedge.plan.rolling.pod_counts import PodCounts, count_pods, counts_text, read_counts


def workload(kind: str = "Deployment", name: str = "web", image: str = "v1", **spec: Any) -> dict[str, Any]:
    group = {"CloneSet": "apps.kruise.io/v1alpha1", "Job": "batch/v1"}.get(kind, "apps/v1")
    template = {"spec": {"containers": [{"name": "app", "image": image}]}}
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": group, "kind": kind, "metadata": meta, "spec": {"template": template, **spec}}


def rolling(number: int | str, field: str = "strategy") -> dict[str, Any]:
    return {field: {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": number, "maxSurge": 1}}}


@pytest.mark.parametrize(
    ("manifest", "pods", "takes"),
    [
        (workload(replicas=3), 3, 0),  # 25 % of 3, rounded down: it surges instead
        (workload(replicas=4), 4, 1),
        (workload(), 1, 0),
        (workload(replicas=10, **rolling(3)), 10, 3),
        (workload(replicas=2, **rolling(3)), 2, 2),
        (workload(replicas=5, strategy={"type": "Recreate"}), 5, 5),
        (workload("StatefulSet", replicas=3), 3, 1),
        (workload("StatefulSet", replicas=0), 0, 0),
        (workload("StatefulSet", replicas=3, updateStrategy={"type": "OnDelete"}), 3, 0),
        (workload("CloneSet", replicas=10, updateStrategy={"maxUnavailable": 2}), 10, 2),
        (workload("ReplicaSet", replicas=3), 3, 0),
        (workload("Job", completions=3), 0, 0),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}, 0, 0),
    ],
)
def test_a_workload_counts_with_its_pods_and_with_those_its_strategy_may_take_away(
    manifest: dict[str, Any], pods: int, takes: int
) -> None:
    found = count_pods([manifest])
    assert (found.pods, found.takes_after(None)) == (pods, takes)


@pytest.mark.parametrize(
    ("spec", "takes", "is_unbounded"),
    [
        ({}, 1, False),
        (rolling(3, "updateStrategy"), 3, False),
        (rolling("3", "updateStrategy"), 3, False),
        (rolling(0, "updateStrategy"), 0, False),  # it surges instead
        (rolling("0%", "updateStrategy"), 0, False),
        (rolling("10%", "updateStrategy"), 0, True),
        ({"updateStrategy": {"type": "OnDelete"}}, 0, False),
        ({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": "10%"}}}, 0, False),
    ],
)
def test_of_a_daemon_set_only_a_number_says_how_many_pods_it_may_take_away(
    spec: dict[str, Any], takes: int, is_unbounded: bool
) -> None:
    found = count_pods([workload("DaemonSet", **spec)])
    assert (found.pods, found.is_uncounted, found.takes_after(None)) == (0, True, takes)
    assert found.unbounded_after(None) == (("DaemonSet shop/web",) if is_unbounded else ())
    assert found.unbounded_after(found) == ()


def test_pods_of_other_workloads_are_counted() -> None:
    assert not count_pods([workload(replicas=4, **rolling("50%")), workload("Job", "once")]).is_uncounted


def test_only_workloads_that_change_take_pods_away() -> None:
    web, db = workload(replicas=4), workload("StatefulSet", "db", replicas=3)
    before = count_pods([web, db])
    assert count_pods([web, db]).takes_after(before) == 0
    assert count_pods([workload(replicas=4, image="v2"), db]).takes_after(before) == 1
    assert count_pods([workload(replicas=4, image="v2"), workload("StatefulSet", "db", "v2")]).takes_after(before) == 2
    assert count_pods([web, workload("StatefulSet", "other", replicas=3)]).takes_after(before) == 1
    assert count_pods([web]).takes_after(before) == 0


def test_counts_are_read_as_they_were_written() -> None:
    daemons = workload("DaemonSet", "agent", **rolling("10%", "updateStrategy"))
    counts = count_pods([workload(replicas=4), workload("StatefulSet", "db", replicas=3), daemons])
    assert read_counts(ObjectMeta(annotations={POD_COUNTS: counts_text(counts)})) == counts
    assert counts_text(PodCounts()) == "{}"


def test_counts_are_written_in_the_order_of_names() -> None:
    found = json.loads(counts_text(count_pods([workload(name=name, replicas=1) for name in ("web", "api")])))
    assert len(found) == 2
    assert [*found] == sorted(found)


@pytest.mark.parametrize("text", [None, "", "x", "[]", '{"a": 1}', '{"a": [1, "x", ""]}'])
def test_counts_that_cannot_be_read_are_none(text: str | None) -> None:
    assert read_counts(ObjectMeta(annotations={} if text is None else {POD_COUNTS: text})) is None


@pytest.mark.parametrize("number", [2, "20%"])
def test_daemon_sets_among_very_many_are_not_forgotten(monkeypatch: pytest.MonkeyPatch, number: int | str) -> None:
    monkeypatch.setattr(pod_counts, "LONGEST", 200)
    many = [workload(name=f"web-{number}", replicas=4) for number in range(10)]
    daemons = workload("DaemonSet", "agent", **rolling(number, "updateStrategy"))
    found = read_counts(ObjectMeta(annotations={POD_COUNTS: counts_text(count_pods([*many, daemons]))}))
    assert found is not None
    assert (found.pods, found.is_uncounted) == (40, True)
    assert found.unbounded_after(None) == (() if number == 2 else ("all",))


def test_counts_of_before_daemon_sets_were_told_are_read() -> None:
    found = read_counts(ObjectMeta(annotations={POD_COUNTS: '{"Deployment shop/web": [4, 1, "abc"]}'}))
    assert found is not None
    assert (found.pods, found.is_uncounted, found.takes_after(None)) == (4, False, 1)


def test_very_many_workloads_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_counts, "LONGEST", 200)
    many = [workload(name=f"web-{number}", replicas=4) for number in range(10)]
    found = read_counts(ObjectMeta(annotations={POD_COUNTS: counts_text(count_pods(many))}))
    again = read_counts(ObjectMeta(annotations={POD_COUNTS: counts_text(count_pods(many[::-1]))}))
    other = read_counts(ObjectMeta(annotations={POD_COUNTS: counts_text(count_pods(many[1:]))}))
    assert found is not None
    assert other is not None
    assert [*found.workloads] == ["all"]  # a name that stays the same: with another one everything would have changed
    assert (found.pods, found.takes_after(None), found.takes_after(again), found.takes_after(other)) == (40, 10, 0, 10)


def test_an_annotation_may_be_as_long_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count_pods([workload(replicas=4)])
    monkeypatch.setattr(pod_counts, "LONGEST", len(counts_text(counts)))
    assert read_counts(ObjectMeta(annotations={POD_COUNTS: counts_text(counts)})) == counts
