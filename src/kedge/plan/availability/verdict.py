"""Verdict: whether an object is available, whether that can be known at all, and why, in a sentence."""

from __future__ import annotations

from msgspec import Struct


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
