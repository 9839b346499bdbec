"""Process tasks: tasks with a number, in the order of their creation, and with the process they belong to.

asyncio keeps tasks in sets and cancels them in the order of their hashes. The number is the hash: an address would
differ from run to run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_ASYNCIO = str(Path(asyncio.__file__).parent)


class ProcessGroup:
    """The tasks of one process. While `stopped`, none of them runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopped = False

    def __str__(self) -> str:
        return self.name


_group: ContextVar[ProcessGroup | None] = ContextVar("group", default=None)


class Task(asyncio.Task[T]):
    """A task with a number and a group."""

    def __init__(self, coro: Any, *, number: int, group: ProcessGroup | None, **options: Any) -> None:
        self.number = number  # first: making a task hashes it
        self.group = group
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.number


def group_of_context(context: Context | None) -> ProcessGroup | None:
    """The group whose code runs in this context, or in the current context."""
    return _group.get() if context is None else context.get(_group)


def context_for(group: ProcessGroup | None) -> Context:
    """A context in which tasks belong to this group, and nothing else is set."""
    context = Context()
    context.run(_group.set, group)
    return context


def unfinished(loop: asyncio.AbstractEventLoop, group: ProcessGroup | None = None) -> list[Task[Any]]:
    """Every task that is not done, or those of this group; the oldest first."""
    found = [task for task in asyncio.all_tasks(loop) if isinstance(task, Task)]
    return sorted((task for task in found if group in (None, task.group)), key=lambda task: task.number)


def describe(task: asyncio.Task[Any]) -> str:
    """The task, and the innermost line outside of asyncio that it waits in."""
    owner = f"{task.group}: " if isinstance(task, Task) and task.group is not None else ""
    stopped = " (stopped)" if isinstance(task, Task) and task.group is not None and task.group.stopped else ""
    return f"{owner}{task.get_name()}{stopped} waits in {_innermost(task.get_coro())}"


def _innermost(work: Any) -> str:
    frames = list(_frames(work))
    if not frames:
        return "code that cannot be seen"
    # The caller of a sleep says more than the sleep.
    frame = next((frame for frame in reversed(frames) if not frame.f_code.co_filename.startswith(_ASYNCIO)), frames[-1])
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"


def _frames(work: Any) -> Iterator[Any]:
    while work is not None:
        if (frame := getattr(work, "cr_frame", None) or getattr(work, "ag_frame", None)) is not None:
            yield frame
        work = getattr(work, "cr_await", None) or getattr(work, "ag_await", None)
