"""Breakages of the embedded server are noticed: a few of the list in every run, others at every commit; all in soak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from mutations.__main__ import copy, tried
from mutations.list import MUTATIONS, Mutation
from simulate.seeds import current_commit

ROOT = Path(__file__).parents[2]
A_FEW = 4
ROWS = "tests/embedded/builtin/test_against_the_real_server.py"
PLANTED = Mutation(
    "create",
    "Deployments remember eleven revisions",
    "builtin/workloads.py",
    '"strategy": {}, "revisionHistoryLimit": 10',
    '"strategy": {}, "revisionHistoryLimit": 11',
    (),
)


@pytest.mark.parametrize("number", range(A_FEW))
def test_a_row_of_the_contract_notices(number: int) -> None:
    mutation = Random(current_commit()).sample(MUTATIONS, A_FEW)[number]
    verdict = tried(mutation, ())
    assert verdict.caught_by, f"{mutation.name}: {verdict.why_not}"


def test_a_planted_difference_is_noticed_by_what_was_recorded_of_the_real_server(tmp_path: Path) -> None:
    copy(PLANTED, tmp_path)
    paths = os.pathsep.join(map(str, (tmp_path, ROOT / "tests", ROOT / "tools")))
    nothing = {"PATH": "/nowhere", "KEDGE_CACHE": str(tmp_path), "KUBEBUILDER_ASSETS": "", "CI": ""}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-o",
        f"cache_dir={tmp_path / 'cache'}",
        "-k",
        "Deployment",
        ROWS,
    ]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **nothing, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FAILED" in ran.stdout, ran.stdout
    assert "passed" in ran.stdout, ran.stdout
