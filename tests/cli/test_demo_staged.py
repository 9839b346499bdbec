"""`kedge demo staged`: goes as told, and says so if it does not."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import sys
from random import Random
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

from kedge.api.staged import ApprovalCondition
from kedge.cli import demo_staged, main
from kedge.cli.demo_fleet import DemoFleet
from kedge.cli.demo_stage import DemoFailed
from kedge.cli.demo_staged import CANARY, PRODUCTION, STAGING, StagedDemo, careful_stages
from support.stage import LoopClock
from support.virtual import run

pytestmark = pytest.mark.timeout(400)


async def yes(_: DemoFleet) -> bool:
    return True


async def no(_: DemoFleet) -> bool:
    return False


def told(*, seed: int = 1, **other: Any) -> str:
    """The demo in virtual time."""
    out = io.StringIO()

    async def tell() -> None:
        how = {"wait": "1m", "approving": yes, **other}
        await StagedDemo(Console(file=out, width=4096), clock=LoopClock(), rng=Random(seed), **how).play()

    run(tell())
    return out.getvalue()


def given(shown: str, image: str) -> list[str]:
    return re.findall(rf"(cluster-\d) gets {image}$", shown, re.MULTILINE)


def test_a_good_release_goes_through_the_stages_and_a_bad_one_ends_in_staging() -> None:
    shown = told(wait="1h")
    assert shown.count(" has joined") == 6
    assert sorted(given(shown, "app:1")) == [*STAGING, *CANARY, *PRODUCTION]
    assert given(shown, "app:2") == [*STAGING, *CANARY, *PRODUCTION, *STAGING]  # the last of them on the way back
    assert given(shown, "app:bad") == [*STAGING]
    assert "1h00m0" in shown.partition("cluster-2 gets app:2")[0].splitlines()[-1]
    assert "60m to wait" in shown
    assert "stage canary waits for approval" in shown
    assert re.search(r"approved .*by \S+.*: the canaries are well", shown)
    assert "cluster-1 is not done: Deployment test-ns/web has 1 of 3 updated replicas" in shown
    assert "run release-3-rollback brings the clusters of release-3 back to revision 1" in shown


def test_without_an_approval_production_keeps_what_it_has() -> None:
    shown = told(approving=no)
    assert given(shown, "app:2") == [*STAGING, *CANARY]
    assert "cluster-4, cluster-5 and cluster-6 still run app:1" in shown
    assert "app:bad" not in shown
    line = next(line for line in shown.splitlines() if "$ kubectl patch" in line)
    body = msgspec.json.decode(shlex.split(line.replace("'$(date -u +%FT%TZ)'", "2030-01-01T00:00:00Z"))[-1])
    (said,) = msgspec.convert(body["status"]["conditions"], list[ApprovalCondition])
    assert (said.type, said.status, said.observed_generation) == ("Approved", "True", 1)


STAGES = careful_stages("1s")
NOT_AS_TOLD = {
    "no wait": ([{**STAGES[0], "afterStageTasks": []}, *STAGES[1:]], "release-2 does not wait after staging"),
    "a short wait": (STAGES, r"the canaries got app:2 [12]\.\d s after staging had it, and 0:01:00 were to pass"),
    "no approval": (
        [careful_stages("1m")[0], {**STAGES[1], "afterStageTasks": []}, STAGES[2]],
        "release-2 asks nobody",
    ),
}


@pytest.mark.parametrize(("stages", "problem"), NOT_AS_TOLD.values(), ids=NOT_AS_TOLD)
def test_stages_that_do_not_hold_are_an_error(stages: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(DemoFailed, match=problem):
        told(stages=stages)


def test_it_runs_from_the_command_line_in_virtual_time() -> None:
    result = CliRunner().invoke(main, ["demo", "staged", "--virtual", "--yes", "--wait", "90s"])
    assert result.exit_code == 0, result.output
    assert "a wait of 90s" in result.output
    assert "never saw app:bad" in result.output
    assert "\x1b" not in result.output


@pytest.mark.slow
def test_it_runs_from_the_command_line_in_real_time() -> None:
    """For a minute, half of which a cluster is given to say what it waits for."""
    result = CliRunner().invoke(main, ["demo", "staged", "--yes", "--wait", "1s"])
    assert result.exit_code == 0, result.output
    assert "a wait of 1s" in result.output
    assert "run release-3-rollback" in result.output


@pytest.mark.parametrize("wait", ["soon", "0s", "-1h"])
def test_a_wait_that_is_no_time_is_refused(wait: str) -> None:
    result = CliRunner().invoke(main, ["demo", "staged", "--wait", wait])
    assert result.exit_code == 2
    assert "--wait" in result.output


@pytest.mark.parametrize(("typed", "answer"), [("\n", True), ("y\n", True), ("no\n", False), ("\x04", False)])
@pytest.mark.parametrize("asks", [demo_staged._ask_in_virtual_time, demo_staged._ask_on_terminal])
async def test_somebody_at_a_terminal_is_asked(
    asks: demo_staged.Approving, typed: str, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    out = io.StringIO()
    with os.fdopen(ours, "w") as keyboard, os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        keyboard.write(typed)
        keyboard.flush()
        show = DemoFleet(Console(file=out), members=0, clock=LoopClock(), rng=Random(1))
        assert await asks(show) is answer
        await show.hub.close()
    assert "Is app:2 to go into production? [Y/n]" in out.getvalue()
