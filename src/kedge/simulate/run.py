"""Run: runs a scenario from one seed, to its end or to the first violation.

    report = run("my.module:scenario", seed=7, faults=ROUGH)     # raises Failed

The same scenario, seed and faults give the same report in any process. For that reason the garbage collector runs at
fixed turns only: finding an unclosed stream has effects of its own.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from kedge.simulate.faults import NONE, Faults, format_faults
from kedge.simulate.loop import Loop
from kedge.simulate.process_tasks import describe, unfinished
from kedge.simulate.seeded_random import SeededRandom
from kedge.simulate.simulation import InvariantViolated, Simulation
from kedge.simulate.trace import Entry, Trace

Scenario: TypeAlias = Callable[[Simulation], Coroutine[Any, Any, None]]

COLLECT_EVERY = 50_000  # turns
SHOWN = 40  # entries of the trace in an error


class Report(Struct, frozen=True):
    """What a run came to."""

    digest: str
    seconds: float  # of virtual time
    requests: int
    lines: int  # of watches
    writes: int
    turns: int
    steps: int
    counts: tuple[tuple[tuple[str, ...], int], ...] = ()  # what was worth counting, by name


class Failed(Exception):
    """A run with a violation: what, when, what happened last, and how to replay it."""

    def __init__(self, sentence: str, *, seed: int, command: str, trace: Trace) -> None:
        shown = "\n".join(map(str, trace.last()[-SHOWN:]))
        super().__init__(
            f"{sentence}\n  at {trace.now:.6f} s of virtual time, from seed {seed}; replay it with\n  {command}\n"
            f"the last of {trace.requests} requests and {trace.lines} watch lines (digest {trace.digest}):\n{shown}"
        )
        self.sentence = sentence
        self.at = trace.now
        self.seed = seed
        self.command = command


def run(scenario: str, *, seed: int, faults: Faults = NONE, tell: Callable[[Entry], object] | None = None) -> Report:
    """Run the scenario of this name (`module:function`). `tell` is given each entry of the trace as it happens."""
    play = load(scenario)
    loop = Loop(SeededRandom(seed).number_for("loop"))
    trace = Trace(loop, tell=tell)
    try:
        with _collecting_at_set_turns(loop), _logging_to(trace):
            simulation = _play(play, seed, loop, faults, trace)
    except Exception as error:
        command = replay_command(scenario, seed, faults)
        sentence = str(error) if isinstance(error, InvariantViolated) else f"{type(error).__name__}: {error}"
        raise Failed(sentence, seed=seed, command=command, trace=trace) from error
    return Report(
        digest=trace.digest,
        seconds=trace.now,
        requests=trace.requests,
        lines=trace.lines,
        writes=simulation.writes,
        turns=loop.turns,
        steps=loop.steps,
        counts=tuple(sorted(simulation.counts.items())),
    )


def load(scenario: str) -> Scenario:
    """The scenario of this name."""
    module, _, function = scenario.partition(":")
    if not module or not function:
        raise ValueError(f"{scenario!r} names no scenario: write module:function")
    try:
        found: Scenario = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"there is no module {error.name}: name the folder it is in as PYTHONPATH") from None
    except AttributeError:
        raise ValueError(f"module {module} has no scenario {function}") from None
    return found


def replay_command(scenario: str, seed: int, faults: Faults) -> str:
    """What to type, in the folder this runs in, to see this run again."""
    chosen = f" --faults {format_faults(faults)}" if faults != NONE else ""
    python = f"PYTHONHASHSEED=0 {_python()} -m kedge.simulate"
    return f"{_path_for(scenario)}{python} {scenario} --seed {seed}{chosen} --trace"


def _python() -> str:
    """The interpreter that has Kedge: in a virtual environment that need not be active."""
    here = Path.cwd()
    return str(Path(sys.executable).relative_to(here)) if Path(sys.executable).is_relative_to(here) else "python"


def _path_for(scenario: str) -> str:
    """Where the module is to be found, if Python would not look there by itself."""
    module = scenario.partition(":")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module.startswith("kedge."):
        return ""
    root, here = Path(file).parents[module.count(".")], Path.cwd()
    return f"PYTHONPATH={root.relative_to(here)} " if root != here and root.is_relative_to(here) else ""


def _play(scenario: Scenario, seed: int, loop: Loop, faults: Faults, trace: Trace) -> Simulation:
    runner = asyncio.Runner(loop_factory=lambda: loop)
    runner.get_loop()
    simulation = Simulation(seed, loop, faults=faults, trace=trace)
    loop.set_exception_handler(lambda _, what: _unhandled(simulation, what))
    errors: list[Exception] = []
    steps: tuple[Callable[[], object], ...] = (lambda: runner.run(_whole(scenario, simulation)), runner.close)
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001  # that it does not come down either must not hide what went wrong
            errors.append(error)
    if simulation.failure is not None:
        raise simulation.failure
    if errors:
        raise errors[0]
    return simulation


async def _whole(scenario: Scenario, simulation: Simulation) -> None:
    try:
        await scenario(simulation)
        gc.collect(1)  # an error that nobody has seen is told of when it is thrown away
        await asyncio.sleep(0)
        simulation.check_end()
    finally:
        simulation.close()
    await _all_down(simulation.loop)


async def _all_down(loop: Loop) -> None:
    """Wait until all cancelled tasks have ended. A task that does not end is a defect."""
    for _ in range(1000):
        left = [task for task in unfinished(loop) if task is not asyncio.current_task()]
        if not left:
            return
        for task in left:
            if task.group is None:
                task.cancel()  # requests that are late
        await asyncio.sleep(0.1)
    raise RuntimeError("tasks that will not end:" + "".join(f"\n  {describe(task)}" for task in left))


def _unhandled(simulation: Simulation, what: dict[str, Any]) -> None:
    simulation.failed(f"every error is somebody's: {what.get('message')}", what.get("exception"))


@contextmanager
def _collecting_at_set_turns(loop: Loop) -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()  # the whole of the run before: nothing later looks at what is that old
    gc.disable()
    loop.every(COLLECT_EVERY, lambda: gc.collect(1))
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _ToTrace(logging.Handler):
    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.WARNING)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        self._trace.note(f"log {record.name}", record.getMessage())


@contextmanager
def _logging_to(trace: Trace) -> Iterator[None]:
    """What Kedge logs is shown in the trace, and nowhere else."""
    log, handler = logging.getLogger("kedge"), _ToTrace(trace)
    before = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before
