"""What a rollout of zones promises, judged from the pods in the server's own store, whenever the operator deletes one.

* A pod is deleted only if it is outdated, and in the very version that was looked at.
* While it is, every pod of every other zone is ready; unless what is not ready there cannot become ready and is
  outdated itself, and this pod is so too.
* A pod that is ready is deleted only if no more pods of its zone are unavailable then than may be.
* No more pods than may be unavailable are given a revision that no pod of the zone has proven.

A decision is judged by what was so between the moment its maker began to look and the moment its request left: what
others did afterwards is nobody's fault. Excused is also a request that arrives after its sender gave it up, if whoever
acts by then cannot know of it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry

NAMESPACE = "mimir"
_LOOKS = re.compile(r"GET /api/v1/namespaces/[^/]+/pods\?.*labelSelector=")
_READS_SETS = re.compile(r"GET /apis/apps/v1/namespaces/[^/]+/statefulsets\?.*labelSelector=rollout-group=")
_DELETES = re.compile(r"DELETE /api/v1/namespaces/[^/]+/pods/([^?]+)")
STUCK = ("CrashLoopBackOff", "ImagePullBackOff")
KEPT = 4000
OUTDATED = "only outdated pods are deleted"
ONE_ZONE = "pods of a zone go only while the others are ready"
BUDGET = "no more pods are unavailable than may be"
UNPROVEN = "few pods hold what none has proven"
GIVEN_UP = 25.0  # seconds: nobody waits longer for an answer


class PodFacts(Struct, frozen=True, gc=False):
    """What a pod itself says."""

    uid: str
    zone: str
    revision: str
    is_ready: bool
    cannot_become_ready: bool
    is_going: bool


class ZoneFacts(Struct, frozen=True, gc=False):
    """What a StatefulSet says that matters here."""

    replicas: int
    limit: int
    revision: str
    is_ordered: bool


class State(Struct, frozen=True):
    """All zones and pods, as of a moment."""

    at: float
    zones: Mapping[str, ZoneFacts]
    pods: Mapping[str, PodFacts]

    def of(self, zone: str) -> list[PodFacts]:
        return [pod for pod in self.pods.values() if pod.zone == zone]

    def unavailable(self, zone: str) -> int:
        pods = self.of(zone)
        return max(0, self.zones[zone].replicas - len(pods)) + sum(not pod.is_ready for pod in pods)

    def is_outdated(self, pod: PodFacts) -> bool:
        return pod.revision != self.zones[pod.zone].revision

    def waits_for_its_rollout(self, zone: str) -> bool:
        """Whether nothing but outdated pods that cannot become ready, and what waits for them, is wrong with a zone."""
        broken = [pod for pod in self.of(zone) if not pod.is_ready]
        mends = all(pod.cannot_become_ready and self.is_outdated(pod) for pod in broken)
        return mends and not any(name not in self.pods for name in self.next_created(zone))

    def next_created(self, zone: str) -> list[str]:
        """The pods that are created next, if they are missing: in order only the first that is not ready."""
        names = [f"{zone}-{number}" for number in range(self.zones[zone].replicas)]
        if not self.zones[zone].is_ordered:
            return names
        return [name for name in names if not (name in self.pods and self.pods[name].is_ready)][:1]


class ZonePromises:
    """Follows every write, and says at once when a deletion breaks a promise."""

    def __init__(self, simulation: Simulation, operators: Iterable[str], server: str) -> None:
        self._simulation = simulation
        self._server = server
        self._zones: dict[str, ZoneFacts] = {}
        self._pods: dict[str, PodFacts] = {}
        self._states: deque[State] = deque([State(0.0, {}, {})], maxlen=KEPT)
        self._looking: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._decided: dict[int, tuple[float, float]] = {}
        self._deleted: deque[tuple[float, str, str]] = deque(maxlen=KEPT)  # when, name, uid: by operators
        links = [f"{name} → {server}" for name in operators]
        simulation.trace.follow(self._heard, *links, *operators)
        simulation.always("a pod is deleted only when it may be", self._changed)
        self._links = set(links)

    def _heard(self, entry: Entry) -> None:
        if entry.what == "starts":
            self._started[entry.who] = entry.at
        elif _LOOKS.match(entry.what):
            self._looking[entry.who] = entry.at  # pods of all zones are read at the same moment
        elif _READS_SETS.match(entry.what) and entry.who in self._looking:
            self._looked[entry.who] = self._looking.pop(entry.who)
        elif _DELETES.match(entry.what):
            self._decided[entry.number] = (self._looked.get(entry.who, entry.at), entry.at)

    def _changed(self, server: str, kind: Kind, change: Change) -> str:
        if server != self._server or not change.version.key.startswith(f"{NAMESPACE}/"):
            return ""
        name = change.version.key.partition("/")[2]
        if kind.resource == StatefulSet.resource:
            self._note_set(name, change)
        elif kind.resource == Pod.resource:
            return self._note_pod(name, change)
        return ""

    def _note_set(self, name: str, change: Change) -> None:
        if change.type == "DELETED":
            self._zones.pop(name, None)
        else:
            found = msgspec.json.decode(change.version.body, type=StatefulSet)
            is_ordered = found.spec.pod_management_policy != "Parallel"
            replicas, revision = found.spec.replicas or 0, found.status.update_revision
            self._zones[name] = ZoneFacts(replicas, _limit(found), revision, is_ordered)
        self._remember()

    def _note_pod(self, name: str, change: Change) -> str:
        before = self._pods.get(name)
        found = None if change.type == "DELETED" else _facts(msgspec.json.decode(change.version.body))
        wrong = ""
        if before is not None and (found is None or _is_going(change)):
            wrong = self._judge(name, before)
        if found is None:
            self._pods.pop(name, None)
        else:
            self._pods[name] = found
        self._remember()
        return wrong

    def _remember(self) -> None:
        self._states.append(State(self._simulation.loop.time(), dict(self._zones), dict(self._pods)))

    # Judging

    def _judge(self, name: str, pod: PodFacts) -> str:
        carried = self._simulation.trace.carried()
        if carried is None or carried[0] not in self._links or carried[1] not in self._decided:
            return ""
        looked, sent = self._decided[carried[1]]
        if self._is_forgotten(carried[0], sent):
            return ""
        known = [state for state in self._states if looked <= state.at <= sent]
        known += [state for state in self._states if state.at < looked][-1:]
        there = [state for state in known if pod.zone in state.zones and self._has(state, name, pod)]
        if there and not any(state.is_outdated(pod) for state in there):
            return f"{name}: it is not outdated"
        verdicts = [self._wrong(state, pod) for state in there]
        if "" in verdicts:
            self._count(there[verdicts.index("")], pod)
            self._deleted.append((self._simulation.loop.time(), name, pod.uid))
            return ""
        return f"{name}: {verdicts[-1] if verdicts else 'it was never there'}"

    def _count(self, state: State, pod: PodFacts) -> None:
        """Note which promises this deletion put to the test, and which of them would not have borne more."""
        zone, own = state.zones[pod.zone], state.of(pod.zone)
        holders = [one for one in own if one.revision == zone.revision or one.is_going]
        tight = {
            OUTDATED: any(not state.is_outdated(one) for one in own),
            ONE_ZONE: len(state.zones) > 1,
            BUDGET: state.unavailable(pod.zone) + 1 >= zone.limit < len(own),
            UNPROVEN: not any(one.is_ready for one in holders) and len(holders) + 1 >= zone.limit < len(own),
        }
        for promise, is_tight in tight.items():
            self._simulation.counts["promise", promise, "tight" if is_tight else "asked"] += 1

    @staticmethod
    def _has(state: State, name: str, pod: PodFacts) -> bool:
        seen = state.pods.get(name)
        return seen is not None and seen.uid == pod.uid

    def _is_forgotten(self, link: str, sent: float) -> bool:
        """Whether it arrives so late that whoever acts now cannot know of it: another one, or in another life."""
        is_late = self._simulation.loop.time() - sent > GIVEN_UP
        return is_late and (len(self._links) > 1 or sent < self._started[link.partition(" ")[0]])

    def _wrong(self, state: State, pod: PodFacts) -> str:
        zone = state.zones[pod.zone]
        seen = next(one for one in state.of(pod.zone) if one.uid == pod.uid)
        others = [other for other in state.zones if other != pod.zone and state.unavailable(other)]
        mends = seen.cannot_become_ready and all(map(state.waits_for_its_rollout, others))
        if others and not mends:
            return f"{', '.join(others)} is not ready"
        gone = {one: name for at, name, one in self._deleted if at >= state.at and one != pod.uid}
        mine = [one for one in state.of(pod.zone) if one.uid in gone and not one.is_going]
        by_us = sum(one.is_ready for one in mine)
        if seen.is_ready and state.unavailable(pod.zone) + by_us + 1 > zone.limit:
            return f"{state.unavailable(pod.zone)} and {by_us} more of {pod.zone} are unavailable, of {zone.limit}"
        holders = [one for one in state.of(pod.zone) if one.revision == zone.revision or one.is_going]
        given = len(mine) + self._not_back(state, pod.zone)
        if len(holders) + given >= zone.limit and not any(one.is_ready for one in holders):
            return f"{len(holders)} and {given} more of {pod.zone} have a revision that none has proven"
        return ""

    def _not_back(self, state: State, zone: str) -> int:
        """How many pods that were deleted are gone, and have not come back yet."""
        names = {name for at, name, _ in self._deleted if at < state.at and name.startswith(f"{zone}-")}
        return len((names & set(state.next_created(zone))) - state.pods.keys())


def _limit(found: StatefulSet) -> int:
    text = found.metadata.annotations.get("rollout-max-unavailable", "1")
    return int(text) if text.isdecimal() and int(text) > 0 else 1


def _is_going(change: Change) -> bool:
    return "deletionTimestamp" in msgspec.json.decode(change.version.body)["metadata"]


def _facts(pod: Mapping[str, Any]) -> PodFacts:
    meta, status = pod["metadata"], pod.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    waits = [one.get("state", {}).get("waiting", {}).get("reason") for one in status.get("containerStatuses", ())]
    is_going = "deletionTimestamp" in meta
    unschedulable = conditions.get("PodScheduled", {}).get("reason") == "Unschedulable"
    ended = status.get("phase") in ("Failed", "Succeeded")
    return PodFacts(
        meta["uid"],
        meta["labels"].get("zone", ""),
        meta["labels"].get("controller-revision-hash", ""),
        not is_going and conditions.get("Ready", {}).get("status") == "True",
        not is_going and (any(reason in STUCK for reason in waits) or unschedulable or ended),
        is_going,
    )
