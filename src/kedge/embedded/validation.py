"""Validation: what is wrong with an object, field by field.

What is common to all kinds is here: names, labels, annotations, finalizers, owners. The rest is each kind's rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kedge.embedded.kind import Kind
from kedge.embedded.naming import is_finalizer, key_problems, name_problems, value_problems
from kedge.embedded.statuses import invalid, not_permitted, required, wrong
from kedge.embedded.store import Untyped
from kedge.kube.errors import Cause

_LARGEST = 262144  # bytes of annotations


def check(kind: Kind, obj: Untyped) -> None:
    """Refuse an object that breaks a rule, naming every field that does."""
    if causes := [*_problems(kind, obj["metadata"]), *kind.rules.problems(obj)]:
        raise invalid(kind.resource, obj["metadata"].get("name", ""), causes)


def check_status(kind: Kind, old: Untyped, new: Untyped) -> None:
    """Refuse what a write to /status made of an object, if its metadata or (of a custom kind) its status is wrong."""
    own = kind.custom.status_problems(old, new) if kind.custom else ()
    if causes := [*_problems(kind, new["metadata"]), *own]:
        raise invalid(kind.resource, new["metadata"].get("name", ""), causes)


def check_change(kind: Kind, old: Untyped, new: Untyped) -> None:
    """Refuse a change of what may not be changed."""
    if causes := list(_forbidden_changes(old["metadata"], new["metadata"])):
        raise invalid(kind.resource, old["metadata"]["name"], causes)


def check_result(kind: Kind, old: Untyped, new: Untyped) -> None:
    """Refuse what a change made of an object, if it breaks a rule or changes what its kind does not let change."""
    own = kind.rules.update_problems(old, new)
    whole = () if kind.custom else kind.rules.problems(new)  # of a custom kind, only what was not so before counts
    if causes := [*_problems(kind, new["metadata"]), *whole, *own]:
        raise invalid(kind.resource, old["metadata"]["name"], causes)


def refuse_nulls(kind: Kind, obj: Untyped) -> None:
    """Refuse an applied object of a custom kind with nulls its schema does not allow; elsewhere they are dropped."""
    wrong_type = [cause for cause in kind.rules.problems(obj) if cause.reason == "FieldValueTypeInvalid"]
    if nulls := [cause for cause in wrong_type if "null" in cause.message]:
        raise invalid(kind.resource, obj["metadata"].get("name", ""), nulls)


def _problems(kind: Kind, metadata: Untyped) -> Iterator[Cause]:
    yield from _name(kind, metadata)
    for key, value in metadata.get("labels", {}).items():
        yield from _wrong("metadata.labels", key, key_problems(key))
        yield from _wrong("metadata.labels", value, value_problems(value))
    for key in metadata.get("annotations", {}):
        yield from _wrong("metadata.annotations", key, key_problems(key.lower()))
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in metadata.get("annotations", {}).items())
        > _LARGEST
    ):
        yield Cause("metadata.annotations", f"Too long: may not be more than {_LARGEST} bytes", "FieldValueTooLong")
    for index, finalizer in enumerate(metadata.get("finalizers", [])):
        yield from _wrong("metadata.finalizers", finalizer, key_problems(finalizer))
        if not kind.custom and not is_finalizer(finalizer):  # of custom kinds it is only warned of
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield from _wrong(f"metadata.finalizers[{index}]", finalizer, [why])
    for owner in metadata.get("ownerReferences", []):
        for part in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(part):
                yield from _wrong(f"metadata.ownerReferences.{part}", "", ["must not be empty"])


def _name(kind: Kind, metadata: Untyped) -> Iterator[Cause]:
    name, start = metadata.get("name", ""), metadata.get("generateName", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    if start:
        # A dash at the end is fine: more of the name comes behind it.
        whole = start[:-1] + "a" if start.endswith("-") else start
        yield from _wrong("metadata.generateName", start, name_problems(whole, kind.names))
    yield from _wrong("metadata.name", name, name_problems(name, kind.names))


def _forbidden_changes(old: Untyped, new: Untyped) -> Iterator[Cause]:
    for field in ("uid", "deletionTimestamp"):
        if new.get(field, old.get(field)) != old.get(field):
            yield from _wrong(f"metadata.{field}", new[field], ["field is immutable"])
    added = [name for name in new.get("finalizers", []) if name not in old.get("finalizers", [])]
    if added and old.get("deletionTimestamp"):
        shown = ", ".join(map(_quoted, added))
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        yield not_permitted("metadata.finalizers", why)


def _wrong(field: str, value: str, problems: Iterable[str]) -> Iterator[Cause]:
    return (wrong(field, _quoted(value), problem) for problem in problems)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
