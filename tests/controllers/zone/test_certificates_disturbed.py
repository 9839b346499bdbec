"""A certificate that is renewed again and again while things happen to it, from seeds: no call ever fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from random import Random

import pytest

from controllers.zone.certificate_bed import Bed, Replica, play, until_shown
from support.certificates import data_of, made
from support.waiting import until_so

LIFE = timedelta(minutes=40)
ROUNDS = 12


class Disturbed:
    """Two replicas, and what happens to them and their Secret."""

    def __init__(self, bed: Bed, rng: Random) -> None:
        self._bed = bed
        self._rng = rng
        self._running: list[tuple[AsyncExitStack, Replica]] = []
        self.happened: list[str] = []

    async def start(self) -> None:
        stack = AsyncExitStack()
        self._running.append((stack, await stack.enter_async_context(self._bed.replica(expiration=LIFE))))

    @property
    def replicas(self) -> list[Replica]:
        return [one for _, one in self._running]

    async def stop(self, replica: Replica) -> None:
        """As a rolling update does it: nobody calls it any more, then it ends."""
        found = next(entry for entry in self._running if entry[1] is replica)
        self._running.remove(found)
        self._bed.replicas.remove(replica)
        await found[0].aclose()

    async def disturb(self) -> None:
        what: Callable[[], Awaitable[None]] = self._rng.choice(
            [self._delete, self._garble, self._replace, self._restart, self._cut_off, self._configure]
        )
        self.happened.append(what.__name__)
        await what()

    async def _delete(self) -> None:
        await self._bed.delete()

    async def _garble(self) -> None:
        data = await self._bed.data() or {}
        name = self._rng.choice(sorted(data))
        await self._bed.put({**data, name: data[name][: self._rng.randrange(300)]})

    async def _replace(self) -> None:
        await self._bed.put(data_of(made(at=self._bed.clock.now(), expiration=LIFE)))

    async def _restart(self) -> None:
        await self.stop(self._rng.choice(self.replicas))
        await self.start()

    async def _cut_off(self) -> None:
        gate = self._rng.choice(self.replicas).gate
        gate.disconnect()
        asyncio.get_running_loop().call_later(self._rng.uniform(1, 90), gate.connect)

    async def _configure(self) -> None:
        await self._bed.configure(f"more-{len(self.happened)}")


@asynccontextmanager
async def disturbed(bed: Bed, rng: Random) -> AsyncIterator[Disturbed]:
    world = Disturbed(bed, rng)
    await world.start()
    await world.start()
    try:
        yield world
    finally:
        for one in world.replicas:
            await world.stop(one)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(each, marks=pytest.mark.slow) for each in range(3, 200))])
def test_no_call_fails_whatever_happens_to_the_certificate(seed: int) -> None:
    async def act(bed: Bed) -> None:
        rng = Random(seed)
        await bed.configure("hook")
        async with disturbed(bed, rng) as world:
            await until_shown(*world.replicas)
            await bed.until_injected("hook")
            await asyncio.sleep(5)
            for _ in range(ROUNDS):
                await world.disturb()
                for _ in range(rng.randrange(40, 100)):
                    await asyncio.sleep(3)
                    assert not await bed.call("hook"), world.happened
            await until_so(lambda: _is_settled(bed, world), within=LIFE.total_seconds())

    play(act, seed=seed)


async def _is_settled(bed: Bed, world: Disturbed) -> bool:
    """Whether all replicas show what is stored, and every configuration trusts it."""
    stored = await bed.stored()
    if stored is None or stored.next is not None or await bed.call("hook"):
        return False
    bundles = await bed.bundles_of("hook")
    return bundles == [stored.ca] and all(one.now_shown == stored.current for one in world.replicas)
