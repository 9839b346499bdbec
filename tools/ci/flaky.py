"""Flaky: which tests fail sometimes. Many runs of the tests on the real control plane, each in another random order.

    python -m ci.flaky --times 20 [pytest's arguments, such as a folder]

Promises to run all of them, whatever fails, and to name for each test the seeds with which it failed:
`make test ARGS="--randomly-seed=SEED"` gives that order again.
Ends with 1 if a test failed in some runs but not in all, with 2 if there is more wrong than that: a test that always
fails, a run that did not come to its end or ran nothing.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ci import makes
from ci.record import Run

_ALL_RIGHT, _FLAKY, _BROKEN = 0, 1, 2


@dataclass(frozen=True)
class Tried:
    """One run, by its seed; without what became of it if it did not come to its end."""

    seed: int
    run: Run | None

    @property
    def is_usable(self) -> bool:
        return self.run is not None and not self.run.broken and bool(self.run.passed or self.run.failed)


@dataclass(frozen=True)
class Count:
    """How often a test ran, and the seeds with which it failed."""

    test: str
    runs: int
    failed_with: tuple[int, ...]

    @property
    def is_flaky(self) -> bool:
        return 0 < len(self.failed_with) < self.runs


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    seeds = range(options.first_seed, options.first_seed + options.times)
    with TemporaryDirectory(prefix="kedge-flaky-") as folder:
        tries = [_try(Path(folder), seed, options) for seed in seeds]
    print("", *lines(tries), sep="\n", flush=True)
    return exit_code(tries)


def count(tries: Iterable[Tried]) -> tuple[Count, ...]:
    """What became of each test over all runs, those that failed most often first. A skipped test did not run."""
    runs: dict[str, int] = {}
    failed: dict[str, list[int]] = {}
    for tried in tries:
        for result in (*tried.run.passed, *tried.run.failed) if tried.run is not None else ():
            runs[result.id] = runs.get(result.id, 0) + 1
            failed.setdefault(result.id, []).extend([tried.seed] if result.outcome == "failed" else [])
    counts = (Count(test, number, tuple(failed[test])) for test, number in runs.items())
    return tuple(sorted(counts, key=lambda one: (-len(one.failed_with), one.test)))


def exit_code(tries: Sequence[Tried]) -> int:
    failing = [one for one in count(tries) if one.failed_with]
    if not all(one.is_flaky for one in failing) or not all(tried.is_usable for tried in tries):
        return _BROKEN
    return _FLAKY if failing else _ALL_RIGHT


def lines(tries: Sequence[Tried]) -> Iterator[str]:
    """A table of the tests that failed, then how many did not."""
    counts = count(tries)
    failing = [one for one in counts if one.failed_with]
    if failing:
        yield f"{'failed':>6} {'of':>4}  test  (seeds)"
    for one in failing:
        yield f"{len(one.failed_with):>6} {one.runs:>4}  {one.test}  ({' '.join(map(str, one.failed_with))})"
    for tried in tries:
        if not tried.is_usable:
            yield f"the run with seed {tried.seed} {_what_went_wrong(tried)}"
    yield f"{len(tries)} runs: {len(counts)} tests, of which {len(failing)} failed at least once"


def _what_went_wrong(tried: Tried) -> str:
    if tried.run is None:
        return "did not come to its end"
    return "; ".join(tried.run.broken) or "ran no tests"


def _try(folder: Path, seed: int, options: argparse.Namespace) -> Tried:
    print(f"seed {seed}:", flush=True)
    arguments = ("-m", options.mark, f"--randomly-seed={seed}", *options.pytest)
    return Tried(seed, makes.make_test(folder, *arguments, target=options.target, name=f"seed-{seed}").run)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ci.flaky", description="Run tests many times; say which are flaky."
    )
    parser.add_argument("--times", type=int, default=20, help="how many runs (20)")
    parser.add_argument("--first-seed", type=int, default=random.Random().getrandbits(31), help="the others follow it")
    parser.add_argument("--target", default="test", help="what to make: test, test-real (test)")
    parser.add_argument("--mark", default="real", help="which tests, by their marks (real)")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, such as a folder")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
