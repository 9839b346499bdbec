"""Evictions: what the webhook answers, on a server with three zones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kedge.api.apps import StatefulSet
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request
from support.budget_bed import NAMESPACE, NUMBERED, BudgetBed, play

IN_ZONE_A = "429 1 pod not ready in ingester-zone-a"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"operation": "UPDATE"}, "400 request operation is not create, got: UPDATE"),
        ({"sub_resource": ""}, "400 request SubResource is not eviction, got: "),
        ({"sub_resource": "status"}, "400 request SubResource is not eviction, got: status"),
        ({"name": ""}, "400 request did not include both a namespace and a name"),
        ({"namespace": ""}, "400 request did not include both a namespace and a name"),
        ({"name": "nobody"}, '400 pods "nobody" not found'),
    ],
)
def test_a_request_that_names_no_pod_is_denied(fields: dict[str, Any], message: str) -> None:
    async def scene(here: BudgetBed) -> None:
        assert await here.said("a-0", **fields) == message
        reason = "pod-not-found" if fields.get("name") else "invalid-request"
        assert here.counted("eviction_requests_total", reason=reason, status="400") == 1

    play(scene)


def test_without_a_budget_a_pod_may_go() -> None:
    async def scene(here: BudgetBed) -> None:
        assert await here.said("a-0") == "allowed"
        assert here.counted("eviction_requests_total", reason="pod-not-in-scope", status="200") == 1

    play(scene)


def test_a_pod_that_is_not_running_may_go_with_a_warning() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=0)
        await here.say_of_pod("a-0", "Failed", ready=False)
        found = await here.evict("a-0")
        assert (found.allowed, found.warnings, found.uid) == (True, ("pod is not ready",), "u-1")
        assert here.counted("eviction_requests_total", reason="pod-not-ready", status="200") == 1

    play(scene)


def test_the_first_may_go_and_the_next_must_wait_until_it_is_back() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=1)
        assert await here.said("a-0") == "allowed"
        assert await here.said("a-1") == IN_ZONE_A
        assert await here.said("b-0") == IN_ZONE_A
        await here.remove_pod("a-0")
        await here.rest()
        assert await here.said("b-0") == "429 1 pod unknown in ingester-zone-a"
        await here.add_pod("a-0")
        await here.rest()
        assert await here.said("b-0") == "allowed"
        assert here.counted("eviction_requests_total", reason="allowed", status="200") == 2
        assert here.counted("eviction_requests_total", reason="denied", status="429") == 3
        assert here.counted("inflight_eviction_requests") == 0

    play(scene)


def test_an_eviction_that_never_happened_is_forgotten_after_two_minutes() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        assert await here.said("a-0") == "allowed"
        await here.rest(119)
        assert await here.said("b-0") == IN_ZONE_A
        await here.rest(2)
        assert await here.said("b-0") == "allowed"

    play(scene)


def test_a_dry_run_is_decided_and_not_remembered() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        assert await here.said("a-0", dry_run=True) == "allowed"
        assert await here.said("b-0") == "allowed"
        assert await here.said("a-0", dry_run=True) == "429 1 pod not ready in ingester-zone-b"

    play(scene)


def test_of_many_at_once_only_one_may_go() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        asked = [f"{letter}-{number}" for letter in "abc" for number in range(3)]
        found = await asyncio.gather(*(here.evict(short) for short in asked))
        assert sum(one.allowed for one in found) == 1

    play(scene)


def test_two_of_one_zone_may_go_if_the_budget_says_so() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=2)
        asked = [f"{letter}-{number}" for letter in "abc" for number in range(3)]
        found = await asyncio.gather(*(here.evict(short) for short in asked))
        allowed = [short for short, one in zip(asked, found, strict=True) if one.allowed]
        assert len(allowed) == 2
        assert len({short[0] for short in allowed}) == 1

    play(scene)


def test_pods_of_different_partitions_may_go_at_once() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(podNamePartitionRegex=NUMBERED)
        assert await here.said("a-0") == "allowed"
        assert await here.said("b-1") == "allowed"
        assert await here.said("b-0") == "429 1 pod not ready in partition 0"

    play(scene)


def test_a_maximum_of_0_is_answered_without_looking_at_pods() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=0)
        here.transport.asked.clear()
        assert await here.said("a-0") == "403 max unavailable = 0"
        assert [request.path.rpartition("/")[2] for request in here.transport.asked] == [
            "ingester-zone-a-0",
            "ingester-zone-a",
        ]
        assert here.counted("eviction_requests_total", reason="max-unavailable-0", status="403") == 1

    play(scene)


def test_two_budgets_for_one_pod_are_a_mistake() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        await here.set_budget("second")
        assert await here.said("a-0") == "400 multiple zoned pod disruption budgets found for pod"

    play(scene)


def test_a_pod_that_lost_its_stateful_set_may_not_go() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        await here.client.delete(StatefulSet, "ingester-zone-a", NAMESPACE, propagation="Orphan")
        await here.rest(10)
        assert await here.said("a-0") == "500 unable to find a StatefulSet pod owner"
        assert here.counted("eviction_requests_total", reason="sts-no-found", status="500") == 1

    play(scene)


def test_a_pod_whose_stateful_set_cannot_be_read_may_not_go() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        here.transport.refuses = lambda request: request.path.endswith("/statefulsets/ingester-zone-a")
        assert await here.said("a-0") == "500 unable to find StatefulSet ingester-zone-a by name: no"

    play(scene)


def test_a_scaled_zone_counts_by_its_larger_number() -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()
        more = MergePatch({"spec": {"replicas": 5}})
        await here.client.patch(StatefulSet, "ingester-zone-b", more, NAMESPACE)
        assert await here.said("a-0") == "429 2 pods unknown in ingester-zone-b"

    play(scene)


@pytest.mark.parametrize(
    ("resource", "message", "reason"),
    [
        ("statefulsets", "400 minimum number of StatefulSets not found", "min-sts-not-found"),
        (
            "pods",
            "500 unable to determine pod status in related StatefulSet",
            "err: sts-pod-status-not-determined",
        ),
    ],
)
def test_what_cannot_be_read_is_denied(resource: str, message: str, reason: str) -> None:
    async def scene(here: BudgetBed) -> None:
        await here.set_budget()

        def refused(request: Request) -> bool:
            return request.method == "GET" and request.path.endswith(f"/{resource}")

        here.transport.refuses = refused
        assert await here.said("a-0") == message
        assert here.counted("eviction_requests_total", reason=reason, status=message[:3]) == 1

    play(scene)


def test_on_a_server_that_does_not_know_budgets_pods_may_go(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(here: BudgetBed) -> None:
        await here.rest(120)
        assert await here.said("a-0") == "allowed"

    play(scene, definition=None)
    assert sum("going on without ZoneAwarePodDisruptionBudgets" in one.message for one in caplog.records) == 1
