"""State drawing: `docs/batch-states.md` from the tables of the state machine.

    PYTHONPATH=src python tools/state_drawing.py     # writes it

A test holds the page to this, so that it cannot drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kedge.api.oam.rollout_status import BatchState, RollingState
from kedge.plan.batching.states import BATCH_TABLE, ENDED, ROLLOUT_TABLE, RolloutEvent, RolloutState, Transition

PAGE = Path(__file__).parents[1] / "docs" / "batch-states.md"
BEGIN, END = "<!-- drawn by tools/state_drawing.py -->", "<!-- end of the drawing -->"
FROM_ANYWHERE = (RolloutEvent.modified, RolloutEvent.deleted, RolloutEvent.failed)
"""Events that would be an arrow from nearly every state: they are a table."""


def drawn() -> str:
    """What stands between the two marks of the page."""
    return "\n".join([BEGIN, "", "```mermaid", "stateDiagram-v2", *_lines(), "```", "", *_rows(), "", END])


def _lines() -> Iterator[str]:
    yield f"    [*] --> {RollingState.locating}"
    for (state, event), transition in ROLLOUT_TABLE.items():
        if event not in FROM_ANYWHERE:
            yield f"    {state} --> {transition.state.rolling}: {event}"
    yield from _batch_lines()
    for state in sorted(ENDED):
        yield f"    {state} --> [*]"


def _batch_lines() -> Iterator[str]:
    inside = [row for row in BATCH_TABLE.items() if row[1].state.rolling is RollingState.rolling]
    outside = [row for row in BATCH_TABLE.items() if row[1].state.rolling is not RollingState.rolling]
    yield f"    state {RollingState.rolling} {{"
    yield f"        [*] --> {BatchState.initializing}"
    for (state, event), transition in inside:
        yield f"        {state} --> {transition.state.batch}: {event}"
    yield "    }"
    for (state, event), transition in outside:
        yield f"    {state} --> {transition.state.rolling}: {event}"


def _rows() -> Iterator[str]:
    yield "| event | in these states | leads to |"
    yield "|---|---|---|"
    for event in FROM_ANYWHERE:
        for to in dict.fromkeys(found for (_, one), found in ROLLOUT_TABLE.items() if one is event):
            states = [f"`{state}`" for (state, one), found in ROLLOUT_TABLE.items() if one is event and found == to]
            yield f"| `{event}` | {', '.join(states)} | `{to.state.rolling}`{_forgets(to)} |"


def _forgets(transition: Transition) -> str:
    return ", and begins anew" if transition == Transition(RolloutState(RollingState.locating), resets=True) else ""


def redrawn(page: str) -> str:
    """The page with the drawing of today."""
    before, _, rest = page.partition(BEGIN)
    return before + drawn() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(redrawn(PAGE.read_text()))
