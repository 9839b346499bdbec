"""Keeper: all of the housekeeping of one server, together."""

from __future__ import annotations

from random import Random

from kedge.embedded.keeping.collector import Collector
from kedge.embedded.keeping.emptying import Emptying
from kedge.embedded.keeping.forgetting import Forgetting
from kedge.embedded.keeping.furnishing import Furnishing
from kedge.embedded.keeping.volumes import Volumes
from kedge.embedded.server import Server

SOON = (0.001, 0.01)  # seconds between a write and what it is the cause of


class Keeper:
    """Keeps house from `start` to `stop`. `authority` is the PEM that pods are told to trust."""

    def __init__(self, server: Server, *, rng: Random, authority: str = "") -> None:
        def soon() -> float:
            return rng.uniform(*SOON)

        self._parts = (
            Collector(server, soon),
            Emptying(server, soon),
            Furnishing(server, soon, authority),
            Volumes(server, soon),
            Forgetting(server),
        )

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        for part in self._parts:
            part.stop()
