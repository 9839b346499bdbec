"""Obtaining: building the control plane's programs, once, with Go, into the user's cache.

Promises that a program appears in the cache whole or not at all, that two processes never build the same thing
at the same time, and that what is there already, or usable elsewhere, is not built again.
What is built is fixed by `modules/*/go.mod` and `go.sum`: Go refuses modules whose checksums differ.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane.binaries import Binaries, Missing, cache_folder, find, is_program
from controlplane.gotool import HEARTBEAT, Say, require_go, run_go
from controlplane.versions import MODULES, Module, Program

_UNFINISHED = ".building-"


class ObtainError(Exception):
    """The programs could not be obtained."""


def obtain(say: Say = print) -> Binaries:
    """What a control plane needs: found, or else built."""
    found = find()
    if isinstance(found, Missing):
        _build_missing(say)
        found = find()
    if isinstance(found, Missing):
        raise ObtainError(found.reason)
    return found


def _build_missing(say: Say) -> None:
    go = require_go()
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder / ".lock", say):
        _remove_unfinished(folder)
        still = find()  # the holder of the lock before us may have built it all
        lacking = still.programs if isinstance(still, Missing) else ()
        modules = [module for module in MODULES if any(p.name in lacking for p in module.programs)]
        if modules:
            say(f"building {', '.join(module.name for module in modules)} with {go} into {folder}")
        for module in modules:
            _build(module, folder, say)


def _build(module: Module, folder: Path, say: Say) -> None:
    """Build what lacks of one module, each program aside first and moved into place when it is whole."""
    lacking = [program for program in module.programs if not is_program(folder / program.name)]
    title = f"{module.name} {module.version}"
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=folder) as name:
        work = Path(name)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(module.folder / file, work / file)
        packages = [program.package for program in lacking]
        run_go("list", "-mod=readonly", "-deps", *packages, cwd=work, what=f"{title}: downloading", say=say)
        for program in lacking:
            command = _build_command(module, program)
            run_go(*command, cwd=work, what=f"{title}: compiling {program.name}", say=say)
            (work / program.name).replace(folder / program.name)


def _build_command(module: Module, program: Program) -> tuple[str, ...]:
    # Flags given here win over those in GOFLAGS.
    reproducible = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", module.link_flags)
    return ("build", "-v", *reproducible, "-o", program.name, program.package)


def _remove_unfinished(folder: Path) -> None:
    """What a killed build left behind; only called while holding the lock."""
    for leftover in folder.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def lock(path: Path, say: Say) -> Iterator[None]:
    """Held by one process at a time; the kernel lets go of it when that process dies."""
    with path.open("w") as file:
        start = told = time.monotonic()
        while not _try_lock(file.fileno()):
            if told == start or time.monotonic() - told > HEARTBEAT:
                told = time.monotonic()
                say(f"waiting for another process that is building ({told - start:.0f} s)")
            time.sleep(0.2)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
