"""Verbs of placements: what pausing, resuming and unpinning come to, by whether it is paused and rolled back.

A placement is paused by one annotation and rolled back by another, and each verb sees to one of them. A verb does what
it says (exit code 0), finds it done already (0), or refuses and says what to do instead (1).
"""

from __future__ import annotations

from typing import Any

from kedge.api.fleet import PAUSED, PINNED
from kedge.api.placement_kinds import Placement
from kedge.plan.explaining.story import tell
from kedge.plan.verbs import VerbAnswer, refused


def pause(placement: Placement) -> VerbAnswer:
    """Hold it where it is."""
    story = tell(placement)
    if story.is_paused:
        return VerbAnswer(f"{story.path} is paused already")
    what = "the next change waits" if story.is_done else "no further cluster moves"
    return VerbAnswer(
        f"{story.path} is paused: {what} until `kedge resume {story.path}`", _annotations({PAUSED: "true"})
    )


def resume(placement: Placement) -> VerbAnswer:
    """Let it go on to the revision it is to have, which may be an earlier one."""
    story = tell(placement)
    stays = f"rolled back to revision {story.pinned}: `kedge unpin {story.path}` lets it go on to the newest"
    if story.is_paused:
        still = f"; it is still {stays}" if story.pinned else ""
        return VerbAnswer(f"{story.path} goes on{still}", _annotations({PAUSED: None}))
    if story.pinned:
        return refused(f"{story.path} is not paused, it is {stays}")
    return VerbAnswer(f"{story.path} is not paused")


def unpin(placement: Placement, newest: int | None) -> VerbAnswer:
    """Let it go on from an earlier revision to the newest."""
    story = tell(placement)
    if not story.pinned:
        return VerbAnswer(f"{story.path} is not rolled back")
    to = f", to revision {newest}" if newest is not None else ""
    held = f"; it is still paused: `kedge resume {story.path}` lets it go on" if story.is_paused else ""
    return VerbAnswer(
        f"{story.path} is no longer rolled back, and goes to the newest{to}{held}", _annotations({PINNED: None})
    )


def _annotations(given: dict[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": given}}
