"""Random sources: one of its own for each part of a process, so that what one part draws changes nothing for others."""

from __future__ import annotations

import random


def branch(rng: random.Random) -> random.Random:
    """A random source of its own. It depends on this one alone, so one seed decides all of them."""
    return random.Random(rng.getrandbits(64))
