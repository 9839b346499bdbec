"""A placement with a podBudget never takes away more pods than that, whatever goes wrong."""

from __future__ import annotations

import pytest

from kedge.simulate.run import run

pytestmark = pytest.mark.timeout(1200)  # of a machine that has other things to do


@pytest.mark.parametrize("seed", range(1, 5))
def test_releases_in_bad_weather_keep_to_the_budget_of_pods(seed: int) -> None:
    run("simulate.pod_budget:releases", seed=seed)
