"""A soak goes on where it was interrupted, and says what failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kedge.simulate.faults import Counts
from simulate import soak
from simulate.soak import Chunk, Done, Progress, chunks, progress_file, run, run_all, soak_crashes, soak_seeds

SCENARIO = "simulate.scenarios:stamping"
BROKEN = "simulate.scenarios:never_right"


class Runs:
    """Notes which chunks are run, instead of running them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, counts: Counts | None = None, failing: str = "") -> None:
        self.chunks: list[Chunk] = []
        self._counts = counts or Counter()
        self._failing = failing
        monkeypatch.setattr(soak, "run", self._run)

    def _run(self, chunk: Chunk) -> Done:
        self.chunks.append(chunk)
        if chunk.scenario == self._failing:
            return Done(chunk, commands=(f"replay {chunk.first}",))
        return Done(chunk, tuple(self._counts.items()))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "soak" / "abc.jsonl"


# Where it goes on


def test_chunks_are_all_seeds_each_once() -> None:
    found = chunks(SCENARIO, range(7, 67), size=25)
    assert [(one.first, one.seeds) for one in found] == [(7, 25), (32, 25), (57, 10)]


def test_what_is_done_is_not_done_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = chunks(SCENARIO, range(1, 101))
    runs = Runs(monkeypatch)
    run_all(Progress(file), wanted[:3])
    run_all(Progress(file), wanted)
    assert Counter(runs.chunks) == Counter(wanted)


def test_what_was_counted_is_the_same_after_an_interruption(file: Path) -> None:
    wanted = [Chunk(SCENARIO, 1, 2), Chunk(SCENARIO, 3, 2)]
    run_all(Progress(file), wanted[:1])
    progress = Progress(file)
    run_all(progress, wanted)
    assert Progress(file).counts(wanted) == progress.counts(wanted)


def test_a_line_that_was_cut_off_is_done_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = chunks(SCENARIO, range(1, 76))
    Runs(monkeypatch)
    run_all(Progress(file), wanted)
    file.write_bytes(file.read_bytes()[:-10])
    cut = Progress(file).missing(wanted)
    assert len(cut) == 1
    run_all(Progress(file), wanted)
    assert Progress(file).missing(wanted) == [], "though what was cut off is still before it"


def test_another_commit_and_changed_code_begin_anew(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text("one")
    first = progress_file(tmp_path, "a" * 40, [code])
    assert progress_file(tmp_path, "a" * 40, [code]) == first
    assert progress_file(tmp_path, "b" * 40, [code]) != first
    code.write_text("other")
    assert progress_file(tmp_path, "a" * 40, [code]) != first
    assert progress_file(tmp_path, "", [code]).name.startswith("archive-")


# What it says


def test_a_seed_that_failed_is_kept_with_the_command_that_replays_it(file: Path) -> None:
    chunk = Chunk(BROKEN, 5, 2)
    Progress(file).add(run(chunk))
    commands = Progress(file).commands([chunk])
    assert [command.partition(" --seed ")[2] for command in commands] == ["5 --trace", "6 --trace"]
    assert all(command.startswith("PYTHONPATH=tests PYTHONHASHSEED=0 ") for command in commands)


def test_a_process_that_ends_without_naming_a_seed_is_not_done() -> None:
    with pytest.raises(AssertionError, match="there is no module no"):
        run(Chunk("no.such:thing", 1, 1))


def test_seeds_that_fail_are_what_is_wrong(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Runs(monkeypatch, failing=soak.STAGING_SEEDS)
    assert soak_seeds(Progress(file), range(1, 51)) == ["replay 1", "replay 26"]


def test_seeds_that_test_too_little_are_wrong_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Runs(monkeypatch)
    wrong = soak_seeds(Progress(file), range(1, 301))
    assert "rolling: nobody undoes what another has said: 0 tight tests, and there should be 1000" in wrong
    assert "staging: crash hit no write of a staged run" in wrong


def test_a_crash_is_tried_after_every_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(monkeypatch, Counter({("writes", "hub"): 30, ("writes", "cluster-1"): 3, ("writes", "operator"): 4}))
    wrong = soak_crashes(Progress(file))
    tried = Counter(dict.fromkeys(soak.CRASHING, 0))
    for chunk in runs.chunks:
        tried[chunk.scenario] += chunk.seeds if chunk.first else 0
    assert [*tried.values()] == [30, 3, 30, 4, 4, 30]
    assert wrong[0] == "simulate.rolling:hub_crashing: only 0 of 30 runs had a crash"
