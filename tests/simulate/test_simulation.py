"""Whole simulations: one seed is one history, whatever goes wrong converges, and what fails can be replayed."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from kedge.api.core import ConfigMap
from kedge.kube.patches import MergePatch
from kedge.simulate.faults import NONE, ROUGH, SOME, Faults
from kedge.simulate.process import Process
from kedge.simulate.run import Failed, load, replay_command, run
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry
from simulate.scenarios import SHOP, Shop, stamper

TESTS = Path(__file__).parents[1]
HERE = "simulate.test_simulation"
SCENARIOS = "simulate.scenarios"
pytestmark = pytest.mark.timeout(1200)  # of a machine that has other things to do


def command(*arguments: str, hash_seed: int = 0) -> subprocess.Popen[str]:
    """`python -m kedge.simulate` in a process of its own."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "kedge.simulate", *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(hash_seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Determinism


@pytest.mark.parametrize(("scenario", "seeds"), [("crashing", 20), ("electing", 15), ("deploying", 4)])
def test_seeds_with_faults_and_crashes_are_the_same_in_two_processes(scenario: str, seeds: int) -> None:
    arguments = (f"{SCENARIOS}:{scenario}", "--seeds", str(seeds), "--faults", "rough")
    tables = [process.communicate() for process in [command(*arguments, hash_seed=seed) for seed in (1, 2)]]
    assert tables[0] == tables[1]
    digests = [line.split()[1] for line in tables[0][0].splitlines()]
    assert len(set(digests)) == seeds, tables[0][1]


def test_what_was_run_before_makes_no_difference() -> None:
    first = run(f"{SCENARIOS}:crashing", seed=3, faults=ROUGH)
    run(f"{SCENARIOS}:stamping", seed=4, faults=SOME)
    assert run(f"{SCENARIOS}:crashing", seed=3, faults=ROUGH) == first


async def stamping_with_a_bystander(simulation: Simulation) -> None:
    """The stamper's shop, and somebody elsewhere who draws random numbers and writes."""
    shop = Shop(simulation)
    simulation.server("elsewhere")
    await shop.open()
    simulation.start("stamper", stamper)
    simulation.start("bystander", bystander)
    await shop.trade()
    await shop.settled()


async def bystander(process: Process) -> None:
    rng, there = process.rng("names"), process.link("elsewhere")
    assert rng.random() < 1
    assert there.name == "bystander → elsewhere"
    await asyncio.sleep(1_000_000)


def test_one_more_who_draws_does_not_disturb_the_others() -> None:
    alone, beside = list[str](), list[str]()
    run(f"{SCENARIOS}:stamping", seed=5, faults=ROUGH, tell=lambda entry: _of_the_stamper(alone, entry))
    run(f"{HERE}:stamping_with_a_bystander", seed=5, faults=ROUGH, tell=lambda entry: _of_the_stamper(beside, entry))
    assert alone[:20] == beside[:20]


def _of_the_stamper(into: list[str], entry: Entry) -> None:
    if entry.who == "stamper → hub" and re.search(r"GET|→", entry.what):
        into.append(f"{entry.at} {entry.what}")


# Convergence


@pytest.mark.parametrize("faults", [NONE, SOME, ROUGH], ids=["none", "some", "rough"])
@pytest.mark.parametrize(("scenario", "seeds"), [("stamping", 5), ("crashing", 5), ("electing", 3), ("deploying", 2)])
def test_once_faults_stop_everything_converges(scenario: str, seeds: int, faults: Faults) -> None:
    for seed in range(100, 100 + seeds):
        run(f"{SCENARIOS}:{scenario}", seed=seed, faults=faults)


async def crash_at_each_write(simulation: Simulation) -> None:
    """As many lives as the stamper has writes to make: each ends with the next write."""
    shop = Shop(simulation)
    await shop.open()
    for number in range(10):
        await shop.put(f"map-{number}", "first")
    process = simulation.start("stamper", stamper)

    def again() -> None:
        if shop.wrong_stamps():
            process.crash_after_write(1, again)
        process.start()

    process.crash_after_write(1, again)
    await shop.settled()
    assert process.starts == process.writes + 1 == 11


@pytest.mark.parametrize("seed", range(5))
def test_a_crash_after_every_write_of_the_tutorials_controller_converges(seed: int) -> None:
    report = run(f"{HERE}:crash_at_each_write", seed=seed)
    assert report.writes == 1 + 10 + 10, "a namespace, the user's maps, and each stamped once"


async def crash_at_one_write(simulation: Simulation) -> None:
    """The stamper crashes once, after one of its writes: which is of the seed."""
    shop = Shop(simulation)
    await shop.open()
    process = simulation.start("stamper", stamper)
    process.crash_after_write(simulation.seed)
    await shop.trade(changes=12)
    await shop.settled()


def test_a_crash_at_any_one_write_converges() -> None:
    crashes: list[int] = []
    for number in range(1, 30):
        run(f"{HERE}:crash_at_one_write", seed=number, tell=partial(_note_crash, crashes, number))
    assert crashes == list(range(1, len(crashes) + 1)), "the first writes of a run had their turn"
    assert 5 < len(crashes) < 29, "and so had the last"


def _note_crash(crashes: list[int], number: int, entry: Entry) -> None:
    if entry.what.startswith("crashes after"):
        crashes.append(number)


# Failing


def failure_of(scenario: str, seed: int = 5, faults: Faults = NONE) -> Failed:
    with pytest.raises(Failed) as failed:
        run(scenario, seed=seed, faults=faults)
    return failed.value


def test_a_failing_seed_says_what_when_and_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TESTS.parent)
    failed = failure_of(f"{SCENARIOS}:never_right", faults=SOME)
    assert failed.sentence == "every stamp was true of its data once: shop/web carries forged"
    assert failed.at == 5.0
    text = str(failed)
    assert "from seed 5" in text
    called = f"-m kedge.simulate {SCENARIOS}:never_right --seed 5 --faults some --trace"
    assert re.search(rf"\n  PYTHONPATH=tests PYTHONHASHSEED=0 \S*python {called}\n", text)
    last = text.splitlines()[-1]
    assert re.fullmatch(
        r"    5\.000000  user → hub +#\d+  PATCH /api/v1/namespaces/shop/configmaps/web  \[[0-9a-f]{8}, \d+ bytes\]",
        last,
    )


def test_the_replay_command_shows_the_same_history_and_fails_the_same_way() -> None:
    said: list[str] = []
    with pytest.raises(Failed) as failed:
        run(f"{SCENARIOS}:never_right", seed=5, faults=SOME, tell=lambda entry: said.append(str(entry)))
    arguments = failed.value.command.partition("kedge.simulate ")[2].split()
    process = command(*arguments, hash_seed=9)
    out, err = process.communicate()
    assert process.returncode == 1
    assert out.splitlines() == said
    assert err.strip() == f"seed 5 failed: {failed.value}"


async def never_ends_up(simulation: Simulation) -> None:
    Shop(simulation)
    await simulation.until("pigs fly", lambda: False, within=50)


async def wrong_at_the_end(simulation: Simulation) -> None:
    shop = Shop(simulation)
    await shop.open()
    await shop.put("web", "nobody stamps this")


async def raises(simulation: Simulation) -> None:
    simulation.start("stamper", stamper)
    raise ValueError("a mistake of the scenario")


async def ends(process: Process) -> None:
    await asyncio.sleep(7)
    raise KeyError("a mistake of the process")


async def a_process_ends(simulation: Simulation) -> None:
    simulation.start("short-lived", ends)
    await asyncio.sleep(100)


async def a_task_nobody_awaits(simulation: Simulation) -> None:
    async def fail() -> None:
        raise ValueError("unseen")

    simulation.loop.create_task(fail(), name="unseen")
    await asyncio.sleep(100)


async def a_deadlock(simulation: Simulation) -> None:
    await asyncio.Event().wait()


async def a_check_that_raises(simulation: Simulation) -> None:
    simulation.server("hub")
    simulation.always("numbers are finite", lambda *_: str(1 / 0))
    await simulation.client("hub").create(ConfigMap, {"metadata": {"name": "x"}}, "default")
    await asyncio.sleep(100)


@pytest.mark.parametrize(
    ("scenario", "sentence", "at"),
    [
        ("never_ends_up", "within 50 s: pigs fly", 50),
        ("wrong_at_the_end", "every stamp is true: not of web", 0),
        ("raises", "ValueError: a mistake of the scenario", 0),
        ("a_process_ends", "process short-lived runs for ever", 7),
        ("a_task_nobody_awaits", "every error is somebody's: Task exception was never retrieved", 0),
        ("a_deadlock", "Deadlock: every task waits, and no timer is set", 0),
        ("a_check_that_raises", "numbers are finite: the check failed", 0),
    ],
)
def test_how_a_run_can_fail(scenario: str, sentence: str, at: float) -> None:
    failed = failure_of(f"{HERE}:{scenario}")
    assert re.match(sentence, failed.sentence)
    assert failed.at == at


def test_the_cause_of_a_failure_is_kept() -> None:
    failed = failure_of(f"{HERE}:a_process_ends")
    assert failed.__cause__ is not None
    assert isinstance(failed.__cause__.__cause__, KeyError)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scenarios", "names no scenario: write module:function"),
        ("no.such:thing", "there is no module no: name the folder it is in as PYTHONPATH"),
        (f"{SCENARIOS}:nothing", "has no scenario nothing"),
    ],
)
def test_a_name_that_names_no_scenario_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load(name)


def test_a_command_line_that_makes_no_sense_is_refused() -> None:
    process = command(f"{SCENARIOS}:stamping", "--faults", "late=2")
    _, err = process.communicate()
    assert process.returncode == 2
    assert "late is 2.0: it is a share, between 0 and 1" in err


def test_the_command_of_a_module_that_is_installed_needs_no_path() -> None:
    text = replay_command("kedge.x:y", 1, NONE)
    assert re.fullmatch(r"PYTHONHASHSEED=0 \S*python -m kedge\.simulate kedge\.x:y --seed 1 --trace", text)


def test_the_command_names_the_interpreter_of_a_virtual_environment_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    assert " .venv/bin/python -m kedge.simulate " in replay_command("kedge.x:y", 1, NONE)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert " python -m kedge.simulate " in replay_command("kedge.x:y", 1, NONE)


# What a scenario can ask of a simulation


async def rests(simulation: Simulation) -> None:
    shop = Shop(simulation)
    await shop.open()
    simulation.start("stamper", stamper)
    await shop.put("web", "first")
    await simulation.rest(quiet=60.0)
    assert 60 <= simulation.loop.time() < 70
    await shop.user.patch(ConfigMap, "web", MergePatch({"data": {"value": "second"}}), SHOP)
    await simulation.rest(quiet=60.0)
    assert 120 <= simulation.loop.time() < 140


def test_a_simulation_can_wait_until_nobody_writes_any_more() -> None:
    report = run(f"{HERE}:rests", seed=1)
    assert report.writes == 5, "a namespace, a map, its stamp, its change and its stamp again"
