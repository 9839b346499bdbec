"""Division: one budget divided over several shares, by Webster's method (Sainte-Laguë).

House-monotone: a larger budget takes nothing away from anybody. The method of the largest remainder does not promise
that, and would roll units back when a budget grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction


def divide(budget: int, shares: Mapping[str, int], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """How much of the budget each share gets: in proportion to its size, and never more than its size.

    `given` is what shares have already, which counts towards the budget and is never taken back. Of equal claims the
    first by name comes first.
    """
    parts = {name: (given or {}).get(name, 0) for name in sorted(shares)}
    for _ in range(budget - sum(parts.values())):
        open_ = [name for name in parts if parts[name] < shares[name]]
        if not open_:
            break
        parts[max(open_, key=lambda name: Fraction(shares[name], 2 * parts[name] + 1))] += 1
    return parts
