"""Pod trouble: what is wrong with the pods of a workload, as the cause of its not being available.

A pod that is merely starting is in no trouble until that has taken long: then it is slow.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.meta import ObjectMeta
from kedge.api.pods import PodStatus
from kedge.plan.availability.verdict import Verdict, because
from kedge.plan.workloads.pods import CRASH_LOOP, RESTARTED, PodWorkload, owner_of, why_not_ready

SLOW_AFTER: Final = timedelta(seconds=30)
"""How long a pod may take to become ready before that is worth a word."""
_TAKE_TURNS: Final = {"ErrImagePull": "pull", "ImagePullBackOff": "pull", CRASH_LOOP: "crash", RESTARTED: "crash"}
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class PodTrouble(Struct, frozen=True, gc=False):
    """What is wrong with one pod. `revision` is the owner that made it: the ReplicaSet of a Deployment.

    `since` is when a pod that is merely slow began to be.
    """

    workload: PodWorkload
    revision: str
    pod: str
    created: datetime | None
    reason: str
    message: str = ""
    container: str = ""
    since: datetime | None = None

    def is_shown(self, now: datetime) -> bool:
        """Whether it is worth a word: what is slow once it has been for long enough, everything else at once."""
        return self.since is None or now - self.since >= SLOW_AFTER

    def is_like(self, other: PodTrouble | None) -> bool:
        """Whether it is the same trouble of the same pod. Pulling an image and waiting to pull it again take turns."""
        if other is None or self == other:
            return self == other
        kind = _TAKE_TURNS.get(self.reason)
        same_place = (self.pod, self.container) == (other.pod, other.container)
        return same_place and kind is not None and kind == _TAKE_TURNS.get(other.reason)

    def __str__(self) -> str:
        where = f"pod {self.pod}, container {self.container}" if self.container else f"pod {self.pod}"
        return f"{where}: {self.reason}{because(self.message)}"


def trouble_of(meta: ObjectMeta, status: PodStatus) -> PodTrouble | None:
    """What is wrong with a pod; None if nothing is, if it is being deleted, or if it is nobody's."""
    if meta.deletion_timestamp is not None:
        return None
    found = why_not_ready(meta, status)
    owner = owner_of(meta) if found else None
    if found is None or owner is None:
        return None
    return PodTrouble(
        workload=owner.workload,
        revision=owner.maker,
        pod=meta.name,
        created=meta.creation_timestamp,
        reason=found.reason,
        message=found.message,
        container=found.container,
        since=found.since,
    )


def explained(verdict: Verdict, troubles: Iterable[PodTrouble], now: datetime) -> Verdict:
    """The verdict on a workload, with the trouble of one of its pods as the cause of its not being available."""
    cause = None if verdict.available else _cause([one for one in troubles if one.is_shown(now)])
    return replace(verdict, message=f"{verdict.message.rstrip('.')}: {cause}") if cause else verdict


def _cause(troubles: list[PodTrouble]) -> PodTrouble | None:
    """The trouble to name: not of a slow pod if another is worse, of the newest revision, of the first by name."""
    known = [one for one in troubles if one.since is None] or troubles
    newest = max(known, key=lambda one: (one.created or _LONG_AGO, one.revision), default=None)
    return min((one for one in known if one.revision == newest.revision), key=_by_pod) if newest else None


def _by_pod(trouble: PodTrouble) -> str:
    return trouble.pod
