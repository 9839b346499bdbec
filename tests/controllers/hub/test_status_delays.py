"""Status delays: changes are gathered before a write, and after it there is a rest that grows with the clusters."""

from __future__ import annotations

import asyncio

import pytest

from kedge.controllers.hub.status_delays import (
    COUNTS_AFTER,
    GATHER,
    REST,
    REST_PER_CLUSTER,
    UNSCHEDULED_AFTER,
    StatusDelays,
)
from kedge.kube.queue import Key
from support.virtual import run

KEY, OTHER = Key("hub", None, "crp"), Key("hub", None, "other")


def test_changes_are_gathered_from_the_first_of_them_on() -> None:
    async def main() -> None:
        delays = StatusDelays()
        assert delays.before_look(KEY) == pytest.approx(GATHER)
        await asyncio.sleep(GATHER / 2)
        assert delays.before_look(KEY) == pytest.approx(GATHER / 2)
        assert delays.before_look(OTHER) == pytest.approx(GATHER)
        await asyncio.sleep(GATHER / 2)
        assert delays.before_look(KEY) == 0.0
        delays.looked(KEY)
        assert delays.before_look(KEY) == pytest.approx(GATHER)

    run(main())


def test_after_a_write_there_is_a_rest_that_grows_with_the_clusters() -> None:
    async def main() -> None:
        delays = StatusDelays()
        delays.wrote(KEY, 1000)
        assert delays.before_look(KEY) == pytest.approx(REST + 1000 * REST_PER_CLUSTER)
        await asyncio.sleep(REST + 1000 * REST_PER_CLUSTER)
        assert delays.before_look(KEY) == 0.0
        delays.wrote(KEY, 1)
        delays.forget(KEY)
        assert delays.before_look(KEY) == pytest.approx(GATHER)

    run(main())


def test_numbers_of_clusters_alone_rest_longer() -> None:
    async def main() -> None:
        delays = StatusDelays()
        assert delays.before_counts(KEY) == 0.0
        delays.wrote(KEY, 10)
        assert delays.before_counts(KEY) == pytest.approx(COUNTS_AFTER)
        assert delays.before_counts(OTHER) == 0.0
        await asyncio.sleep(COUNTS_AFTER)
        assert delays.before_counts(KEY) == 0.0
        delays.wrote(KEY, 10)
        delays.forget(KEY)
        assert delays.before_counts(KEY) == 0.0

    run(main())


def test_that_clusters_are_not_picked_yet_waits_from_the_beginning_of_each_generation() -> None:
    async def main() -> None:
        delays = StatusDelays()
        assert delays.before_unscheduled(KEY, 1) == pytest.approx(UNSCHEDULED_AFTER)
        await asyncio.sleep(UNSCHEDULED_AFTER / 2)
        assert delays.before_unscheduled(KEY, 1) == pytest.approx(UNSCHEDULED_AFTER / 2)
        assert delays.before_unscheduled(KEY, 2) == pytest.approx(UNSCHEDULED_AFTER)
        delays.scheduled(KEY)
        assert delays.before_unscheduled(KEY, 2) == pytest.approx(UNSCHEDULED_AFTER)

    run(main())
