"""Pinning: writing the go.mod and go.sum from which the programs are built.

Run by whoever moves a version (`python -m controlplane pin`), never during a build.
Kubernetes replaces its sibling modules by folders in its own repository, and Go ignores that when the module is
used from outside; so we read the list from its go.mod and say the same with versions.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path

from controlplane.gotool import GoError, Say, require_go, run_go
from controlplane.versions import MODULES, Module

_SIBLING = re.compile(r"^\s*(?:replace\s+)?(\S+)\s+=>\s+\.{1,2}/", re.MULTILINE)
_GO_LINE = re.compile(r"^go (\S+)$", re.MULTILINE)


def pin(say: Say = print) -> None:
    """Write `modules/*/go.mod` and `go.sum` for the versions in `versions.py`."""
    say(f"pinning with {require_go()}")
    for module in MODULES:
        _pin(module, say)


def _pin(module: Module, say: Say) -> None:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        title = f"{module.name} {module.version}"
        theirs = _their_go_mod(module, work, f"{title}: go.mod", say)
        (work / "go.mod").write_text(go_mod(module, theirs))
        run_go("mod", "tidy", cwd=work, what=f"{title}: tidy", say=say)
        module.folder.mkdir(parents=True, exist_ok=True)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(work / file, module.folder / file)


def _their_go_mod(module: Module, work: Path, what: str, say: Say) -> str:
    answer = run_go("mod", "download", "-json", f"{module.path}@{module.version}", cwd=work, what=what, say=say)
    return Path(json.loads(answer)["GoMod"]).read_text()


def go_mod(module: Module, theirs: str) -> str:
    """A go.mod that requires the module as its own repository would build it."""
    go = _GO_LINE.search(theirs)
    if go is None:
        raise GoError(f"the go.mod of {module.path} {module.version} names no Go version")
    siblings = _SIBLING.findall(theirs) if module.siblings else []
    parts = [
        f"module kedge.dev/tools/controlplane/{module.name}",
        f"go {go[1]}",
        _block("tool", [program.package for program in module.programs]),
        f"require {module.path} {module.version}",
        _block("replace", [f"{sibling} => {sibling} {module.siblings}" for sibling in siblings]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(verb: str, lines: list[str]) -> str:
    return "\n".join([f"{verb} (", *(f"\t{line}" for line in lines), ")"]) if lines else ""
