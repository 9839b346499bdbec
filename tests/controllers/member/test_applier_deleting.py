"""The applier when a Work, or the member, goes."""

from __future__ import annotations

import asyncio

from controllers.member.applying_bed import MAPS, NAMESPACE, NAMESPACES, Bed, bed, config, namespace, play
from kedge.api.fleet import ON_DELETE, WORK_CLEANUP
from kedge.api.work import Work
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.virtual import run


async def delete(here: Bed) -> None:
    await here.hub.delete(Work, "web-work", NAMESPACE)


async def is_gone(here: Bed) -> bool:
    try:
        await here.work()
    except NotFound:
        return True
    return False


def test_a_deleted_work_takes_all_it_placed_with_it() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        await delete(here)
        await here.rest(10)
        assert await here.get(NAMESPACES, "shop", None) is None
        assert await here.applied() is None
        assert await is_gone(here)

    play(scene)


def test_a_deleted_work_stays_until_what_it_placed_is_gone() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        await here.change(MAPS, "settings", {"metadata": {"finalizers": ["example.com/busy"]}})
        await here.rest()
        await delete(here)
        await here.rest(60)
        assert not await is_gone(here)
        await here.change(MAPS, "settings", {"metadata": {"finalizers": None}})
        await here.rest(10)
        assert await is_gone(here)

    play(scene)


def test_what_holds_an_applied_work_for_too_long_no_longer_does() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        await here.change(MAPS, "settings", {"metadata": {"finalizers": ["example.com/busy"]}})
        await here.rest()
        await delete(here)
        await here.rest(290)
        assert not await is_gone(here)
        await here.rest(30)
        assert await is_gone(here)
        assert await here.applied() is None

    play(scene)


def test_what_is_abandoned_stays_and_belongs_to_nobody() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.hub.patch(
            Work, "web-work", MergePatch({"metadata": {"annotations": {ON_DELETE: "Abandon"}}}), NAMESPACE
        )
        await here.rest()
        await delete(here)
        await here.rest(30)
        assert await is_gone(here)
        assert await here.applied() is None
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert "ownerReferences" not in live["metadata"]

    play(scene)


def test_what_a_late_request_created_is_abandoned_too() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.hub.patch(
            Work, "web-work", MergePatch({"metadata": {"annotations": {ON_DELETE: "Abandon"}}}), NAMESPACE
        )
        await here.rest()
        settings = await here.get(MAPS, "settings")
        assert settings is not None
        late = {"name": "late", "namespace": "shop", "ownerReferences": settings["metadata"]["ownerReferences"]}
        await here.member.create(MAPS, {"metadata": late})  # the AppliedWork does not list it
        await delete(here)
        await here.rest(30)
        assert await here.applied() is None
        live = await here.get(MAPS, "late")
        assert live is not None
        assert "ownerReferences" not in live["metadata"]

    play(scene)


def test_a_work_that_comes_back_at_once_starts_anew() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        await delete(here)
        while not await is_gone(here):
            await asyncio.sleep(0.01)
        await here.place(namespace(), config(a="2"))
        await here.rest(30)
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "2"}
        assert (await here.conditions())["Applied"] == ("True", "AllManifestsApplied")

    play(scene)


def test_a_work_deleted_while_nobody_looked_is_cleaned_up_after() -> None:
    async def whole() -> None:
        async with bed() as here:
            async with here.agent():
                await here.place(namespace(), config())
                await here.rest()
            await delete(here)
            await here.rest()
            assert not await is_gone(here)
            async with here.agent():
                await here.rest(10)
            assert await is_gone(here)
            assert await here.get(MAPS, "settings") is None

    run(whole())


def test_an_applied_work_that_somebody_deletes_is_made_again_with_all_it_owned() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        applied = await here.applied()
        assert applied is not None
        await here.member.delete(type(applied), "web-work")
        await here.rest(60)
        again, live = await here.applied(), await here.get(MAPS, "settings")
        assert again
        assert live
        assert again.metadata.uid != applied.metadata.uid
        assert [one["uid"] for one in live["metadata"]["ownerReferences"]] == [again.metadata.uid]
        assert (await here.conditions())["Applied"] == ("True", "AllManifestsApplied")

    play(scene)


def test_leaving_strips_the_finalizers_and_leaves_what_was_placed() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.place(name="empty-work")
        await here.rest()
        await here.applier.leave()
        await here.rest(30)
        for name in ("web-work", "empty-work"):
            assert WORK_CLEANUP not in (await here.work(name)).metadata.finalizers
            assert await here.applied(name) is None
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert "ownerReferences" not in live["metadata"]
        await here.place(namespace(), config(a="2"))
        await here.rest(30)
        assert (await here.get(MAPS, "settings") or {})["data"] == {"a": "1"}

    play(scene)


def test_a_member_that_joins_again_takes_over_what_it_left() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        before = await here.get(MAPS, "settings")
        await here.applier.leave()
        here.applier.join()
        await here.rest()
        after = await here.get(MAPS, "settings")
        assert before
        assert after
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert len(after["metadata"]["ownerReferences"]) == 1
        assert (await here.conditions())["Applied"] == ("True", "AllManifestsApplied")

    play(scene)
