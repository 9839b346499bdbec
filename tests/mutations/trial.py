"""Trial: a pytest plug-in that tries mutants instead of running tests.

Everything is imported and collected once. Then each mutant has a process of its own, forked from this one, in which
the tests that reach the changed function run until one fails. Which tests those are is seen beforehand: all of them run
once, traced. Properties have a few examples only, the same every time: what chance finds does not count. A mutant that
is not done in time, or takes too much memory, counts as noticed. What a test computes while it is collected, as in its
table, is as it was: tables hold what is given and what is expected, and the test does the rest.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from time import process_time
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import msgspec
import pytest
from msgspec import Struct

from mutations.mutants import SOURCE, TOP, Mutant
from mutations.swapping import swap_in, users_of

_EXAMPLES: Final = 10
_TRACED: Final = 3
_MEMORY: Final = 4 << 30
_LONGEST: Final = 300
"""Seconds by the clock, for what waits. What is busy has the processor time that its tests take, several times over."""
_RETRIAL: Final = 60
"""Seconds of processor time, for a test that nobody has measured."""


Place: TypeAlias = tuple[str, str]
"""A module and a function of it."""


class Verdict(Struct, frozen=True):
    """What became of a mutant."""

    name: str
    noticed_by: str = ""
    """The test that failed, or what else became of it; empty if nobody noticed."""
    tests: int = 0
    """How many tests reach it."""


class Reached(Struct, frozen=True):
    """What a test reaches, and how long it takes."""

    seconds: float
    functions: tuple[Place, ...]


class Trial:
    """Tries mutants, and tells of each verdict as soon as it is known."""

    def __init__(self, mutants: Sequence[Mutant], folder: Path, note: Callable[[Verdict], None]) -> None:
        """The mutants are of modules under `folder`."""
        self._mutants = mutants
        self._folder = folder
        self._note = note
        self.problem = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = _prepared(session)
        answer = forked(lambda: _traced(session.items, self._folder))
        reached = msgspec.json.decode(answer, type=dict[str, Reached] | str)
        if isinstance(reached, str):
            self.problem = reached
            return True
        reaching = _reaching(reached)
        for mutant in self._mutants:
            tests = {name for place in _places(mutant) for name in reaching.get(place, ())}
            order = sorted(tests, key=lambda name: (_is_property(items[name]), reached[name].seconds))
            limit = 10 + 5 * sum(reached[name].seconds for name in order)
            self._note(Verdict(mutant.name, _noticed_by(mutant, [items[name] for name in order], limit), len(order)))
        return True


class Retrial:
    """Tries mutants with one test each, which passes while nothing is changed, and tells of those that it notices."""

    def __init__(
        self, mutants: Sequence[Mutant], noticed_by: Mapping[str, str], note: Callable[[Verdict], None]
    ) -> None:
        self._mutants = mutants
        self._noticed_by = noticed_by
        self._note = note

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        named = {*self._noticed_by.values()}
        items = {name: item for name, item in _prepared(session).items() if name in named}
        failing = forked(lambda: "\n".join(_failures([*items.values()])).encode()).decode().splitlines()
        for mutant in self._mutants:
            name = self._noticed_by[mutant.name]
            if name in items and name not in failing and _noticed_by(mutant, [items[name]], _RETRIAL) == name:
                self._note(Verdict(mutant.name, name, 1))
        return True


def _prepared(session: pytest.Session) -> dict[str, pytest.Item]:
    """The tests, by their names, so that processes forked from this one can run them."""
    session.config.pluginmanager.unregister(name="terminalreporter")
    _narrow(session.items, _EXAMPLES)
    gc.collect()
    gc.freeze()
    gc.disable()
    return {item.nodeid: item for item in session.items}


def _reaching(reached: Mapping[str, Reached]) -> Mapping[Place, Set[str]]:
    """The tests that reach a function; under a module, those that reach any of it."""
    found: dict[Place, set[str]] = defaultdict(set)
    for name, each in reached.items():
        for module, function in each.functions:
            found[module, function].add(name)
            found[module, TOP].add(name)
    return found


def _places(mutant: Mutant) -> set[Place]:
    """Where a change shows: of a constant, in all modules that have it."""
    if mutant.function != TOP:
        return {(mutant.module, mutant.function)}
    return {(module, TOP) for module in users_of(mutant)}


def _is_property(item: pytest.Item) -> bool:
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def _narrow(items: Iterable[pytest.Item], examples: int) -> None:
    """Give properties few examples, also those that say how many they want."""
    from hypothesis import settings  # not before pytest has seen its plug-in

    for item in filter(_is_property, items):
        test: Any = item.obj  # type: ignore[attr-defined]
        usual = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(usual, max_examples=examples)


def _noticed_by(mutant: Mutant, items: Sequence[pytest.Item], limit: float) -> str:
    if not items:
        return ""

    def tried() -> bytes:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        signal.alarm(_LONGEST)
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            swap_in(mutant)
        except Exception as error:  # noqa: BLE001 - a module that cannot even be imported is noticed
            return f"import: {error!r}".encode()
        return next((failed.encode() for failed in _failures(items)), b"")

    return forked(tried).decode()


def _failures(items: Sequence[pytest.Item]) -> Iterator[str]:
    plugins, failed = items[0].config.pluginmanager, _Failed()
    plugins.register(failed)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed.is_seen:
            yield item.nodeid
            failed.is_seen = False
    plugins.unregister(failed)


class _Failed:
    is_seen = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.is_seen = self.is_seen or report.failed


class _Tracing:
    """Notes which code runs in tests and in what they ask for; pytest's own would take far longer."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        self.codes.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        sys.settrace(self._note)
        try:
            return (yield)
        finally:
            sys.settrace(None)

    pytest_fixture_setup = pytest_runtest_call


def _traced(items: Sequence[pytest.Item], folder: Path) -> bytes:
    """What each test reaches."""
    _narrow(items, _TRACED)
    tracing = _Tracing()
    items[0].config.pluginmanager.register(tracing)
    found = {}
    for item in items:
        tracing.codes.clear()
        began = process_time()
        if [*_failures([item])]:
            return msgspec.json.encode(f"{item.nodeid} fails while nothing is changed")
        places = {
            (_module_of(code.co_filename), code.co_qualname.split(".<")[0])
            for code in tracing.codes
            if code.co_filename.startswith(f"{folder}{os.sep}")
        }
        found[item.nodeid] = Reached(process_time() - began, tuple(sorted(places)))
    return msgspec.json.encode(found)


def _module_of(file: str) -> str:
    return ".".join(Path(file).relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def forked(work: Callable[[], bytes]) -> bytes:
    """What comes of work in a process of its own; how it ended, if it was ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            answer = work()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - nothing of it may reach the process it was forked from
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"time: {signal.Signals(os.WTERMSIG(status)).name}".encode()
    if os.WEXITSTATUS(status):
        raise RuntimeError("a trial ended by itself: see above")
    return answer
