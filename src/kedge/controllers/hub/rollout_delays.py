"""Rollout delays: how often a large placement is looked at, and when messages on its bindings are written.

Whoever waits for a cluster that moves should not have to wait for messages about the others. So messages that nobody
acts on are written once they have been the same for a while, and not while clusters move.
"""

from __future__ import annotations

from typing import Final

from kedge.controllers.throttle import Throttle
from kedge.kube.queue import Key

LOOK_PER_CLUSTER: Final = 0.0002  # seconds after a look, for each cluster: a look costs about a tenth of that
SMALL: Final = 50  # placements on so many clusters are looked at without delay
MESSAGES_AFTER: Final = 2.0  # seconds: nobody reads what is true for less
FEW: Final = 3  # so many messages are written sooner
FEW_MESSAGES_AFTER: Final = 0.5  # seconds
MESSAGES_AT_MOST: Final = 5  # so many times that, for messages that keep changing
QUIET_AFTER_MOVE: Final = 0.1  # of `MESSAGES_AFTER`: for so long after a move no message is written
QUIET_AT_MOST: Final = 5  # so many times that, where moves follow one another


class RolloutDelays:
    """Of the placements of one controller."""

    def __init__(self, messages_after: float = MESSAGES_AFTER) -> None:
        """Many messages are written once they have been the same for so many seconds."""
        self._looks = Throttle(LOOK_PER_CLUSTER)
        self._messages = Throttle(messages_after, at_most=MESSAGES_AT_MOST)
        self._moves = Throttle(QUIET_AFTER_MOVE * messages_after, at_most=QUIET_AT_MOST)

    def before_look(self, key: Key, clusters: int) -> float:
        """Seconds until so many clusters are looked at again; 0 to look now, which is noted."""
        wait = self._looks.remaining(key)
        if not wait and clusters > SMALL:
            self._looks.restart(key, clusters * LOOK_PER_CLUSTER)
        return wait

    def moved(self, key: Key) -> None:
        """Something moves now."""
        self._moves.restart(key)

    def after_move(self, key: Key) -> float:
        """Seconds in which no message is written because something moved; 0 if long enough."""
        return self._moves.remaining(key)

    def before_messages(self, key: Key, messages: tuple[str, ...]) -> float:
        """Seconds until messages that differ from those written have been the same for long enough."""
        if not messages:
            self._messages.reset(key)
            return 0.0
        seconds = min(self._messages.seconds, FEW_MESSAGES_AFTER) if len(messages) <= FEW else None
        return self._messages.wait(key, hash(messages), seconds=seconds)

    def wrote_messages(self, key: Key) -> None:
        """All messages are written."""
        self._messages.reset(key)

    def forget(self, key: Key) -> None:
        for throttle in (self._looks, self._messages, self._moves):
            throttle.reset(key)
