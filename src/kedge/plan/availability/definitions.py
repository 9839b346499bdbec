"""CustomResourceDefinitions: established, under the names they ask for."""

from __future__ import annotations

from kedge.plan.availability.reading import Object, because, condition, name_of, says, text
from kedge.plan.availability.verdict import Verdict, available, not_available

_WANTED = {"NamesAccepted": "does not have its names accepted", "Established": "is not established"}


def judge(obj: Object) -> Verdict:
    for kind, problem in _WANTED.items():
        if not says(obj, kind, "True"):
            why = because(text(condition(obj, kind), "message"))
            return not_available(f"{name_of(obj)} {problem}{why or ' yet'}")
    return available(f"{name_of(obj)} is established")
