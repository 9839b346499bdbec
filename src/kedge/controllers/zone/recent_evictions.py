"""Recent evictions: the pods that were allowed to go a moment ago, and may still look as if nothing had happened.

Between the answer to an eviction and the first sign of it in a pod's status, the next decision would take the pod for
ready. So an allowed pod is remembered until it is seen to be gone, replaced, or no longer running, and for two minutes
at most: the eviction may have failed after all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.kube.cache import Cache
from kedge.kube.store import Change, Key, key_of
from kedge.kube.version_tracker import as_number

KEEP_SECONDS: Final = 120.0
_RUNNING: Final = "Running"


class _Remembered(Struct, frozen=True):
    """One pod: which, in which version it was allowed to go, and until when that counts."""

    uid: str
    version: int
    until: float


class RecentEvictions:
    """The pods that were allowed to go. `now` gives seconds of a clock that never goes back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._pods: dict[Key, _Remembered] = {}

    def follow(self, pods: Cache[Pod]) -> None:
        """Forget pods as this cache shows that they went."""
        pods.on_change(self.observed)

    def record(self, pod: ObjectMeta) -> None:
        """This pod was allowed to go just now. Not for a dry run: then it stays."""
        self._pods[key_of(pod)] = _Remembered(pod.uid, as_number(pod.resource_version), self._now() + KEEP_SECONDS)

    def forget(self, pod: ObjectMeta) -> None:
        """This pod stays after all."""
        kept = self._pods.get(key_of(pod))
        if kept is not None and kept.uid == pod.uid:
            del self._pods[key_of(pod)]

    def uids(self) -> frozenset[str]:
        """The uids of the pods that count as gone."""
        now = self._now()
        self._pods = {key: kept for key, kept in self._pods.items() if kept.until > now}
        return frozenset(kept.uid for kept in self._pods.values())

    def observed(self, change: Change[Pod]) -> None:
        """A pod changed."""
        meta = change.object.metadata
        kept = self._pods.get(key_of(meta))
        if kept is not None and _shows_pod_gone(change, kept):
            del self._pods[key_of(meta)]


def _shows_pod_gone(change: Change[Pod], kept: _Remembered) -> bool:
    """Whether a change shows that the pod went. A cache may lag, and show what was before the decision."""
    meta = change.object.metadata
    if 0 < as_number(meta.resource_version) < kept.version:
        return False
    if meta.uid != kept.uid:
        return change.new is not None
    return change.new is None or change.new.status.phase != _RUNNING
