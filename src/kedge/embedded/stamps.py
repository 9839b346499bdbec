"""Stamps: what the server puts on an object that nobody could have told it: a uid, the time, the end of a name."""

from __future__ import annotations

from datetime import UTC, timedelta
from random import Random
from uuid import UUID

from kedge.kube.clock import Clock

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes': no vowels, so no words
_LONGEST_START = 58


class Stamps:
    """All that is random or of the clock in a server, from one seed and one clock."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng

    def uid(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))

    def name(self, start: str) -> str:
        """A name that begins so: what `generateName` asks for."""
        return start[:_LONGEST_START] + "".join(self._rng.choices(_LETTERS, k=5))

    def now(self, *, plus: int = 0) -> str:
        """The time, or so many seconds after it, as objects carry it."""
        moment = self._clock.now().astimezone(UTC) + timedelta(seconds=plus)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def watch_seconds(self) -> float:
        """How long a watch that does not say so lasts: they must not all end together."""
        return self._rng.uniform(1800.0, 3600.0)
