"""Small changes of the decisions are noticed: some in every run, the same ones while they exist; all in soak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOME = 10
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


def test_a_test_notices_each_of_some_changes_of_a_decision() -> None:
    command = [sys.executable, "-m", "mutations.generated", "--sample", str(SOME), "--seed", "some"]
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")))
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
