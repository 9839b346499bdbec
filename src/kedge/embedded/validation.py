"""Validation: what is wrong with an object, field by field.

Here is what all kinds have in common: names, labels, annotations, finalizers, owner references. The rest is in the
rules of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded import options, statuses
from kedge.embedded.causes import IMMUTABLE, forbidden, invalid_value, invalid_values, json_text, required_value
from kedge.embedded.kind import Kind
from kedge.embedded.naming import is_finalizer, key_problems, name_problems, value_problems
from kedge.embedded.request_info import ResourcePath
from kedge.embedded.statuses import invalid
from kedge.embedded.store import Version
from kedge.kube.codec import Untyped
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


def refuse_misplaced(obj: Untyped, path: ResourcePath) -> None:
    """Refuse an object whose name or namespace differs from the path."""
    name = obj["metadata"].get("name")
    if not name:
        why = "name must be provided"
        raise statuses.bad_request(f"the name of the object ({path.name} based on URL) was undeterminable: {why}")
    if name != path.name:
        raise statuses.bad_request(f"the name of the object ({name}) does not match the name on the URL ({path.name})")
    refuse_other_namespace(obj, path.namespace)


def refuse_other_namespace(obj: Untyped, namespace: str) -> None:
    """Refuse an object of another namespace than the request's."""
    # Of a cluster-scoped object the namespace is dropped, as kube-apiserver does.
    if namespace and obj["metadata"].get("namespace", namespace) != namespace:
        raise statuses.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def refuse_other_uid(kind: Kind, there: str, new: Untyped) -> None:
    """Refuse an object that names another uid than the stored one."""
    sent = new["metadata"].get("uid")
    if sent and sent != there:
        why = f"Precondition failed: UID in precondition: {sent}, UID in object meta: {there}"
        raise statuses.conflict(kind.resource, new["metadata"]["name"], why)


def refuse_stale(kind: Kind, current: Version, new: Untyped) -> None:
    """Refuse an object that names another resourceVersion than the current one."""
    version = new["metadata"].get("resourceVersion")
    if version and options.parse_resource_version(version) != current.number:
        raise statuses.conflict(kind.resource, current.name)


def _problems(kind: Kind, metadata: Untyped) -> Iterator[Cause]:
    yield from _name(kind, metadata)
    for key, value in metadata.get("labels", {}).items():
        yield from invalid_values("metadata.labels", key, key_problems(key))
        yield from invalid_values("metadata.labels", value, value_problems(value))
    for key in metadata.get("annotations", {}):
        yield from invalid_values("metadata.annotations", key, key_problems(key.lower()))
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in metadata.get("annotations", {}).items())
        > _LARGEST
    ):
        yield Cause("metadata.annotations", f"Too long: may not be more than {_LARGEST} bytes", "FieldValueTooLong")
    for index, finalizer in enumerate(metadata.get("finalizers", [])):
        yield from invalid_values("metadata.finalizers", finalizer, key_problems(finalizer))
        if not kind.custom and not is_finalizer(finalizer):  # of custom kinds it is only warned of
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", finalizer, why)
    for owner in metadata.get("ownerReferences", []):
        for part in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(part):
                yield invalid_value(f"metadata.ownerReferences.{part}", "", "must not be empty")


def _name(kind: Kind, metadata: Untyped) -> Iterator[Cause]:
    name, start = metadata.get("name", ""), metadata.get("generateName", "")
    if not name:
        yield required_value("metadata.name", "name or generateName is required")
        return
    if start:
        # A dash at the end is fine: more of the name comes behind it.
        whole = start[:-1] + "a" if start.endswith("-") else start
        yield from invalid_values("metadata.generateName", start, name_problems(whole, kind.name_rule))
    yield from invalid_values("metadata.name", name, name_problems(name, kind.name_rule))


def _forbidden_changes(old: Untyped, new: Untyped) -> Iterator[Cause]:
    for field in ("uid", "deletionTimestamp"):
        if new.get(field, old.get(field)) != old.get(field):
            yield invalid_value(f"metadata.{field}", new[field], IMMUTABLE)
    added = [name for name in new.get("finalizers", []) if name not in old.get("finalizers", [])]
    if added and old.get("deletionTimestamp"):
        shown = ", ".join(map(json_text, added))
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        yield forbidden("metadata.finalizers", why)
