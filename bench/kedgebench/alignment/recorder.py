"""Recorder: the pods of one workload on all clusters at each instant, and whether there are ever too few or too many.

A member's own controllers may create a new pod before they have deleted an old one. Then that cluster has more pods
than it was ever asked for, and nobody outside can prevent it: such pods are counted apart.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from kedge.api.pods import Pod
from kedgebench.batches.recorder import Recorder


class FleetRecorder:
    """Judges at every change, once it is told to. No cluster is asked for more pods than its `share`."""

    def __init__(self, floor: int, ceiling: int, share: int) -> None:
        self.pods = Recorder(floor, ceiling)
        self._floor = floor
        self._ceiling = ceiling
        self._share = share
        self._names: set[tuple[str, str]] = set()
        self.wrong: list[str] = []
        self.overshoot = 0
        """The most pods that members had beyond what they were asked for."""
        self.judges = False

    def see(self, cluster: str, pod: Pod, *, is_gone: bool) -> None:
        """Two clusters may have pods of the same name."""
        name = pod.metadata.name
        self.pods.see(replace(pod, metadata=replace(pod.metadata, name=f"{cluster}/{name}")), is_gone=is_gone)
        if is_gone or pod.metadata.deletion_timestamp is not None:
            self._names.discard((cluster, name))
        else:
            self._names.add((cluster, name))
        if self.judges:
            self._judge()

    def _judge(self) -> None:
        counts = Counter(cluster for cluster, _ in self._names)
        over = sum(max(0, count - self._share) for count in counts.values())
        self.overshoot = max(self.overshoot, over)
        if (ready := self.pods.ready()) < self._floor:
            self.wrong.append(f"{ready} pods are ready: fewer than {self._floor}")
        if self.pods.count - over > self._ceiling:
            self.wrong.append(f"{self.pods.count} pods are there: more than {self._ceiling}")


class OfCluster:
    """Tells a recorder of the pods of one cluster."""

    def __init__(self, recorder: FleetRecorder, cluster: str) -> None:
        self._recorder = recorder
        self._cluster = cluster

    def see(self, pod: Pod, *, is_gone: bool) -> None:
        self._recorder.see(self._cluster, pod, is_gone=is_gone)
