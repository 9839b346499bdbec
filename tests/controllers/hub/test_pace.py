"""Pace: large things rest between looks, and say something only once it stands; small ones never wait."""

from __future__ import annotations

import asyncio

from kedge.controllers.hub.pace import AT_ONCE, FEW, PER_CLUSTER, STANDS_AFTER, Pace
from kedge.kube.queue import Key
from support.virtual import run

KEY = Key("hub", None, "crp")


def test_a_small_placement_is_looked_at_at_once_and_a_large_one_after_a_rest() -> None:
    async def main() -> None:
        pace, size = Pace(), AT_ONCE + 1
        assert [pace.rest(KEY, AT_ONCE) for _ in range(3)] == [0.0, 0.0, 0.0]
        assert pace.rest(KEY, size) == 0.0
        assert 0 < pace.rest(KEY, size) <= size * PER_CLUSTER
        await asyncio.sleep(size * PER_CLUSTER)
        assert pace.rest(KEY, size) == 0.0

    run(main())


def test_a_few_words_are_said_at_once_and_many_when_they_have_stood() -> None:
    async def main() -> None:
        pace, many = Pace(), FEW + 1
        assert pace.unsettled(KEY, "so", FEW) == 0.0
        assert pace.unsettled(KEY, "so", many) == STANDS_AFTER
        await asyncio.sleep(STANDS_AFTER / 2)
        assert pace.unsettled(KEY, "otherwise", many) == STANDS_AFTER
        await asyncio.sleep(STANDS_AFTER / 2)
        assert pace.unsettled(KEY, "otherwise", many) == STANDS_AFTER / 2
        await asyncio.sleep(STANDS_AFTER / 2)
        assert pace.unsettled(KEY, "otherwise", many) == 0.0

    run(main())


def test_what_is_forgotten_begins_anew() -> None:
    async def main() -> None:
        pace = Pace()
        pace.rest(KEY, 1000)
        pace.forget(KEY)
        assert pace.rest(KEY, 1000) == 0.0

    run(main())
