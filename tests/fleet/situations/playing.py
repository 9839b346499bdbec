"""Playing: situations, each with what is to be seen in it, played one after the other on one fleet."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeAlias

from msgspec import Struct

from fleet.bed import Backend, Bed
from fleet.situations.stage import BOTH, CRP, INTERNAL, MEMBER_CLUSTERS, WORKS, Stage, Twin
from fleet.situations.words import Word, words_of
from fleet.watching import Happening, watched

_LISTENED: Final = 3600.0  # seconds a watch goes on
Play: TypeAlias = Callable[[Stage], Awaitable[object]]


class Situation(Struct, frozen=True):
    """What is done, and what kubefleet.md says is to be seen then."""

    name: str
    section: str
    """Of kubefleet.md."""
    twin: Twin
    play: Play
    expected: object
    on_real: bool

    @property
    def id(self) -> str:
        return f"{self.name}[{self.twin.placements.resource.kind}]"


class Failure(Struct, frozen=True):
    """What went wrong instead."""

    traceback: str


class Group:
    """Situations that are played on one fleet."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.situations: list[Situation] = []

    def situation(
        self, section: str, expected: object, *, kinds: Iterable[Twin] = (CRP,), real: bool = False
    ) -> Callable[[Play], Play]:
        """Register what is done; it gives what is seen, to be compared with what is expected.

        Where the two kinds of placements differ, `expected` is a function of the kind. With `real`, the first is tried
        on real clusters.
        """

        def register(play: Play) -> Play:
            for number, twin in enumerate(kinds):
                wanted = expected(twin) if callable(expected) else expected
                name = getattr(play, "__name__", "")
                self.situations.append(Situation(name, section, twin, play, wanted, real and number == 0))
            return play

        return register


class Performance:
    """What was seen in each situation of a group, and all that was said meanwhile."""

    def __init__(self) -> None:
        self.seen: dict[str, object] = {}
        self.words: set[Word] = set()

    def of(self, situation: Situation) -> object:
        found = self.seen[situation.id]
        assert not isinstance(found, Failure), found.traceback
        return found


def perform(group: Group, backend: Backend) -> Performance:
    """Play a group; on a real fleet only what is to be played there."""
    chosen = [one for one in group.situations if backend.real is None or one.on_real]
    return backend.play(lambda bed: _perform(bed, chosen))


async def _perform(bed: Bed, situations: list[Situation]) -> Performance:
    performance, listening, began = Performance(), list[list[Happening]](), asyncio.get_running_loop().time()
    async with AsyncExitStack() as stack:
        around = [kind for twin in BOTH for kind in (twin.placements, twin.policies, twin.bindings)]
        for kind in (*around, WORKS, MEMBER_CLUSTERS, INTERNAL):
            listening.append(await stack.enter_async_context(watched(bed, kind, "hub")))
        for situation in situations:
            performance.seen[situation.id] = await _play(bed, situation)
        assert asyncio.get_running_loop().time() - began < _LISTENED, "it took longer than was listened to"
    performance.words = {word for heard in listening for one in heard for word in words_of(one.obj)}
    return performance


async def _play(bed: Bed, situation: Situation) -> Any:
    stage = Stage(bed, situation.twin)
    try:
        seen = await situation.play(stage)
    except Exception:  # noqa: BLE001  # it is told of by the test of this situation
        seen = Failure(traceback.format_exc())
    try:
        await stage.clear()
    except Exception:  # noqa: BLE001  # likewise, unless there is worse to tell
        seen = seen if isinstance(seen, Failure) else Failure(traceback.format_exc())
    return seen
