"""Apply: server-side apply.

Whoever applies a configuration owns what is in it, and nothing else. What others own with another value is a conflict,
unless it is forced; with the same value it is owned together. What the applier owned before and left out now is taken
out of the object, unless somebody else owns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from msgspec import Struct

from kedge.embedded.ownership import fields, lastapplied, shapes
from kedge.embedded.ownership.compare import applied, compare, unchanged
from kedge.embedded.ownership.entries import Entries, Manager, entry_of, find, owning
from kedge.embedded.ownership.fields import LEAF, Fields, difference, intersection, union, without
from kedge.embedded.ownership.fitting import fits, problems
from kedge.embedded.ownership.merge import merged, pruned, settled
from kedge.embedded.ownership.terms import NEVER_OWNED, Terms, Untyped
from kedge.embedded.ownership.tracking import UNKNOWN, losing, replaced, step, tracked
from kedge.embedded.statuses import Refused, internal

BEFORE_FIRST_APPLY = "before-first-apply"


class Application(Struct, frozen=True):
    """Somebody applies a configuration."""

    config: Untyped
    manager: str
    time: str
    force: bool = False
    subresource: str = ""

    @property
    def by(self) -> Manager:
        return Manager(self.manager or UNKNOWN, "Apply", "", self.subresource)


class Outcome(Struct, frozen=True):
    """The object as applied, before anything that was left out is filled in; and who owns what of it."""

    object: Untyped
    entries: Entries


class Conflict(NamedTuple):
    """Somebody else owns this."""

    manager: Manager
    fields: Fields

    def each(self) -> Iterator[tuple[str, str]]:
        """Who, and what, in words."""
        return ((self.manager.text, fields.text(way)) for way in fields.paths(self.fields))


def apply(terms: Terms, live: Untyped | None, entries: Entries, asked: Application) -> Outcome:
    """Apply to an object, or make one (`live` is None). Refuses conflicts, and what does not fit the schema."""
    _refuse_misfit(terms, asked.config)
    if live is None:
        return _made(terms, asked)
    owners = _fitted(terms, entries) or _before_first(terms, live, asked)
    there = find(owners, asked.by)
    mine = without(applied(terms.shape, asked.config), terms.resets(asked.subresource))
    now = replaced(owners, there, entry_of(asked.by, terms.api_version, there.time if there else "", mine))
    new = _merged(terms, live, asked.config, there.fields_v1 if there else LEAF, now)
    return _taken_over(terms, live, new, now, asked)


def _made(terms: Terms, asked: Application) -> Outcome:
    mine = difference(without(applied(terms.shape, asked.config), terms.resets(asked.subresource)), NEVER_OWNED)
    entries = (entry_of(asked.by, terms.api_version, asked.time, mine),) if mine else ()
    return Outcome(_as_read(terms, asked.config), entries)


def _merged(terms: Terms, live: Untyped, config: Untyped, last: Fields, owners: Entries) -> Untyped:
    laid = merged(terms.shape, live, config)
    owned = reduce(union, (entry.fields_v1 for entry in owners), LEAF)
    result: Untyped = pruned(terms.shape, laid, last, owned)
    return result


def _taken_over(terms: Terms, live: Untyped, new: Untyped, owners: Entries, asked: Application) -> Outcome:
    """Take from others what changes, if they let go of it."""
    changes = compare(terms.shape, live, new)
    left = terms.resets(asked.subresource)
    given, removed = without(changes.given, left), without(changes.removed, left)
    others = tuple(entry for entry in owners if entry.by != asked.by)
    if not asked.force:
        _refuse_conflicts(terms, live, others, given, asked)
    mine = _mine(owners, asked, changed=not unchanged(terms.shape, live, new))
    obj = lastapplied.kept_up(_as_read(terms, new), asked.config, asked.manager)
    return Outcome(obj, (*losing(others, union(given, removed)), *mine))


def _as_read(terms: Terms, obj: Untyped) -> Untyped:
    result: Untyped = obj if terms.custom else settled(terms.shape, obj)
    return result


def _mine(owners: Entries, asked: Application, *, changed: bool) -> Entries:
    """What the applier owns. The time is that of the last apply that changed the object."""
    entry = find(owners, asked.by)
    assert entry is not None
    owned = difference(entry.fields_v1, NEVER_OWNED)
    time = asked.time if changed else entry.time
    return (entry_of(asked.by, entry.api_version, time, owned),) if owned else ()


def _fitted(terms: Terms, entries: Entries) -> Entries:
    """The entries as the schema is now: without those of versions it is not served in any more."""
    served = (entry for entry in entries if terms.serves(entry.api_version))
    if not terms.custom:
        return tuple(served)  # the schemas of built-in kinds never change
    return tuple(owning(entry, shapes.fitted(terms.shape, entry.fields_v1)) for entry in served)


def _before_first(terms: Terms, live: Untyped, asked: Application) -> Entries:
    """Of an object that nobody owns, somebody without a face owns all there is."""
    subresource = asked.subresource
    found = step(terms, None, live, manager=BEFORE_FIRST_APPLY, time=asked.time, subresource=subresource)
    return tracked((), found)


def _refuse_conflicts(terms: Terms, live: Untyped, others: Entries, given: Fields, asked: Application) -> None:
    found = [Conflict(entry.by, intersection(entry.fields_v1, given)) for entry in others]
    conflicts = [conflict for conflict in found if conflict.fields]
    if not conflicts:
        return
    excused = lastapplied.excused(terms, live, asked.manager)
    left = [Conflict(conflict.manager, difference(conflict.fields, excused)) for conflict in conflicts]
    if remaining := [conflict for conflict in left if conflict.fields]:
        raise conflicting(remaining)


def conflicting(conflicts: Sequence[Conflict]) -> Refused:
    """Others own what would change: who, and what."""
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


def _refuse_misfit(terms: Terms, config: Untyped) -> None:
    if fits(terms.shape, config):
        return
    found = [problem.removeprefix(": ") for problem in problems(terms.shape, config)]
    metadata, resource = config.get("metadata") or {}, terms.resource
    what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    why = found[0] if len(found) == 1 else "\n".join(["errors:", *(f"  {problem}" for problem in found)])
    raise internal(f"failed to create typed patch object ({what}; {kind}): {why}")
