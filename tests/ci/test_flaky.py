"""What many runs say about each test."""

import pytest

from ci.flaky import Count, Tried, count, exit_code, lines
from ci.record import Outcome, Result, Run


def tried(seed: int, *broken: str, **outcomes: Outcome) -> Tried:
    results = tuple(Result(test, outcome, real=True) for test, outcome in outcomes.items())
    status = int("failed" in outcomes.values())
    return Tried(seed, Run(status, seed, tuple(outcomes), (), (), broken, results))


MOODY = [tried(1, a="passed", b="failed"), tried(2, a="passed", b="passed"), tried(3, a="passed", b="failed")]


def test_failures_are_counted_with_their_seeds() -> None:
    assert count(MOODY) == (Count("b", 3, (1, 3)), Count("a", 3, ()))


def test_a_skipped_test_did_not_run() -> None:
    assert count([tried(1, a="skipped"), tried(2, a="passed")]) == (Count("a", 1, ()),)


@pytest.mark.parametrize(
    ("tries", "code"),
    [
        pytest.param([tried(1, a="passed"), tried(2, a="passed")], 0, id="all passed"),
        pytest.param(MOODY, 1, id="one failed sometimes"),
        pytest.param([tried(1, a="failed"), tried(2, a="failed")], 2, id="one failed always"),
        pytest.param([tried(1, a="passed"), Tried(2, None)], 2, id="a run was killed"),
        pytest.param([tried(1, a="passed"), tried(2, "worker gw0 crashed", a="passed")], 2, id="a worker crashed"),
        pytest.param([tried(1, a="skipped"), tried(2)], 2, id="nothing ran"),
    ],
)
def test_it_ends_with_0_only_if_nothing_ever_failed(tries: list[Tried], code: int) -> None:
    assert exit_code(tries) == code


def test_a_run_that_did_not_end_is_named() -> None:
    assert "the run with seed 7 did not come to its end" in lines([Tried(7, None)])
