"""Weather: what goes wrong in a run, drawn from its seed: never everything, and never less than three things."""

from __future__ import annotations

from random import Random

import msgspec

from kedge.simulate.faults import ROUGH, Faults

REQUESTS = (
    *("refused", "lost_request", "lost_response", "late", "slow"),
    *("too_many", "server_error", "unavailable", "conflict"),
    *("unauthorized", "forbidden", "denied"),
)
OTHERS = ("stale", "gone", "dropped", "ended", "silent", "lagging", "partitions", "clock_jumps")
LEAST = 3


def weather(rng: Random) -> Faults:
    """Faults of several kinds, one of requests and one of watches among them; some mild, some wild."""
    kinds = {rng.choice(REQUESTS), rng.choice(OTHERS)}
    kinds.update(rng.sample((*REQUESTS, *OTHERS), rng.randint(LEAST, 9)))
    shares = {kind: getattr(ROUGH, kind) * rng.choice([0.5, 1.0, 1.4]) for kind in sorted(kinds)}
    return msgspec.convert({**shares, "clock_seconds": 600.0, "watch_seconds": (0.0, 120.0)}, Faults)
