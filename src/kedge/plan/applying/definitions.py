"""Definitions: kinds that come with the very Work that uses them.

Their objects cannot be written before the member serves them. That takes a moment, and is no failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kedge.plan.applying.manifests import Misread, Placed
from kedge.plan.applying.reporting import Result

SERVED_WITHIN: Final = 10.0
"""Seconds after which what waits for its definition has failed after all."""

_LOOK_AGAIN: Final = 0.2


def wait_for_definitions(read: Iterable[Placed | Misread], results: Sequence[Result], age: float) -> float | None:
    """Seconds to wait before saying anything of a Work begun so long ago; None if there is nothing to wait for.

    A definition that becomes established is an event; that the member serves it follows soon, and is none.
    """
    read = tuple(read)
    unknown = {(one.identifier.group, one.identifier.kind) for one in read if isinstance(one, Misread) and one.unknown}
    defining = {one.identifier.ordinal for one in read if isinstance(one, Placed) and _defines(one) in unknown}
    verdicts = [one.verdict for one in results if one.identifier.ordinal in defining and one.verdict is not None]
    left = SERVED_WITHIN - age
    if not verdicts or left <= 0:
        return None
    return min(left, _LOOK_AGAIN) if all(verdict.available for verdict in verdicts) else left


def _defines(one: Placed) -> tuple[str, str] | None:
    """The group and kind that a definition defines."""
    if one.resource.plural != "customresourcedefinitions":
        return None
    spec = one.manifest.get("spec") or {}
    return spec.get("group", ""), (spec.get("names") or {}).get("kind", "")
