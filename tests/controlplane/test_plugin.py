"""The pytest plugin, seen from a test run of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_plain():
    pass

def test_real(bare_cluster):
    pass

@pytest.fixture
def indirect(own_plane):
    pass

def test_indirect(indirect):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run_pytest(folder: Path, *arguments: str, **env: str) -> str:
    """Run pytest where there are no programs of a control plane."""
    nothing = {"PATH": "/nowhere", "KEDGE_CACHE": str(folder / "cache"), "KUBEBUILDER_ASSETS": "", "CI": ""}
    env = dict(os.environ) | nothing | {"PYTHONPATH": os.pathsep.join(sys.path)} | env
    command = [sys.executable, "-m", "pytest", "-p", "controlplane.pytest_plugin", "--strict-markers", "-rsfE"]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    ).stdout


def test_tests_that_use_a_cluster_are_marked_real(folder: Path) -> None:
    told = run_pytest(folder, "--collect-only", "-q", "-m", "real")
    assert "test_real" in told
    assert "test_indirect" in told
    assert "test_plain" not in told


def test_without_the_programs_they_are_skipped_with_a_reason(folder: Path) -> None:
    told = run_pytest(folder)
    assert "1 passed, 2 skipped" in told
    assert "real control plane not available: no usable etcd" in told
    assert "'make kube'" in told


def test_in_CI_they_fail_instead(folder: Path) -> None:
    told = run_pytest(folder, CI="true")
    assert "1 passed, 2 errors" in told
    assert "real control plane not available" in told
