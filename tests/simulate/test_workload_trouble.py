"""Trouble of workloads does what it says, is over in the end, and is seen in the members' own Deployments."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.embedded.kind import Kind
from kedge.embedded.ownership.field_owners import NO_OWNERS
from kedge.embedded.store import Change, Version
from kedge.embedded.workloads.everything import Workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.manager import Manager
from kedge.simulate.run import run
from kedge.simulate.simulation import Simulation
from simulate.deployments import MemberDeployments
from simulate.fleets import NAMESPACE, NODES, PARTS, Shape, deployment
from simulate.workload_trouble import KINDS, WorkloadTrouble, workload_days

MEMBER = "cluster-1"


async def befallen(simulation: Simulation) -> None:
    """The kind of trouble that the seed numbers befalls a Deployment: it stops working, and works again."""
    cluster, kind = simulation.cluster(MEMBER), KINDS[simulation.seed % len(KINDS)]
    runs = MemberDeployments(simulation.loop.time)

    def follow(_: str, found: Kind, change: Change) -> str:
        if found.resource == Deployment.resource:
            runs.changed(MEMBER, change)
        return ""

    simulation.always("a Deployment is followed", follow)
    async with Manager(clock=simulation.clock, rng=simulation.rng("workloads")) as manager:
        there = await manager.connect(MEMBER, cluster.transport())
        Workloads(manager, PARTS).join(there)
        await make_nodes(there.client, NODES, simulation.clock)
        task = asyncio.create_task(manager.run(signals=False))
        await there.client.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await there.client.create(Deployment, deployment("app:1", Shape(4, "3s")))
        await simulation.until("it works", lambda: runs.available_image(MEMBER) == "app:1", within=60)
        trouble = asyncio.create_task(WorkloadTrouble(simulation, Random(simulation.seed), ()).befall(MEMBER, kind))
        await simulation.until(f"{kind}: it no longer works", lambda: MEMBER in runs.down_since, within=60, every=0.1)
        await trouble
        await simulation.until("it works again", lambda: MEMBER not in runs.down_since, within=60)
        task.cancel()


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_each_kind_of_trouble_takes_a_deployment_down_and_ends(seed: int) -> None:
    report = run(f"{__name__}:befallen", seed=seed)
    assert dict(report.counts)["workload trouble", KINDS[seed]] == 1


def test_some_runs_have_one_or_two_kinds_of_trouble_and_half_of_those_nothing_else() -> None:
    drawn = [workload_days(Random(seed), share=0.4) for seed in range(500)]
    troubled = [one for one in drawn if one.kinds]
    assert 150 <= len(troubled) <= 250
    assert {len(one.kinds) for one in troubled} == {1, 2}
    assert {one.shape.replicas for one in troubled} == {1, 2, 3, 5, 10}
    assert 70 <= sum(one.is_network_fine for one in troubled) <= 130
    assert not any(one.is_network_fine for one in drawn if not one.kinds)


# What a Deployment says


def changed(image: str, *, seen: int = 2, **status: int) -> Change:
    found = deployment(image, Shape(3))
    found["metadata"]["generation"] = 2
    found["status"] = {"observedGeneration": seen, **status}
    return Change("MODIFIED", Version(f"{NAMESPACE}/web", 1, msgspec.json.encode(found), {}, {}, NO_OWNERS))


WORKS = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}


@pytest.mark.parametrize(
    ("status", "is_available"),
    [
        (WORKS, True),
        ({**WORKS, "updatedReplicas": 2}, False),
        ({**WORKS, "availableReplicas": 2, "unavailableReplicas": 1}, False),
        ({**WORKS, "seen": 1}, False),
        ({**WORKS, "replicas": 4, "unavailableReplicas": 1}, False),  # three old pods work, and a new one does not
    ],
)
def test_a_deployment_is_available_if_all_its_pods_are_new_and_work(status: dict[str, int], is_available: bool) -> None:
    runs = MemberDeployments(lambda: 7.0)
    runs.changed(MEMBER, changed("app:2", **status))
    assert runs.available_image(MEMBER) == ("app:2" if is_available else None)
    assert runs.proven == ({"app:2"} if is_available else set())
    assert runs.down_since == ({} if is_available else {MEMBER: 7.0})


def test_a_change_says_which_image_is_new_and_whether_the_one_before_worked() -> None:
    runs = MemberDeployments(lambda: 7.0)
    runs.changed(MEMBER, changed("app:1", **WORKS))
    made = runs.changed(MEMBER, changed("app:2", seen=1, **WORKS))
    assert (made.new_image, made.was_available) == ("app:2", True)
    again = runs.changed(MEMBER, changed("app:2", **WORKS))
    assert (again.new_image, again.was_available) == (None, False)
