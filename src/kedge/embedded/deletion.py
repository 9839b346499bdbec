"""Deletion: what happens to an object that is deleted.

It is removed at once, unless a finalizer holds it (or, for a namespace, one of its `spec.finalizers`), or it is a pod
on a node, which has its grace period. Then it gets a deletionTimestamp, and is removed by the write that takes away the
last reason to stay. The garbage collector handles its dependents, by the finalizer of the propagation policy.
"""

from __future__ import annotations

from kedge.embedded import namespaces
from kedge.embedded.generator import Generator
from kedge.embedded.kind import NAMESPACES, PODS, Kind
from kedge.embedded.options import DeleteOptions, Preconditions
from kedge.embedded.statuses import precondition_failed
from kedge.embedded.store import part
from kedge.kube.codec import Untyped

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_PROPAGATION_FINALIZERS = (ORPHAN, FOREGROUND)
_POD_GRACE = 30


def check_preconditions(must: Preconditions, kind: Kind, metadata: Untyped) -> None:
    """Refuse if uid or resourceVersion do not match."""
    name = metadata["name"]
    if must.uid is not None and must.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({must.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise precondition_failed(kind.resource, name, why)
    if must.resource_version is not None and must.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({must.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise precondition_failed(kind.resource, name, why)


def with_propagation_finalizer(obj: Untyped, asked: DeleteOptions) -> Untyped:
    """The object with the finalizer of its propagation policy, and no other of these."""
    wanted = _propagation_finalizer(asked, obj["metadata"].get("finalizers", []))
    others = [name for name in obj["metadata"].get("finalizers", []) if name not in _PROPAGATION_FINALIZERS]
    finalizers = [*others, wanted] if wanted else others
    if finalizers == obj["metadata"].get("finalizers", []):
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
    return {**obj, "metadata": {**metadata, "finalizers": finalizers} if finalizers else metadata}


def _propagation_finalizer(asked: DeleteOptions, finalizers: list[str]) -> str:
    if asked.propagation_policy is not None:
        return {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(asked.propagation_policy, "")
    if asked.orphan_dependents is not None:
        return ORPHAN if asked.orphan_dependents else ""
    return next((name for name in _PROPAGATION_FINALIZERS if name in finalizers), "")


def mark_deleted(kind: Kind, obj: Untyped, grace_asked: int | None, generator: Generator) -> Untyped:
    """The object with a deletionTimestamp. If it had one, the grace period can only become shorter."""
    if obj["metadata"].get("deletionTimestamp"):
        return _with_shorter_grace(kind, obj, grace_asked, generator)
    if kind.resource == NAMESPACES:
        return namespaces.terminating(_with(obj, {"deletionTimestamp": generator.now()}))
    grace = _grace(kind, obj, grace_asked)
    mark: Untyped = {"deletionTimestamp": generator.now(plus=grace), "deletionGracePeriodSeconds": grace}
    if "generation" in obj["metadata"]:
        mark["generation"] = obj["metadata"]["generation"] + 1
    return _with(obj, mark)


def is_pending(obj: Untyped, asked: DeleteOptions) -> bool:
    """Whether the object is being deleted already, with a grace period that this request does not shorten."""
    pending = obj["metadata"].get("deletionGracePeriodSeconds")
    is_shorter = asked.grace_period_seconds is not None and pending and asked.grace_period_seconds < pending
    return bool(obj["metadata"].get("deletionTimestamp") and pending and not is_shorter)


def can_be_removed(kind: Kind, obj: Untyped) -> bool:
    """Whether the object is deleted and nothing holds it."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if kind.resource == NAMESPACES:
        return not namespaces.has_finalizers(obj)
    return not metadata.get("deletionGracePeriodSeconds")


def _with_shorter_grace(kind: Kind, obj: Untyped, grace_asked: int | None, generator: Generator) -> Untyped:
    pending = obj["metadata"].get("deletionGracePeriodSeconds")
    if not pending or grace_asked is None or grace_asked >= pending:
        return obj
    grace = _grace(kind, obj, grace_asked)
    return _with(obj, {"deletionTimestamp": generator.now(plus=grace), "deletionGracePeriodSeconds": grace})


def _grace(kind: Kind, obj: Untyped, asked: int | None) -> int:
    """The grace period: zero for all but pods on a node."""
    spec, phase = part(obj, "spec"), part(obj, "status").get("phase")
    if kind.resource != PODS or not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    own = spec.get("terminationGracePeriodSeconds")
    wanted = own if asked is None else asked
    return max(0, wanted) if isinstance(wanted, int) else _POD_GRACE


def _with(obj: Untyped, mark: Untyped) -> Untyped:
    return {**obj, "metadata": {**obj["metadata"], **mark}}
