"""`kedge demo`: goes as told, and says so if it does not."""

from __future__ import annotations

import io
import re
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from kedge.cli import main
from kedge.cli.demo import SPEC, Demo
from kedge.cli.demo_stage import DemoFailed
from support.stage import LoopClock
from support.virtual import run


def told(*, then_fix: bool = False, seed: int = 1, **other: Any) -> str:
    """The demo in virtual time."""
    out = io.StringIO()

    async def tell() -> None:
        console = Console(file=out, width=4096)
        await Demo(console, clock=LoopClock(), rng=Random(seed), then_fix=then_fix, **other).play()

    run(tell())
    return out.getvalue()


def given(shown: str, image: str) -> list[str]:
    return re.findall(rf"(cluster-\d) gets {image}$", shown, re.MULTILINE)


def test_a_good_release_reaches_three_clusters_and_a_bad_one_only_the_first() -> None:
    shown = told()
    assert shown.count(" has joined") == 4
    assert len(set(given(shown, "app:1"))) == 3
    assert sorted(given(shown, "app:2")) == sorted(given(shown, "app:1"))
    assert given(shown, "app:bad") == given(shown, "app:2")[:1]
    (bad,) = given(shown, "app:bad")
    last = f"may be unavailable, and {bad} is not available: Deployment test-ns/web has 1 of 3 updated replicas"
    assert last in shown.rpartition("The placement says why:")[2]
    assert "revision 2 on 1 of 3 clusters, 2 of 3 available" in shown
    assert "app:3" not in shown


def test_a_fix_reaches_the_broken_cluster_first_and_then_the_others() -> None:
    shown = told(then_fix=True)
    assert given(shown, "app:3")[:1] == given(shown, "app:bad")
    assert len(given(shown, "app:3")) == 3
    assert shown.count("Never were two of them unavailable at once.") == 2
    assert "revision 3, available on 3 of 3 clusters" in shown


@pytest.mark.parametrize("seed", range(2, 4))
def test_it_goes_as_told_whatever_the_order_of_things(seed: int) -> None:
    told(then_fix=True, seed=seed)


def test_clusters_that_move_together_are_an_error() -> None:
    strategy = {"rollingUpdate": {"maxUnavailable": 3, "maxSurge": 1}}
    with pytest.raises(DemoFailed, match=r"[23] clusters were unavailable at once, and one may be"):
        told(spec={**SPEC, "strategy": strategy})


def test_a_rollout_that_never_arrives_is_an_error() -> None:
    with pytest.raises(DemoFailed, match=r"app:1 is not available on three clusters: .*could not find"):
        told(members=2)


@pytest.mark.timeout(400)
def test_it_runs_from_the_command_line() -> None:
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.output
    assert "The placement says why:" in result.output
    assert "\x1b" not in result.output
