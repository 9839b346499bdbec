"""Many seeds of a scenario, in processes of their own; and what they counted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from typing import NamedTuple

import msgspec

from kedge.simulate.faults import Counts
from simulate.seeds import IN_A_TEST_RUN, ROOT, chosen, current_commit

SEEDS = chosen(IN_A_TEST_RUN, current_commit())
CRASHES = 12  # points at which a process crashes, in a test run; a soak tries every one
PROCESSES = 2

_FAILED = re.compile(r"^seed (\d+) failed: (.*)$", re.MULTILINE)
_REPLAY = re.compile(r"; replay it with\n  (.+)$", re.MULTILINE)


class SeedsFailed(AssertionError):
    """Seeds in which something did not hold: which, how to see each again, and all they said."""

    def __init__(self, said: str) -> None:
        self.seeds = [int(seed) for seed, _ in _FAILED.findall(said)]
        self.commands = _REPLAY.findall(said)
        if self.seeds:
            found = "\n".join(f"  seed {seed}: {sentence}" for seed, sentence in _FAILED.findall(said))
            replay = "\n".join(f"  {command}" for command in self.commands)
            said = f"{len(self.seeds)} failed\n{found}\nreplay with\n{replay}\n\n{said}"
        super().__init__(said)


def started(scenario: str, first: int, seeds: int, *options: str, hash_seed: int = 0) -> subprocess.Popen[str]:
    """`python -m kedge.simulate` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "kedge.simulate", scenario, "--seed", str(first), "--seeds", str(seeds), *options],
        env=_environment(hash_seed),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _environment(hash_seed: int) -> dict[str, str]:
    """That of a process; it keeps the bytecode that it compiles, which takes as long as a seed."""
    path = os.pathsep.join(filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))))
    own = {"PYTHONPATH": path, "PYTHONHASHSEED": str(hash_seed), "PYTHONPYCACHEPREFIX": str(ROOT / ".cache/bytecode")}
    return {**os.environ, **own, "PYTHONDONTWRITEBYTECODE": ""}


def ended(process: subprocess.Popen[str]) -> Counts:
    """What a process counted; raises `SeedsFailed` if a seed failed."""
    out, err = process.communicate()
    if process.returncode != 0:
        raise SeedsFailed(err)
    return counts_in(out)


def counts_in(out: str) -> Counts:
    """What a process counted, from what it printed."""
    return Counter({tuple(name): number for name, number in msgspec.json.decode(out.splitlines()[-1])})


def counted(scenario: str, seeds: range) -> Counts:
    """What the runs of these seeds counted, half of them in each of two processes; says all that failed in either."""
    half = -(-len(seeds) // PROCESSES)
    parts = [seeds[at : at + half] for at in range(0, len(seeds), half)]
    options = ("--counts", "--go-on", "--every", str(seeds.step))
    running = [started(scenario, part.start, len(part), *options) for part in parts]
    outputs = [process.communicate() for process in running]
    if any(process.returncode for process in running):
        raise SeedsFailed("".join(err for _, err in outputs))
    return sum((counts_in(out) for out, _ in outputs), Counter())


# Crashes after single writes


def crash_points(writes: int, most: int, seed: int) -> range:
    """After which of so many writes to crash: about `most` of them, evenly spread; which ones, the seed says."""
    apart = max(1, writes // most)
    return range(1 + seed % apart, writes + 1, apart)


class CrashRuns(NamedTuple):
    """What was counted by the run without a crash, and by those with one after each of these writes."""

    undisturbed: Counts
    crashed: Counts
    points: range

    @property
    def problem(self) -> str:
        """How the runs with a crash differ from the one without; nothing if they ended in the same objects."""
        return crash_problem(self.undisturbed, self.crashed, len(self.points))


def crash_runs(scenario: str, who: str, most: int) -> CrashRuns:
    """Runs in which this process crashes after one of its writes, each after another."""
    undisturbed = ended(started(scenario, 0, 1, "--counts"))
    points = crash_points(undisturbed["writes", who], most, SEEDS[0])
    return CrashRuns(undisturbed, counted(scenario, points), points)


def crashes_in(counts: Counts) -> int:
    return sum(number for name, number in counts.items() if name[0] == "fault" and name[2] == "crash")


def crash_problem(undisturbed: Counts, crashed: Counts, runs: int) -> str:
    """How so many runs with a crash differ from the one without; nothing if they ended in the same objects."""
    if crashes_in(crashed) < 0.9 * runs:  # the last few may be after writes that were not needed this time
        return f"only {crashes_in(crashed)} of {runs} runs had a crash"
    wanted, found = dict.fromkeys(ends(undisturbed), runs), ends(crashed)
    differing = sorted(line for line in wanted.keys() | found.keys() if wanted.get(line) != found.get(line))
    return "\n".join(f"{found.get(line, 0)} of {runs} runs, not {wanted.get(line, 0)}: {line}" for line in differing)


# What was counted


def asked(counts: Counts) -> str:
    """How often each promise was asked, a line each."""
    found = (item for item in sorted(counts.items()) if item[0][0] == "promise")
    return "\n".join(f"{number:>8}  {name[1]} ({name[2]})" for name, number in found)


def ends(counts: Counts) -> dict[str, int]:
    """How many runs ended with each object."""
    return {name[1]: number for name, number in counts.items() if name[0] == "end"}


def is_write(what: str) -> bool:
    """Whether what a fault hit is a write."""
    return what.partition(" ")[0] in ("POST", "PATCH", "DELETE", "ADDED", "MODIFIED", "DELETED")
