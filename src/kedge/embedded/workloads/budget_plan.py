"""The arithmetic of a PodDisruptionBudget: how many of its pods may be taken away now.

Pure, and as kube-controller-manager counts: percentages are of the replicas the owners want, not of the pods there are,
and are rounded up; a number as `minAvailable` is held against the pods there are. While a budget covers no pod, nothing
may be taken away: its first pods could appear before anyone has counted them.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.api.numbers import IntOrPercent, resolve


class Count(Struct, frozen=True):
    """The numbers of a budget's status."""

    expected: int
    desired_healthy: int
    healthy: int

    @property
    def allowed(self) -> int:
        """How many pods may be taken away now."""
        return max(0, self.healthy - self.desired_healthy) if self.expected > 0 else 0


def needs_scale(min_available: IntOrPercent | None, max_unavailable: IntOrPercent | None) -> bool:
    """Whether the budget is a share of what the owners of its pods want."""
    return max_unavailable is not None or isinstance(min_available, str)


def count(
    min_available: IntOrPercent | None,
    max_unavailable: IntOrPercent | None,
    *,
    pods: int,
    scale: int,
    healthy: int,
) -> Count:
    """The numbers, of so many pods and of owners that want `scale` of them. `scale` counts only if it is needed."""
    if max_unavailable is not None:
        spare = resolve(max_unavailable, scale, round_up=True)
        return Count(scale, max(0, scale - spare), healthy)
    if isinstance(min_available, str):
        return Count(scale, resolve(min_available, scale, round_up=True), healthy)
    if min_available is not None:
        return Count(pods, min_available, healthy)
    return Count(0, 0, healthy)
