"""Which seeds are tried, what is said of those that fail, and what is asked of the rest."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kedge.simulate.faults import Counts
from simulate.expected import ROLLING, Expected, hits_runs, is_too_rare, roles_hit, untested
from simulate.many import SeedsFailed, counted, crash_points, crash_problem
from simulate.seeds import HIGHEST, ROOT, chosen, current_commit, first_seed

COMMIT = "3734b0a9e9e0c1f7d3b6a2f8c5d4e3b2a1908f7e"
BROKEN = "simulate.scenarios:never_right"


# Which ones


def test_the_same_commit_tries_the_same_seeds_and_another_tries_others() -> None:
    assert chosen(60, COMMIT, {}) == chosen(60, COMMIT, {})
    assert chosen(60, COMMIT, {}) != chosen(60, COMMIT[::-1], {})
    assert len(chosen(60, COMMIT, {})) == 60


@pytest.mark.parametrize("number", [1, 60, 5000, HIGHEST])
def test_no_seed_is_out_of_range(number: int) -> None:
    for commit in ("", COMMIT, *map(str, range(1000))):
        first = first_seed(commit, number)
        assert 1 <= first <= first + number - 1 <= HIGHEST


def test_the_environment_says_how_many_and_from_which_one_on() -> None:
    assert chosen(60, COMMIT, {"KEDGE_SEEDS": "3", "KEDGE_FIRST_SEED": "7"}) == range(7, 10)
    assert len(chosen(60, COMMIT, {"KEDGE_SEEDS": "300"})) == 300
    assert chosen(60, COMMIT, {"KEDGE_FIRST_SEED": "7"}) == range(7, 67)
    with pytest.raises(ValueError, match="KEDGE_SEEDS is 0: at least one seed"):
        chosen(60, COMMIT, {"KEDGE_SEEDS": "0"})


def test_without_git_the_seeds_are_always_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert current_commit(tmp_path) == ""
    monkeypatch.setenv("PATH", "")
    assert current_commit(ROOT) == ""


# Those that fail


@pytest.fixture(scope="module")
def failed() -> SeedsFailed:
    with pytest.raises(SeedsFailed) as failed:
        counted(BROKEN, range(5, 8))
    return failed.value


def test_all_seeds_that_failed_are_named_each_with_the_command_that_replays_it(failed: SeedsFailed) -> None:
    assert failed.seeds == [5, 6, 7], "of both processes"
    said = str(failed).partition("replay with\n")
    assert "  seed 6: every stamp was true of its data once: shop/web carries forged\n" in said[0]
    for seed, command in zip((5, 6, 7), failed.commands, strict=True):
        assert command.startswith("PYTHONPATH=tests PYTHONHASHSEED=0 ")
        assert command.endswith(f"python -m kedge.simulate {BROKEN} --seed {seed} --trace")
        assert f"  {command}\n" in said[2]


def test_the_command_of_a_seed_that_failed_can_be_typed_as_it_is(failed: SeedsFailed) -> None:
    command = failed.commands[0]
    replayed = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert replayed.returncode == 1, replayed.stderr
    assert "seed 5 failed: every stamp was true of its data once" in replayed.stderr


# Crashes after single writes


@pytest.mark.parametrize(("writes", "most"), [(276, 20), (32, 10), (20, 20), (3, 20), (1, 1)])
def test_crash_points_are_spread_over_all_writes_and_depend_on_the_seed(writes: int, most: int) -> None:
    tried = [crash_points(writes, most, seed) for seed in range(300)]
    assert {point for points in tried for point in points} == set(range(1, writes + 1))
    assert all(min(writes, most) <= len(points) <= 2 * most for points in tried)


def test_a_crash_that_changes_how_a_run_ends_is_told() -> None:
    undisturbed: Counts = Counter({("end", "a"): 1, ("end", "b"): 1})
    fault = ("fault", "hub → hub", "crash", "ADDED works")
    assert crash_problem(undisturbed, Counter({("end", "a"): 3, ("end", "b"): 3, fault: 3}), 3) == ""
    wrong: Counts = Counter({("end", "a"): 3, ("end", "b"): 2, ("end", "c"): 1, fault: 3})
    assert crash_problem(undisturbed, wrong, 3).splitlines() == ["2 of 3 runs, not 3: b", "1 of 3 runs, not 0: c"]
    assert crash_problem(undisturbed, Counter({("end", "a"): 3}), 3) == "only 0 of 3 runs had a crash"


# What is asked of them


def test_a_promise_that_few_seeds_cannot_be_counted_on_to_test_is_left_to_the_soak() -> None:
    assert is_too_rare(Expected(5), seeds=40)
    assert not is_too_rare(Expected(5, asked=40), seeds=40)
    assert is_too_rare(Expected(5, asked=40), seeds=39)


def test_a_soak_asks_for_tight_tests_of_every_promise() -> None:
    enough: Counts = Counter({("promise", name, "tight"): one.soak for name, one in ROLLING.items()})
    assert list(untested(enough, ROLLING, 300)) == []
    assert len(list(untested(enough, ROLLING, 301))) == len(ROLLING)
    rare = min(ROLLING, key=lambda name: ROLLING[name].soak)
    short = enough - Counter({("promise", rare, "tight"): 1})
    least = ROLLING[rare].soak
    assert list(untested(short, ROLLING, 300)) == [f"{rare}: {least - 1} tight tests, and there should be {least}"]


def test_only_faults_that_hit_writes_count() -> None:
    counts: Counts = Counter(
        {
            ("fault", "cluster-3 → hub", "late", "PATCH works/status"): 1,
            ("fault", "hub → hub", "late", "GET works"): 1,
            ("fault", "hub → hub", "slow", "PATCH clusterstagedupdateruns/status"): 1,
        }
    )
    assert roles_hit(counts, "late") == {"cluster → hub"}
    assert hits_runs(counts, "slow")
    assert not hits_runs(counts, "late")
