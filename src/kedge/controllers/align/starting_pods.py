"""Starting pods: how long pods that do not work may yet only be starting, by cluster.

They are given time from when a cluster last reported another number of pods, or more of them available than before. A
pod that works now and then begins nothing anew. Where the number of pods changes all the time, as where they are
evicted again and again, they have `AT_MOST` times that time. What is remembered here may be lost: then all have that
time again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kedge.controllers.throttle import Throttle
from kedge.kube.queue import Key
from kedge.plan.aligning.ledger import Member, Report
from kedge.plan.fields import Object, whole

SECONDS: Final = 30.0
"""What a pod has to become ready, before `minReadySeconds` begin."""
AT_MOST: Final = 10
"""So many times that, where the number of pods keeps changing while the cluster is asked for nothing new."""


class StartingPods:
    """What the clusters of each binding have reported."""

    def __init__(self) -> None:
        self._throttle = Throttle(SECONDS, at_most=AT_MOST)
        self._most: dict[Key, dict[str, Report]] = {}
        """The report since which there are so many pods, with the most that were available."""

    def left(self, key: Key, reports: Mapping[str, Report], template: Object) -> dict[str, float]:
        """Seconds that the pods of each cluster still have; of those clusters only that have some left."""
        before = self._most.get(key, {})
        most = self._most[key] = {name: _most(before.get(name), report) for name, report in reports.items()}
        for name, known in before.items():
            if name not in most or most[name].seq != known.seq:
                self._throttle.reset((key, name))
        seconds = SECONDS + (whole(template, "spec", "minReadySeconds") or 0)
        waits = {name: self._throttle.wait((key, name), one, seconds=seconds) for name, one in most.items()}
        return {name: wait for name, wait in waits.items() if wait}

    def forget(self, key: Key) -> None:
        """There is no such binding any more."""
        for name in self._most.pop(key, {}):
            self._throttle.reset((key, name))


def next_look(left: Mapping[str, float], members: Iterable[Member]) -> float | None:
    """When pods of one of these clusters, that do not work, have had their time; None if there are none."""
    return min((left[one.name] for one in members if one.may_be_starting), default=None)


def _most(before: Report | None, now: Report) -> Report:
    is_same = before is not None and (before.seq, before.pods, before.updated) == (now.seq, now.pods, now.updated)
    return before if before is not None and is_same and now.available <= before.available else now
