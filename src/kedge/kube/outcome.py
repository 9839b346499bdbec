"""Outcome: the result of a reconcile."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kedge.kube.metrics import REQUEUE, REQUEUE_AFTER, SUCCESS


class Outcome(Struct, frozen=True):
    """`Outcome.done`, `Outcome.again(after=seconds)` or `Outcome.not_yet`.

    * done: nothing to do until something changes;
    * again: reconcile again after this time, even if nothing changes; an earlier change comes first;
    * not_yet: something that is needed cannot be seen yet; reconcile again soon. Not an error.
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
