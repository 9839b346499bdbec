"""Apply: server-side apply.

Whoever applies a configuration owns exactly the fields in it. A field that others own with another value is a conflict,
unless the apply is forced; with the same value it is shared. Fields that the applier owned before and left out now are
removed from the object, unless somebody else owns them.

Client-side apply keeps an annotation of what it applied. For the manager `kubectl` only: fields that still are as the
annotation says are no conflict, so that one can move from client-side to server-side apply; and the annotation is kept
up to date, so that one can move back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from kedge.embedded.go_text import go_json
from kedge.embedded.ownership import field_set, merge_schema
from kedge.embedded.ownership.compare import applied_fields, compare, unchanged
from kedge.embedded.ownership.field_set import LEAF, FieldSet, difference, intersection, recursive_difference, union
from kedge.embedded.ownership.kind_ownership import NEVER_OWNED, KindOwnership
from kedge.embedded.ownership.managed_fields import (
    UNKNOWN,
    Entries,
    Manager,
    after_write,
    entry_of,
    find_entry,
    tracked_write,
    with_entry,
    with_fields,
    without_fields,
)
from kedge.embedded.ownership.merge import merge_applied, remove_unapplied, without_nulls
from kedge.embedded.ownership.type_check import conforms, type_problems
from kedge.embedded.statuses import Refused, internal_error
from kedge.kube.codec import Untyped

BEFORE_FIRST_APPLY = "before-first-apply"


class ApplyRequest(Struct, frozen=True):
    """One apply of a configuration."""

    config: Untyped
    manager: str
    time: str
    force: bool = False
    subresource: str = ""

    @property
    def by(self) -> Manager:
        return Manager(self.manager or UNKNOWN, "Apply", "", self.subresource)


class ApplyResult(Struct, frozen=True):
    """The object as applied, before defaults, and its entries."""

    object: Untyped
    entries: Entries


class Conflict(NamedTuple):
    """A field that somebody else owns."""

    manager: Manager
    fields: FieldSet

    def each(self) -> Iterator[tuple[str, str]]:
        """Manager and field, as text."""
        return ((self.manager.text, field_set.path_text(way)) for way in field_set.paths(self.fields))


def apply(ownership: KindOwnership, live: Untyped | None, entries: Entries, asked: ApplyRequest) -> ApplyResult:
    """Apply to an object, or create it (`live` is None). Refuses conflicts and type errors."""
    _refuse_wrong_types(ownership, asked.config)
    if live is None:
        return _made(ownership, asked)
    owners = _fitted(ownership, entries) or _before_first(ownership, live, asked)
    there = find_entry(owners, asked.by)
    mine = recursive_difference(applied_fields(ownership.schema, asked.config), ownership.resets(asked.subresource))
    now = with_entry(owners, there, entry_of(asked.by, ownership.api_version, there.time if there else "", mine))
    new = _merged(ownership, live, asked.config, there.fields_v1 if there else LEAF, now)
    return _taken_over(ownership, live, new, now, asked)


def _made(ownership: KindOwnership, asked: ApplyRequest) -> ApplyResult:
    mine = difference(
        recursive_difference(applied_fields(ownership.schema, asked.config), ownership.resets(asked.subresource)),
        NEVER_OWNED,
    )
    entries = (entry_of(asked.by, ownership.api_version, asked.time, mine),) if mine else ()
    return ApplyResult(_as_read(ownership, asked.config), entries)


def _merged(ownership: KindOwnership, live: Untyped, config: Untyped, last: FieldSet, owners: Entries) -> Untyped:
    laid = merge_applied(ownership.schema, live, config)
    owned = reduce(union, (entry.fields_v1 for entry in owners), LEAF)
    result: Untyped = remove_unapplied(ownership.schema, laid, last, owned)
    return result


def _taken_over(
    ownership: KindOwnership, live: Untyped, new: Untyped, owners: Entries, asked: ApplyRequest
) -> ApplyResult:
    """Take changed fields from other owners, or refuse."""
    changes = compare(ownership.schema, live, new)
    left = ownership.resets(asked.subresource)
    given, removed = recursive_difference(changes.given, left), recursive_difference(changes.removed, left)
    others = tuple(entry for entry in owners if entry.by != asked.by)
    if not asked.force:
        _refuse_conflicts(ownership, live, others, given, asked)
    mine = _mine(owners, asked, changed=not unchanged(ownership.schema, live, new))
    obj = with_updated_annotation(_as_read(ownership, new), asked.config, asked.manager)
    return ApplyResult(obj, (*without_fields(others, union(given, removed)), *mine))


def _as_read(ownership: KindOwnership, obj: Untyped) -> Untyped:
    result: Untyped = obj if ownership.custom else without_nulls(ownership.schema, obj)
    return result


def _mine(owners: Entries, asked: ApplyRequest, *, changed: bool) -> Entries:
    """What the applier owns. The time is that of the last apply that changed the object."""
    entry = find_entry(owners, asked.by)
    assert entry is not None
    owned = difference(entry.fields_v1, NEVER_OWNED)
    time = asked.time if changed else entry.time
    return (entry_of(asked.by, entry.api_version, time, owned),) if owned else ()


def _fitted(ownership: KindOwnership, entries: Entries) -> Entries:
    """The entries as the schema is now: without those of versions it is not served in any more."""
    served = (entry for entry in entries if ownership.serves(entry.api_version))
    if not ownership.custom:
        return tuple(served)  # the schemas of built-in kinds never change
    return tuple(with_fields(entry, merge_schema.adapted(ownership.schema, entry.fields_v1)) for entry in served)


def _before_first(ownership: KindOwnership, live: Untyped, asked: ApplyRequest) -> Entries:
    """An object without owners: a placeholder owns all of it."""
    subresource = asked.subresource
    found = tracked_write(ownership, None, live, manager=BEFORE_FIRST_APPLY, time=asked.time, subresource=subresource)
    return after_write((), found)


def _refuse_conflicts(
    ownership: KindOwnership, live: Untyped, others: Entries, given: FieldSet, asked: ApplyRequest
) -> None:
    found = [Conflict(entry.by, intersection(entry.fields_v1, given)) for entry in others]
    conflicts = [conflict for conflict in found if conflict.fields]
    if not conflicts:
        return
    excused = unchanged_since_client_apply(ownership, live, asked.manager)
    left = [Conflict(conflict.manager, difference(conflict.fields, excused)) for conflict in conflicts]
    if remaining := [conflict for conflict in left if conflict.fields]:
        raise conflict_error(remaining)


def conflict_error(conflicts: Sequence[Conflict]) -> Refused:
    """The error for conflicts: which managers own which fields."""
    ordered = sorted(conflicts, key=lambda conflict: conflict.manager.identity)
    each = [said for conflict in ordered for said in conflict.each()]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in each
    ]
    if len(each) == 1:
        message = f"Apply failed with 1 conflict: conflict with {each[0][0]}: {each[0][1]}"
    else:
        message = f"Apply failed with {len(each)} conflicts: " + "\n".join(map(_listed, ordered))
    return Refused(409, "Conflict", message, details={"causes": causes})


def _listed(conflict: Conflict) -> str:
    return "\n".join([f"conflicts with {conflict.manager.text}:", *(f"- {field}" for _, field in conflict.each())])


def _refuse_wrong_types(ownership: KindOwnership, config: Untyped) -> None:
    if conforms(ownership.schema, config):
        return
    found = [problem.removeprefix(": ") for problem in type_problems(ownership.schema, config)]
    metadata, resource = config.get("metadata") or {}, ownership.resource
    what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    why = found[0] if len(found) == 1 else "\n".join(["errors:", *(f"  {problem}" for problem in found)])
    raise internal_error(f"failed to create typed patch object ({what}; {kind}): {why}")


KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATION_BYTES = 256 * 1024  # bytes that all annotations of an object may have together


def unchanged_since_client_apply(ownership: KindOwnership, live: Untyped, manager: str) -> FieldSet:
    """Fields that still are as this manager's client-side apply left them, and so are no conflict."""
    said = _decoded(_annotations(live).get(ANNOTATION, "")) if manager == KUBECTL else None
    if said is None or said.get("apiVersion") != ownership.api_version or not conforms(ownership.schema, said):
        return LEAF
    changes = compare(ownership.schema, said, live)
    return difference(applied_fields(ownership.schema, said), union(changes.given, changes.removed))


def with_updated_annotation(obj: Untyped, config: Untyped, manager: str) -> Untyped:
    """The object with its annotation updated, if it has one."""
    there = _annotations(obj)
    if manager != KUBECTL or not there.get(ANNOTATION):
        return obj
    renewed = {**there, ANNOTATION: _written(config)}
    if sum(len(name) + len(value) for name, value in renewed.items()) > _MAX_ANNOTATION_BYTES:
        del renewed[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": renewed}}


def _written(config: Untyped) -> str:
    there = _annotations(config)
    if ANNOTATION in there:
        left = {name: value for name, value in there.items() if name != ANNOTATION}
        config = {**config, "metadata": {**config["metadata"], "annotations": left}}
    return go_json(config) + "\n"


def _annotations(obj: Untyped) -> dict[str, str]:
    return obj.get("metadata", {}).get("annotations") or {}


def _decoded(annotation: str) -> Untyped | None:
    try:
        found: Any = msgspec.json.decode(annotation)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
