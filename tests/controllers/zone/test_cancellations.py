"""Pods that stay are told to forget that they prepared: regularly, but not all the time."""

from __future__ import annotations

import asyncio

from controllers.zone.scaling_bed import BOTH, Bed, calls, play
from kedge.kube.connect.outbound import Answer


def test_a_downscale_that_is_not_wanted_any_more_is_cancelled() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 5, BOTH)
        await bed.adjust()
        bed.pods.took()
        await bed.template(5)
        await asyncio.sleep(5)
        assert await bed.step() == ""
        assert (bed.pods.took(), bed.pods.prepared) == (calls("a", "DELETE", 0, 1, 2, 3, 4), {})

    play(scene())


def test_pods_that_cannot_cancel_do_not_keep_an_upscale() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 2)
        await bed.zone("a", 2, BOTH)
        bed.pods.faults = {"ingester-zone-a-0": Answer(409), "ingester-zone-a-1": Answer(500)}
        assert await bed.step() == "a=5"

    play(scene())


def test_pods_at_rest_are_told_to_cancel_once_and_then_every_five_minutes() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 3)
        await bed.zone("a", 3, BOTH)
        for _ in range(10):
            await bed.adjust()
        assert bed.pods.took() == calls("a", "DELETE", 0, 1, 2)
        for _ in range(62):  # 15 minutes, and a little
            await asyncio.sleep((await bed.adjust()).look_again or 0)
        assert len(bed.pods.took()) == 3 * 3
        bed.restarted()
        await bed.adjust()
        assert bed.pods.took() == calls("a", "DELETE", 0, 1, 2)

    play(scene())


def test_a_new_pod_at_rest_is_told_to_cancel_and_the_others_are_not() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 3)
        await bed.zone("a", 3, BOTH)
        bed.show_pods("a", "u0", "u1", "u2")
        await bed.adjust()
        bed.pods.took()
        bed.show_pods("a", "u0", "new", "u2")
        await bed.adjust()
        await bed.adjust()
        assert bed.pods.took() == calls("a", "DELETE", 1)

    play(scene())


def test_pods_at_rest_that_fail_are_told_again_sooner_and_less_and_less() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(1, 1)
        await bed.zone("a", 1, BOTH)
        bed.pods.faults["ingester-zone-a-0"] = Answer(500)
        loop = asyncio.get_running_loop()
        until = loop.time() + 1800
        while loop.time() < until:
            await asyncio.sleep((await bed.adjust()).look_again or 0)
        assert 6 <= len(bed.pods.took()) <= 14

    play(scene())
