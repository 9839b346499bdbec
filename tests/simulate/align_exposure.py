"""Exposure: how many pods a release that never works gets to, in all members together.

It gets to as many as the budget allows, and to no pod that breaks elsewhere meanwhile. What had it already when users
last changed something counts as well, and so do pods that were missing then: those are created with it. With another
override it is another release: pods that have it without that are old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulate.align_facts import Limits, PodFacts

BAD = "app:bad"
EXPOSED = "a release that never works gets to no more pods than the budget allows"


class Exposure:
    """What had the bad release, and what was missing, whenever the limits changed."""

    def __init__(self, pods: Mapping[str, Mapping[str, PodFacts]]) -> None:
        self._pods = pods
        self._given: dict[float, int] = {}  # by the moment since when some limits are
        self._now: Limits | None = None

    @property
    def bad(self) -> int:
        """How many pods have it now."""
        return sum(self._is_bad(name, pod) for name, pods in self._pods.items() for pod in pods.values())

    def _is_bad(self, member: str, pod: PodFacts) -> bool:
        now = self._now
        is_overridden_since = now is not None and now.image == BAD and pod.template != now.template(member)
        return pod.template[0] == BAD and not is_overridden_since

    def begin(self, now: Limits) -> None:
        """Users have changed something."""
        self._now = now
        missing = sum(max(0, wanted - len(self._pods[name])) for name, wanted in now.replicas.items())
        self._given[now.at] = self.bad + missing

    def lose(self) -> None:
        """Somebody deletes a pod of another release where this one is let through: it comes back with this one."""
        self._given = {since: number + 1 for since, number in self._given.items()}

    def most(self, limits: Sequence[Limits]) -> int:
        """How many pods may have it, by any limits that somebody may go by yet."""
        return max(self._given[one.at] + one.unavailable + one.surge for one in limits)
