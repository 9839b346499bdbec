"""What is shipped is whole: a wheel runs where there is no checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    clean = {"PATH": os.environ["PATH"], **env}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a wheel of this checkout is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("kedge-*.whl")
    target = folder / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def test_a_wheel_runs_outside_the_checkout(installed: Path) -> None:
    where = run(sys.executable, "-c", "import kedge; print(kedge.__file__)", cwd=installed, PYTHONPATH=str(installed))
    assert str(installed) in where
    out = run(sys.executable, "-m", "kedge", "--version", cwd=installed, PYTHONPATH=str(installed))
    assert "kedge, version 0.1" in out


def test_a_wheel_says_that_it_is_typed_and_under_which_licence(installed: Path) -> None:
    assert (installed / "kedge" / "py.typed").exists()
    assert list(installed.glob("kedge-*.dist-info/licenses/LICENSE"))


def test_help_is_quick_because_it_does_not_import_the_runtime() -> None:
    code = "import sys, kedge.cli; kedge.cli.main(['--help'], standalone_mode=False); print('aiohttp' in sys.modules)"
    assert run(sys.executable, "-c", code, cwd=ROOT).splitlines()[-1] == "False"
