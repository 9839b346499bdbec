"""`kedge demo aligned`: goes as told, and says so if it does not."""

from __future__ import annotations

import io
import re
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from kedge.cli import main
from kedge.cli.demo_aligned import AlignedDemo
from kedge.cli.demo_stage import DemoFailed
from kedge.plan.aligning import binding
from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.alignment import Alignment, align
from support.stage import LoopClock
from support.virtual import run


def told(seed: int = 1) -> str:
    """The demo in virtual time."""
    out = io.StringIO()

    async def tell() -> None:
        await AlignedDemo(Console(file=out, width=4096), clock=LoopClock(), rng=Random(seed)).play()

    run(tell())
    return out.getvalue()


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_aligned_keeps_the_bounds_and_what_is_copied_leaves_them(seed: int) -> None:
    shown = told(seed)
    lines = re.findall(
        r"aligned: available +(\d+) \(. 8\), pods +(\d+) \(. 11\) +copied: available +(\d+), pods +(\d+)", shown
    )
    counts = [tuple(map(int, line)) for line in lines]
    assert len(counts) > 2
    assert all(available >= 8 and pods <= 11 for available, pods, _, _ in counts)
    assert min(count[2] for count in counts) < 8
    assert max(count[3] for count in counts) > 11
    assert "cluster-1 waits: at most 2 of 10 pods may be unavailable, and 1 may be extra: cluster-2 holds that" in shown
    assert "10 of 10 pods updated, available 10 (>= 8), pods 10 (<= 11); in flight 0+0 of 2+1, proven 10" in shown
    assert shown.endswith("Aligned: never were fewer than 8 pods available, and never were there more than 11.\n")


def test_a_budget_that_is_not_kept_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(aim: Aim, members: Any) -> Alignment:
        return align(Aim(aim.replicas, 3), members)

    monkeypatch.setattr(binding, "align", generous)
    with pytest.raises(DemoFailed, match="pods were available at least, and there were"):
        told()


def test_it_is_a_command() -> None:
    assert "divided over two clusters" in CliRunner().invoke(main, ["demo", "--help"]).output
