"""A member joins and leaves, whatever goes wrong; what was placed on it stays."""

from __future__ import annotations

import pytest

from kedge.simulate.faults import ROUGH, SOME, Faults
from kedge.simulate.run import run

HERE = "simulate.membership"
pytestmark = pytest.mark.timeout(1200)  # of a machine that has other things to do


@pytest.mark.parametrize("seed", range(1, 9))
def test_in_bad_weather(seed: int) -> None:
    run(f"{HERE}:leaving", seed=seed, faults=SOME if seed % 2 else ROUGH)


def test_an_agent_that_was_given_up_too_early_removes_nothing() -> None:
    """The hub's clock jumps, and it no longer waits for an agent that is about to answer."""
    run(f"{HERE}:leaving", seed=29, faults=ROUGH)


@pytest.mark.parametrize("write", range(1, 41, 3))
def test_with_a_crash_of_the_hub_after_a_write(write: int) -> None:
    run(f"{HERE}:hub_crashing", seed=write)


@pytest.mark.parametrize("write", range(1, 16, 3))
def test_with_a_crash_of_the_agent_after_a_write(write: int) -> None:
    run(f"{HERE}:agent_crashing", seed=write)


@pytest.mark.parametrize("seed", range(1, 6))
def test_what_admission_or_a_role_refuses_for_a_while_is_tried_again(seed: int) -> None:
    run(f"{HERE}:leaving", seed=seed, faults=Faults(unauthorized=0.1, forbidden=0.1, denied=0.3))
