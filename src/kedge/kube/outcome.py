"""Outcome: what a reconcile has to say when it comes to its end."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kedge.kube.metrics import REQUEUE, REQUEUE_AFTER, SUCCESS


class Outcome(Struct, frozen=True):
    """`Outcome.done`, `Outcome.again(after=seconds)` or `Outcome.not_yet`.

    * done: nothing more to do until something changes;
    * again: look again then, even if nothing changes (an earlier change comes first, and is asked anew);
    * not_yet: what must be seen cannot be seen yet; look again soon. Not an error.
    """

    result: str
    after: float = 0.0

    done: ClassVar[Outcome]
    not_yet: ClassVar[Outcome]

    @staticmethod
    def again(*, after: float) -> Outcome:
        if not after > 0:
            raise ValueError(f"after is {after}, which would never rest: say how many seconds from now")
        return Outcome(REQUEUE_AFTER, after)


Outcome.done = Outcome(SUCCESS)
Outcome.not_yet = Outcome(REQUEUE)
