"""Set revisions: what the ControllerRevisions of a workload tell that its status does not.

Which revision its present template is, of a DaemonSet; and what its pods ran before the rollout, so that a template
that a user wrote over it can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kedge.api.apps import ControllerRevision
from kedge.api.meta import controller_of
from kedge.plan.batching.claims import frozen_record
from kedge.plan.batching.moves import Workload, Workloads
from kedge.plan.fields import Object, at, text

HASH: Final = "controller-revision-hash"


def with_revisions(seen: Workloads, revisions: Iterable[ControllerRevision]) -> Workloads:
    """What is changed in place, with what its revisions tell. A source that is known already is kept."""
    if not seen.in_place:
        return seen
    mine = _of(seen.target, revisions)
    newest = max(mine, key=lambda one: one.revision, default=None)
    present = newest.metadata.labels.get(HASH, "") if newest is not None else ""
    target = replace(seen.target, update_revision=seen.target.update_revision or present)
    return replace(seen, target=target, sources=_sources(seen, mine))


def manifest_of(revision: ControllerRevision) -> Object:
    """The part of an object that a revision brings back: its pod template."""
    template = at(revision.data, "spec", "template")
    held = template if isinstance(template, dict) else {}
    return {"spec": {"template": {name: value for name, value in held.items() if name != "$patch"}}}


def _sources(seen: Workloads, revisions: Iterable[ControllerRevision]) -> tuple[Workload, ...]:
    record = frozen_record(seen.target)
    if record is None or not record.revision or any(one.manifest is not None for one in seen.sources):
        return seen.sources
    found = next(
        (one for one in revisions if record.revision in (one.metadata.name, one.metadata.labels.get(HASH))), None
    )
    if found is None:
        return seen.sources
    return (Workload(seen.target.ref, manifest=manifest_of(found), revision=found.metadata.name),)


def _of(target: Workload, revisions: Iterable[ControllerRevision]) -> tuple[ControllerRevision, ...]:
    uid = text(target.obj, "metadata", "uid")
    owners = ((one, controller_of(one.metadata)) for one in revisions)
    return tuple(one for one, owner in owners if owner is not None and owner.uid == uid)
