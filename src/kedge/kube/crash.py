"""Crash: a component ended that must not end, and which one it was.

Task groups raise groups of groups of errors. People need the first error, and the component it came from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager


class Crashed(Exception):
    """A component ended that must not end. The cause is the error it ended with."""

    def __init__(self, component: str, error: BaseException) -> None:
        super().__init__(f"{component} crashed: {type(error).__name__}: {error}")
        self.component = component


async def run_component(component: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run a component. If it fails, raise `Crashed` with its name."""
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
def unwrap_crash() -> Iterator[None]:
    """Raise the first crash in a group instead of the group; or the error inside, if it is the only one."""
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
