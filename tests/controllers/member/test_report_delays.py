"""Report delays: what anybody acts on is told at once; words alone wait, and the last of them are told."""

from __future__ import annotations

from datetime import datetime, timedelta

from controllers.member.applying_bed import DEPLOYMENTS, Bed, deployment, make_available, namespace, play
from kedge.api.condition import find_condition
from kedge.controllers.member.report_delays import MESSAGES_AFTER, UNDERWAY_AFTER
from kedge.kube.patches import MergePatch


async def _say_available(here: Bed, count: int, wanted: int) -> None:
    live = await here.get(DEPLOYMENTS, "web")
    assert live is not None
    counts = {"replicas": wanted, "updatedReplicas": wanted, "availableReplicas": count}
    status = {"observedGeneration": live["metadata"]["generation"], **counts, "unavailableReplicas": wanted - count}
    where = live["metadata"]["namespace"]
    await here.member.patch(DEPLOYMENTS, "web", MergePatch({"status": status}), where, subresource="status")


async def _message(here: Bed) -> str:
    return next(one.message for one in (await here.work()).status.conditions if one.type == "Available")


def test_a_pod_more_is_not_told_at_once_but_the_last_words_are_told() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment(replicas=9))
        await here.rest(MESSAGES_AFTER)
        here.to_hub.writes.clear()
        for count in range(8):
            await _say_available(here, count, 9)
            await here.rest(0.1)
        assert len(here.to_hub.writes) <= 1
        await here.rest(MESSAGES_AFTER)
        assert "7 of 9" in await _message(here)
        assert len(here.to_hub.writes) <= 2

    play(scene)


def test_that_it_is_available_is_told_at_once_whatever_was_told_a_moment_ago() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest(0.3)
        await make_available(here)
        await here.rest(0.2)
        assert (await here.conditions())["Available"] == ("True", "AllManifestsAvailable")

    play(scene)


def test_that_a_change_is_underway_is_told_late_and_what_is_available_by_then_once() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest()
        await make_available(here)
        await here.rest()
        here.to_hub.writes.clear()
        await here.rest(60)
        since = await _available_since(here)
        await here.place(namespace(), deployment(replicas=9))
        await here.rest(UNDERWAY_AFTER / 2)
        assert await _is_asked_for(here, 9)
        assert here.to_hub.writes == []
        await make_available(here)
        await here.rest(UNDERWAY_AFTER / 2)
        assert (await here.conditions())["Available"] == ("True", "AllManifestsAvailable")
        assert len(here.to_hub.writes) == 1
        assert await _available_since(here) - since >= timedelta(seconds=59), "it was not for a moment"
        await _say_available(here, 3, 9)
        await here.rest(UNDERWAY_AFTER / 2)
        assert (await here.conditions())["Available"][0] == "False", "what was taken for available is not"
        await here.place(namespace(), deployment(replicas=8))
        await here.rest(UNDERWAY_AFTER * 2)
        assert (await here.conditions())["Available"][0] == "False"

    play(scene)


async def _available_since(here: Bed) -> datetime:
    found = find_condition((await here.work()).status.conditions, "Available")
    assert found is not None
    return found.last_transition_time


async def _is_asked_for(here: Bed, replicas: int) -> bool:
    live = await here.get(DEPLOYMENTS, "web")
    return live is not None and live["spec"]["replicas"] == replicas
