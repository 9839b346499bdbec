"""Health: whether the clusters of a stage that are done are still available.

A wait after a stage is there to see whether a change holds, and nobody approves a stage that has fallen over since. So
a stage is over, and the next one begins, only while its clusters are available; but for those that have left the fleet
or have nothing any more, and those that cannot be reached where the strategy skips such clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api.reasons import SUCCEEDED
from kedge.api.stage import Missing
from kedge.api.staged_status import StageStatus
from kedge.plan.rolling.readiness import Readiness, current, has_failed
from kedge.plan.rolling.why import failure_of
from kedge.plan.staging.round import STUCK_AFTER, Round
from kedge.plan.staging.saying import says
from kedge.plan.staging.seen import Seen
from kedge.plan.text import first

_PASSED_OVER: Final = (Readiness.available, Readiness.gone, Readiness.leaving, Readiness.empty)


class Unwell(Struct, frozen=True):
    """A cluster that was done, and is not available any more."""

    cluster: str
    cause: str
    since: datetime | None = None
    """Since when its status says that it does not work; None if it does not say so."""
    until: datetime | None = None
    """When waiting alone will have proven it, if that is what it takes."""

    def has_lasted(self, now: datetime) -> bool:
        """Whether it takes longer than anything should."""
        return self.since is not None and now >= self.since + STUCK_AFTER

    @property
    def timers(self) -> list[datetime]:
        """When time alone changes something."""
        found = (self.until, None if self.since is None else self.since + STUCK_AFTER)
        return [at for at in found if at is not None]


def unwell(stage: StageStatus, seen: Seen, round_: Round, policy: Missing) -> list[Unwell]:
    """The clusters of a stage that were done, and are not available any more."""
    done = (one.cluster_name for one in stage.clusters if says(one, SUCCEEDED))
    picked = (name for name in done if seen.picked is None or name in seen.picked)
    return [one for name in picked if (one := _judged(name, seen, round_, policy)) is not None]


def _judged(name: str, seen: Seen, round_: Round, policy: Missing) -> Unwell | None:
    unit = round_.unit(name)
    if unit is None or unit.readiness in _PASSED_OVER:
        return None
    if name in seen.unreachable:
        silence = Unwell(name, seen.unreachable[name] or "it is not heard of")
        return None if policy is Missing.skip else silence
    failed = next((one for one in current(unit.binding) if has_failed(one)), None)
    if failed is not None:
        return Unwell(name, failure_of(unit.binding), since=failed.last_transition_time)
    return Unwell(name, "its resources are being applied", until=unit.proven_at)


def spoken(stage: str, found: Sequence[Unwell]) -> str:
    """What a gate waits for: `stage canary is done, and cluster-2 is not available any more: …`."""
    return f"stage {stage} is done, and {first(_words(found))}" if found else ""


def _words(found: Iterable[Unwell]) -> Iterable[str]:
    return (f"{one.cluster} is not available any more: {one.cause}" for one in found)
