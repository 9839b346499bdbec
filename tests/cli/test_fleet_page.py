"""The pages on fleets, typed as they are printed, with a real kubectl."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.binaries import Binaries

pytestmark = pytest.mark.core

DOCS = Path(__file__).parents[2] / "docs"
SECONDS = 300


def blocks(language: str, page: str = "fleet.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.fixture
def home(binaries: Binaries, tmp_path: Path) -> Iterator[Path]:
    """A folder of its own, with what the page says to save; whatever fleet it starts is ended."""
    folder = tmp_path
    for block in blocks("yaml"):
        name = re.match(r"# (\S+)\n", block)
        assert name is not None, f"it has no name to save it by: {block}"
        folder.joinpath(name[1]).write_text(block)
    folder.joinpath("bin").mkdir()
    folder.joinpath("bin", "kubectl").symlink_to(binaries["kubectl"])
    folder.joinpath("bin", "kedge").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kedge "$@"\n')
    folder.joinpath("bin", "kedge").chmod(0o755)
    yield folder
    typed(folder, "kedge down")


def typed(home: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """What comes of typing this into a shell."""
    environment = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home)}
    script = f"export KUBECONFIG=~/.kedge/kubeconfig\n{commands}" if "export" not in commands else commands
    return subprocess.run(
        ["bash", "-c", script], cwd=home, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def _without_pods(text: str) -> str:
    return re.sub(r"pod web-\w+-\w+", "pod web", text)


@pytest.mark.timeout(SECONDS)
def test_the_page_on_rolling_a_change_works_as_it_is_printed(home: Path) -> None:
    start, bad, back, move = (typed(home, block) for block in blocks("sh"))
    assert start.returncode == 0, start.stderr
    assert [line.split()[:2] for line in start.stdout.splitlines()[-4:]] == [
        [f"cluster-{number}", "True"] for number in range(1, 5)
    ]
    (printed,) = blocks("text")
    assert _without_pods(bad.stdout).endswith(_without_pods(printed)), bad.stdout + bad.stderr
    assert back.returncode == 0, back.stderr
    assert "revision 2, available on 3 of 3 clusters" in back.stdout
    assert re.search(r"^2 .* newest +cluster-2, cluster-3, cluster-4$", back.stdout, re.MULTILINE)
    assert move.returncode == 0, move.stderr
    assert re.search(r"^web +3/3 ", move.stdout, re.MULTILINE)
    where = typed(home, "kedge status move -o json")
    assert re.findall(r'"cluster": "(.*)"', where.stdout) == ["cluster-3", "cluster-4"]


@pytest.mark.timeout(SECONDS)
def test_the_page_on_a_fleet_without_kubernetes_works_as_it_is_printed(home: Path) -> None:
    (commands,) = blocks("sh", "embedded.md")
    done = typed(home, commands)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == 'deployment "web" successfully rolled out'
