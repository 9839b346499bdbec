"""Break the embedded server, one thing at a time, and see that a row of the contract turns red each time.

    PYTHONPATH=tests python -m mutations [--only NAME]

Prints `mutation | caught by`. Ends non-zero if a breakage stays unnoticed, if its place in the code is not found
exactly once, if it breaks so much that no row gets to run, or if rows were red before anything was broken: those prove
nothing, and are left out.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct

from mutations.list import MUTATIONS, SOURCE, Mutation
from mutations.witness import COPY, SEEN, Seen

_ROOT = Path(__file__).parents[2]
_AT_ONCE = 2
_SECONDS_FOR_A_ROW = 20  # a breakage may leave a row waiting for what never comes
_SECONDS_FOR_A_RUN = 300


class Verdict(Struct, frozen=True):
    """What came of one breakage."""

    mutation: Mutation
    caught_by: str = ""
    why_not: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mutations", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", metavar="NAME", help="only the mutations whose name has this in it")
    only = parser.parse_args(arguments).only or ""
    chosen = [mutation for mutation in MUTATIONS if only in mutation.name]
    if not chosen:
        parser.error(f"no mutation has {only!r} in its name")
    began = time.monotonic()
    red = _red_already(chosen)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        survivors = sum(_told(verdict) for verdict in pool.map(lambda one: tried(one, red), chosen))
    print(f"\n{len(chosen)} mutations, {survivors} not caught, in {time.monotonic() - began:.0f} s")
    return 1 if survivors or red else 0


def _told(verdict: Verdict) -> bool:
    """Print the line of a verdict; whether it is a bad one."""
    print(f"{verdict.mutation.name} | {verdict.caught_by or f'NOT CAUGHT: {verdict.why_not}'}", flush=True)
    return not verdict.caught_by


def _red_already(chosen: Sequence[Mutation]) -> tuple[str, ...]:
    """The rows that are red while nothing is broken."""
    files = sorted({file for mutation in chosen for file in mutation.rows})
    seen, said = _run(None, files, stop_at_first=False)
    if seen is None or seen.errors or not seen.green:
        raise SystemExit(f"the rows do not run on the whole server:\n{said}")
    for row in seen.red:
        print(f"red before anything is broken, so it does not count: {row}", flush=True)
    return seen.red


def tried(mutation: Mutation, red: Sequence[str]) -> Verdict:
    try:
        seen, said = _run(mutation, mutation.rows, mutation.words, leaving_out=red)
    except (LookupError, subprocess.TimeoutExpired) as error:
        return Verdict(mutation, why_not=str(error))
    if seen is None or seen.errors:
        return Verdict(mutation, why_not=f"it breaks more than a row can tell of:\n{said}")
    if not seen.red:
        return Verdict(mutation, why_not=f"{len(seen.green)} rows stay green: {' '.join(mutation.rows)}")
    return Verdict(mutation, caught_by=seen.red[0].removeprefix("tests/contract/"))


def _run(
    mutation: Mutation | None,
    files: Sequence[str],
    words: str = "",
    *,
    leaving_out: Sequence[str] = (),
    stop_at_first: bool = True,
) -> tuple[Seen | None, str]:
    """Run rows on a copy of the server, broken or not: what was seen, and what was said at the end."""
    with tempfile.TemporaryDirectory(prefix="kedge-mutation-") as place:
        there = Path(place)
        copy(mutation, there)
        narrowed = f"embedded and ({words})" if words else "embedded"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutations.witness", "-p", "no:randomly"]
        command += ["-o", f"cache_dir={there / 'cache'}", "--timeout", str(_SECONDS_FOR_A_ROW), "-k", narrowed]
        command += ["-x"] if stop_at_first else []
        command += [f"--deselect={row}" for row in leaving_out]
        command += [f"tests/contract/{file}" for file in files]
        paths = os.pathsep.join((str(there), str(_ROOT / "tests"), str(_ROOT / "tools")))
        environment = {**os.environ, "PYTHONPATH": paths, COPY: str(there), SEEN: str(there / "seen.json")}
        ended = subprocess.run(
            command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=_SECONDS_FOR_A_RUN, check=False
        )
        return _seen(there / "seen.json"), (ended.stdout + ended.stderr)[-2000:]


def _seen(file: Path) -> Seen | None:
    return msgspec.json.decode(file.read_bytes(), type=Seen) if file.exists() else None


def copy(mutation: Mutation | None, to: Path) -> None:
    """Copy the package, and break the copy."""
    shutil.copytree(SOURCE, to / "kedge")
    if mutation is None:
        return
    broken = to / "kedge" / "embedded" / mutation.file
    broken.write_text(mutation.applied_to(broken.read_text()))
    for compiled in (broken.parent / "__pycache__").glob(f"{broken.stem}.*.pyc"):
        compiled.unlink()  # it could be taken for that of the broken one: same size, same second


if __name__ == "__main__":
    sys.exit(main())
