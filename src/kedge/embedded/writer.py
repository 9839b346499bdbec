"""Writer: create, replace, patch, apply and delete, each as one step of the store.

A write reads the newest version, computes the next one, validates it, and stores it. If nothing changed, nothing is
stored and the resourceVersion stays. A dry run does not store.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kedge.embedded import deletion, namespaces, options, patch_request, preparation, request_body, statuses, validation
from kedge.embedded.custom import crd_status
from kedge.embedded.custom.crd import CRDS
from kedge.embedded.generator import Generator, StoreContext
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.options import DeleteOptions, WriteOptions
from kedge.embedded.ownership.apply import ApplyRequest
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners, after_create
from kedge.embedded.ownership.managed_fields import manager_name
from kedge.embedded.request_info import RequestInfo, ResourcePath
from kedge.embedded.schema import strict_decoding
from kedge.embedded.schema.zero_values import with_zero_values
from kedge.embedded.selectors import Selection
from kedge.embedded.statuses import Refused
from kedge.embedded.store import AlreadyExists, Store, Version, key_of, version_of
from kedge.kube import patches
from kedge.kube.codec import Untyped

_NAME_ATTEMPTS = 8  # to find a generated name that is free


class WriteResult(Struct, frozen=True):
    """The result of a write: the status code, the object as it is now, and warnings."""

    code: int
    version: Version
    warnings: tuple[str, ...] = ()


class SubmittedObject(Struct, frozen=True):
    """The object that a client sent, warnings about it, and its field owners after an apply."""

    obj: Untyped
    warnings: tuple[str, ...] = ()
    owners: FieldOwners | None = None


class Writer:
    """The writes of one server."""

    def __init__(self, store: Store, generator: Generator) -> None:
        self._store = store
        self._generator = generator
        self._context = StoreContext(store, generator)

    def create(self, info: RequestInfo) -> WriteResult:
        asked = options.for_write(info.request, "CreateOptions")
        return self._create(info, _submitted(info, asked), asked)

    def put(self, info: RequestInfo) -> WriteResult:
        kind, path = info.kind, info.path
        asked = options.for_write(info.request, "UpdateOptions")
        sent = _submitted(info, asked)
        new = sent.obj
        validation.refuse_misplaced(new, path)
        if kind.put_creates and not path.subresource and not self._exists(kind, path):
            validation.refuse_other_uid(kind, "", new)
            return self._create(info, SubmittedObject(_without_version(new), sent.warnings), asked)
        current = self.current(kind, path)
        old = _as_served(kind, current)
        validation.refuse_other_uid(kind, old["metadata"]["uid"], new)
        if kind.put_needs_version and "resourceVersion" not in new["metadata"]:
            raise statuses.version_required(kind.resource, path.name)
        return self.change(info, current, old, sent, asked)

    def patch(self, info: RequestInfo) -> WriteResult:
        """Patch an object by the content type of the request."""
        if info.request.content_type.partition(";")[0].strip() == patches.APPLY:
            return self._apply(info)
        asked = options.for_write(info.request, "PatchOptions")
        patch = patch_request.patch_in(info.request, info.kind, asked.validation)
        current = self.current(info.kind, info.path)
        old = _as_served(info.kind, current)
        try:
            made = patch.made_of(info.kind, _with_owners(old, current) if patch.is_about_owners else old)
        except Refused:
            made = patch.made_of(info.kind, _with_owners(old, current))  # the refusal quotes all of the object
        validation.refuse_misplaced(made.obj, info.path)
        return self.change(info, current, old, SubmittedObject(made.obj, made.warnings), asked)

    def delete(self, kind: Kind, path: ResourcePath, asked: DeleteOptions) -> Version | None:
        """Delete an object; gives it if it stays for now, with a deletionTimestamp."""
        return self._delete(kind, self.current(kind, path), asked)

    def delete_all(self, kind: Kind, selection: Selection, asked: DeleteOptions) -> list[Version]:
        """Delete the selected objects; gives what they were."""
        snapshot = self._store.all(kind).at(self._store.number)
        chosen = [version for version in snapshot.within(selection.prefix) if selection.selects(version)]
        for version in chosen:
            self._delete(kind, version, asked)
        return chosen

    def current(self, kind: Kind, path: ResourcePath) -> Version:
        """The newest version of an object."""
        found = self._store.all(kind).get(key_of(path.namespace, path.name))
        if found is None:
            raise statuses.not_found(kind.resource, path.name)
        return found

    def change(
        self, info: RequestInfo, current: Version, old: Untyped, sent: SubmittedObject, asked: WriteOptions
    ) -> WriteResult:
        """Store the next state of an object, if it differs."""
        with statuses.with_warnings(sent.warnings):
            return self._change(info, current, old, sent, asked)

    def _change(
        self, info: RequestInfo, current: Version, old: Untyped, sent: SubmittedObject, asked: WriteOptions
    ) -> WriteResult:
        kind, part = info.kind, info.path.subresource
        validation.refuse_stale(kind, current, sent.obj)
        validation.check_change(kind, old, sent.obj)
        new = sent.obj if part == "finalize" else _with_defaults(kind, sent.obj, old)
        owners = sent.owners or self._owners_after(info, current, old, _with_zero_values(kind, new), asked)
        result = _as_stored(kind, self._next_state(info, old, new))
        version = version_of(kind, current.key, current.number, result, owners)
        warnings = (*sent.warnings, *_warnings(kind, result, old))
        if asked.dry_run or (version.body == current.body and owners.same_but_for_times(current.owners)):
            return WriteResult(200, version, warnings)
        if deletion.can_be_removed(kind, result):
            self._store.remove(kind, current)
            return WriteResult(200, version, warnings)
        return WriteResult(200, self._store.replace(kind, current, result, owners), warnings)

    def _owners_after(
        self, info: RequestInfo, current: Version, old: Untyped, new: Untyped, asked: WriteOptions
    ) -> FieldOwners:
        """The field owners after a plain write."""
        return current.owners.after_update(
            info.kind.ownership,
            old,
            new,
            manager=manager_name(asked.manager, info.caller.agent),
            time=self._generator.now(),
            subresource=info.path.subresource,
        )

    def _next_state(self, info: RequestInfo, old: Untyped, new: Untyped) -> Untyped:
        """The object after a write; refused if invalid."""
        kind, part = info.kind, info.path.subresource
        if part:
            result = _with_zero_values(kind, preparation.prepare_update(kind, old, new, part))
            validation.check_status(kind, old, result)
            return result
        carried = kind.rules.prepare_changed(old, preparation.with_old_status(kind, old, new))
        result = _with_zero_values(
            kind, preparation.prepare_update(kind, old, kind.rules.allocate_changed(old, carried, self._context))
        )
        validation.check_result(kind, old, result)
        return result

    def _create(self, info: RequestInfo, sent: SubmittedObject, asked: WriteOptions) -> WriteResult:
        kind, namespace, obj = info.kind, info.path.namespace, sent.obj
        validation.refuse_other_namespace(obj, namespace)
        if obj["metadata"].get("resourceVersion"):
            raise statuses.internal_error("resourceVersion should not be set on objects to be created")
        if kind.resource.namespaced:
            namespaces.refuse_missing_or_terminating(self._store, kind, namespace, obj["metadata"].get("name", ""))
        labelled = namespaces.with_name_label(obj) if kind.resource == NAMESPACES and "name" in obj["metadata"] else obj
        whole = SubmittedObject(kind.rules.with_defaults(labelled), sent.warnings, sent.owners)
        with statuses.with_warnings(sent.warnings):
            return self._store_named(info, whole, asked)

    def _store_named(self, info: RequestInfo, sent: SubmittedObject, asked: WriteOptions) -> WriteResult:
        """Store a new object; try other generated names if one is in use."""
        attempts = 1 if sent.obj["metadata"].get("name") else _NAME_ATTEMPTS
        while True:
            attempts -= 1
            try:
                return self._store_new(info, sent, asked)
            except AlreadyExists as error:
                if not attempts:
                    raise _already_exists(info.kind, error.version) from None

    def _store_new(self, info: RequestInfo, sent: SubmittedObject, asked: WriteOptions) -> WriteResult:
        kind = info.kind
        prepared = preparation.prepare_create(kind, sent.obj, info.path.namespace, self._generator)
        obj = (
            _with_zero_values(kind, kind.rules.prepare_new(prepared, self._context))
            if "name" in prepared["metadata"]
            else prepared
        )
        validation.check(kind, obj)
        if kind.resource.namespaced:
            namespaces.refuse_over_quota(self._store, kind, info.path.namespace, obj["metadata"]["name"])
        obj = _as_stored(kind, obj)
        key = key_of(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        manager = manager_name(asked.manager, info.caller.agent)
        owners = sent.owners or after_create(kind.ownership, sent.obj, manager=manager, time=self._generator.now())
        warnings = (*sent.warnings, *_warnings(kind, obj))
        if not asked.dry_run:
            return WriteResult(201, self._store.create(kind, key, obj, owners), warnings)
        if existing := self._store.all(kind).get(key):
            raise AlreadyExists(existing)
        return WriteResult(201, version_of(kind, key, 0, obj, owners), warnings)

    def _apply(self, info: RequestInfo) -> WriteResult:
        """Server-side apply: create the object, or merge into it."""
        kind, path = info.kind, info.path
        asked = options.for_apply(info.request)
        config = request_body.applied_object_in(info.request, kind.resource)
        config = {**config, "metadata": {"name": path.name, **(config.get("metadata") or {})}}
        validation.refuse_misplaced(config, path)
        application = ApplyRequest(config, asked.manager, self._generator.now(), asked.force, path.subresource)
        if not path.subresource and not self._exists(kind, path):
            made = NO_OWNERS.after_apply(kind.ownership, None, application)
            return self._create(info, _applied(kind, _creatable(kind, made.object), made.owners, asked), asked)
        current = self.current(kind, path)
        old = _as_served(kind, current)
        validation.refuse_other_uid(kind, old["metadata"]["uid"], config)
        merged = current.owners.after_apply(kind.ownership, old, application)
        return self.change(info, current, old, _applied(kind, merged.object, merged.owners, asked), asked)

    def _delete(self, kind: Kind, current: Version, asked: DeleteOptions) -> Version | None:
        obj = current.decode()
        deletion.check_preconditions(asked.checked_preconditions, kind, obj["metadata"])
        if kind.resource == NAMESPACES:
            namespaces.refuse_protected(current.name)
        marked = deletion.mark_deleted(
            kind, deletion.with_propagation_finalizer(obj, asked), asked.grace_period_seconds, self._generator
        )
        if kind.resource == CRDS and not obj["metadata"].get("deletionTimestamp"):
            marked = crd_status.mark_terminating(marked, self._generator.now())
        if deletion.can_be_removed(kind, marked):
            if not asked.dry_run:
                self._store.remove(kind, current)
            return None
        if asked.dry_run or marked == obj:
            return version_of(kind, current.key, current.number, marked, current.owners)
        return self._store.replace(kind, current, marked)

    def _exists(self, kind: Kind, path: ResourcePath) -> bool:
        return self._store.all(kind).get(key_of(path.namespace, path.name)) is not None


def _warnings(kind: Kind, obj: Untyped, old: Untyped | None = None) -> Iterable[str]:
    return kind.custom.warnings(obj, old) if kind.custom else kind.rules.warnings(obj)


def _as_served(kind: Kind, current: Version) -> Untyped:
    """A stored object in the requested version."""
    return kind.custom.to_served(current.decode(), current.number) if kind.custom else current.decode()


def _with_defaults(kind: Kind, obj: Untyped, old: Untyped) -> Untyped:
    """The next state of an object with its defaults."""
    return kind.custom.with_defaults(obj, old) if kind.custom else kind.rules.with_defaults(obj)


def _as_stored(kind: Kind, obj: Untyped) -> Untyped:
    """An object as it is stored."""
    return kind.custom.to_stored(obj) if kind.custom else obj


def _with_owners(obj: Untyped, current: Version) -> Untyped:
    """The object with its managedFields, as clients see it."""
    return {**obj, "metadata": {**obj["metadata"], "managedFields": current.owners.entries()}}


def _submitted(info: RequestInfo, asked: WriteOptions) -> SubmittedObject:
    """The object in the request."""
    return _decoded(
        info.kind,
        request_body.object_in(info.request, info.kind.resource),
        request_body.json_text_of(info.request),
        asked,
    )


def _decoded(kind: Kind, obj: Untyped, text: bytes, asked: WriteOptions) -> SubmittedObject:
    schema, custom = kind.schema, kind.custom is not None
    if schema is None:
        return SubmittedObject(request_body.checked_without_schema(obj, kind.resource))
    found = strict_decoding.decode_sent(schema, kind.resource, obj, text, asked.validation, custom=custom)
    return SubmittedObject(request_body.with_clean_metadata(found.obj, obj), found.warnings)


def _applied(kind: Kind, obj: Untyped, owners: FieldOwners, asked: WriteOptions) -> SubmittedObject:
    """The result of an apply, decoded as if it had been sent."""
    if kind.custom:
        validation.refuse_nulls(kind, obj)
    sent = _decoded(kind, obj, b"", asked)
    return SubmittedObject(sent.obj, sent.warnings, owners)


def _with_zero_values(kind: Kind, obj: Untyped) -> Untyped:
    """The object with the zero values that kube-apiserver writes."""
    schema = kind.schema
    return obj if schema is None or kind.custom else with_zero_values(schema, obj)


def _creatable(kind: Kind, applied: Untyped) -> Untyped:
    """The applied object as a new one."""
    metadata = dict(applied["metadata"])
    metadata.pop("resourceVersion", None)
    if uid := metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise statuses.conflict(kind.resource, metadata["name"], why)
    return {**applied, "metadata": metadata}


def _without_version(obj: Untyped) -> Untyped:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


def _already_exists(kind: Kind, existing: Version) -> Refused:
    going = "deletionTimestamp" in existing.decode()["metadata"]
    return statuses.already_exists(kind.resource, existing.name, being_deleted=going)
