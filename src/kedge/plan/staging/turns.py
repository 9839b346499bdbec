"""Turns: which of several runs moves a placement; the others wait."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.dialect import Dialect
from kedge.api.staged import RunState
from kedge.api.twins import Run
from kedge.plan.staging.saying import has_ended, is_initialized
from kedge.plan.staging.step import holds, wanted_state


def ahead_of(run: Run, runs: Iterable[Run], dialect: Dialect) -> str:
    """The run that has the placement, or is to have it, before this one; empty if it is this one's turn.

    One that was asked to stop makes room as soon as it says that it does, and not before: it may be asked to go on in
    the same moment, and would find that it was never stopped. What it began with may never arrive, and another is to
    mend it.
    """
    live = [one for one in runs if not has_ended(one.status) and one.metadata.deletion_timestamp is None]
    ready = [one for one in live if is_initialized(one.status)]
    wanted = [one for one in ready if wanted_state(one, dialect) is RunState.run]
    first = next((one for one in ready if holds(one.status)), wanted[0] if wanted else None)
    return "" if first is None or first.metadata.uid == run.metadata.uid else first.metadata.name
