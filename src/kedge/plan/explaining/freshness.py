"""Freshness: whether what a placement says of itself is about the hub as it is now.

A status speaks of a revision, and of what was there when it was written. A hub that stands still, or is slow, leaves it
as it was: so what the placement selects is compared with what that revision holds, and the hub's Lease is looked at.

    story = against_selection(against_placement(story, placement), selection, held)
    story = against_lease(story, silent_since(lease, now))
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from kedge.api.coordination import Lease
from kedge.api.fleet import PINNED
from kedge.api.placement_kinds import Placement
from kedge.api.times import parse_micro_time
from kedge.plan.explaining.story import Story
from kedge.plan.selecting.selection import Selection
from kedge.plan.state import State

DURATION: Final = 15
"""Seconds for which a lease holds that does not say so."""


def against_placement(story: Story, placement: Placement) -> Story:
    """The story of a placement that is this now: it may have been changed since it was told of."""
    pinned = placement.metadata.annotations.get(PINNED, "")
    if not story.is_done or (story.generation, story.pinned) == (placement.metadata.generation, pinned):
        return story
    return replace(story, state=State.moving, why="it was changed, and the hub has not caught up yet")


def needs_selection(story: Story) -> bool:
    """Whether what is selected decides: not of what is not done, nor of a placement that is held at a revision."""
    return story.is_done and not story.pinned


def against_selection(story: Story, selection: Selection, held: str) -> Story:
    """The story of a placement that selects this now. `held`: the digest of what the revision it tells of holds."""
    if not needs_selection(story):
        return story
    if not selection.is_known:
        why = selection.problem or selection.pending
        doubt = f"it cannot be told whether revision {story.index} is what is on the hub now: {why}"
        return replace(story, state=State.unknown, why=doubt, doubt=doubt, is_readable=False)
    if selection.digest == held:
        return story
    who = "no staged update run has brought it yet" if story.is_external else "the hub has not caught up yet"
    return replace(
        story, state=State.moving, why=f"what it selects has changed since revision {story.index}, and {who}"
    )


def against_lease(story: Story, since: datetime | None) -> Story:
    """The story as it is told by a hub that was not heard from since then; None is a hub that is."""
    doubt = silence(since)
    if not doubt:
        return story
    if not story.is_done:
        return replace(story, doubt=doubt)
    return replace(story, state=State.unknown, why=doubt, doubt=doubt)


def silence(since: datetime | None) -> str:
    """What there is to say of a hub that was not heard from since then; nothing of one that is."""
    if since is None:
        return ""
    return f"the hub was not heard from since {since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}: what it says may be old"


def silent_since(lease: Lease | None, now: datetime) -> datetime | None:
    """Since when a hub seems to be silent; None if it is not, or has no Lease to tell by.

    The holder's clock need not be ours. One that is far ahead tells as little as one that is far behind: whether the
    hub is silent is known for certain only if its Lease does not change for as long as it holds.
    """
    if lease is None or lease.spec.renew_time is None:
        return None
    renewed = parse_micro_time(lease.spec.renew_time)
    is_released = not lease.spec.holder_identity
    return renewed if is_released or abs(now - renewed) > holds_for(lease) else None


def holds_for(lease: Lease) -> timedelta:
    """For how long others leave a lease to who holds it."""
    return timedelta(seconds=lease.spec.lease_duration_seconds or DURATION)
