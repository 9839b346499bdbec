"""A journey: releases, a bad one, a scale and a move of one placement over a real fleet, and all that is seen of it.

What is seen comes from raw watches and from the API servers' audit logs. All clusters store in one etcd, so what
happened on different clusters has one order: that of their revisions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from fleet import kinds
from fleet.bed import MEMBERS, Bed
from fleet.seeds import example
from fleet.story import PLACEMENT, deployment, is_so, set_image
from fleet.traces import Fleet
from fleet.watching import Happening, image, is_available, watched
from kedge.api.resource import Resource
from kedge.kube.codec import Codec, Untyped, untyped

NAMESPACE = "test-ns"
log = logging.getLogger(__name__)
CONFIG = untyped(Resource("", "v1", "ConfigMap", "configmaps", namespaced=True))


class Sight:
    """What has been seen so far: of Deployments and namespaces on members, of Works and bindings on the hub."""

    def __init__(self, deployments: list[Happening], namespaces: list[Happening], hub: list[list[Happening]]) -> None:
        self.deployments = deployments
        self.hub = hub
        self._namespaces = namespaces

    @property
    def count(self) -> int:
        return sum(map(len, self._all))

    @property
    def _all(self) -> list[list[Happening]]:
        namespaces = [one for one in self._namespaces if one.obj["metadata"]["name"] == NAMESPACE]
        return [self.deployments, namespaces, *self.hub]

    @property
    def last(self) -> Happening:
        return max((seen[-1] for seen in self._all if seen), key=lambda one: one.at)

    def held(self) -> dict[str, Happening]:
        """The Deployment of each member that has one."""
        return _standing(self.deployments)

    def is_tidy(self) -> bool:
        """Whether members that have no Deployment have nothing else either, nor has the hub anything for them."""
        held = self.held().keys()
        return all(_standing(seen).keys() == held for seen in self._all)


def _standing(seen: Iterable[Happening]) -> dict[str, Happening]:
    """What there is of each member, be it on its way out."""
    newest = {one.member: one for one in seen}
    return {member: one for member, one in newest.items() if one.type != "DELETED"}


@asynccontextmanager
async def sight(bed: Bed) -> AsyncIterator[Sight]:
    async with (
        watched(bed, kinds.DEPLOYMENTS, *MEMBERS) as deployments,
        watched(bed, kinds.NAMESPACES, *MEMBERS) as namespaces,
        watched(bed, kinds.WORKS, "hub") as works,
        watched(bed, kinds.BINDINGS, "hub") as bindings,
    ):
        yield Sight(deployments, namespaces, [works, bindings])


class Step(Struct, frozen=True):
    """A change by a user, and what is so when it is done; `kills` is how many processes are killed meanwhile."""

    name: str
    change: Callable[[Bed], Awaitable[None]]
    image: str
    clusters: int
    kills: int
    target: int
    max_unavailable: int = 1
    among: frozenset[str] = frozenset(MEMBERS)
    """The clusters that can be picked."""
    is_release: bool = False
    """Whether it gives clusters a new image that have another."""

    async def is_done(self, bed: Bed, seen: Sight) -> bool:
        """By what runs on the members; and the placement says so too."""
        held = seen.held()
        if len(held) != self.clusters or not held.keys() <= self.among or not seen.is_tidy():
            return False
        have = [one for one in held.values() if image(one) == self.image]
        if self.image == BAD:
            return len(have) == self.max_unavailable and await is_so(bed, "RolloutStarted", "False")
        return len(have) == self.clusters and all(map(is_available, have)) and await is_so(bed, "Available")


class Stretch(Struct, frozen=True):
    """A step as it went: when it began, by revision and by clock, and which clusters held the Deployment at its end."""

    step: Step
    revision: int
    begun: datetime
    holders: frozenset[str]


class Killed(Struct, frozen=True):
    """A process that was killed: in which step, and after how many happenings of it."""

    role: str
    step: str
    after: int
    midway: bool
    """Whether the step was still under way."""
    away: float = 0.0
    """Of a hub: seconds until the next one led."""


class Record(Struct, frozen=True):
    """A journey as it went."""

    stretches: tuple[Stretch, ...]
    ended: datetime
    deployments: tuple[Happening, ...]
    on_hub: tuple[Happening, ...]
    configs: dict[str, str]
    rest: Fleet
    killed: tuple[Killed, ...]

    def leaving(self, number: int) -> frozenset[str]:
        """The clusters that are deselected in a step."""
        before = self.stretches[number - 1].holders if number else frozenset()
        return before - self.stretches[number].holders

    def at_revision(self, revision: int) -> int:
        """The step in which that was written."""
        return max(number for number, one in enumerate(self.stretches) if one.revision < revision or number == 0)

    def at_time(self, moment: datetime) -> int:
        return max(number for number, one in enumerate(self.stretches) if one.begun <= moment or number == 0)


# What users do

BAD = "app:bad"
LINGERS = 3.0
"""Seconds in which a bad release could go further than it may."""


async def apply(bed: Bed, kind: Codec[Untyped], obj: Untyped) -> None:
    """Without kubectl, which on a busy machine takes longer than most steps."""
    await bed.hub.apply(kind, obj, manager="a-user", force=True)


def released(image: str) -> Callable[[Bed], Awaitable[None]]:
    """Two objects that belong together: a Deployment, and a ConfigMap that names its image."""

    async def change(bed: Bed) -> None:
        config = bed.patch(CONFIG, "release", {"data": {"image": image}}, NAMESPACE, on="hub")
        await asyncio.gather(config, set_image(bed, image))  # at once: it is to be one revision

    return change


def hasty(found: Untyped) -> Untyped:
    """With pods that go at once; a namespace takes half their time to look again whether they are gone."""
    template = found["spec"]["template"]
    pod = {**template["spec"], "terminationGracePeriodSeconds": 0}
    return {**found, "spec": {**found["spec"], "template": {**template, "spec": pod}}}


async def place(bed: Bed) -> None:
    await apply(bed, kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
    config = {"metadata": {"name": "release", "namespace": NAMESPACE}, "data": {"image": "app:1"}}
    await apply(bed, CONFIG, config)
    await apply(bed, kinds.DEPLOYMENTS, hasty(deployment("app:1")))
    await apply(bed, kinds.PLACEMENTS, example(1)[0])


async def scale(bed: Bed) -> None:
    await bed.patch(kinds.PLACEMENTS, PLACEMENT, {"spec": {"policy": {"numberOfClusters": 4}}}, on="hub")


async def to_the_west(bed: Bed) -> None:
    await apply(bed, kinds.PLACEMENTS, example(2)[0])


async def to_the_east(bed: Bed) -> None:
    await apply(bed, kinds.PLACEMENTS, example(2)[1])


WEST, EAST = frozenset({"cluster-1", "cluster-2"}), frozenset({"cluster-3", "cluster-4"})
JOURNEY = (
    Step("first placed", place, "app:1", clusters=3, target=3, kills=1),
    Step("a good release", released("app:2"), "app:2", clusters=3, target=3, kills=2, is_release=True),
    Step("a bad release", released(BAD), BAD, clusters=3, target=3, kills=1, is_release=True),
    Step("the next release", released("app:3"), "app:3", clusters=3, target=3, kills=2, is_release=True),
    Step("one cluster more", scale, "app:3", clusters=4, target=4, kills=1),
    Step("only the west", to_the_west, "app:3", clusters=2, target=2, kills=1, among=WEST),
    Step("to the east", to_the_east, "app:3", clusters=2, target=2, kills=2, among=EAST),
)
SHORT_JOURNEY = (replace(JOURNEY[0], kills=0), JOURNEY[2])


# Going

Meanwhile = Callable[[Bed, Sight, Step], Awaitable[list[Killed]]]


async def go(bed: Bed, meanwhile: Meanwhile, steps: Sequence[Step] = JOURNEY) -> Record:
    """Take every step, do something else meanwhile, and look at what there is when all is at rest."""
    log.info("the fleet is ready")
    stretches, killed = [], []
    async with sight(bed) as seen:
        for step in steps:
            begun, revision = datetime.now(UTC), await _revision(bed)
            killed += await meanwhile(bed, seen, step)
            await bed.until(partial(step.is_done, bed, seen), within=300.0)
            if step.image == BAD:
                await asyncio.sleep(LINGERS)
            log.info("%s: took %.1f s", step.name, (datetime.now(UTC) - begun).total_seconds())
            stretches.append(Stretch(step, revision, begun, frozenset(seen.held())))
        rest = await bed.at_rest(within=300.0)
        log.info("all is at rest")
        on_hub = tuple(one for several in seen.hub for one in several)
        return Record(
            stretches=tuple(stretches),
            ended=datetime.now(UTC),
            deployments=tuple(sorted(seen.deployments, key=lambda one: one.revision)),
            on_hub=tuple(sorted(on_hub, key=lambda one: one.revision)),
            configs={name: await _config(bed, name) for name in seen.held()},
            rest=rest,
            killed=tuple(killed),
        )


async def _revision(bed: Bed) -> int:
    return int((await bed.hub.list(kinds.PLACEMENTS)).resource_version)


async def _config(bed: Bed, where: str) -> str:
    found: Untyped = await bed.get(CONFIG, "release", NAMESPACE, on=where)
    return str(found["data"]["image"])
