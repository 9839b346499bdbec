"""Soak: many more seeds of each scope than a test run tries, and a crash after every single write.

    PYTHONPATH=tests .venv/bin/python -m simulate.soak

Takes hours, so it can be interrupted: what is done is kept under `.cache/soak`, in a file for each commit and state of
the code, and the next call goes on from there. Another commit begins anew, with seeds of its own. `KEDGE_SEEDS` says
how many seeds of each scope (5,000), `KEDGE_FIRST_SEED` from which one on. Prints each seed that failed with the
command that replays it, and exits with 1 if one did, or if a promise was not put to enough tight tests.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from kedge.simulate.faults import Counts
from simulate.expected import ALIGNING, BATCHING, ROLLING, STAGING, ZONING, unhit_in_rolling, unhit_in_staging, untested
from simulate.many import PROCESSES, SeedsFailed, crash_problem, ended, started
from simulate.seeds import IN_A_SOAK, ROOT, chosen, current_commit

FOLDER = ROOT / ".cache" / "soak"
CHUNK = 25  # seeds that are lost, at most, in each process when it is interrupted
ROLLING_SEEDS, STAGING_SEEDS = "simulate.rolling:rolling", "simulate.staging:staging"
ZONING_SEEDS, BATCHING_SEEDS = "simulate.zoning:zoning", "simulate.batching:batching"
ALIGNING_SEEDS = "simulate.aligning:aligning"
CRASHING = {  # and who crashes
    "simulate.rolling:hub_crashing": "hub",
    "simulate.rolling:agent_crashing": "cluster-1",
    "simulate.staging:hub_crashing": "hub",
    "simulate.zoning:operator_crashing": "operator",
    "simulate.batching:operator_crashing": "operator",
    "simulate.aligning:hub_crashing": "hub",
}


class Chunk(Struct, frozen=True):
    """Some seeds of a scenario."""

    scenario: str
    first: int
    seeds: int


class Done(Struct, frozen=True):
    """What came of a chunk: what it counted, or how to replay each seed that failed."""

    chunk: Chunk
    counts: tuple[tuple[tuple[str, ...], int], ...] = ()
    commands: tuple[str, ...] = ()


class Progress:
    """What is done, in a file: a line for each chunk. One that was cut off does not count."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.done = {one.chunk: one for one in _read(file)}

    def add(self, done: Done) -> None:
        """Keep this, also for the next call."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as file:
            file.write(b"\n" + msgspec.json.encode(done))  # begins a line, whatever the one before was cut off at
        self.done[done.chunk] = done

    def missing(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        return [chunk for chunk in chunks if chunk not in self.done]

    def counts(self, chunks: Iterable[Chunk]) -> Counts:
        """What these counted."""
        return sum((Counter(dict(self.done[chunk].counts)) for chunk in chunks), Counter())

    def commands(self, chunks: Iterable[Chunk]) -> list[str]:
        """How to replay each seed of these that failed."""
        return [command for chunk in chunks for command in self.done[chunk].commands]


def _read(file: Path) -> Iterator[Done]:
    lines = file.read_bytes().splitlines() if file.exists() else []
    for line in filter(None, lines):
        with suppress(msgspec.DecodeError):  # of a line that was cut off
            yield msgspec.json.decode(line, type=Done)


def progress_file(folder: Path, commit: str, code: Iterable[Path]) -> Path:
    """Where the progress of this commit is kept, with whatever was changed in the code since."""
    digest = blake2b(digest_size=4)
    for file in sorted(code):
        digest.update(file.name.encode() + file.read_bytes())
    return folder / f"{commit[:12] or 'archive'}-{digest.hexdigest()}.jsonl"


def chunks(scenario: str, seeds: range, size: int = CHUNK) -> list[Chunk]:
    parts = (seeds[at : at + size] for at in range(0, len(seeds), size))
    return [Chunk(scenario, part.start, len(part)) for part in parts]


def run(chunk: Chunk) -> Done:
    """Run a chunk in a process of its own. Raises if that ends without having said which seed failed."""
    try:
        counts = ended(started(chunk.scenario, chunk.first, chunk.seeds, "--counts", "--go-on"))
    except SeedsFailed as error:
        if not error.commands:
            raise
        click.echo(str(error))
        return Done(chunk, commands=tuple(error.commands))
    return Done(chunk, tuple(counts.items()))


def run_all(progress: Progress, wanted: Sequence[Chunk]) -> None:
    """Run what is missing, so many at a time."""
    missing = progress.missing(wanted)
    already = len(wanted) - len(missing)
    with ThreadPoolExecutor(PROCESSES) as pool:
        running = [pool.submit(run, chunk) for chunk in missing]
        try:
            for number, future in enumerate(as_completed(running), already + 1):
                done = future.result()
                progress.add(done)
                click.echo(f"{number} of {len(wanted)}: {done.chunk.scenario} from seed {done.chunk.first}")
        finally:
            pool.shutdown(cancel_futures=True)


# Judging


def seed_problems(
    rolling: Counts, staging: Counts, zoning: Counts, batching: Counts, aligning: Counts, seeds: int
) -> Iterator[str]:
    """What so many seeds of each scope have not tested enough."""
    yield from (f"rolling: {problem}" for problem in untested(rolling, ROLLING, seeds))
    yield from (f"staging: {problem}" for problem in untested(staging, STAGING, seeds))
    yield from (f"zoning: {problem}" for problem in untested(zoning, ZONING, seeds))
    yield from (f"batching: {problem}" for problem in untested(batching, BATCHING, seeds))
    yield from (f"aligning: {problem}" for problem in untested(aligning, ALIGNING, seeds))
    yield from (f"rolling: {problem}" for problem in unhit_in_rolling(rolling))
    yield from (f"staging: {problem}" for problem in unhit_in_staging(staging))


def soak_seeds(progress: Progress, seeds: range) -> list[str]:
    """Run the seeds that are missing; gives what is wrong."""
    scenarios = (ROLLING_SEEDS, STAGING_SEEDS, ZONING_SEEDS, BATCHING_SEEDS, ALIGNING_SEEDS)
    scopes = [chunks(scenario, seeds) for scenario in scenarios]
    every = [chunk for found in scopes for chunk in found]
    run_all(progress, every)
    if failed := progress.commands(every):
        return failed
    rolling, staging, zoning, batching, aligning = map(progress.counts, scopes)
    return list(seed_problems(rolling, staging, zoning, batching, aligning, len(seeds)))


def soak_crashes(progress: Progress) -> list[str]:
    """Have a process crash after each of its writes, one run each; gives what is wrong."""
    undisturbed = {scenario: Chunk(scenario, 0, 1) for scenario in CRASHING}
    run_all(progress, list(undisturbed.values()))
    if failed := progress.commands(undisturbed.values()):
        return failed
    without = {scenario: progress.counts([chunk]) for scenario, chunk in undisturbed.items()}
    crashing = {
        scenario: chunks(scenario, range(1, without[scenario]["writes", who] + 1)) for scenario, who in CRASHING.items()
    }
    run_all(progress, [chunk for found in crashing.values() for chunk in found])
    return [
        problem for scenario, found in crashing.items() for problem in _of_crashes(progress, without, scenario, found)
    ]


def _of_crashes(
    progress: Progress, without: Mapping[str, Counts], scenario: str, crashing: Sequence[Chunk]
) -> list[str]:
    if failed := progress.commands(crashing):
        return failed
    runs = sum(chunk.seeds for chunk in crashing)
    problem = crash_problem(without[scenario], progress.counts(crashing), runs)
    return [f"{scenario}: {problem}"] if problem else []


def main() -> None:
    commit = current_commit()
    code = [*ROOT.glob("src/kedge/**/*.py"), *ROOT.glob("tests/simulate/*.py")]
    progress = Progress(progress_file(FOLDER, commit, code))
    problems = [*soak_crashes(progress), *soak_seeds(progress, chosen(IN_A_SOAK, commit))]
    click.echo("\n".join(problems) or "nothing failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
