"""Members: joining, what is shown of them, and leaving (kubefleet.md §1.3, §1.4, §7, §16)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from fleet import kinds
from fleet.bed import member_cluster
from fleet.situations.ghost import GHOST, ROOM, Ghost
from fleet.situations.playing import Group
from fleet.situations.stage import (
    CONFIG_MAPS,
    INTERNAL,
    MEMBER_CLUSTERS,
    SETTINGS,
    SHOP,
    Stage,
    fixed,
    message,
    spoken,
)
from fleet.watching import Happening, watched
from kedge.kube.codec import Untyped

GROUP: Final = Group("members")

READY: Final = "ReadyToJoin True MemberClusterReadyToJoin"
HAS_JOINED: Final = "Joined True MemberClusterJoined"
AGENT_WELL: Final = ["Joined True InternalMemberClusterJoined", "Healthy True InternalMemberClusterHealthy"]


async def member(stage: Stage, name: str) -> Untyped:
    return await stage.bed.get(MEMBER_CLUSTERS, name)


def says(found: Untyped) -> list[str]:
    return spoken(found["status"], found["metadata"]["generation"])


def agents(found: Untyped) -> dict[str, list[str]]:
    """What each agent says of itself."""
    generation = found["metadata"]["generation"]
    return {one["type"]: spoken(one, generation) for one in found["status"].get("agentStatus", ())}


@GROUP.situation("7", ({READY, HAS_JOINED}, {"MemberAgent": set(AGENT_WELL)}), real=True)
async def a_member_that_has_joined(stage: Stage) -> object:
    found = await member(stage, "cluster-1")
    return set(says(found)), {agent: set(said) for agent, said in agents(found).items()}


@GROUP.situation("7", {"MemberAgent": set(AGENT_WELL)})
async def what_the_agent_says_in_its_own_place(stage: Stage) -> object:
    found = await stage.bed.get(INTERNAL, "cluster-1", "fleet-member-cluster-1")
    return {agent: set(said) for agent, said in agents(found).items()}


@GROUP.situation("7", ({READY, "Joined Unknown MemberClusterJoinStateUnknown"}, {}))
async def a_member_whose_agent_has_not_come(stage: Stage) -> object:
    await Ghost(stage).comes()
    await asyncio.sleep(3.0)
    found = await member(stage, GHOST)
    return set(says(found)), agents(found)


@GROUP.situation("7", (HAS_JOINED, ["Healthy False InternalMemberClusterUnhealthy"]))
async def a_member_that_is_not_well(stage: Stage) -> object:
    ghost = Ghost(stage)
    await ghost.joins()
    await ghost.says_of_itself(
        ("Joined", "True", "InternalMemberClusterJoined"), ("Healthy", "False", "InternalMemberClusterUnhealthy")
    )
    await asyncio.sleep(3.0)
    found = await member(stage, GHOST)
    return says(found)[-1], agents(found)["MemberAgent"][1:]


@GROUP.situation("7", {READY, "Joined Unknown MemberClusterJoinStateUnknown"})
async def a_member_that_could_not_join(stage: Stage) -> object:
    ghost = Ghost(stage)
    await ghost.comes()
    await ghost.says_of_itself(("Joined", "Unknown", "InternalMemberClusterFailedToJoin"))
    await asyncio.sleep(3.0)
    return set(says(await member(stage, GHOST)))


@GROUP.situation("7", {READY, HAS_JOINED, "Healthy False MemberClusterUnreachable"})
async def a_member_that_is_not_heard_any_more(stage: Stage) -> object:
    """The last of these is Kedge's own."""
    await Ghost(stage).joins()
    await asyncio.sleep(60.0)
    return set(says(await member(stage, GHOST)))


@GROUP.situation("1.3", ("1", {"cpu", "memory"}, {"capacity", "allocatable", "available", "observationTime"}))
async def what_a_member_has(stage: Stage) -> object:
    status = (await member(stage, "cluster-1"))["status"]
    count = status["properties"]["kubernetes-fleet.io/node-count"]["value"]
    usage = status["resourceUsage"]
    return count, {"cpu", "memory"} & set(usage["available"]), set(usage)


@GROUP.situation("7", ["2.5", "2.5"])
async def a_status_written_by_hand_stays(stage: Stage) -> object:
    """Until the agent has something new to say; a ghost has not."""
    await Ghost(stage).joins()
    seen = {"value": "2.5", "observationTime": "2030-01-01T00:00:00Z"}
    await stage.say(MEMBER_CLUSTERS, GHOST, {"properties": {"example.com/cost": seen}})
    values = []
    for _ in range(2):
        await asyncio.sleep(10.0)
        values.append((await member(stage, GHOST))["status"]["properties"]["example.com/cost"]["value"])
    return values


# Leaving


def _of(seen: list[Happening], name: str) -> list[Untyped]:
    return [one.obj for one in seen if one.obj["metadata"]["name"] == name]


@GROUP.situation("7", ("Leave", "Joined False MemberClusterLeft", True))
async def a_member_leaves(stage: Stage) -> object:
    ghost = Ghost(stage)
    await ghost.joins()
    async with watched(stage.bed, MEMBER_CLUSTERS, "hub") as seen:
        await stage.hub.delete(MEMBER_CLUSTERS, GHOST)
        await stage.bed.until(partial(_is_told, stage, "Leave"))
        told = (await stage.bed.get(INTERNAL, GHOST, ROOM))["spec"]["state"]
        await ghost.leaves()
        await stage.bed.until(partial(stage.bed.is_gone, MEMBER_CLUSTERS, GHOST))
    last = [said for one in _of(seen, GHOST) for said in spoken(one["status"]) if said.startswith("Joined")][-1]
    return told, last, await stage.bed.is_gone(kinds.NAMESPACES, ROOM)


async def _is_told(stage: Stage, state: str) -> bool:
    found = await stage.bed.get(INTERNAL, GHOST, ROOM)
    return bool(found["spec"]["state"] == state)


@GROUP.situation("7", [False, True])
async def a_member_whose_agent_does_not_answer_leaves_after_a_while(stage: Stage) -> object:
    await Ghost(stage).joins()
    await stage.hub.delete(MEMBER_CLUSTERS, GHOST)
    seen = []
    for seconds in (880.0, 30.0):
        await asyncio.sleep(seconds)
        seen.append(await stage.bed.is_gone(MEMBER_CLUSTERS, GHOST))
    return seen


@GROUP.situation("7", (["cluster-4"], None, []), real=True)
async def what_was_placed_on_a_member_that_leaves_stays(stage: Stage) -> object:
    await stage.placed()
    await stage.bed.delete(MEMBER_CLUSTERS, "cluster-4")
    await stage.rest()
    found = await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-4")
    bound = [one for one in await stage.bindings() if one == "cluster-4"]
    return await stage.seen_on("cluster-4"), found["metadata"].get("ownerReferences"), bound


@GROUP.situation("7", (True, True, "Available True AllWorkAreAvailable"))
async def a_member_that_comes_back_gets_a_new_binding(stage: Stage) -> object:
    await stage.placed()
    before = (await stage.bindings())["cluster-4"]["metadata"]["name"]
    await stage.bed.delete(MEMBER_CLUSTERS, "cluster-4")
    await stage.rest()
    await stage.hub.create(kinds.MEMBERS, member_cluster("cluster-4"))
    await stage.bed.until(partial(stage.bed.is_joined, "cluster-4"))
    await stage.rest()
    after = (await stage.bindings())["cluster-4"]["metadata"]["name"]
    found = await stage.bed.get(CONFIG_MAPS, SETTINGS, SHOP, on="cluster-4")
    owned = [one["kind"] for one in found["metadata"].get("ownerReferences", ())] == ["AppliedWork"]
    return before != after, owned, (await stage.says_of("cluster-4"))[-1]


@GROUP.situation("16", ([GHOST], ["RolloutStarted True RolloutStarted"], []))
async def a_cluster_that_leaves_is_no_longer_listed(stage: Stage) -> object:
    ghost = Ghost(stage)
    await ghost.joins()
    await stage.placed(policy=fixed(GHOST))
    listed, said = await stage.picked(), (await stage.says_of(GHOST))[1:2]
    await stage.hub.delete(MEMBER_CLUSTERS, GHOST)
    await stage.bed.until(partial(_is_told, stage, "Leave"))
    await ghost.leaves()
    await stage.bed.until(partial(stage.bed.is_gone, MEMBER_CLUSTERS, GHOST))
    await stage.rest()
    return listed, said, await stage.picked()


@GROUP.situation("1.3", "spec.identity")
async def a_member_whose_identity_nobody_knows(stage: Stage) -> object:
    body: Any = {"metadata": {"name": GHOST}, "spec": {"identity": {"kind": "Robot", "name": "r2"}}}
    await stage.make(MEMBER_CLUSTERS, body)
    await asyncio.sleep(3.0)
    found = await member(stage, GHOST)
    assert "ReadyToJoin False MemberClusterNotReadyToJoin" in says(found)
    return message(found["status"], "ReadyToJoin")[:13]
