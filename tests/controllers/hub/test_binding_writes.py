"""Binding writes: each condition has one owner, and a cluster that moves costs few writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from controllers.hub.rolling import Rolling, count_writes
from kedge.api.binding import BindingState, BindingStatus
from kedge.api.condition import TRUE, Condition, find_condition
from kedge.api.placement_kinds import CLUSTER, Binding
from kedge.api.reasons import APPLIED, AVAILABLE, ROLLOUT_STARTED, WORK_AVAILABLE, WORK_SYNCHRONIZED
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.rollout import Rollout
from kedge.controllers.hub.works import UNDERWAY_AFTER, Works
from kedge.plan.rolling.rollout_condition import rollout_started_condition
from kedge.plan.working.binding_status import (
    OWN_TYPES,
    WorkReport,
    binding_status,
    not_overridden,
    not_synchronized,
    report_from_works,
    works_change,
)
from plan.rolling import making
from support.fleets import client_of, fleet_cluster, managed
from support.placed import config_map
from support.stage import LoopClock
from support.virtual import run

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CLUSTERS = [f"cluster-{number}" for number in range(1, 6)]


def condition(kind: str, status: str = TRUE) -> Condition:
    return Condition(
        type=kind, status=status, reason="Before", message="", last_transition_time=NOW, observed_generation=1
    )


EVERY = tuple(condition(kind) for kind in (ROLLOUT_STARTED, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, "Others"))


def binding(state: BindingState = BindingState.bound) -> Binding:
    return replace(making.binding("a", state=state), status=BindingStatus(conditions=EVERY))


def test_no_condition_has_two_owners() -> None:
    assert ROLLOUT_STARTED not in OWN_TYPES


@pytest.mark.parametrize("why", [None, "it waits"])
@pytest.mark.parametrize("state", [BindingState.bound, BindingState.unscheduled, BindingState.scheduled])
def test_a_rollout_changes_no_condition_but_its_own(state: BindingState, why: str | None) -> None:
    after = rollout_started_condition(binding(state), why, NOW)
    assert [one for one in after if one.type != ROLLOUT_STARTED] == [*EVERY[1:]]


@pytest.mark.parametrize(
    "told",
    [
        works_change(),
        not_synchronized("no"),
        not_overridden("no"),
        report_from_works((), "yes"),
    ],
)
def test_works_change_no_condition_but_their_own(told: WorkReport) -> None:
    after = binding_status(binding(), told, NOW).conditions
    assert [one for one in after if one.type not in OWN_TYPES] == [EVERY[0], EVERY[-1]]


@asynccontextmanager
async def hub_of_rollout_and_works() -> AsyncIterator[Rolling]:
    async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
        hub, pointed = await manager.connect("hub", cluster.transport()), PointedBindings("hub")
        manager.add_controller(Rollout(hub, CLUSTER, clock=LoopClock(), pointed=pointed).controller)
        manager.add_controller(Works(hub, CLUSTER, clock=LoopClock(), pointed=pointed).controller)
        placed = Rolling(client, CLUSTER)
        count_writes(cluster, placed.writes)
        yield placed


@pytest.mark.parametrize(("takes", "writes"), [(UNDERWAY_AFTER / 2, 3), (UNDERWAY_AFTER * 2, 4)])
def test_a_cluster_that_moves_costs_a_few_writes_of_its_binding(takes: float, writes: int) -> None:
    """Where it points, that its rollout has started, how far it is if that takes long, and that it is available."""

    async def main() -> None:
        async with hub_of_rollout_and_works() as placed:
            await placed.members(*CLUSTERS)
            for name in CLUSTERS:
                await placed.join(name)
            await placed.place(strategy={"rollingUpdate": {"maxUnavailable": 5}})
            await placed.snapshot(0)
            await placed.pick(*CLUSTERS)
            await placed.until_given(dict.fromkeys(CLUSTERS, "0"))
            await _report(placed)
            await placed.rest(60)
            placed.writes.clear()
            await placed.snapshot(1, (config_map("new"),))
            await placed.rest(takes)
            await _report(placed)
            await placed.rest(60)
            assert {_available(one) for one in (await placed.all()).values()} == {WORK_AVAILABLE}
            assert Counter(placed.writes) == {f"MODIFIED crp-{name}-0": writes for name in CLUSTERS}

    run(main())


async def _report(placed: Rolling) -> None:
    for name in CLUSTERS:
        await placed.report(name)


def _available(found: Binding) -> str:
    said = find_condition(found.status.conditions, AVAILABLE)
    return said.reason if said is not None and said.observed_generation == found.metadata.generation else ""
