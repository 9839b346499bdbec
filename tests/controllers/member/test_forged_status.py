"""Somebody else writes the status of a Work: the agent notices, and says again what is."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from controllers.member.applying_bed import (
    NAMESPACE,
    Bed,
    deployment,
    make_available,
    namespace,
    play,
)
from kedge.api.work import Work
from kedge.kube.patches import MergePatch

_FOREIGN = {"ordinal": 7, "group": "", "version": "v1", "kind": "ConfigMap", "name": "other", "namespace": "shop"}
STATUSES, GENERATIONS = ("True", "False", "Unknown"), (1, 10**9)
TIMES = ("1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z")


def forged(true: Work, status: str, generation: int, time: str, *, foreign: bool) -> dict[str, Any]:
    said = [
        {
            "type": kind,
            "status": status,
            "reason": "Trust",
            "message": "",
            "lastTransitionTime": time,
            "observedGeneration": generation,
        }
        for kind in ("Applied", "Available")
    ]
    named = [msgspec.to_builtins(one.identifier) for one in true.status.manifest_conditions]
    objects = [_FOREIGN] if foreign else named
    return {"conditions": said, "manifestConditions": [{"identifier": one, "conditions": said} for one in objects]}


@pytest.mark.parametrize("works", [True, False])
def test_a_status_that_somebody_else_wrote_is_put_right_with_its_times(works: bool) -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest()
        if works:
            await make_available(here)
        await here.rest(60.0)
        true = await here.work()
        for status, generation, time, foreign in itertools.product(STATUSES, GENERATIONS, TIMES, (True, False)):
            body = forged(true, status, generation, time, foreign=foreign)
            await here.hub.patch(Work, "web-work", MergePatch({"status": body}), NAMESPACE, subresource="status")
            await here.rest(4.0)
            now = await here.work()
            assert now.status == true.status, (status, generation, time, foreign)

    play(scene)


def test_a_status_that_was_deleted_is_written_again() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest(60.0)
        true = await here.work()
        gone: dict[str, Any] = {"conditions": [], "manifestConditions": None}
        await here.hub.patch(Work, "web-work", MergePatch({"status": gone}), NAMESPACE, subresource="status")
        await here.rest(4.0)
        assert (await here.work()).status == true.status

    play(scene)


def test_a_status_that_only_differs_in_its_times_is_left_as_another_agent_wrote_it() -> None:
    """Two agents of a member see a change at different moments. Neither corrects the other."""

    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest(60.0)
        said = msgspec.to_builtins((await here.work()).status)
        for one in said["conditions"]:
            one["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        here.to_hub.writes.clear()
        await here.hub.patch(Work, "web-work", MergePatch({"status": said}), NAMESPACE, subresource="status")
        await here.rest(4.0)
        assert here.to_hub.writes == []
        await make_available(here)
        await here.rest(4.0)
        applied = (await here.work()).status.conditions[0]
        assert applied.last_transition_time.year == 2026

    play(scene)
