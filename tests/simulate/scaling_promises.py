"""What a scale-down promises where it has to be prepared, judged from the StatefulSets and the pods' own endpoints.

* Replicas go down only if every pod that goes has been asked to prepare, and has not been told otherwise since.
* Two zones are scaled down only so far apart as they ask for.
"""

from __future__ import annotations

import msgspec

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.simulation import Simulation
from simulate.zone_promises import NAMESPACE
from simulate.zone_services import PodEndpoints

MIN_TIME = 60.0
A_SECOND = 1.0  # times are kept in whole seconds
PREPARED = "only prepared pods are scaled away"
APART = "zones are scaled down one after another"


class ScalingPromises:
    """Follows every scale-down."""

    def __init__(self, simulation: Simulation, endpoints: PodEndpoints, server: str) -> None:
        self._simulation = simulation
        self._endpoints = endpoints
        self._server = server
        self._replicas: dict[str, int] = {}
        self._pods: dict[str, str] = {}
        self._scaled_down: dict[str, float] = {}
        self._is_clock_true = simulation.faults.clock_jumps == 0
        simulation.always("a scale-down is prepared, and not too soon", self._changed)

    def _changed(self, server: str, kind: Kind, change: Change) -> str:
        if server != self._server or not change.version.key.startswith(f"{NAMESPACE}/"):
            return ""
        name = change.version.key.partition("/")[2]
        if kind.resource == Pod.resource:
            self._note_pod(name, change)
        elif kind.resource == StatefulSet.resource and change.type != "DELETED":
            return self._note_set(name, msgspec.json.decode(change.version.body, type=StatefulSet))
        return ""

    def _note_pod(self, name: str, change: Change) -> None:
        if change.type == "DELETED":
            self._pods.pop(name, None)
        else:
            self._pods[name] = msgspec.json.decode(change.version.body, type=Pod).metadata.uid

    def _note_set(self, name: str, found: StatefulSet) -> str:
        before, now = self._replicas.get(name, 0), found.spec.replicas or 0
        self._replicas[name] = now
        if now >= before:
            return ""
        return self._unprepared(name, range(now, before)) or self._too_soon(name)

    def _unprepared(self, name: str, ordinals: range) -> str:
        going = [f"{name}-{number}" for number in ordinals]
        lacking = [pod for pod in going if self._pods.get(pod, "") not in self._endpoints.prepared]
        self._simulation.counts["promise", PREPARED, "tight"] += 1
        return f"{', '.join(lacking)} is not prepared" if lacking else ""

    def _too_soon(self, name: str) -> str:
        now = self._simulation.loop.time()
        others = [at for other, at in self._scaled_down.items() if other != name]
        self._scaled_down[name] = now
        self._simulation.counts["promise", APART, "tight" if others else "asked"] += 1
        if self._is_clock_true and any(now - at < MIN_TIME - A_SECOND for at in others):
            return f"{name}: another zone was scaled down {now - max(others):.1f} s before"
        return ""
