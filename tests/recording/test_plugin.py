"""When a recorded test is replayed, when it is live, and what then makes it fail: seen from test runs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.versions import KUBERNETES

TEST = """
async def test_it(bare_api):
    made = await bare_api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "recorded"}})
    assert made.status == 201
"""
TABLE = """{"kubernetes": "VERSION", "long": {}, "rows": {"test_it": [
 {"ask": "POST /api/v1/namespaces", "sent": {"json": {"metadata": {"name": "recorded"}}}, "code": 201}
]}}"""


class Project:
    """A folder with one recorded test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.test = folder / "test_it.py"
        self.table = folder / "recorded" / "test_it.json"
        self.test.write_text(TEST)
        self.table.parent.mkdir()
        self.table.write_text(TABLE.replace("VERSION", KUBERNETES))
        (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
        (folder / "conftest.py").write_text(CONFTEST)

    def run(self, *arguments: str, changed: str = "", **env: str) -> str:
        """Run it where there are no programs of a control plane."""
        nothing = {"PATH": "/nowhere", "KEDGE_CACHE": str(self.folder / "cache"), "KUBEBUILDER_ASSETS": "", "CI": ""}
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "CHANGED": changed}
        plugins = ["-p", "controlplane.pytest_plugin", "-p", "support.recording.plugin", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *plugins, "-rsfE", *arguments]
        environment = dict(os.environ) | nothing | paths | env
        ran = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return ran.stdout + ran.stderr


CONFTEST = """
import os
from pathlib import Path
from support.recording import tables

tables.ROOT = Path(__file__).parent
tables.changed_since = lambda module: [os.environ["CHANGED"]] if os.environ["CHANGED"] else []
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_what_is_recorded_needs_no_server(project: Project) -> None:
    assert "1 passed" in project.run(CI="true")


def test_a_row_that_is_not_recorded_is_skipped_without_a_server_and_says_why(project: Project) -> None:
    project.table.unlink()
    told = project.run()
    assert "1 skipped" in told
    assert "real control plane not available, and this is not recorded" in told


def test_in_CI_it_fails(project: Project) -> None:
    project.table.unlink()
    told = project.run(CI="true")
    assert "1 error" in told
    assert "asked of the real server, because 1 rows are not recorded" in told


def test_in_CI_a_change_of_what_it_is_about_needs_the_server(project: Project) -> None:
    told = project.run(changed="src/kedge/embedded", CI="true")
    assert "1 error" in told
    assert "asked of the real server, because src/kedge/embedded changed" in told


def test_elsewhere_it_is_replayed_without_a_server_though_something_changed(project: Project) -> None:
    assert "1 passed" in project.run(changed="src/kedge/embedded")


def test_a_test_that_asks_something_else_fails(project: Project) -> None:
    project.test.write_text(TEST.replace('"recorded"', '"other"'))
    told = project.run()
    assert "1 failed" in told
    assert "was not asked when the test was recorded" in told


def test_a_test_that_asks_less_fails(project: Project) -> None:
    project.test.write_text("def test_it(bare_api): pass\n")
    told = project.run()
    assert "1 error" in told
    assert "is no longer asked by the test" in told


def test_a_row_that_no_test_has_fails(project: Project) -> None:
    project.table.write_text(project.table.read_text().replace('"rows": {', '"rows": {"test_other": [],'))
    told = project.run()
    assert "1 error" in told
    assert "test_it.json has a row that no test has, test_other" in told


def test_a_test_that_expects_something_else_fails(project: Project) -> None:
    project.test.write_text(TEST.replace("201", "409"))
    assert "1 failed" in project.run()


def test_live_means_live(project: Project) -> None:
    told = project.run("--real", "live", CI="true")
    assert "1 error" in told
    assert "real control plane not available" in told
