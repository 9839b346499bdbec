"""Seeds: which ones are tried.

They follow from the commit: the same commit tries the same seeds, and every new one tries others. Without git (a source
archive) they are always the same. `KEDGE_SEEDS` says how many, and `KEDGE_FIRST_SEED` from which one on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

HIGHEST = 1_000_000
IN_A_TEST_RUN = 40
IN_A_SOAK = 5_000
ROOT = Path(__file__).parents[2]


def chosen(usual: int, commit: str, environment: Mapping[str, str] = os.environ) -> range:
    """The seeds to try at this commit, `usual` being how many if nobody says otherwise."""
    number = int(environment.get("KEDGE_SEEDS", usual))
    if number < 1:
        raise ValueError(f"KEDGE_SEEDS is {number}: at least one seed has to be tried")
    first = int(environment.get("KEDGE_FIRST_SEED", 0)) or first_seed(commit, number)
    return range(first, first + number)


def first_seed(commit: str, number: int) -> int:
    """The first of so many seeds, none of which is above the highest."""
    drawn = int.from_bytes(blake2b(commit.encode(), digest_size=8).digest())
    return 1 + drawn % max(1, HIGHEST - number + 1)


def current_commit(folder: Path = ROOT) -> str:
    """The commit that is checked out; nothing without git, or outside of a repository."""
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
