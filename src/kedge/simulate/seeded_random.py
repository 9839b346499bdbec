"""Chance: every random number of a simulation, from one seed, by the name of what it is for.

    Chance(7).of("link", "hub", "delays")     # the same Random in every run with this seed

Each use has a source of its own, so that one more who draws, or one who draws more, changes nothing for the others.
Names are hashed by a fixed function: Python's own differs from process to process.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random

from msgspec import Struct


class Chance(Struct, frozen=True):
    """The seed of a simulation, and what grows from it."""

    seed: int

    def number(self, *names: str | int) -> int:
        """A number of 64 bits for this use."""
        path = "\0".join(map(str, (self.seed, *names)))
        return int.from_bytes(blake2b(path.encode(), digest_size=8).digest())

    def of(self, *names: str | int) -> Random:
        """A source of random numbers for this use, at its beginning."""
        return Random(self.number(*names))
