"""Moments with exactly six digits after the second, as Lease and Event want them.

Fields hold the text. kube-apiserver refuses such a field without its fraction, and a moment on the full second would
be written without one: a failure once in a million renewals, and at every one in simulated time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias

MicroTime: TypeAlias = str


def format_micro_time(moment: datetime) -> MicroTime:
    """A moment for the wire. Assumes that it knows its time zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_micro_time(text: MicroTime) -> datetime:
    """The moment a text means. Refuses (ValueError) one without a time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z")
    return moment.astimezone(UTC)
