"""Seeded random: every random number of a simulation comes from one seed, by the name of its use.

    SeededRandom(7).random_for("link", "hub", "delays")     # the same Random in every run with this seed

Each use has a source of its own: a new use, or one that draws more numbers, changes nothing for the others. Names are
hashed by a fixed function, since Python's own differs from process to process.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random

from msgspec import Struct


class SeededRandom(Struct, frozen=True):
    """The seed of a simulation, and the random sources made from it."""

    seed: int

    def number_for(self, *names: str | int) -> int:
        """A 64-bit number for this use."""
        path = "\0".join(map(str, (self.seed, *names)))
        return int.from_bytes(blake2b(path.encode(), digest_size=8).digest())

    def random_for(self, *names: str | int) -> Random:
        """A new source of random numbers for this use."""
        return Random(self.number_for(*names))
