"""Every page can be typed from top to bottom: its commands exit as it says, and print what it shows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kedge
from controlplane.binaries import Binaries
from project.page_output import missing
from project.page_steps import REASONS, Command, Save, Shown, Step, blocks, file_name, steps

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TYPED = [page for page in PAGES if any(isinstance(step, Command) for step in steps(page.read_text()))]
SECONDS = 400
OTHERWISE = 97
"""What the shell exits with if a command exited with something that the page does not say."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_typed_or_says_why_not(page: Path) -> None:
    for block in blocks(page.read_text()):
        assert block.language, f"it does not say what it is: {block.text}"
        assert block.reason is None or block.reason in REASONS
        if block.language == "yaml" and block.reason is None:
            assert file_name(block), f"it has no name to save it by: {block.text}"


def test_there_are_pages_to_type() -> None:
    names = {page.stem for page in TYPED}
    assert names >= {"README", "api", "embedded", "fleet", "preview", "real-clusters", "staged", "tutorial"}


@pytest.mark.core
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.stem)
def test_a_page_can_be_typed_from_top_to_bottom(page: Path, home: Path) -> None:
    todo = steps(page.read_text())
    done = typed(home, script(todo))
    printed = [file.read_text() for file in sorted(home.glob("out/*"))]
    assert done.returncode == 0, f"{done.stderr}\n{printed[-1]}"
    for expected, output in shown(todo, printed):
        line = missing(expected.lines, output)
        assert line is None, f"{line!r} is not in\n{output}"


@pytest.fixture
def home(binaries: Binaries, tmp_path: Path) -> Iterator[Path]:
    """A folder with an environment as `make demo` leaves it; whatever fleet is started from there is ended."""
    (tmp_path / "out").mkdir()
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(binaries["kubectl"])
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    for name, call in (("kedge", f'"{sys.executable}" -m kedge'), ("python", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {call} "$@"\n')
        (programs / name).chmod(0o755)
    yield tmp_path
    for file in [*tmp_path.glob("*.kubeconfig"), tmp_path / ".kedge" / "kubeconfig"]:
        if file.exists():
            typed(tmp_path, f". .venv/bin/activate; kedge down --kubeconfig {file}")


def typed(home: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """What comes of typing this into a shell, in that folder."""
    environment = {
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(kedge.__file__).parents[1]),
    }
    call = ["bash", "-c", commands]
    return subprocess.run(
        call, cwd=home, env=environment, capture_output=True, text=True, timeout=SECONDS - 30, check=False
    )


def script(todo: list[Step]) -> str:
    """The whole page for one shell, so that what is exported stays; each command's output goes to a file of its own."""
    lines = ["trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for number, step in enumerate(todo):
        if isinstance(step, Save):
            lines.append(f"cat >{step.name} <<'END OF THE FILE'\n{step.text}END OF THE FILE")
        elif isinstance(step, Command):
            lines.append(_checked(step, number))
    return "\n".join(lines)


def _checked(command: Command, number: int) -> str:
    trouble = f"echo {shlex.quote(command.text)} exited with $code, not {command.code} >&2; exit {OTHERWISE}"
    return (
        f"{{ {command.text}\n}} >out/{number:03} 2>&1 </dev/null; code=$?\n"
        f"[ $code = {command.code} ] || {{ {trouble}; }}"
    )


def shown(todo: list[Step], printed: list[str]) -> Iterator[tuple[Shown, str]]:
    """What the page shows, and what was printed since it last showed something."""
    outputs = iter(printed)
    since = ""
    for step in todo:
        if isinstance(step, Command):
            since += next(outputs)
        elif isinstance(step, Shown):
            yield step, since
            since = ""
