"""Judge: whether the tests say that a change may land. Pure functions of what is known about a run.

A run is right when pytest came to its end, all that was collected ran and passed, nothing was left out without a
reason, and there were as many tests as there should be. What is wrong is said in sentences.
Only tests on the real control plane may be tried once more, if they are few: others have no machine to blame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci.floor import Floor
from ci.makes import TestStep
from ci.record import Result, Run

MOST_RETRIED = 5
_SHOWN = 10
_TESTS_PASSED, _TESTS_FAILED = 0, 1
_EXIT_STATUSES = {
    2: "interrupted, or files that cannot be collected",
    3: "an error inside pytest",
    4: "pytest was called wrongly",
    5: "no tests were collected",
}


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a run, in sentences; else, which tests are to be tried once more."""

    problems: tuple[str, ...] = ()
    retry: tuple[str, ...] = ()


def judge_first(step: TestStep, floor: Floor) -> Verdict:
    """What to make of the run of all tests."""
    if step.run is None:
        return Verdict((_did_not_end(step),))
    problems = (*_problems(step, step.run), *_too_few(step.run, floor), *_not_retriable(step.run.failed))
    return Verdict(problems) if problems else Verdict(retry=tuple(result.id for result in step.run.failed))


def judge_retry(step: TestStep, asked: Sequence[str]) -> Verdict:
    """What to make of the run of those that were to be tried once more."""
    if step.run is None:
        return Verdict((_did_not_end(step),))
    passed = {result.id for result in step.run.passed}
    missing = [test for test in asked if test not in passed]
    others = [test for test in step.run.collected if test not in asked]
    return Verdict(
        (
            *_problems(step, step.run),
            *_several("did not pass the second time", missing),
            *_several("ran though nobody asked for it", others),
        )
    )


def not_run(run: Run) -> Iterator[str]:
    """Every reason for which tests did not run, with their number."""
    if run.left_out:
        yield f"{len(run.left_out)} left to make test-real and make soak"
    for reason, number in Counter(result.reason for result in run.skipped).most_common():
        yield f"{number} skipped: {reason or '(no reason given)'}"


def _problems(step: TestStep, run: Run) -> Iterator[str]:
    yield from _exit_problems(step.exit_code, run)
    yield from run.broken
    results = {result.id for result in run.results}
    yield from _several("collected, but deselected", run.deselected)
    yield from _several("collected, but never ran", [test for test in run.collected if test not in results])
    yield from _several("on the real control plane, but skipped", [result.id for result in run.skipped if result.real])
    yield from _several("skipped without a reason", [result.id for result in run.skipped if not result.reason])
    yield from _several("has a table without rows", [result.id for result in run.skipped if _is_empty_table(result)])


def _exit_problems(exit_code: int, run: Run) -> Iterator[str]:
    status = run.exit_status
    if status not in (_TESTS_PASSED, _TESTS_FAILED):
        yield f"pytest ended with {status}: {_EXIT_STATUSES.get(status, 'nobody knows why')}"
    elif (exit_code == 0) != (status == _TESTS_PASSED):
        yield f"make test ended with {exit_code}, but pytest with {status}"
    elif (status == _TESTS_FAILED) != bool(run.failed):
        yield f"pytest ended with {status}, but {len(run.failed)} tests failed"


def _did_not_end(step: TestStep) -> str:
    return f"pytest was killed, or never ran to its end (make test ended with {step.exit_code}): nothing is known"


def _too_few(run: Run, floor: Floor) -> Iterator[str]:
    ran = (*run.passed, *run.failed)
    real = [result for result in ran if result.real]
    for number, least, which in ((len(ran), floor.all, ""), (len(real), floor.real, " on the real control plane")):
        if number < least:
            yield f"{number} tests{which} ran, but there have to be at least {least} (tools/ci/floor)"


def _not_retriable(failed: Sequence[Result]) -> Iterator[str]:
    others = [result.id for result in failed if not result.real]
    yield from _several("failed, and needs no control plane, so it is not tried again", others)
    if not others and len(failed) > MOST_RETRIED:
        yield f"{len(failed)} tests failed; more than {MOST_RETRIED} are not tried again"


def _is_empty_table(result: Result) -> bool:
    return result.reason.startswith("got empty parameter set")


def _several(what: str, tests: Iterable[str]) -> Iterator[str]:
    tests = tuple(tests)
    for test in tests[:_SHOWN]:
        yield f"{what}: {test}"
    if len(tests) > _SHOWN:
        yield f"{what}: {len(tests) - _SHOWN} more"
