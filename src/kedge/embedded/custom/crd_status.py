"""CRD status: the conditions and accepted names of a CRD, from its creation to its deletion.

Pure: each function gives the CRD with its next status. The real server does this in controllers, one write after
another; here `establish` does at once what two of them do. A kind is served while `is_served` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kedge.embedded.custom.crd import has_condition
from kedge.kube.codec import Untyped

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_RESOURCES = ("plural", "singular")
_KINDS = ("kind", "listKind")


def is_served(crd: Untyped) -> bool:
    """Whether its kind is served."""
    return has_condition(crd, "Established")


def establish(crd: Untyped, others: Iterable[Untyped], now: str) -> Untyped:
    """The CRD with the names that other CRDs leave to it; the same object if nothing changes."""
    status = crd.get("status", {})
    if status.get("acceptedNames") == crd["spec"]["names"] and is_served(crd):
        return crd
    accepted, conflict = _names(crd, [one for one in others if _in_same_group(crd, one)])
    good = ("True", "NoConflicts", "no conflicts found")
    conditions = _set(status.get("conditions") or [], "NamesAccepted", *(conflict or good), now)
    if not conflict and not is_served(crd):
        said = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        conditions = _set(conditions, "Established", *said, now)
    elif not any(one["type"] == "Established" for one in conditions):
        conditions = _set(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
    return _with_status(crd, acceptedNames=accepted, conditions=conditions)


def mark_terminating(crd: Untyped, now: str) -> Untyped:
    """A CRD that is being deleted, with a finalizer that holds it. Its deletionTimestamp is set elsewhere."""
    said = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    conditions = crd.get("status", {}).get("conditions") or []
    going = _with_status(crd, conditions=_set(conditions, "Terminating", "True", "InstanceDeletionPending", said, now))
    held = going["metadata"].get("finalizers", [])
    if FINALIZER in held:
        return going
    return {**going, "metadata": {**going["metadata"], "finalizers": [*held, FINALIZER]}}


def with_objects_deleted(crd: Untyped, now: str) -> Untyped:
    """A CRD whose objects are all deleted, without our finalizer."""
    said = ("False", "InstanceDeletionCompleted", "removed all instances")
    if not is_served(crd):
        said = ("False", "NeverEstablished", "resource was never established")
    conditions = _set(crd.get("status", {}).get("conditions") or [], "Terminating", *said, now)
    rest = [name for name in crd["metadata"].get("finalizers", []) if name != FINALIZER]
    metadata = {key: value for key, value in crd["metadata"].items() if key != "finalizers"}
    return {**_with_status(crd, conditions=conditions), "metadata": metadata | ({"finalizers": rest} if rest else {})}


def _in_same_group(crd: Untyped, other: Untyped) -> bool:
    return bool(other["spec"]["group"] == crd["spec"]["group"] and other["metadata"]["name"] != crd["metadata"]["name"])


def _names(crd: Untyped, others: Sequence[Untyped]) -> tuple[Untyped, tuple[str, str, str] | None]:
    """The accepted names, and the conflict that keeps others from being accepted."""
    wanted = crd["spec"]["names"]
    had = {**crd.get("status", {}).get("acceptedNames", {})}
    taken = [one.get("status", {}).get("acceptedNames", {}) for one in others]
    resources = {
        name for one in taken for name in (*(one.get(word) for word in _RESOURCES), *one.get("shortNames", []))
    }
    kinds = {one.get(word) for one in taken for word in _KINDS}
    got, problem = dict(had), None
    for word in ("plural", "singular", "shortNames", "kind", "listKind"):
        if clash := _name_conflict(wanted.get(word), had.get(word), kinds if word in _KINDS else resources):
            problem = ("False", f"{word[0].upper()}{word[1:]}Conflict", clash)
        elif word in wanted:
            got[word] = wanted[word]
    if wanted.get("categories"):
        got["categories"] = wanted["categories"]
    ordered = {word: got[word] for word in (*wanted, *got) if word in got}
    return {word: ordered[word] for word in _IN_ORDER if word in ordered}, problem


_IN_ORDER = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _name_conflict(wanted: Any, had: Any, taken: set[Any]) -> str:
    if isinstance(wanted, list):
        clashes = [f'"{name}" is already in use' for name in wanted if name not in (had or []) and name in taken]
        return clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]" if clashes else ""
    return f'"{wanted}" is already in use' if wanted and wanted != had and wanted in taken else ""


def _with_status(crd: Untyped, **parts: Any) -> Untyped:
    return {**crd, "status": {**crd.get("status", {}), **parts}}


def _set(conditions: Sequence[Untyped], kind: str, status: str, reason: str, message: str, now: str) -> list[Untyped]:
    """The conditions with one set. Its transition time changes only with its status."""
    before = next((one for one in conditions if one["type"] == kind), None)
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    new = {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    if before is None:
        return [*conditions, new]
    return [new if one is before else one for one in conditions]
