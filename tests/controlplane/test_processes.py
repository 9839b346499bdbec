"""Programs that start, end, refuse to end, and lose their parent."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.alive import is_alive, wait_until_gone
from controlplane.folders import Folder
from controlplane.ports import Ports
from controlplane.processes import Process, StartError, kill, stop, wait_until

SHELL = "/bin/sh"
A_WHILE = 30.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def sleeper(log: Path) -> Iterator[Process]:
    process = Process("sleeper", [SHELL, "-c", "exec sleep 600"], log)
    yield process
    kill([process])


async def test_a_program_that_ends_early_is_reported_with_its_last_words(log: Path) -> None:
    process = Process("web/shop", [SHELL, "-c", "echo no such flag; exit 3"], log)
    with pytest.raises(StartError, match=r"web/shop ended with code 3, while waiting for light(.|\n)*no such flag"):
        await wait_until(lambda: False, by=process, what="light")


async def test_a_program_that_does_not_become_ready_is_reported(sleeper: Process) -> None:
    with pytest.raises(StartError, match="sleeper: light did not come within 0 s"):
        await wait_until(lambda: False, by=sleeper, what="light", seconds=0.0)


async def test_waiting_does_not_hold_up_the_event_loop(sleeper: Process) -> None:
    asked = threading.Event()
    waiting = asyncio.create_task(wait_until(asked.is_set, by=sleeper, what="light"))
    asyncio.get_running_loop().call_later(0.01, asked.set)
    await asyncio.wait_for(waiting, A_WHILE)


def test_a_program_that_ignores_SIGTERM_is_killed_after_the_deadline(log: Path) -> None:
    process = Process("stubborn", [SHELL, "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done"], log)
    while "deaf" not in log.read_text():
        time.sleep(0.01)
    stop([process], deadline=0.1)
    assert process.exit_code == -signal.SIGKILL


def test_the_whole_process_group_is_stopped(log: Path) -> None:
    process = Process("parent", [SHELL, "-c", "sleep 600 & echo $!; wait"], log)
    while not log.read_text().endswith("\n"):
        time.sleep(0.01)
    stop([process], deadline=A_WHILE)
    wait_until_gone(int(log.read_text()))


def test_stopping_what_has_ended_is_no_error(log: Path) -> None:
    process = Process("short", ["/bin/true"], log)
    assert process.wait(A_WHILE)
    stop([process], deadline=1.0)
    kill([process])
    assert process.exit_code == 0


def test_a_program_outlives_the_thread_that_asked_for_it(log: Path) -> None:
    """The kernel's leash is held by a thread; ours is one that lives on."""
    started: list[Process] = []
    thread = threading.Thread(target=lambda: started.append(Process("sleeper", ["/bin/sleep", "600"], log)))
    thread.start()
    thread.join()
    assert not started[0].wait(0.5)
    kill(started)


def test_a_program_dies_with_the_python_that_started_it(tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from controlplane.processes import Process
print(Process("sleeper", ["/bin/sleep", "600"], Path({str(tmp_path / "log")!r})).pid, flush=True)
time.sleep(600)
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    wait_until_gone(pid)


def test_no_port_is_given_out_twice() -> None:
    one, other = Ports(), Ports()
    given = [ports.free() for _ in range(20) for ports in (one, other)]
    one.close()
    other.close()
    assert len(set(given)) == len(given)


def test_the_folder_of_a_dead_process_is_removed_and_that_of_a_live_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used, dead = Folder(), tmp_path / "kedge-controlplane-dead"
    dead.mkdir()
    (dead / ".alive").touch()
    for folder in (used.path, dead):
        os.utime(folder, (0, 0))
    other = Folder()
    assert used.path.exists()
    assert not dead.exists()
    used.close()
    other.close()
    assert list(tmp_path.iterdir()) == []
