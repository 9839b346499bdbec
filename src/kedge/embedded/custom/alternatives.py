"""Alternatives: `anyOf`, `oneOf`, `allOf` and `not`, over checks that were made from them.

Of several that all fail, the one with the fewest findings is told, the first of them if they are as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kedge.embedded.custom.correlation import NOTHING
from kedge.embedded.custom.findings import FINE, Check, Finding, none_fits


def any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        found = []
        for one in checks:
            if not (wrong := one(value, NOTHING)):
                return FINE
            found.append(wrong)
        return [none_fits("must validate at least one schema (anyOf)"), *min(found, key=len)]

    return check


def one_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        found = [one(value, NOTHING) for one in checks]
        fitting = sum(not wrong for wrong in found)
        if fitting == 1:
            return FINE
        text = "must validate one and only one schema (oneOf). "
        if fitting:
            return [none_fits(f"{text}Found {fitting} valid alternatives")]
        return [none_fits(f"{text}Found none valid"), *min(found, key=len)]

    return check


def all_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        found = [wrong for one in checks if (wrong := one(value, NOTHING))]
        if not found:
            return FINE
        none = ". None validated" if len(found) == len(checks) else ""
        said = none_fits(f"must validate all the schemas (allOf){none}")
        return [*(finding for wrong in found for finding in wrong), said]

    return check


def none_of(never: Check) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        return FINE if never(value, NOTHING) else [none_fits("must not validate the schema (not)")]

    return check
