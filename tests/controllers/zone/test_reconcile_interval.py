"""How often a rollout group is reconciled while its objects change all the time."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from kedge.api.apps import StatefulSet
from kedge.api.zones import ROLLOUT_GROUP
from kedge.controllers.zone.group import Groups
from kedge.controllers.zone.metrics import GroupMetrics
from kedge.controllers.zone.observed import GroupCaches
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.stage import LoopClock
from support.virtual import run

SETS = untyped(StatefulSet.resource)
TEMPLATE = {"metadata": {"labels": {"name": "a"}}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
SPEC = {"serviceName": "a", "selector": {"matchLabels": {"name": "a"}}, "template": TEMPLATE}


async def reconciles(interval: float) -> float:
    """How many reconciles there are in 20 s in which a StatefulSet changes every half second."""
    clock, registry, rng = LoopClock(), CollectorRegistry(), Random(1)
    server = Server(clock=clock, rng=rng)
    user = Client(InProcessTransport(server, rng=rng))
    async with Manager(clock=clock, rng=rng) as manager:
        cluster = await manager.connect("one", InProcessTransport(server, rng=rng))
        groups = Groups(
            cluster, GroupCaches(cluster), clock=clock, metrics=GroupMetrics(registry), interval=interval
        )  # fmt: skip
        manager.add_controller(groups.controller)
        running = asyncio.create_task(manager.run(signals=False))
        meta = {"name": "a", "labels": {ROLLOUT_GROUP: "ingester"}}
        await user.create(SETS, {"metadata": meta, "spec": SPEC}, "default")
        for number in range(40):
            await user.patch(SETS, "a", MergePatch({"metadata": {"annotations": {"n": str(number)}}}), "default")
            await asyncio.sleep(0.5)
        manager.stop()
        await running
    await user.close()
    server.stop()
    return registry.get_sample_value("rollout_operator_group_reconciles_total", {"rollout_group": "ingester"}) or 0.0


@pytest.mark.parametrize(("interval", "least", "most"), [(0.0, 40, 100), (5.0, 4, 5)])
def test_a_group_is_reconciled_at_each_change_or_as_often_as_the_interval_allows(
    interval: float, least: int, most: int
) -> None:
    assert least <= run(reconciles(interval)) <= most
