"""Division: one budget divided over several shares, by Webster's method (Sainte-Laguë).

House-monotone: a larger budget takes nothing away from anybody. The method of the largest remainder does not promise
that, and would roll units back when a budget grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace


def divide(budget: int, shares: Mapping[str, int], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """How much of the budget each share gets: in proportion to its size, and never more than its size.

    `given` is what shares have already, which counts towards the budget and is never taken back. Of equal claims the
    first by name comes first.
    """
    parts = {name: (given or {}).get(name, 0) for name in sorted(shares)}
    if budget >= sum(max(parts[name], share) for name, share in shares.items()):
        return {name: max(part, shares[name]) for name, part in parts.items()}
    claims = [(_claim(shares[name], part), name) for name, part in parts.items() if part < shares[name]]
    heapify(claims)
    for _ in range(budget - sum(parts.values())):
        if not claims:
            break
        name = claims[0][1]
        parts[name] += 1
        if parts[name] < shares[name]:
            heapreplace(claims, (_claim(shares[name], parts[name]), name))
        else:
            heappop(claims)
    return parts


def _claim(share: int, part: int) -> float:
    """The smaller, the more is owed to the share. Below ten million equal claims are equal, and others differ."""
    return (2 * part + 1) / share
