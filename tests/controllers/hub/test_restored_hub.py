"""A hub whose etcd is restored to an older state: the scheduler makes up for what it had written since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import pytest

from controllers.hub.scheduling import Hub, a_while, hub_of
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.patches import MergePatch
from simulate.accidents import Backup, forget_history
from support.virtual import run

THREE = ("cluster-1", "cluster-2", "cluster-3")
PICK_N = {"placementType": "PickN"}

Step = Callable[[Hub], Awaitable[None]]


async def restored_after(step: Step, hub: Hub, *, is_listed: bool) -> None:
    """Take a backup right after this step, let everybody act on it, and have the hub be as it was then.

    `is_listed`: whether whoever watches has lost the connection, and has to list again.
    """
    transport = InProcessTransport(hub.cluster.server, rng=Random(1), delay=(0.5, 0.6))
    async with hub.scheduling(transport):
        await a_while()
        await step(hub)
        backup = Backup(hub.cluster.server)
        await a_while()
        if is_listed:
            transport.disconnect()
        backup.restore()
        if is_listed:
            forget_history(hub.cluster.server)
            transport.connect()
        await a_while(60.0)


IS_LISTED = pytest.mark.parametrize("is_listed", [True, False], ids=["after a list", "by events"])


@IS_LISTED
def test_a_policy_that_says_less_than_it_did_is_told_again(is_listed: bool) -> None:
    async def another_generation(hub: Hub) -> None:
        await hub.annotate("crp-0", generation="2")

    async def scenario() -> None:
        async with hub_of(members=THREE) as hub:
            await hub.place(policy=PICK_N, number=2)
            await restored_after(another_generation, hub, is_listed=is_listed)
            status = (await hub.policy()).status
            assert status is not None
            assert status.observed_crp_generation == 2

    run(scenario())


@IS_LISTED
def test_a_binding_that_has_its_finalizer_again_is_let_go_again(is_listed: bool) -> None:
    async def deleted(hub: Hub) -> None:
        await hub.evict(next(name for name, state in (await hub.shown()).items() if state == "Unscheduled"))

    async def scenario() -> None:
        async with hub_of(members=THREE) as hub:
            await hub.place(policy=PICK_N, number=2)
            async with hub.scheduling():
                await a_while()
                await hub.hold(*THREE)
                await hub.annotate("crp-0", number="1")
                await a_while()
            await restored_after(deleted, hub, is_listed=is_listed)
            leaving = [one for one in await hub.bindings() if one.metadata.deletion_timestamp]
            assert [one.metadata.finalizers for one in leaving] == [("kubernetes-fleet.io/work-cleanup",)]

    run(scenario())


@IS_LISTED
def test_a_placement_that_has_its_finalizer_again_is_let_go_again(is_listed: bool) -> None:
    async def deleted(hub: Hub) -> None:
        await hub.client.delete(hub.kinds.placement, "crp", hub.namespace)

    async def scenario() -> None:
        async with hub_of() as hub:  # without members there are no bindings either, whose return would be noticed
            await hub.place(policy=PICK_N, number=2)
            held = MergePatch({"metadata": {"finalizers": ["example.com/held"]}})
            await hub.client.patch(hub.kinds.placement, "crp", held, hub.namespace)
            await restored_after(deleted, hub, is_listed=is_listed)
            assert (await hub.placement()).metadata.finalizers == ("example.com/held",)

    run(scenario())
