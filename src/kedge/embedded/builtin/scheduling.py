"""Scheduling: what PriorityClasses and RuntimeClasses have beyond their schema."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.amounts import not_negative
from kedge.embedded.builtin.causes import IMMUTABLE, forbidden, one_of, required, wrong
from kedge.embedded.builtin.filling import struct
from kedge.embedded.rules import Untyped
from kedge.kube.errors import Cause

complete_priority_class = struct({"value": 0, "preemptionPolicy": "PreemptLowerPriority"})

HIGHEST_FOR_USERS = 1_000_000_000
OF_THE_SYSTEM = {"system-cluster-critical": 2 * HIGHEST_FOR_USERS, "system-node-critical": 2 * HIGHEST_FOR_USERS + 1000}


def priority_problems(priority: Untyped) -> Iterator[Cause]:
    """What is wrong with a PriorityClass: the highest, and names like theirs, are the system's."""
    name, value = priority["metadata"].get("name", ""), priority["value"]
    if name.startswith("system-"):
        if name not in OF_THE_SYSTEM:
            why = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            yield forbidden("metadata.name", why)
    elif value > HIGHEST_FOR_USERS:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_FOR_USERS}")
    yield from one_of("preemptionPolicy", priority["preemptionPolicy"], ("PreemptLowerPriority", "Never"))


def priority_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old["value"] != new["value"]:
        yield forbidden("value", "may not be changed in an update.")
    if old["preemptionPolicy"] != new["preemptionPolicy"]:
        yield wrong("preemptionPolicy", new["preemptionPolicy"], IMMUTABLE)


def runtime_problems(runtime: Untyped) -> Iterator[Cause]:
    """What is wrong with a RuntimeClass."""
    if not runtime.get("handler"):
        yield required("handler")
    else:
        yield from checks.label("handler", runtime["handler"])
    for name, text in runtime.get("overhead", {}).get("podFixed", {}).items():
        yield from not_negative(f"overhead.limits[{name}]", text)  # as Kubernetes calls it


def runtime_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old.get("handler") != new.get("handler"):
        yield wrong("handler", new.get("handler", ""), IMMUTABLE)
