"""Last applied: the annotation in which client-side apply remembers what it applied.

For whoever applies as `kubectl`, and nobody else: fields that are as the annotation says are no conflict, so that one
can move from client-side to server-side apply; and the annotation is kept up to date, so that one can move back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kedge.embedded.ownership import fields
from kedge.embedded.ownership.compare import applied, compare
from kedge.embedded.ownership.fields import LEAF, Fields, difference, union
from kedge.embedded.ownership.fitting import fits
from kedge.embedded.ownership.terms import Terms, Untyped

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MOST = 256 * 1024  # bytes that all annotations of an object may have together


def excused(terms: Terms, live: Untyped, manager: str) -> Fields:
    """What may change though others own it: it is as this manager's client-side apply left it."""
    said = _decoded(_annotations(live).get(ANNOTATION, "")) if manager == KUBECTL else None
    if said is None or said.get("apiVersion") != terms.api_version or not fits(terms.shape, said):
        return LEAF
    changes = compare(terms.shape, said, live)
    return difference(applied(terms.shape, said), union(changes.given, changes.removed))


def kept_up(obj: Untyped, config: Untyped, manager: str) -> Untyped:
    """The object with the annotation saying what was applied, if it has one."""
    there = _annotations(obj)
    if manager != KUBECTL or not there.get(ANNOTATION):
        return obj
    renewed = {**there, ANNOTATION: _written(config)}
    if sum(len(name) + len(value) for name, value in renewed.items()) > _MOST:
        del renewed[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": renewed}}


def _written(config: Untyped) -> str:
    there = _annotations(config)
    if ANNOTATION in there:
        left = {name: value for name, value in there.items() if name != ANNOTATION}
        config = {**config, "metadata": {**config["metadata"], "annotations": left}}
    return fields.go_json(config) + "\n"


def _annotations(obj: Untyped) -> dict[str, str]:
    return obj.get("metadata", {}).get("annotations") or {}


def _decoded(annotation: str) -> Untyped | None:
    try:
        found: Any = msgspec.json.decode(annotation)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
