"""Change: everything that must pass before a change lands, and what is printed about it.

Calls `make lint`, `make kube` and `make test`, stops at the first that fails, and gives back its exit code; zero only
if all is right (`judge`). The last line says what ran, what became of it and how long it took.
What is known about a run lies in a folder made for this one call: nothing that lay around before is ever read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ci import floor, judge, makes
from ci.judge import Verdict
from ci.makes import Step, TestStep

_NAME = ".ci/run"
_BEFORE = ("lint", "kube")


@dataclass(frozen=True)
class Report:
    """What was done, in order; the tests' verdicts, if it came to tests; and which tests were tried twice."""

    steps: tuple[Step, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    retried: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """That of the last step, which is the first to fail; never zero if anything is wrong."""
        return (self.steps[-1].exit_code or 1) if self.problems else 0


def main() -> int:
    with TemporaryDirectory(prefix="kedge-ci-") as folder:
        report = check(Path(folder))
    print("", *lines(report), sep="\n", flush=True)
    return report.exit_code


def check(folder: Path) -> Report:
    """Do everything."""
    least = floor.read()
    steps: tuple[Step, ...] = ()
    for target in _BEFORE:
        steps = (*steps, makes.make(target))
        if steps[-1].exit_code != 0:
            return Report(steps, (f"make {target} ended with {steps[-1].exit_code}",))
    first = makes.make_test(folder)
    steps = (*steps, first)
    verdict = judge.judge_first(first, least)
    notes = tuple(judge.not_run(first.run)) if first.run is not None else ()
    if verdict.retry:
        return _once_more(folder, steps, first, verdict, notes)
    return Report(steps, verdict.problems, notes)


def _once_more(
    folder: Path, steps: tuple[Step, ...], first: TestStep, verdict: Verdict, notes: tuple[str, ...]
) -> Report:
    print("", f"{len(verdict.retry)} failed; once more, by themselves:", *verdict.retry, sep="\n", flush=True)
    assert first.run is not None, "what is to be tried again is known from a run"
    seed = () if first.run.seed is None else (f"--randomly-seed={first.run.seed}",)
    asked = makes.argument_file(folder / "retried", verdict.retry)
    second = makes.make_test(folder, "-n", "0", *seed, asked, name="retry")
    problems = judge.judge_retry(second, verdict.retry).problems
    mended = (
        () if problems else tuple(f"retried: {test} passed the second time: a bug to mend" for test in verdict.retry)
    )
    return Report((*steps, second), problems, (*notes, *mended), verdict.retry)


def lines(report: Report) -> Iterator[str]:
    """What is printed at the end."""
    yield from (f"{_NAME}: {note}" for note in report.notes)
    yield from (f"{_NAME}: wrong: {problem}" for problem in report.problems)
    colour = "red" if report.problems else "green"
    times = ", ".join(f"{step.name} {step.seconds:.0f} s" for step in report.steps)
    yield f"{_NAME}: {colour}: {_counts(report)}; {times}"


def _counts(report: Report) -> str:
    outcomes = {
        result.id: result.outcome
        for step in report.steps
        if isinstance(step, TestStep) and step.run is not None
        for result in step.run.results
    }
    if not outcomes:
        return "no tests ran"
    passed, failed, skipped = (list(outcomes.values()).count(one) for one in ("passed", "failed", "skipped"))
    return f"{passed} passed, {failed} failed, {skipped} skipped, {len(report.retried)} retried"
