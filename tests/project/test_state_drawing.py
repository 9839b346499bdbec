"""The drawing of a rollout's states is the one that its tables give."""

import state_drawing
from kedge.api.oam.rollout_status import BatchState, RollingState
from kedge.plan.batching.states import RolloutEvent


def test_the_page_shows_the_tables_as_they_are() -> None:
    page = state_drawing.PAGE.read_text()
    assert page == state_drawing.redrawn(page), "run: PYTHONPATH=src python tools/state_drawing.py"


def test_every_state_and_event_is_in_the_drawing() -> None:
    drawn = state_drawing.drawn()
    shown = [state for state in BatchState if state is not BatchState.verify_failed]  # no state to be in: it failed
    assert [name for name in (*RollingState, *RolloutEvent, *shown) if name not in drawn] == []
