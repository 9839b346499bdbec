"""What a rollout promises, judged from the servers' own stores, write by write.

Availability is what the hub's bindings prove at their own generation; what runs is what the members' Deployments say.
Numbers that a user has just changed count both ways for a while: nobody can act on an edit before hearing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kedge.api.apps import Deployment
from kedge.api.binding import BindingState, ClusterResourceBinding
from kedge.api.condition import is_true
from kedge.api.numbers import resolve
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.reasons import AVAILABLE
from kedge.api.work import Work
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.world import Simulation

HEARD_WITHIN = 600.0  # seconds until an edit has surely been heard of
BAD = "app:bad"


class Promises:
    """Follows every write, and says at once when one breaks a promise."""

    def __init__(self, simulation: Simulation, members: Sequence[str], budget: Mapping[str, Any]) -> None:
        self._simulation = simulation
        self._members = members
        self._budget = budget
        self._bindings: dict[str, ClusterResourceBinding] = {}
        self._images: dict[str, str] = {}  # by member
        self._was_good: set[str] = set()  # members where something good was available
        self._works: dict[str, Work] = {}
        self._numbers: list[tuple[float, int]] = []  # when wanted, how many clusters
        simulation.always("a rollout stays within its budget", self._ask)

    # Following

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        resource = kind.resource
        if server == "hub" and resource.plural == ClusterResourceBinding.resource.plural:
            return self._of_binding(change)
        if server == "hub" and resource.plural == ClusterResourcePlacement.resource.plural:
            self._note_number(change)
        elif server == "hub" and resource.plural == Work.resource.plural:
            _keep(self._works, change, Work)
        elif resource == Deployment.resource and server != "hub":
            return self._of_deployment(server, change)
        return ""

    def _of_binding(self, change: Change) -> str:
        before = self._bindings.get(change.version.key)
        now = _keep(self._bindings, change, ClusterResourceBinding)
        if before is None or now is None:
            return ""
        others = [one for name, one in self._bindings.items() if name != change.version.key]
        if (before.spec.state, now.spec.state) == (BindingState.scheduled, BindingState.bound):
            return self._of_added(now, others)
        moved = before.spec.resource_snapshot_name != now.spec.resource_snapshot_name
        leaves = before.metadata.deletion_timestamp is None and now.metadata.deletion_timestamp is not None
        if (moved or leaves) and _is_available(before):
            return self._of_disrupted(now, others)
        return ""

    def _of_added(self, added: ClusterResourceBinding, others: Sequence[ClusterResourceBinding]) -> str:
        holding = [one for one in others if one.spec.state != BindingState.scheduled]
        most = max(number + resolve(self._budget["maxSurge"], number, round_up=True) for number in self._recent())
        if len(holding) < most:
            return ""
        return f"{added.spec.target_cluster} is added while {_names(holding)} hold resources, and {most} may"

    def _of_disrupted(self, moved: ClusterResourceBinding, others: Sequence[ClusterResourceBinding]) -> str:
        left = [one for one in others if _is_available(one)]
        least = min(
            number - resolve(self._budget["maxUnavailable"], number, round_up=True) for number in self._recent()
        )
        if len(left) >= least:
            return ""
        return f"{moved.spec.target_cluster} is disturbed while only {_names(left)} are available, and {least} must be"

    def _of_deployment(self, member: str, change: Change) -> str:
        """Bad releases reach no more clusters that worked before than may be unavailable."""
        if change.type == "DELETED":
            self._images.pop(member, None)
            return ""
        found = msgspec.json.decode(change.version.body, type=Deployment)
        containers = found.spec.template.spec.containers
        self._images[member] = containers[0].image if containers else ""
        if self._images[member] != BAD:
            self._was_good.add(member)
        broken = sorted(name for name, image in self._images.items() if image == BAD and name in self._was_good)
        most = max(resolve(self._budget["maxUnavailable"], number, round_up=True) for number in self._recent())
        return f"{', '.join(broken)} have the bad release, and {most} may" if len(broken) > most else ""

    def _note_number(self, change: Change) -> None:
        found = msgspec.json.decode(change.version.body, type=ClusterResourcePlacement)
        number = found.spec.policy.number_of_clusters if found.spec.policy else None
        if number is not None and (not self._numbers or self._numbers[-1][1] != number):
            self._numbers.append((self._simulation.loop.time(), number))

    def _recent(self) -> list[int]:
        """How many clusters are wanted, and were until lately."""
        since = self._simulation.loop.time() - HEARD_WITHIN
        over = [at for at, _ in self._numbers[1:]] + [float("inf")]
        return [number for (_, number), until in zip(self._numbers, over, strict=True) if until >= since]

    # The end

    def arrived(self, image: str) -> bool:
        return not self.unlike(image)

    def unlike(self, image: str) -> str:
        """How the fleet differs from one that has arrived."""
        number = self._numbers[-1][1]
        bound = {one.spec.target_cluster for one in self._bindings.values()}
        if len(bound) != number:
            return f"{_listed(bound)} are bound, and {number} are wanted"
        if not all(_is_available(one) for one in self._bindings.values()):
            return f"not all of {_listed(bound)} are available"
        if (wrong := {name: found for name, found in self._images.items() if found != image}) or set(
            self._images
        ) != bound:
            return f"{_listed(bound)} should run {image}, and {wrong or self._images} do"
        works = {key.partition("/")[0].removeprefix("fleet-member-") for key in self._works}
        return "" if works == bound else f"there are Works for {_listed(works)}"


def _keep(known: dict[str, Any], change: Change, kind: type[Any]) -> Any:
    if change.type == "DELETED":
        known.pop(change.version.key, None)
        return None
    known[change.version.key] = msgspec.json.decode(change.version.body, type=kind)
    return known[change.version.key]


def _is_available(binding: ClusterResourceBinding) -> bool:
    if binding.metadata.deletion_timestamp is not None:
        return False
    return is_true(binding.status.conditions, AVAILABLE, generation=binding.metadata.generation)


def _names(bindings: Iterable[ClusterResourceBinding]) -> str:
    return _listed(one.spec.target_cluster for one in bindings)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
