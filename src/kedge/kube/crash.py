"""Crash: a component ended that must not, and which one it was.

Errors out of task groups come as groups in groups; people need the one that came first, and whose it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager


class Crashed(Exception):
    """A component ended that must not; the cause is the error it ended with."""

    def __init__(self, component: str, error: BaseException) -> None:
        super().__init__(f"{component} crashed: {type(error).__name__}: {error}")
        self.component = component


async def named(component: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work; if it fails, say whose failure it is."""
    try:
        await work()
    except Crashed:
        raise
    except Exception as error:
        first = _first(error)
        if isinstance(first, Crashed):
            raise first from first.__cause__
        raise Crashed(component, first) from error


@contextmanager
def one_crash() -> Iterator[None]:
    """Raise the first crash in a group instead of the group; or what was raised inside, if that is all there is."""
    try:
        yield
    except ExceptionGroup as group:
        crashed = group.subgroup(Crashed)
        if crashed is None and len(group.exceptions) > 1:
            raise
        first = _first(crashed or group)
        raise first from first.__cause__


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
