"""Status patch: what changes a placement's status into another, and no more of it than that."""

from __future__ import annotations

from typing import Any

from kedge.api.placement_status import PlacementStatus


def status_patch(old: PlacementStatus, new: PlacementStatus) -> dict[str, Any]:
    """The merge patch that makes new of old; a list that did not change is not sent."""
    fields = {
        "conditions": (old.conditions, new.conditions),
        "observedResourceIndex": (old.observed_resource_index, new.observed_resource_index),
        "selectedResources": (old.selected_resources, new.selected_resources),
        "placementStatuses": (old.placement_statuses, new.placement_statuses),
    }
    return {name: after or None for name, (before, after) in fields.items() if before != after}
