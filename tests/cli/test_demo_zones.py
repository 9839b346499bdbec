"""`kedge demo zones`: goes as told, and says so if it does not."""

from __future__ import annotations

import io
import re
from random import Random

import pytest
from click.testing import CliRunner
from rich.console import Console

from kedge.cli import main
from kedge.cli.demo_stage import DemoFailed
from kedge.cli.demo_zones import AT_ONCE, REPLICAS, ZONES, ZonesDemo
from kedge.plan.moving.budget import Budget
from support.stage import LoopClock
from support.virtual import run


def told(seed: int = 1) -> str:
    """The demo in virtual time."""
    out = io.StringIO()

    async def tell() -> None:
        await ZonesDemo(Console(file=out, width=4096), clock=LoopClock(), rng=Random(seed)).play()

    run(tell())
    return out.getvalue()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_good_release_goes_through_all_zones_a_bad_one_stops_and_its_fix_goes_on(seed: int) -> None:
    shown = told(seed)
    went = re.findall(r"(ingester-zone-.)-\d goes, with app:1", shown)
    assert went == [zone for zone in ZONES for _ in range(REPLICAS)]
    bad = shown.partition("3. A bad release")[2].partition("4. A fix")[0]
    assert len(re.findall(r"goes, with app:2", bad)) == AT_ONCE
    assert "ingester-zone-b and ingester-zone-c still run app:2" in bad
    assert "at most 2 of 4 pods may be unavailable, and ingester-zone-a-0 (ImagePullBackOff)" in bad
    assert shown.count("Never were pods of two zones away at once") == 2
    assert "12 of 12 pods updated, 12 ready; 3 zones" in shown


def test_a_budget_that_is_not_kept_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "must_stay_available", property(lambda _: 0))
    with pytest.raises(DemoFailed, match="pods in 1 zones were not ready at once"):
        told()


def test_it_is_a_command() -> None:
    assert "StatefulSets in zones" in CliRunner().invoke(main, ["demo", "--help"]).output
