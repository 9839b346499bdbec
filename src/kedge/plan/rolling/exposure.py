"""Exposure: how many clusters may hold resources that work nowhere yet.

A cluster that does not work may be changed at any time, so that a fix reaches it. But a bad release would reach every
cluster that breaks for a reason of its own in the same way. So until the resources wanted are available on one cluster,
at most as many hold them as may be unavailable. Clusters that had nothing before are placed without regard to this, but
count. What counts as proof is what is available now, not what once was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kedge.plan.rolling.readiness import Readiness, Unit

_LEFT: Final = (Readiness.gone, Readiness.leaving)


class Exposure:
    """Who holds the resources wanted, and whether one more may before they are proven."""

    def __init__(self, holders: Iterable[Unit], most: int) -> None:
        found = list(holders)
        self.most = most
        self._unproven = {unit.cluster: unit for unit in found if unit.readiness not in _LEFT}
        self._is_proven = any(unit.is_available for unit in found)

    def has_room(self, cluster: str) -> bool:
        """Whether this cluster may be given them now."""
        return self._is_proven or len(self._unproven.keys() - {cluster}) < self.most

    def grant(self, unit: Unit) -> None:
        """Count one that is given them."""
        self._unproven[unit.cluster] = unit

    @property
    def unproven(self) -> tuple[Unit, ...]:
        """Those that hold them, in the order of their names, while they are available on none."""
        return () if self._is_proven else tuple(unit for _, unit in sorted(self._unproven.items()))
