"""What the spec and the annotations of a placement ask for."""

from __future__ import annotations

import pytest

from kedge.api.fleet import PAUSED
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.rollout import RolloutStrategy, RolloutStrategyType
from kedge.plan.placements import is_external, is_paused


def placement(strategy: RolloutStrategy | None = None, **annotations: str) -> ClusterResourcePlacement:
    meta = ObjectMeta(name="web", annotations={PAUSED: annotations["paused"]} if annotations else {})
    return ClusterResourcePlacement(metadata=meta, spec=PlacementSpec(resource_selectors=(), strategy=strategy))


@pytest.mark.parametrize(
    ("strategy", "external"),
    [
        (None, False),
        (RolloutStrategy(), False),
        (RolloutStrategy(type=RolloutStrategyType.rolling_update), False),
        (RolloutStrategy(type=RolloutStrategyType.external), True),
    ],
)
def test_a_placement_is_external_if_its_strategy_says_so(strategy: RolloutStrategy | None, external: bool) -> None:
    assert is_external(placement(strategy)) is external


def test_a_placement_is_paused_if_its_annotation_is_true() -> None:
    assert not is_paused(placement())
    assert not is_paused(placement(paused="false"))
    assert is_paused(placement(paused="true"))
