"""The applier and what was there before, what others own, and server-side apply."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.member.applying_bed import MAPS, NAMESPACES, Bed, config, deployment, namespace, play
from kedge.api.fleet import LAST_APPLIED, SPEC_HASH
from kedge.kube.codec import Untyped

APPLIED = ("True", "AllManifestsApplied")
SERVER_SIDE = {"type": "ServerSideApply"}


async def given(here: Bed, **metadata: Any) -> Untyped:
    """A ConfigMap that was there before."""
    await here.member.create(NAMESPACES, namespace())
    body = {"metadata": {"name": "settings", "namespace": "shop", **metadata}, "data": {"a": "0", "theirs": "x"}}
    return await here.member.create(MAPS, body, manager="somebody")


async def some_owner(here: Bed, kind: str = "Namespace", api_version: str = "v1") -> dict[str, str]:
    made = await here.member.create(NAMESPACES, {"metadata": {"name": "owner"}})
    return {"apiVersion": api_version, "kind": kind, "name": "owner", "uid": made["metadata"]["uid"]}


def test_what_was_there_before_is_taken_over_and_keeps_what_is_not_asked_for() -> None:
    async def scene(here: Bed) -> None:
        before = await given(here)
        await here.place(config(a="1"))
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["metadata"]["uid"] == before["metadata"]["uid"]
        assert live["data"] == {"a": "1", "theirs": "x"}
        assert (await here.conditions())["Applied"] == APPLIED

    play(scene)


REFUSED = [
    ({"whenToTakeOver": "Never"}, "NotTakenOver", "whenToTakeOver is Never"),
    ({"whenToTakeOver": "IfNoDiff"}, "FailedToTakeOver", "IfNoDiff is not supported yet"),
]


@pytest.mark.parametrize(("strategy", "reason", "said"), REFUSED)
def test_what_is_not_to_be_taken_over_is_left_alone_until_it_is_gone(
    strategy: dict[str, str], reason: str, said: str
) -> None:
    async def scene(here: Bed) -> None:
        before = await given(here)
        await here.place(config(a="1"), applyStrategy=strategy)
        await here.rest(30)
        assert await here.get(MAPS, "settings") == before
        assert await here.manifests() == [{"Applied": reason}]
        assert said in await here.message()
        await here.member.delete(MAPS, "settings", "shop")
        await here.rest(6)
        assert (await here.conditions())["Applied"] == APPLIED

    play(scene)


def test_what_others_own_is_left_alone_and_the_owner_named() -> None:
    async def scene(here: Bed) -> None:
        owner = await some_owner(here)
        before = await given(here, ownerReferences=[owner])
        await here.place(config(a="1"))
        await here.rest()
        assert await here.get(MAPS, "settings") == before
        assert await here.manifests() == [{"Applied": "FailedToTakeOver"}]
        assert "Namespace owner owns it" in await here.message()

    play(scene)


def test_what_others_own_is_shared_if_allowed() -> None:
    async def scene(here: Bed) -> None:
        owner = await some_owner(here)
        await given(here, ownerReferences=[owner])
        await here.place(config(a="1"), applyStrategy={"allowCoOwnership": True})
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"]["a"] == "1"
        assert [one["name"] for one in live["metadata"]["ownerReferences"]] == ["owner", "web-work"]
        assert (await here.conditions())["Applied"] == APPLIED

    play(scene)


def test_what_is_ours_and_gets_another_owner_is_no_longer_written() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"))
        await here.rest()
        owner, live = await some_owner(here), await here.get(MAPS, "settings")
        assert live is not None
        both = [*live["metadata"]["ownerReferences"], owner]
        await here.change(MAPS, "settings", {"metadata": {"ownerReferences": both}})
        await here.rest()
        assert (await here.manifests())[1] == {"Applied": "ManifestApplyFailed"}
        assert "Namespace owner owns it" in await here.message(1)

    play(scene)


@pytest.mark.parametrize("strategy", [{}, {"allowCoOwnership": True}])
def test_what_another_work_placed_is_never_touched(strategy: dict[str, bool]) -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1"), name="first-work")
        await here.rest()
        await here.place(config(a="2"), applyStrategy=strategy)
        await here.rest(10)
        assert await here.manifests() == [{"Applied": "FailedToTakeOver"}]
        assert "AppliedWork first-work owns it" in await here.message()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "1"}
        assert await here.conditions("first-work") == {
            "Applied": APPLIED,
            "Available": ("True", "AllManifestsAvailable"),
        }

    play(scene)


def managers(obj: Untyped) -> set[tuple[str, str]]:
    return {(one["manager"], one["operation"]) for one in obj["metadata"]["managedFields"]}


def test_server_side_apply_owns_what_it_says_and_takes_away_what_it_no_longer_does() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1", b="2"), applyStrategy=SERVER_SIDE)
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert managers(live) == {("work-api-agent", "Apply")}
        assert set(live["metadata"]["annotations"]) == {SPEC_HASH}
        await here.change(MAPS, "settings", {"data": {"theirs": "x"}})
        await here.place(namespace(), config(a="1"), applyStrategy=SERVER_SIDE)
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "1", "theirs": "x"}

    play(scene)


def test_server_side_apply_does_not_take_fields_unless_it_is_forced_to() -> None:
    async def scene(here: Bed) -> None:
        await given(here)
        await here.place(config(a="1"), applyStrategy=SERVER_SIDE)
        await here.rest()
        assert await here.manifests() == [{"Applied": "ManifestApplyFailed"}]
        assert 'conflict with "somebody"' in await here.message()
        force = {**SERVER_SIDE, "serverSideApplyConfig": {"force": True}}
        await here.place(config(a="1"), applyStrategy=force)
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "1", "theirs": "x"}
        assert (await here.conditions())["Applied"] == APPLIED

    play(scene)


def test_one_can_move_from_client_side_to_server_side_apply_and_back() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1", b="2", c="3"))
        await here.rest()
        await here.place(namespace(), config(a="2", b="2"), applyStrategy=SERVER_SIDE)
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "2", "b": "2"}
        assert LAST_APPLIED not in live["metadata"]["annotations"]
        assert managers(live) == {("work-api-agent", "Apply")}
        await here.place(namespace(), config(a="3", b="2"), applyStrategy={"type": "ClientSideApply"})
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "3", "b": "2"}
        assert LAST_APPLIED in live["metadata"]["annotations"]
        assert (await here.conditions())["Applied"] == APPLIED

    play(scene)


def test_what_is_too_large_to_be_remembered_is_applied_by_the_server() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config(a="1", b="2"))
        await here.rest()
        await here.place(namespace(), config(a="x" * 300_000))
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert set(live["data"]) == {"a"}
        assert set(live["metadata"]["annotations"]) == {SPEC_HASH}
        assert (await here.conditions())["Applied"] == APPLIED
        here.to_member.writes.clear()
        await here.change(MAPS, "settings", {"data": {"a": "2"}})
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert len(live["data"]["a"]) == 300_000
        await here.place(namespace(), config(a="1"))
        await here.rest()
        live = await here.get(MAPS, "settings")
        assert live is not None
        assert live["data"] == {"a": "1"}

    play(scene)


def test_a_server_side_applied_object_at_rest_is_not_written_again() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment(), applyStrategy=SERVER_SIDE)
        await here.rest()
        here.to_member.writes.clear()
        await here.rest(120)
        assert here.to_member.writes == []

    play(scene)
