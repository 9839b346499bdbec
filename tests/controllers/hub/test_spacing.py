"""Spacing: changes are gathered before a write, and after it there is a rest that grows with the clusters."""

from __future__ import annotations

import asyncio

import pytest

from kedge.controllers.hub.spacing import COUNT, GATHER, PER_CLUSTER, REST, Spacing
from kedge.kube.queue import Key
from support.virtual import run

KEY, OTHER = Key("hub", None, "crp"), Key("hub", None, "other")


def test_changes_are_gathered_from_the_first_of_them_on() -> None:
    async def main() -> None:
        spacing = Spacing()
        assert spacing.rest(KEY) == pytest.approx(GATHER)
        await asyncio.sleep(GATHER / 2)
        assert spacing.rest(KEY) == pytest.approx(GATHER / 2)
        assert spacing.rest(OTHER) == pytest.approx(GATHER)
        await asyncio.sleep(GATHER / 2)
        assert spacing.rest(KEY) == 0.0
        spacing.looked(KEY)
        assert spacing.rest(KEY) == pytest.approx(GATHER)

    run(main())


def test_after_a_write_there_is_a_rest_that_grows_with_the_clusters() -> None:
    async def main() -> None:
        spacing = Spacing()
        spacing.wrote(KEY, 1000)
        assert spacing.rest(KEY) == pytest.approx(REST + 1000 * PER_CLUSTER)
        await asyncio.sleep(REST + 1000 * PER_CLUSTER)
        assert spacing.rest(KEY) == 0.0
        spacing.wrote(KEY, 1)
        spacing.forget(KEY)
        assert spacing.rest(KEY) == pytest.approx(GATHER)

    run(main())


def test_what_only_counts_on_rests_longer() -> None:
    async def main() -> None:
        spacing = Spacing()
        assert spacing.count(KEY) == 0.0
        spacing.wrote(KEY, 10)
        assert spacing.count(KEY) == pytest.approx(COUNT)
        assert spacing.count(OTHER) == 0.0
        await asyncio.sleep(COUNT)
        assert spacing.count(KEY) == 0.0
        spacing.wrote(KEY, 10)
        spacing.forget(KEY)
        assert spacing.count(KEY) == 0.0

    run(main())
