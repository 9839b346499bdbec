"""Rollout delays: rests between looks at large placements; messages wait until they stay the same and nothing moves."""

from __future__ import annotations

import asyncio

import pytest

from kedge.controllers.hub.rollout_delays import (
    FEW,
    FEW_MESSAGES_AFTER,
    LOOK_PER_CLUSTER,
    MESSAGES_AFTER,
    MESSAGES_AT_MOST,
    QUIET_AFTER_MOVE,
    QUIET_AT_MOST,
    SMALL,
    RolloutDelays,
)
from kedge.kube.queue import Key
from support.virtual import run

KEY = Key("hub", None, "crp")


def test_a_small_placement_is_looked_at_at_once_and_a_large_one_after_a_rest() -> None:
    async def main() -> None:
        delays, size = RolloutDelays(), SMALL + 1
        assert [delays.before_look(KEY, SMALL) for _ in range(3)] == [0.0, 0.0, 0.0]
        assert delays.before_look(KEY, size) == 0.0
        assert 0 < delays.before_look(KEY, size) <= size * LOOK_PER_CLUSTER
        await asyncio.sleep(size * LOOK_PER_CLUSTER)
        assert delays.before_look(KEY, size) == 0.0

    run(main())


@pytest.mark.parametrize(("number", "takes"), [(FEW, FEW_MESSAGES_AFTER), (FEW + 1, MESSAGES_AFTER)])
def test_messages_are_written_when_they_stayed_the_same_and_few_of_them_sooner(number: int, takes: float) -> None:
    async def main() -> None:
        delays, so, otherwise = RolloutDelays(), ("so",) * number, ("otherwise",) * number
        assert delays.before_messages(KEY, ()) == 0.0
        assert delays.before_messages(KEY, so) == takes
        await asyncio.sleep(takes / 2)
        assert delays.before_messages(KEY, otherwise) == takes
        await asyncio.sleep(takes / 2)
        assert delays.before_messages(KEY, otherwise) == takes / 2
        await asyncio.sleep(takes / 2)
        assert delays.before_messages(KEY, otherwise) == 0.0
        assert delays.before_messages(KEY, otherwise) == 0.0, "until it is said: something may move just now"
        delays.wrote_messages(KEY)
        assert delays.before_messages(KEY, so) == takes

    run(main())


def test_messages_that_keep_changing_are_written_after_a_while() -> None:
    async def main() -> None:
        delays = RolloutDelays()
        for number in range(2 * MESSAGES_AT_MOST):
            assert 0.0 < delays.before_messages(KEY, (f"{number}",)) <= FEW_MESSAGES_AFTER
            await asyncio.sleep(FEW_MESSAGES_AFTER / 2)
        assert delays.before_messages(KEY, ("at last",)) == 0.0
        delays.wrote_messages(KEY)
        assert delays.before_messages(KEY, ("and then",)) == FEW_MESSAGES_AFTER

    run(main())


@pytest.mark.parametrize("messages_after", [MESSAGES_AFTER, 3600.0])
def test_no_message_is_written_shortly_after_a_move_unless_moves_go_on_for_ever(messages_after: float) -> None:
    async def main() -> None:
        delays, quiet = RolloutDelays(messages_after), QUIET_AFTER_MOVE * messages_after
        assert delays.after_move(KEY) == 0.0
        delays.moved(KEY)
        assert delays.after_move(KEY) == quiet
        await asyncio.sleep(quiet)
        assert delays.after_move(KEY) == 0.0
        for _ in range(round(QUIET_AT_MOST * 2) - 1):
            delays.moved(KEY)
            await asyncio.sleep(quiet / 2)
            assert delays.after_move(KEY) > 0.0
        delays.moved(KEY)
        await asyncio.sleep(quiet / 2)
        assert delays.after_move(KEY) == 0.0

    run(main())


def test_what_is_forgotten_begins_anew() -> None:
    async def main() -> None:
        delays = RolloutDelays()
        delays.before_look(KEY, 1000)
        delays.forget(KEY)
        assert delays.before_look(KEY, 1000) == 0.0

    run(main())
