"""Pace: large things rest between looks; words are said once they stand, and not while something moves."""

from __future__ import annotations

import asyncio

import pytest

from kedge.controllers.hub.pace import (
    AT_ONCE,
    FEW,
    FEW_STAND_AFTER,
    HUSH,
    LONGEST_HUSH,
    PER_CLUSTER,
    STANDS_AFTER,
    UNSAID,
    Pace,
)
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


@pytest.mark.parametrize(("number", "takes"), [(FEW, FEW_STAND_AFTER), (FEW + 1, STANDS_AFTER)])
def test_words_are_said_when_they_have_stood_and_few_of_them_sooner(number: int, takes: float) -> None:
    async def main() -> None:
        pace, so, otherwise = Pace(), ("so",) * number, ("otherwise",) * number
        assert pace.unsettled(KEY, ()) == 0.0
        assert pace.unsettled(KEY, so) == takes
        await asyncio.sleep(takes / 2)
        assert pace.unsettled(KEY, otherwise) == takes
        await asyncio.sleep(takes / 2)
        assert pace.unsettled(KEY, otherwise) == takes / 2
        await asyncio.sleep(takes / 2)
        assert pace.unsettled(KEY, otherwise) == 0.0
        assert pace.unsettled(KEY, otherwise) == 0.0, "until it is said: something may move just now"
        pace.said(KEY)
        assert pace.unsettled(KEY, so) == takes

    run(main())


def test_words_that_never_stand_are_said_all_the_same_after_a_while() -> None:
    async def main() -> None:
        pace = Pace()
        for number in range(2 * UNSAID):
            assert 0.0 < pace.unsettled(KEY, (f"{number}",)) <= FEW_STAND_AFTER
            await asyncio.sleep(FEW_STAND_AFTER / 2)
        assert pace.unsettled(KEY, ("at last",)) == 0.0
        pace.said(KEY)
        assert pace.unsettled(KEY, ("and then",)) == FEW_STAND_AFTER

    run(main())


@pytest.mark.parametrize("stands_after", [STANDS_AFTER, 3600.0])
def test_nothing_is_said_shortly_after_a_move_but_what_moves_for_ever_does_not_silence_it(stands_after: float) -> None:
    async def main() -> None:
        pace, hush = Pace(stands_after=stands_after), HUSH * stands_after
        assert pace.hush(KEY) == 0.0
        pace.moved(KEY)
        assert pace.hush(KEY) == hush
        await asyncio.sleep(hush)
        assert pace.hush(KEY) == 0.0
        for _ in range(round(LONGEST_HUSH / HUSH * 2) - 1):
            pace.moved(KEY)
            await asyncio.sleep(hush / 2)
            assert pace.hush(KEY) > 0.0
        pace.moved(KEY)
        await asyncio.sleep(hush / 2)
        assert pace.hush(KEY) == 0.0

    run(main())


def test_what_is_forgotten_begins_anew() -> None:
    async def main() -> None:
        pace = Pace()
        pace.rest(KEY, 1000)
        pace.forget(KEY)
        assert pace.rest(KEY, 1000) == 0.0

    run(main())
