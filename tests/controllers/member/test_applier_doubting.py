"""Writes of which the agent cannot know whether they were done: nothing of them is ever lost sight of."""

from __future__ import annotations

from controllers.member.applying_bed import MAPS, Bed, config, namespace, play
from kedge.controllers.member.applier import LATE


async def listed(here: Bed) -> list[str]:
    found = await here.applied()
    assert found is not None
    return [entry.name for entry in found.status.applied_resources]


def test_what_a_server_did_before_it_failed_stays_when_the_member_leaves() -> None:
    async def scene(here: Bed) -> None:
        here.to_member.fails_after = "configmaps"
        await here.place(namespace(), config())
        await here.rest(1.0)
        assert await listed(here) == ["shop", "settings"]
        await here.applier.leave()
        await here.rest(20.0)
        assert await here.applied() is None
        assert await here.get(MAPS, "settings") is not None, "left behind, as everything is"

    play(scene)


def test_what_arrives_long_after_it_was_given_up_is_removed_all_the_same() -> None:
    async def scene(here: Bed) -> None:
        here.to_member.loses = "configmaps"
        await here.place(namespace(), config("settings"), config("late"))
        await here.rest(5.0)
        here.to_member.loses = ""
        late = [one for one in here.to_member.lost if b'"late"' in one.body]
        await here.place(namespace(), config("settings"))
        await here.rest(60.0)
        assert await here.get(MAPS, "late") is None
        assert "late" in await listed(here), "it may still come"
        await here.to_member.arrive(late[0])
        await here.rest(10.0)
        assert await here.get(MAPS, "late") is None
        await here.rest(LATE)
        assert await listed(here) == ["shop", "settings"]

    play(scene)


def test_what_arrives_late_is_removed_also_if_it_is_the_last_of_its_kind() -> None:
    async def scene(here: Bed) -> None:
        here.to_member.loses = "configmaps"
        await here.place(namespace(), config("late"))
        await here.rest(5.0)
        here.to_member.loses = ""
        await here.place(namespace())
        await here.rest(60.0)
        assert await listed(here) == ["shop", "late"], "it may still come"
        await here.to_member.arrive(here.to_member.lost[0])
        await here.rest(10.0)
        assert await here.get(MAPS, "late") is None
        assert MAPS.resource in here.applier._objects.follows()
        await here.rest(LATE)
        assert await listed(here) == ["shop"]
        assert MAPS.resource not in here.applier._objects.follows(), "nothing more can come"

    play(scene)


def test_what_is_made_again_and_arrives_late_is_removed_as_well() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest(5.0)
        here.to_member.loses = "configmaps"
        await here.member.delete(MAPS, "settings", "shop")
        await here.rest(5.0)
        assert here.to_member.lost
        here.to_member.loses = ""
        await here.place(namespace())
        await here.rest(60.0)
        await here.to_member.arrive(here.to_member.lost[0])
        await here.rest(10.0)
        assert await here.get(MAPS, "settings") is None
        await here.rest(LATE)
        assert await listed(here) == ["shop"]

    play(scene)
