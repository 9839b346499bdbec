"""Makes: calling make as a person would, and timing it.

Promises that nothing from the environment decides what make does or which tests run: an inherited `make -i` or `-n`
would let everything pass. What make prints is seen as it comes. Nothing is asked on standard input.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci import record
from ci.record import Run

_NOT_HANDED_ON = {
    *("ARGS", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MAKELEVEL", "MAKEOVERRIDES"),
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS"),
    "PYTHONPATH",  # of this very program
    "PYTHONDONTWRITEBYTECODE",  # every process would compile everything anew
}


@dataclass(frozen=True)
class Step:
    """One call of make: its name, how it ended, how long it took."""

    name: str
    exit_code: int
    seconds: float


@dataclass(frozen=True)
class TestStep(Step):
    """One call of `make test`, and what became of the tests; nothing if pytest did not come to its end."""

    __test__ = False  # pytest, this is not a test

    run: Run | None


def make(target: str, *variables: str, name: str | None = None) -> Step:
    """Call make for one target."""
    sys.stdout.flush()
    started = time.monotonic()
    done = subprocess.run(["make", target, *variables], stdin=subprocess.DEVNULL, env=_environment(), check=False)
    return Step(name or target, _exit_code(done.returncode), time.monotonic() - started)


def make_test(folder: Path, *options: str, target: str = "test", name: str = "tests") -> TestStep:
    """Call `make test` with options for pytest; what it leaves to know comes by a file of that name in the folder."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    arguments = in_shell("-p", "ci.outcome", f"--outcome-file={file}", *options)
    step = make(target, f"ARGS={arguments}", name=name)
    return TestStep(step.name, step.exit_code, step.seconds, record.read(file))


def in_shell(*words: str) -> str:
    """Words as they have to be written for make to hand them to its shell."""
    return shlex.join(words).replace("$", "$$")


def argument_file(file: Path, lines: Sequence[str]) -> str:
    """An argument of pytest that stands for many, whatever characters they have."""
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"@{file}"


def _environment() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON} | {"CI": "true"}


def _exit_code(returned: int) -> int:
    return returned if returned >= 0 else 128 - returned  # as shells count signals
