"""Many seeds of a scenario, in processes of their own; and what they counted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec

from kedge.simulate.tally import Counts

TESTS = Path(__file__).parents[1]
SEEDS = int(os.environ.get("KEDGE_SEEDS", "300"))
IS_SOAK = SEEDS > 300
PROCESSES = 2


def started(scenario: str, first: int, seeds: int, *options: str, hash_seed: int = 0) -> subprocess.Popen[str]:
    """`python -m kedge.simulate` in a process of its own."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "kedge.simulate", scenario, "--seed", str(first), "--seeds", str(seeds), *options],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(hash_seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Counts:
    """What a process counted; fails with what it said if a seed failed."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return Counter({tuple(name): number for name, number in msgspec.json.decode(out.splitlines()[-1])})


def counted(scenario: str, first: int, seeds: int, *, every: int = 1) -> Counts:
    """What so many runs counted, half of them in each of two processes."""
    each = -(-seeds // PROCESSES)
    options = ("--counts", "--go-on", "--every", str(every))
    parts = [(at, min(each, seeds - at)) for at in range(0, seeds, each)]
    running = [started(scenario, first + at * every, number, *options) for at, number in parts]
    return sum(map(ended, running), Counter())


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
