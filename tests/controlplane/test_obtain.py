"""Building what lacks, with a Go that only pretends."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from controlplane.binaries import cache_folder
from controlplane.gotool import GoError
from controlplane.obtain import obtain
from controlplane.versions import PROGRAMS

# Notes every call; `go build -o NAME` makes a file NAME. GO_FAILS names a program whose build fails.
PRETENDED_GO = """#!/bin/sh
echo "$@" >> "$GO_NOTES"
case "$1" in
  env) echo "${GO_VERSION:-go1.26.1}" ;;
  build)
    while [ "$1" != -o ]; do shift; done
    if [ "$2" = "$GO_FAILS" ]; then echo "no such package" >&2; exit 1; fi
    printf '#!/bin/sh\\n' > "$2"; chmod +x "$2" ;;
esac
"""


class Notes:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def built(self) -> list[str]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [line.split(" -o ")[1].split()[0] for line in lines if line.startswith("build ")]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notes:
    """An empty cache, and a PATH with nothing but the pretended Go and the shell's tools."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "go").write_text(PRETENDED_GO)
    (bin_folder / "go").chmod(0o755)
    for tool in ("sh", "chmod"):
        (bin_folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(bin_folder))
    monkeypatch.setenv("KEDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_NOTES", str(tmp_path / "notes"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return Notes(tmp_path / "notes")


def quiet(line: str) -> None:
    """Nobody reads along."""


def test_everything_that_lacks_is_built_once(notes: Notes) -> None:
    obtain(quiet)
    obtain(quiet)
    assert notes.built == [program.name for program in PROGRAMS]


def test_what_is_there_is_not_built_again(notes: Notes) -> None:
    obtain(quiet)
    (cache_folder() / "kubectl").unlink()
    obtain(quiet)
    assert notes.built[len(PROGRAMS) :] == ["kubectl"]


def test_a_failed_build_keeps_what_was_built_and_goes_on_from_there(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_FAILS", "kube-scheduler")
    with pytest.raises(GoError, match=r"compiling kube-scheduler failed(.|\n)*no such package"):
        obtain(quiet)
    left = sorted(path.name for path in cache_folder().iterdir())
    assert left == [".lock", "etcd", "kube-apiserver", "kube-controller-manager", "kwok"]
    monkeypatch.delenv("GO_FAILS")
    obtain(quiet)
    assert notes.built[-2:] == ["kube-scheduler", "kubectl"]


def test_two_at_once_build_once(notes: Notes) -> None:
    threads = [threading.Thread(target=obtain, args=(quiet,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert notes.built == [program.name for program in PROGRAMS]


def test_what_a_killed_build_left_is_removed(notes: Notes) -> None:
    leftover = cache_folder() / ".building-abc"
    leftover.mkdir(parents=True)
    obtain(quiet)
    assert not leftover.exists()


def test_without_Go_the_error_says_what_to_install(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GoError, match=r"no Go on PATH: install Go 1\.26\+ .* 'make kube'; or set KUBEBUILDER_ASSETS"):
        obtain(quiet)


def test_an_old_Go_is_refused_before_anything_is_downloaded(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO_VERSION", "go1.22.4")
    with pytest.raises(GoError, match=r"go1\.22\.4, which is too old"):
        obtain(quiet)
    assert notes.path.read_text().split() == ["env", "GOVERSION"]


def test_the_command_line_gives_the_error_and_no_traceback(notes: Notes) -> None:
    env = os.environ | {"PATH": "/nowhere", "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-m", "controlplane", "build"], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: there is no Go on PATH")
    assert "Traceback" not in ended.stderr
