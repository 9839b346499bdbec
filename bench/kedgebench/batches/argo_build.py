"""Argo build: the controller of Argo Rollouts, built once, with Go, into the user's cache.

    python -m kedgebench.batches.argo_build

The module is built in its own folder, by its own go.mod and go.sum, as its makers build it. Go checks what it
downloads; the module itself has to have the checksum below. Its CRDs are kept beside the program.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from controlplane.binaries import cache_root, go_platform, is_program
from controlplane.gotool import GoError, Say, require_go, run_go
from controlplane.obtain import lock

MODULE = "github.com/argoproj/argo-rollouts"
VERSION = "v1.10.1"
CHECKSUM = "h1:6oyVPGiHHxu3ixkT6mngemh88HLPDoTX1IwO6KNR1Y4="
PROGRAM = "rollouts-controller"
CRDS = "crds"
_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w")


def folder() -> Path:
    """Where it is, or would be."""
    return cache_root(os.environ) / "peers" / f"argo-rollouts-{VERSION}-{'-'.join(go_platform())}"


def is_built() -> bool:
    return is_program(folder() / PROGRAM)


def build(say: Say) -> None:
    """Build it, unless it is there. Raises GoError if that cannot be."""
    if is_built():
        return
    require_go()
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    with lock(place / ".lock", say), tempfile.TemporaryDirectory(dir=place) as name:
        if not is_built():
            _build(place, Path(name), say)


def _build(place: Path, work: Path, say: Say) -> None:
    title = f"Argo Rollouts {VERSION}"
    source = _downloaded(work, f"{title}: downloading", say)
    shutil.rmtree(place / CRDS, ignore_errors=True)
    shutil.copytree(source / "manifests" / "crds", place / CRDS)
    made = work / PROGRAM
    command = ("-C", str(source), "build", "-v", *_FLAGS, "-o", str(made), f"./cmd/{PROGRAM}")
    run_go(*command, cwd=work, what=f"{title}: compiling", say=say)
    made.replace(place / PROGRAM)


def _downloaded(work: Path, what: str, say: Say) -> Path:
    found = json.loads(run_go("mod", "download", "-json", f"{MODULE}@{VERSION}", cwd=work, what=what, say=say))
    if found["Sum"] != CHECKSUM:
        raise GoError(f"{MODULE} {VERSION} has the checksum {found['Sum']}, and not {CHECKSUM}")
    return Path(found["Dir"])


def main() -> int:
    try:
        build(lambda line: print(line, flush=True))
    except GoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(folder() / PROGRAM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
