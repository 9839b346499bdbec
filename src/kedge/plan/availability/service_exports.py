"""ServiceExports: valid, and, unless their weight is 0, without conflict.

The types of the conditions are `Valid` and `Conflict`; `ServiceExportValid` and `ServiceExportConflict`, the names of
the same in documents, are understood too. A change of the weight leaves the generation as it is, so what the conditions
say may be of the weight before; a weight that is none is therefore judged here as well.
"""

from __future__ import annotations

from kedge.plan.availability.reading import Object, at, condition, generation, name_of, text
from kedge.plan.availability.verdict import Verdict, available, not_available

WEIGHT = "networking.fleet.azure.com/weight"
MOST = 1000
_VALID = ("Valid", "ServiceExportValid")
_CONFLICT = ("Conflict", "ServiceExportConflict")


def judge(obj: Object) -> Verdict:
    weight = _weight(obj)
    if weight is None:
        found = at(obj, "metadata", "annotations", WEIGHT)
        return not_available(f"{name_of(obj)} has {found!r} as {WEIGHT}, which must be a whole number from 0 to {MOST}")
    problem = _told(obj, _VALID, "True", "valid")
    if not problem and weight > 0:
        problem = _told(obj, _CONFLICT, "False", "free of conflicts")
    if problem:
        return not_available(f"{name_of(obj)} {problem}")
    return available(f"{name_of(obj)} is valid for export with weight {weight}")


def _weight(obj: Object) -> int | None:
    """Its share of the traffic: 1 unless it says; None if what it says is no weight."""
    found = at(obj, "metadata", "annotations", WEIGHT)
    if found is None:
        return 1
    number = int(found) if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 9 else -1
    return number if 0 <= number <= MOST else None


def _told(obj: Object, types: tuple[str, ...], wanted: str, word: str) -> str:
    """What is wrong with a condition; empty if it says what it should, of this generation."""
    found = condition(obj, *types)
    if found is None:
        return f"does not say yet whether it is {word}"
    if text(found, "status") != wanted:
        return f"is not {word}: {text(found, 'message') or text(found, 'reason')}"
    seen = found.get("observedGeneration")
    return f"does not say yet whether it is {word} since it changed" if seen not in (None, generation(obj)) else ""
