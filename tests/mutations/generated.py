"""Change the decisions of Kedge, one small thing at a time, and see that a test fails each time.

    PYTHONPATH=tests python -m mutations.generated [PACKAGE ...] [--sample N --seed TEXT] [--only TEXT] [--note]

PACKAGE is `kedge.plan` unless said otherwise, or a module of it. Shows each mutant that no test notices as a diff, and
ends non-zero if one of them is not listed (`mutations.listed`), or one is listed as equivalent that a test does notice.
What is known is kept in `.cache/mutants.jsonl`: the next call tries only what has changed since, or whose test has.
A mutant that a test has noticed before, by that file or by `sample.txt`, is tried with that test alone first.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from functools import cache
from hashlib import blake2b
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from mutations.listed import EQUIVALENT, SAMPLE, UNNOTICED, write_sample, write_unnoticed
from mutations.mutants import Mutant, modules_in, mutants_of, path_of, source_of
from mutations.trial import Retrial, Trial, Verdict, forked

ROOT = Path(__file__).parents[2]
STATE = ROOT / ".cache" / "mutants.jsonl"
TESTS = {"kedge.plan": "tests/plan", "kedge.controllers": "tests/controllers"}
"""The tests that are to notice changes of a package."""
_OPTIONS = ("-q", "-s", "-p", "no:randomly", "-p", "no:durations", "--timeout", "0")


class Known(Struct, frozen=True):
    """A verdict, and a digest of what it was based on: the module, and the test that noticed, or all tests."""

    verdict: Verdict
    digest: str


class State:
    """What is known of mutants, in a file: a line for each verdict, the last one counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, Known] = {}
        for line in file.read_bytes().splitlines() if file.exists() else ():
            with suppress(msgspec.DecodeError):  # cut off
                known = msgspec.json.decode(line, type=Known)
                self._known[known.verdict.name] = known

    def verdict(self, mutant: Mutant) -> Verdict | None:
        """What is known of a mutant and still holds."""
        known = self._known.get(mutant.name)
        return known.verdict if known and known.digest == _digest(mutant, known.verdict) else None

    def noticed_before(self) -> Mapping[str, str]:
        """The test that noticed a mutant when it was last tried."""
        return {name: known.verdict.noticed_by for name, known in self._known.items()}

    def note(self, mutant: Mutant, verdict: Verdict) -> None:
        known = self._known[mutant.name] = Known(verdict, _digest(mutant, verdict))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(known) + b"\n")


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    began = time.monotonic()
    chosen = _chosen(asked)
    verdicts = _verdicts(chosen, State(STATE), asked)
    unnoticed = [mutant for mutant in chosen if not verdicts[mutant.name].noticed_by and mutant.name not in EQUIVALENT]
    wrong = [each for each in verdicts.values() if each.noticed_by and each.name in EQUIVALENT]
    for mutant in unnoticed:
        print(_shown(mutant, verdicts[mutant.name]))
    for verdict in wrong:
        print(f"listed as equivalent, but {verdict.noticed_by} fails: {verdict.name}\n")
    gone = _gone(asked, chosen)
    for name in gone:
        print(f"listed, but no mutant has this name any more: {name}\n")
    print(_summary(verdicts.values(), time.monotonic() - began))
    if asked.note:
        write_unnoticed(_still_unnoticed(chosen, unnoticed, gone))
        if asked.sample:
            write_sample({name: each.noticed_by for name, each in verdicts.items() if "::" in each.noticed_by})
        return 0
    return 1 if wrong or gone or any(mutant.name not in UNNOTICED for mutant in unnoticed) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mutations.generated", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", default=["kedge.plan"])
    parser.add_argument("--sample", type=int, metavar="N", help="only so many of those that are not listed")
    parser.add_argument("--seed", default="", metavar="TEXT", help="which ones")
    parser.add_argument("--only", default="", metavar="TEXT", help="only those whose name has this in it")
    parser.add_argument("--anew", action="store_true", help="trust nothing that is known")
    noted = "list those that no test notices in unnoticed.txt; and who notices those of a sample in sample.txt"
    parser.add_argument("--note", action="store_true", help=noted)
    return parser


def _chosen(asked: argparse.Namespace) -> list[Mutant]:
    every = [mutant for package in asked.packages for module in modules_in(package) for mutant in mutants_of(module)]
    chosen = [mutant for mutant in every if asked.only in mutant.name]
    if not asked.sample:
        return chosen
    unlisted = [mutant for mutant in chosen if mutant.name not in EQUIVALENT and mutant.name not in UNNOTICED]
    return sorted(unlisted, key=lambda mutant: _drawn(asked.seed, mutant))[: asked.sample]


def _drawn(seed: str, mutant: Mutant) -> bytes:
    """Which ones come first, for this seed. Others than these may change, and it stays the same ones."""
    return blake2b(f"{seed} {mutant.name}".encode()).digest()


def _verdicts(chosen: Sequence[Mutant], state: State, asked: argparse.Namespace) -> dict[str, Verdict]:
    """What is known, and what comes of trying the rest."""
    known = {mutant.name: verdict for mutant in chosen if not asked.anew and (verdict := state.verdict(mutant))}
    rest = {mutant.name: mutant for mutant in chosen if mutant.name not in known}

    def note(verdict: Verdict) -> None:
        state.note(rest[verdict.name], verdict)
        known[verdict.name] = verdict

    hints = {**SAMPLE, **state.noticed_before()}
    for verdict in tried_again(rest, hints):
        note(verdict)
    for room in sorted({_room(mutant) for name, mutant in rest.items() if name not in known}):
        _try([mutant for name, mutant in rest.items() if name not in known and _room(mutant) == room], room, note)
    return known


def tried_again(mutants: Mapping[str, Mutant], hints: Mapping[str, str]) -> list[Verdict]:
    """Those that the test notices which has noticed them before: only the files of such tests are collected."""
    hinted = {name: hints[name] for name in mutants if (ROOT / hints.get(name, "").partition("::")[0]).is_file()}
    if not hinted:
        return []
    _prepare()
    found: list[Verdict] = []
    retrial = Retrial([mutants[name] for name in hinted], hinted, found.append)
    files = sorted({test.partition("::")[0] for test in hinted.values()})

    def tried() -> bytes:
        pytest.main([*_OPTIONS, *files], plugins=[retrial])
        return msgspec.json.encode(found)

    return msgspec.json.decode(forked(tried), type=list[Verdict])


def _try(mutants: Sequence[Mutant], room: str, note: Callable[[Verdict], None]) -> None:
    _prepare()
    trial = Trial(mutants, path_of(room).parent, note)
    with redirect_stdout(StringIO()) as said:
        ended = pytest.main([*_OPTIONS, TESTS[room]], plugins=[trial])
    if ended or trial.problem:
        raise SystemExit(trial.problem or said.getvalue())


def _prepare() -> None:
    os.environ["KEDGE_PROPERTIES"] = "mutants"
    os.chdir(ROOT)


def _gone(asked: argparse.Namespace, tried: Iterable[Mutant]) -> list[str]:
    """What is listed of the modules that were tried, and is nowhere in them."""
    if asked.sample or asked.only:
        return []
    names, listed = {mutant.name for mutant in tried}, EQUIVALENT.keys() | UNNOTICED
    modules = {module for package in asked.packages for module in modules_in(package)}
    return sorted(name for name in listed - names if name.partition(":")[0] in modules)


def _still_unnoticed(tried: Iterable[Mutant], unnoticed: Iterable[Mutant], gone: Sequence[str]) -> list[str]:
    """What is to be listed: what was tried and not noticed, and of the rest what was listed before."""
    names = {mutant.name for mutant in tried}
    rest = {name for name in UNNOTICED if name not in names and name not in gone}
    return sorted({mutant.name for mutant in unnoticed} | rest)


def _shown(mutant: Mutant, verdict: Verdict) -> str:
    reached = f"{verdict.tests} tests run it" if verdict.tests else "no test runs it"
    name = mutant.name.replace("'", "'\\''")
    command = f"PYTHONPATH=tests python -m mutations.generated {mutant.module} --only '{name}'"
    return f"not noticed, and {reached}: {mutant.name}\n{mutant.diff(source_of(mutant.module))}{command}\n"


def _summary(verdicts: Iterable[Verdict], seconds: float) -> str:
    known = [*verdicts]
    noticed = sum(bool(each.noticed_by) for each in known)
    rest = sum(each.name not in EQUIVALENT for each in known)
    share = f"{100 * noticed / rest:.1f} %" if rest else "–"
    counts = f"{noticed} noticed ({share}), {rest - noticed} not, {len(known) - rest} equivalent"
    return f"{len(known)} mutants: {counts}; {seconds:.0f} s"


def _room(mutant: Mutant) -> str:
    return ".".join(mutant.module.split(".")[:2])


def _digest(mutant: Mutant, verdict: Verdict) -> str:
    test = ROOT / verdict.noticed_by.partition("::")[0]
    tests = (test,) if test.is_file() else _all_tests(_room(mutant))
    return blake2b(_content((path_of(mutant.module), *tests)), digest_size=8).hexdigest()


@cache
def _all_tests(room: str) -> tuple[Path, ...]:
    return tuple(sorted((ROOT / TESTS[room]).rglob("*.py")))


@cache
def _content(files: tuple[Path, ...]) -> bytes:
    return b"".join(blake2b(file.read_bytes(), digest_size=8).digest() for file in files)


if __name__ == "__main__":
    sys.exit(main())
