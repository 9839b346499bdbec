"""Verdict: whether an object is available, whether that can be known at all, and why, in a sentence."""

from __future__ import annotations

from msgspec import Struct

from kedge.plan.fields import Object, at, generation, name_of

LONGEST = 500
"""Of what somebody else said, so much is repeated."""


class Verdict(Struct, frozen=True):
    """What is to be said of one object.

    What cannot be tracked counts as available, as Kubernetes took it; a rollout then waits for a time instead.
    """

    available: bool
    trackable: bool
    message: str


def available(message: str) -> Verdict:
    """Proven to do its work."""
    return Verdict(available=True, trackable=True, message=message)


def not_available(message: str) -> Verdict:
    """Not proven, or proven not to."""
    return Verdict(available=False, trackable=True, message=message)


def untrackable(message: str) -> Verdict:
    """There is nothing that would tell."""
    return Verdict(available=True, trackable=False, message=message)


def not_observed(obj: Object) -> str:
    """The sentence for a status that is behind, or not there."""
    seen, now = at(obj, "status", "observedGeneration"), generation(obj)
    if seen is None:
        return f"{name_of(obj)} has no status yet"
    return f"{name_of(obj)} has a status that is behind: it is of generation {seen}, not of {now}"


def because(found: str) -> str:
    """A reason at the end of a sentence, if there is one; of a long one the beginning."""
    shown = found if len(found) <= LONGEST else f"{found[:LONGEST]}…"
    return f": {shown}" if shown else ""


def many(number: int, word: str) -> str:
    """So many of something: `1 replica`, `2 replicas`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
