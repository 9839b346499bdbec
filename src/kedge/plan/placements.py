"""Placements: what the spec and the annotations of a placement ask for, beside its policy."""

from __future__ import annotations

from kedge.api.fleet import PAUSED
from kedge.api.placement_kinds import Placement
from kedge.api.rollout import (
    PropagationPolicy,
    ReportBackDestination,
    ReportBackStrategy,
    ReportBackType,
    RolloutStrategyType,
)


def is_external(placement: Placement) -> bool:
    """Whether its strategy is External: staged update runs move it, and not a rollout."""
    strategy = placement.spec.strategy
    return strategy is not None and strategy.type is RolloutStrategyType.external


def is_paused(placement: Placement) -> bool:
    """Whether a user has stopped it for now (`kedge pause`)."""
    return placement.metadata.annotations.get(PAUSED) == "true"


def abandons(placement: Placement) -> bool:
    """Whether what it placed stays on the members when it is deleted."""
    strategy = placement.spec.strategy
    delete = strategy.delete_strategy if strategy is not None else None
    return delete is not None and delete.propagation_policy == PropagationPolicy.abandon


def report_back(placement: Placement) -> ReportBackStrategy | None:
    """How the statuses of placed objects are reported back; None if they are not."""
    strategy = placement.spec.strategy
    found = strategy.report_back_strategy if strategy is not None else None
    return found if found is not None and found.type != ReportBackType.disabled else None


def reports_to_original(placement: Placement) -> bool:
    """Whether the statuses of placed objects are shown on the originals on the hub."""
    found = report_back(placement)
    return found is not None and found.destination == ReportBackDestination.original_resource
