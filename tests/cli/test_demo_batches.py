"""`kedge demo batches`: goes as told, and says so if it does not."""

from __future__ import annotations

import io
import re
from random import Random

import pytest
from click.testing import CliRunner
from rich.console import Console

from kedge.cli import main
from kedge.cli.demo_batches import PODS, SIZES, BatchesDemo
from kedge.cli.demo_stage import DemoFailed
from kedge.plan.batching.moves import DONE
from kedge.plan.moving.budget import Budget
from support.stage import LoopClock
from support.virtual import run


def told(seed: int = 1) -> str:
    """The demo in virtual time."""
    out = io.StringIO()

    async def tell() -> None:
        await BatchesDemo(Console(file=out, width=4096), clock=LoopClock(), rng=Random(seed)).play()

    run(tell())
    return out.getvalue()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_good_release_moves_in_batches_a_bad_one_stops_in_its_first_and_goes_back(seed: int) -> None:
    shown = told(seed)
    good = shown.partition("2. A good release")[2].partition("3. A bad release")[0]
    assert re.search(r"ready: 8 of app:1 and 2 of app:2\n", good)
    assert re.search(r"ready: 4 of app:1 and 6 of app:2\n", good)
    assert good.count(f"Never were fewer than {PODS} pods ready") == 1
    bad = shown.partition("3. A bad release")[2].partition("4. The way back")[0]
    assert "all 10 pods of app:2 are still ready" in bad
    assert f"The rollout says why: 0 of {SIZES[0]} pods of Deployment shop/web-v3 are available" in bad
    assert "ImagePullBackOff" in bad
    assert "goes back to Deployment web-v2, in its batches" in shown
    assert "has succeeded, batch 2 of 3, 10 of 10 pods ready" in shown


def test_a_floor_that_is_not_kept_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kedge.plan.batching.deployment_moves.DeploymentMoves._proof", lambda *_: DONE)
    monkeypatch.setattr(Budget, "must_stay_available", property(lambda _: 0))
    with pytest.raises(DemoFailed, match="pods were ready at least"):
        told()


def test_it_is_a_command() -> None:
    assert "Show a rollout in batches" in CliRunner().invoke(main, ["demo", "--help"]).output
