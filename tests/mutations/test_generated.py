"""Small changes of the decisions are noticed: some in every run, the same ones while they exist; all in soak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOME = 40
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


FIELDS = "kedge.plan.fields"
TESTS = {  # of one change: the test that notices it, one that does not, and one that is not there any more
    "tests/plan/availability/test_reading.py::test_what_is_no_condition_is_passed_over": True,
    "tests/plan/placing/test_affinity.py::test_properties_are_compared_exactly[Gt-2-True]": False,
    "tests/plan/availability/test_reading.py::test_gone": False,
    "tests/plan/gone.py::test_gone": False,
}


@pytest.mark.parametrize("noticed_by", TESTS)
def test_only_a_test_that_fails_has_noticed_a_change(noticed_by: str) -> None:
    tried = f"""
from mutations.generated import tried_again
from mutations.mutants import mutants_of
mutant = next(one for one in mutants_of({FIELDS!r}) if one.name.endswith("one.get('type') != name"))
print([one.noticed_by for one in tried_again({{mutant.name: mutant}}, {{mutant.name: {noticed_by!r}}})])
"""
    assert _ran("-c", tried).stdout == f"{[noticed_by] if TESTS[noticed_by] else []}\n"


def test_a_test_notices_each_of_some_changes_of_a_decision() -> None:
    ran = _ran("-m", "mutations.generated", "--sample", str(SOME), "--seed", "some")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
