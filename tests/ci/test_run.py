"""`.ci/run` is green when all is right, and has no other way to be green. Seen from outside, on tiny projects."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci import record
from ci.record import Result, Run

ROOT = Path(__file__).parents[2]
PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -p xdist -p randomly"
SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["tools"]
cache_dir = ".cache/pytest"
filterwarnings = ["error"]
markers = ["real: on the real control plane", "core: in every run", "recorded: in every run"]
"""
START = """
import os, pytest, random, signal
from pathlib import Path

real = pytest.mark.real

def fails_once():
    if not Path("failed").exists():
        Path("failed").touch()
        pytest.fail("only the first time")

def log(name):
    with Path("log").open("a") as file:
        file.write(f"{name} {random.random()}\\n")
"""
RIGHT = "def test_right(): pass\n"


@dataclass(frozen=True)
class Ended:
    """How `.ci/run` ended, and what it printed."""

    code: int
    output: str

    @property
    def last_line(self) -> str:
        return self.output.splitlines()[-1]

    @property
    def is_green(self) -> bool:
        assert (self.code == 0) == (".ci/run: green: " in self.last_line), self.output
        assert (self.code != 0) == (".ci/run: red: " in self.last_line), self.output
        return self.code == 0

    def is_red_for(self, what: str) -> bool:
        said = [line for line in self.output.splitlines() if line.startswith(".ci/run: wrong: ")]
        assert any(what in line for line in said), self.output
        return not self.is_green

    @property
    def runs(self) -> int:
        """How often pytest ran."""
        return self.output.count("test session starts")


@dataclass(frozen=True)
class Project:
    """A project of a few lines, checked by this project's `.ci/run`."""

    folder: Path

    def tests(self, text: str, *, right: str = RIGHT) -> "Project":
        return self.write("test_it.py", f"{START}\n{right}\n{text}")

    def write(self, name: str, text: str) -> "Project":
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return self

    def makefile(self, *, lint: str = "@:", kube: str = "@:", test: str = f"{PYTEST} -n 0 $(ARGS)") -> "Project":
        return self.write("Makefile", f"lint:\n\t{lint}\nkube:\n\t{kube}\ntest:\n\t{test}\n")

    def run(self, *command: str, **env: str) -> Ended:
        """Run `.ci/run`, or something else, where nothing is inherited from the run of this test."""
        clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {"PYTHON": sys.executable}
        done = subprocess.run(
            command or ("bash", ".ci/run"),
            cwd=self.folder,
            env=clean | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One right test, and room for others."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copytree(ROOT / "tools" / "ci", tmp_path / "tools" / "ci", ignore=shutil.ignore_patterns("__pycache__"))
    project = Project(tmp_path).makefile().tests("").write("pyproject.toml", SETTINGS)
    return project.write("tools/ci/floor", "all 1\nreal 0\n")


# -- green


def test_all_passed(project: Project) -> None:
    ended = project.tests("def test_other(): pass").run()
    assert ended.is_green
    assert re.search(r"^=+ 2 passed in .*=+$", ended.output, re.MULTILINE)
    shape = r"\.ci/run: green: 2 passed, 0 failed, 0 skipped, 0 retried; lint \d+ s, kube \d+ s, tests \d+ s"
    assert re.fullmatch(shape, ended.last_line)


def test_all_passed_in_two_processes(project: Project) -> None:
    text = "@real\ndef test_real(): pass\n@pytest.mark.skip(reason='no moon')\ndef test_skipped(): pass"
    project.makefile(test=f"{PYTEST} -n 2 $(ARGS)").write("tools/ci/floor", "all 2\nreal 1\n").tests(text)
    ended = project.run()
    assert ended.is_green
    assert "\n.ci/run: 1 skipped: no moon\n" in ended.output
    assert ".ci/run: green: 2 passed, 0 failed, 1 skipped, 0 retried; " in ended.last_line


def test_tests_know_that_they_run_in_CI(project: Project) -> None:
    project.tests("def test_ci(): assert os.environ['CI'] == 'true'")
    assert project.run(CI="false").is_green


@pytest.mark.parametrize("processes", [0, 2])
def test_a_real_test_that_passes_the_second_time_is_named(project: Project, processes: int) -> None:
    text = """
def test_that_runs_once():
    log("right")

@real
@pytest.mark.parametrize("name", ["a b [c]::d $e 'f' \\"g\\" #h", "other"])
def test_moody(name):
    log(name)
    if name != "other":
        fails_once()
"""
    project.makefile(test=f"{PYTEST} -n {processes} $(ARGS)").tests(text)
    ended = project.run()
    assert ended.is_green
    assert (
        "\n.ci/run: retried: test_it.py::test_moody[a b [c]::d $e 'f' \"g\" #h] passed the second time" in ended.output
    )
    assert "= 1 passed in " in ended.output, "the one and nothing else"
    assert ".ci/run: green: 4 passed, 0 failed, 0 skipped, 1 retried; " in ended.last_line
    ran = (project.folder / "log").read_text().splitlines()
    assert len(ran) == 4
    assert ran[-1] in ran[:-1], "the same seed as in the first run"


def test_what_is_not_in_every_run_may_be_left_out(project: Project) -> None:
    project.write("pyproject.toml", SETTINGS + "addopts = ['-k', 'right']").tests("@real\ndef test_real(): pass")
    ended = project.run()
    assert ended.is_green
    assert "\n.ci/run: 1 left to make test-real and make soak\n" in ended.output


# -- red: before the tests


@pytest.mark.parametrize("broken", ["lint", "kube"])
def test_what_comes_before_the_tests_has_to_pass(project: Project, broken: str) -> None:
    ended = project.makefile(**{broken: "exit 7"}).run()
    assert ended.is_red_for(f"make {broken} ended with 2")
    assert ended.code == 2
    assert ended.runs == 0


@pytest.mark.parametrize("flags", ["i", "n", "t", "k"])
def test_flags_of_an_outer_make_do_not_count(project: Project, flags: str) -> None:
    assert project.makefile(lint="false").run(MAKEFLAGS=flags).is_red_for("make lint")


def test_arguments_of_an_outer_command_do_not_count(project: Project) -> None:
    project.tests("def test_wrong(): assert False")
    outer = {"ARGS": "-k right", "PYTEST_ADDOPTS": "-k right", "PYTEST_PLUGINS": "nonsense"}
    assert project.run(**outer).is_red_for("test_wrong")


# -- red: a run that did not come to its end


def stale(project: Project) -> dict[str, str]:
    """Leave around what an earlier, right run may have left, wherever it might be looked for."""
    right = (Result("test_it.py::test_right", "passed", real=True),)
    run = Run(0, 1, ("test_it.py::test_right",), deselected=(), left_out=(), broken=(), results=right)
    for folder in (".", ".cache", "tmp", "tmp/kedge-ci-0"):
        for name in ("tests.json", "retry.json"):
            record.write(run, project.write(f"{folder}/{name}", "").folder / folder / name)
    project.write(".cache/pytest/v/cache/lastfailed", '{"test_it.py::test_right": true}')
    return {"TMPDIR": str(project.folder / "tmp")}


@pytest.mark.parametrize(
    "death",
    [
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", id="killed"),
        pytest.param("os.kill(os.getppid(), signal.SIGKILL); os._exit(0)", id="make's shell killed"),
        pytest.param("os._exit(0)", id="exits with 0"),
        pytest.param("os._exit(1)", id="exits with 1"),
    ],
)
def test_a_run_that_died_is_not_tried_again(project: Project, death: str) -> None:
    ended = project.tests(f"@real\ndef test_dies(): {death}").run(**stale(project))
    assert ended.is_red_for("pytest was killed")
    assert ended.runs == 1


@pytest.mark.parametrize("death", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_a_worker_that_crashed_is_not_tried_again(project: Project, death: str) -> None:
    project.makefile(test=f"{PYTEST} -n 2 $(ARGS)").tests(f"@real\ndef test_dies(): {death}")
    ended = project.run()
    assert ended.is_red_for("crashed")
    assert ended.runs == 1


def test_a_stale_cache_of_what_failed_is_not_read(project: Project) -> None:
    left = stale(project)
    ended = project.tests("def test_wrong(): assert False").run(**left)
    assert ended.is_red_for("test_wrong")
    assert ended.runs == 1


def test_pytest_has_to_be_run(project: Project) -> None:
    assert project.makefile(test="@:").run(**stale(project)).is_red_for("never ran to its end")


def test_make_and_pytest_have_to_agree(project: Project) -> None:
    assert (
        project.makefile(test=f"{PYTEST} $(ARGS); false").run().is_red_for("make test ended with 2, but pytest with 0")
    )
    project.tests("@real\ndef test_moody(): fails_once()")
    ended = project.makefile(test=f"-{PYTEST} $(ARGS)").run()
    assert ended.is_red_for("make test ended with 0, but pytest with 1")


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        ("pytest_runtestloop(session): raise ValueError('oh')", "pytest itself failed: ValueError: oh"),
        ("pytest_runtest_logreport(report): raise KeyboardInterrupt", "pytest ended with 2"),
        ("pytest_sessionfinish(session): session.exitstatus = 0; os._exit(0)", "pytest was killed"),
        ("pytest_unconfigure(config): raise ValueError('oh')", "make test ended with 2, but pytest with 0"),
    ],
)
def test_an_error_inside_pytest_is_not_tried_again(project: Project, hook: str, says: str) -> None:
    ended = project.write("conftest.py", f"import os\ndef {hook}\n").run()
    assert ended.is_red_for(says)
    assert ended.runs == 1


# -- red: tests that did not run


NOT_RUN = {
    "nothing there": ("def no_test(): pass", "no tests were collected"),
    "not importable": ("import nonsense", "could not be collected"),
    "a file that skips": ("pytest.skip('no moon', allow_module_level=True)", "skips itself as a whole: no moon"),
    "left early": (f"{RIGHT}def test_leaves(): pytest.exit('oh', returncode=0)", "collected, but never ran"),
    "a real one skipped": (f"{RIGHT}@real\ndef test_real(): pytest.skip('no etcd')", "control plane, but skipped"),
    "a real one expected to fail": (
        f"{RIGHT}@real\n@pytest.mark.xfail(reason='no etcd')\ndef test_real(): assert False",
        "control plane, but skipped",
    ),
    "skipped": (f"{RIGHT}def test_skipped(): pytest.skip()", "skipped without a reason"),
    "marked to skip": (f"{RIGHT}@pytest.mark.skip\ndef test_skipped(): pass", "skipped without a reason"),
    "expected to fail": (f"{RIGHT}@pytest.mark.xfail\ndef test_wrong(): assert False", "skipped without a reason"),
    "no rows": (f"{RIGHT}@pytest.mark.parametrize('row', [])\ndef test_rows(row): pass", "table without rows"),
}


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_did_not_run_is_not_right(project: Project, name: str) -> None:
    text, says = NOT_RUN[name]
    ended = project.tests(text, right="").run()
    assert ended.is_red_for(says)
    assert ended.runs == 1


@pytest.mark.parametrize("name", ["not importable", "a file that skips", "left early"])
def test_what_did_not_run_in_two_processes_is_not_right(project: Project, name: str) -> None:
    text, _ = NOT_RUN[name]
    ended = project.makefile(test=f"{PYTEST} -n 2 $(ARGS)").tests(text, right="").run()
    assert not ended.is_green
    assert ended.runs == 1


def test_without_its_programs_the_control_planes_tests_fail(project: Project) -> None:
    paths = f'pythonpath = ["tools", "{ROOT / "tools"}"]\naddopts = ["-p", "controlplane.pytest_plugin"]'
    project.write("pyproject.toml", SETTINGS.replace('pythonpath = ["tools"]', paths))
    project.tests("def test_real(binaries): pass")
    ended = project.run(
        PATH=bare_path(project), PYTHON="python3", KEDGE_CACHE=str(project.folder), KUBEBUILDER_ASSETS=""
    )
    assert "real control plane not available" in ended.output
    assert ended.is_red_for("did not pass the second time: test_it.py::test_real")


def bare_path(project: Project) -> str:
    """Only what `.ci/run` itself needs, so that no kube-apiserver is found."""
    folder = project.folder / "bin"
    folder.mkdir()
    for program in ("bash", "sh", "env", "dirname", "make"):
        (folder / program).symlink_to(shutil.which(program) or "")
    (folder / "python3").symlink_to(sys.executable)
    return str(folder)


@pytest.mark.parametrize(
    "chooses",
    [
        pytest.param("addopts = ['-k', 'right']", id="some by name"),
        pytest.param("addopts = ['-m', 'real']", id="all by mark"),
        pytest.param("addopts = ['--deselect', 'test_it.py::test_wrong']", id="one"),
    ],
)
def test_nothing_is_deselected(project: Project, chooses: str) -> None:
    project.write("pyproject.toml", SETTINGS + chooses).tests("def test_wrong(): assert False")
    assert project.run().is_red_for("collected, but deselected: test_it.py::test_wrong")


@pytest.mark.parametrize("mark", ["core", "recorded"])
def test_what_is_in_every_run_is_not_left_out(project: Project, mark: str) -> None:
    text = f"@real\n@pytest.mark.{mark}\ndef test_real(): pass"
    project.write("pyproject.toml", SETTINGS + "addopts = ['-k', 'right']").tests(text)
    assert project.run().is_red_for("collected, but deselected: test_it.py::test_real")


@pytest.mark.parametrize("processes", [0, 2])
def test_nothing_is_deselected_in_silence(project: Project, processes: int) -> None:
    project.makefile(test=f"{PYTEST} -n {processes} $(ARGS)").tests("def test_wrong(): assert False")
    project.write("conftest.py", "def pytest_collection_modifyitems(items): items.sort(key=str); del items[1:]")
    assert project.run().is_red_for("collected, but deselected: test_it.py::test_wrong")


@pytest.mark.parametrize("floor", ["all 3\nreal 0\n", "all 1\nreal 2\n"])
def test_there_are_as_many_tests_as_there_have_to_be(project: Project, floor: str) -> None:
    text = "@real\ndef test_moody(): fails_once()\ndef test_skipped(): pytest.skip('no moon')"
    ended = project.write("tools/ci/floor", floor).tests(text).run()
    assert ended.is_red_for("but there have to be at least")
    assert ended.runs == 1


# -- red: tests that failed


def test_a_test_that_needs_no_control_plane_is_not_tried_again(project: Project) -> None:
    text = "def test_moody(): fails_once()\n@real\ndef test_real(): assert Path('real').exists()"
    ended = project.tests(text).run()
    assert ended.is_red_for("failed, and needs no control plane, so it is not tried again: test_it.py::test_moody")
    assert ended.code == 2
    assert ended.runs == 1


def test_many_are_not_tried_again(project: Project) -> None:
    text = """
@real
@pytest.mark.parametrize("row", range(6))
def test_moody(row):
    there = Path(f"failed-{row}").exists()
    Path(f"failed-{row}").touch()
    assert there
"""
    ended = project.tests(text).run()
    assert ended.is_red_for("6 tests failed; more than 5")
    assert ended.runs == 1


@pytest.mark.parametrize(
    ("second_time", "says"),
    [
        ("assert False", "did not pass the second time: test_it.py::test_moody[1]"),
        ("pytest.skip('not today')", "did not pass the second time: test_it.py::test_moody[1]"),
        ("os._exit(0)", "pytest was killed"),
    ],
)
def test_a_test_that_was_tried_again_has_to_pass(project: Project, second_time: str, says: str) -> None:
    text = f"@real\n@pytest.mark.parametrize('row', [1])\ndef test_moody(row):\n    fails_once()\n    {second_time}"
    ended = project.tests(text).run(**stale(project))
    assert ended.is_red_for(says)
    assert ended.runs == 2


def test_a_test_that_vanished_did_not_pass(project: Project) -> None:
    rows = "[2] if Path('failed').exists() else [1]"
    text = f"@real\n@pytest.mark.parametrize('row', {rows})\ndef test_moody(row): fails_once()"
    assert project.tests(text).run().is_red_for("did not pass the second time: test_it.py::test_moody[1]")


def test_a_failing_teardown_is_a_failing_test(project: Project) -> None:
    text = "@pytest.fixture\ndef thing():\n    yield\n    fails_once()\n@real\ndef test_moody(thing): pass"
    ended = project.tests(text).run()
    assert ended.is_green
    assert "retried: test_it.py::test_moody passed the second time" in ended.output


# -- many runs


def test_a_flaky_test_is_named_with_its_seeds(project: Project) -> None:
    text = """
def count():
    Path("count").write_text("x" + (Path("count").read_text() if Path("count").exists() else ""))
    return len(Path("count").read_text())
@real
def test_moody(): assert count() != 2
@real
def test_steady(): pass
"""
    ended = project.tests(text).run(
        sys.executable, "-m", "ci.flaky", "--times", "3", "--first-seed", "40", PYTHONPATH="tools", MAKEFLAGS="n"
    )
    assert ended.output.splitlines()[-3:] == [
        "failed   of  test  (seeds)",
        "     1    3  test_it.py::test_moody  (41)",
        "3 runs: 2 tests, of which 1 failed at least once",
    ]
    assert ended.code == 1
