"""A crash of the agent after any single write ends where no crash would."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.member.applying_bed import DEPLOYMENTS, MAPS, NAMESPACE, Bed, bed, config, deployment, namespace
from kedge.api.work import AppliedWork, Work
from support.virtual import run


def first() -> tuple[Any, ...]:
    return namespace(), config(a="1"), config("goes"), deployment()


def second() -> tuple[Any, ...]:
    return namespace(), config(a="2"), config("comes")


async def both_places(here: Bed) -> dict[str, Any]:
    """What there is at rest, but for what differs from run to run."""
    maps = await here.member.list(MAPS, "shop")
    deployments = await here.member.list(DEPLOYMENTS, "shop")
    applied = await here.member.list(AppliedWork)
    works = await here.hub.list(Work, NAMESPACE)
    owned = {one.metadata.uid for one in applied.items}
    objects = [*maps.items, *deployments.items]
    return {
        "objects": sorted((one["metadata"]["name"], str(one.get("data"))) for one in objects if _is_ours(one)),
        "owned by what is there": all(_owner(one) in owned for one in objects if _is_ours(one)),
        "listed": [[entry.name for entry in one.status.applied_resources] for one in applied.items],
        "listed by uid": [all(entry.uid for entry in one.status.applied_resources) for one in applied.items],
        "finalizers": [one.metadata.finalizers for one in works.items],
        "said": [[(said.type, said.status, said.reason) for said in one.status.conditions] for one in works.items],
    }


def _is_ours(obj: Any) -> bool:
    return bool(obj["metadata"]["name"] != "kube-root-ca.crt")


def _owner(obj: Any) -> str:
    return str((obj["metadata"].get("ownerReferences") or [{"uid": ""}])[0]["uid"])


async def story(crash_after: int | None) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Place, change, delete; the agent crashes after one of its writes, and another takes its place."""
    async with bed() as here:
        count = 0

        def wrote() -> None:
            nonlocal count
            count += 1
            if count == crash_after:
                here.to_hub.broken = here.to_member.broken = True

        here.to_hub.on_write = here.to_member.on_write = wrote

        async def act(*, seconds: float) -> None:
            async with here.agent():
                await here.rest(seconds)
            if here.to_hub.broken:
                here.to_hub.broken = here.to_member.broken = False
                async with here.agent(seed=2):
                    await here.rest(seconds)

        await here.place(*first())
        await act(seconds=10)
        await here.place(*second())
        await act(seconds=10)
        placed = await both_places(here)
        await here.hub.delete(Work, "web-work", NAMESPACE)
        await act(seconds=20)
        return placed, await both_places(here), count


@pytest.mark.timeout(400)  # as many runs as there are writes
def test_a_crash_after_any_write_ends_where_no_crash_does() -> None:
    placed, gone, writes = run(story(None))
    assert placed["objects"] == [("comes", "{'a': '1'}"), ("settings", "{'a': '2'}")]
    assert gone["objects"] == gone["listed"] == gone["said"] == []
    assert writes > 10
    for number in range(1, writes + 1):
        assert run(story(number))[:2] == (placed, gone), f"a crash after write {number} of {writes}"


def test_a_crash_between_writing_and_a_change_of_mind_leaves_nothing_behind() -> None:
    """What was written but not yet reported, and is then no longer asked for, goes."""

    async def whole(crash_after: int) -> list[str]:
        async with bed() as here:

            def wrote() -> None:
                if len(here.to_member.writes) == crash_after:
                    here.to_hub.broken = here.to_member.broken = True

            here.to_member.on_write = wrote
            await here.place(namespace(), config(), config("goes"))
            async with here.agent():
                await here.rest(5)
            await here.place(namespace(), config())
            here.to_member.on_write = lambda: None
            here.to_hub.broken = here.to_member.broken = False
            async with here.agent(seed=2):
                await here.rest(10)
            maps = await here.member.list(MAPS, "shop")
            return sorted(one["metadata"]["name"] for one in maps.items if _is_ours(one))

    for crash_after in range(1, 8):
        assert run(whole(crash_after)) == ["settings"], crash_after
