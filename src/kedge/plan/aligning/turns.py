"""Turns: when each cluster of a Karmada is let through, and what is kept of that.

Karmada writes a new template to every cluster at once. So every cluster is suspended, and let through one by one:

1. a cluster is granted a spec: an override of its strategy, replicas and number. Its Work, still suspended, shows it;
2. its turn begins: it is let through, and what is in its Work reaches it;
3. when it acknowledges the spec, it is suspended again;
4. when its Work is known to be suspended, and nothing else was in it meanwhile, the turn is over.

During a turn somebody may change the template, and Karmada sends it through. So until the turn is over a cluster counts
with everything its numbers allow, whatever it has proven. If something else was in the Work, that may have reached the
cluster and counts until the cluster has had another turn. A cluster has one turn at a time, and none begins before the
one before it is over: so it is clear what is acknowledged even if a cluster does not report the number of its spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from kedge.plan.aligning.ledger_text import Ledger

TAKEN: Final = -2
"""Instead of a generation, of a turn that somebody else began."""


class Turn(Struct, frozen=True, array_like=True):
    """The turn of one cluster."""

    generation: int
    """That of its Work before it was let through."""
    reported: int
    """The generation of the workload that the cluster had reported then; what it acknowledges is a later one."""
    digest: str
    """Of what was in its Work then."""
    is_open: bool = True
    """Whether it is let through now."""


class TurnRecord(Struct, frozen=True):
    """What is kept of a binding."""

    ledger: Ledger = Ledger()
    turns: Mapping[str, Turn] = {}


class TurnCode(StrEnum):
    """What a cluster waits for in its turn, and before it begins."""

    no_work = "NoWork"
    """Karmada has not made its Work yet."""
    work_unseen = "WorkUnseen"
    """Its Work is new, and Karmada does not know yet that it is suspended."""
    granted = "Granted"
    """Its Work does not show yet what it was granted."""
    let_through = "LetThrough"
    """It has not acknowledged yet what it was granted."""
    closing = "Closing"
    """It is to be suspended again, and Karmada does not know that yet."""
    taken_over = "TakenOver"
    """Somebody else let it through: it is to be suspended, and has to report what it has."""


def turns_text(turns: Mapping[str, Turn]) -> str:
    """The annotation, in the order of clusters."""
    return msgspec.json.encode(dict(sorted(turns.items()))).decode()


def read_turns(written: str) -> dict[str, Turn]:
    """The turns of an annotation. Raises ValueError if it cannot be read: nothing is guessed."""
    try:
        return msgspec.json.decode(written or "{}", type=dict[str, Turn])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"the turns of the alignment cannot be read: {error}") from None
