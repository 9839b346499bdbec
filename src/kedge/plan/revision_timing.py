"""Revision timing: when changes of what a placement selects become a revision.

Changes are collected for a moment, so that one `kubectl apply` of many files is one revision (`selecting.collecting`).
The first revision waits for nothing, nor does one after the selectors themselves changed.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.placement import ResourceSelector
from kedge.plan.selecting.snapshots import ChangeBurst, NumberedSnapshot


class RevisionSettings(Struct, frozen=True):
    """How long changes are collected. Seconds."""

    collect: float
    interval: float = 0.0
    """Between two revisions at least."""
    dialect: Dialect = Dialect.seed


class PendingChanges(Struct, frozen=True):
    """What one placement selects, and the changes of it that are no revision yet. Times are seconds of one clock."""

    digest: str = ""
    since: float = -math.inf
    """When the selection came to have this digest."""
    burst: ChangeBurst | None = None
    selectors: tuple[ResourceSelector, ...] | None = None
    """Those of the revision before; None if nobody knows."""

    def seen(self, digest: str, now: float) -> PendingChanges:
        """The selection has this digest now, which is not that of the newest revision."""
        if self.digest == digest and self.burst is not None:
            return self
        burst = self.burst.next(now) if self.burst is not None else ChangeBurst.first(now, self.since)
        return replace(self, digest=digest, since=now, burst=burst)

    def settled(self, selectors: tuple[ResourceSelector, ...]) -> PendingChanges:
        """The newest revision holds what these selectors select."""
        return replace(self, burst=None, selectors=selectors)


def wait_before_revision(
    pending: PendingChanges,
    selectors: tuple[ResourceSelector, ...],
    current: NumberedSnapshot | None,
    settings: RevisionSettings,
    *,
    age: float,
    now: float,
) -> float:
    """Seconds to collect changes before the next revision; 0 if there is nothing to wait for.

    `age`: of the current revision.
    """
    if current is None or not current.hash or pending.burst is None:
        return 0.0
    collected = _collected(pending.burst, pending.selectors in (None, selectors), settings)
    return max(0.0, collected - now, settings.interval - age)


def _collected(burst: ChangeBurst, same_selectors: bool, settings: RevisionSettings) -> float:
    """When the changes are all there. KubeFleet waits as long whatever comes (kubefleet.md §4.2)."""
    if settings.dialect is Dialect.kubefleet:
        return burst.since + settings.collect
    return burst.ends(settings.collect) if same_selectors else burst.since
