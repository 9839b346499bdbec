"""What users are told meanwhile: after every write to the hub, `kedge explain` of each placement contradicts neither
itself nor what the members have reported.

Whoever asks a hub reads one kind of objects after the other. So each kind is as it was at some moment of the last few
writes, and that is what the explanation is held to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from kedge.api.cluster import MemberCluster
from kedge.api.fleet import PARENT_NAMESPACE, PARENT_PLACEMENT
from kedge.api.placement_kinds import CLUSTER
from kedge.api.work import Work
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.plan.explaining.placed_objects import without_manifests
from kedge.plan.explaining.story import tell
from kedge.plan.state import State
from kedge.simulate.simulation import Simulation
from simulate.promises import Promises
from support.explained import available_by_works, contradiction

PROMISE = "an explanation contradicts neither itself nor the facts"
EVERY = 3  # writes
MOMENTS = 6  # as many writes may lie between the first and the last that is read
_READ: Mapping[str, Any] = {
    kind.resource.plural: kind
    for kind in (
        *(CLUSTER.placement, CLUSTER.binding, CLUSTER.resource_snapshot, CLUSTER.policy_snapshot, CLUSTER.run),
        *(Work, MemberCluster),
    )
}
Objects = Mapping[str, Any]


class Explanations:
    """Asks for an explanation of every placement again and again."""

    def __init__(self, simulation: Simulation, promises: Promises) -> None:
        self._simulation = simulation
        self._promises = promises
        self._rng = simulation.rng("explanations")
        self._moments: dict[str, deque[Objects]] = {plural: deque([{}], maxlen=MOMENTS) for plural in _READ}
        self._writes = 0
        simulation.always(PROMISE, self._ask)

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        plural = kind.resource.plural
        if server != "hub" or plural not in _READ:
            return ""
        self._note(plural, change)
        if self._promises.restores.is_underway:
            self._forget_moments()  # nobody reads half of one history and half of another
            return ""
        self._writes += 1
        if self._writes % EVERY:
            return ""
        read = {name: self._rng.choice(moments) for name, moments in self._moments.items()}
        placements = read[CLUSTER.placement.resource.plural].values()
        return next(filter(None, (self._wrong(placement, read) for placement in placements)), "")

    def _note(self, plural: str, change: Change) -> None:
        """Every kind has its moments, whichever kind was written."""
        for name, moments in self._moments.items():
            now = dict(moments[-1])
            if name == plural and change.type == "DELETED":
                now.pop(change.version.key, None)
            elif name == plural:
                found = msgspec.json.decode(change.version.body, type=_READ[plural])
                now[change.version.key] = without_manifests(found) if isinstance(found, Work) else found
            moments.append(now)

    def _forget_moments(self) -> None:
        for moments in self._moments.values():
            now = moments[-1]
            moments.clear()
            moments.append(now)

    def _wrong(self, placement: Any, read: Mapping[str, Objects]) -> str:
        def own(kind: Any) -> list[Any]:
            labels = ((one, one.metadata.labels) for one in read[kind.resource.plural].values())
            mine = ((one, found) for one, found in labels if found.get(PARENT_PLACEMENT) == placement.metadata.name)
            return [one for one, found in mine if PARENT_NAMESPACE not in found]

        bindings, works = own(CLUSTER.binding), own(Work)
        runs = read[CLUSTER.run.resource.plural].values()
        story = tell(
            placement,
            bindings,
            works,
            [one.metadata for one in own(CLUSTER.resource_snapshot)],
            policies=own(CLUSTER.policy_snapshot),
            members={one.metadata.name: one for one in read[MemberCluster.resource.plural].values()},
            runs=[one for one in runs if one.spec.placement_name == placement.metadata.name],
            now=self._simulation.clock.now(),
        )
        waits = any(place.state is State.waiting for place in story.places)
        self._simulation.counts["promise", PROMISE, "tight" if waits else "asked"] += 1
        return contradiction(story, available_by_works(bindings, works))
