"""Writer: create, replace, patch, apply and delete, each as one step of the store.

A write reads the newest version, computes the next one, validates it, and stores it. If nothing changed, nothing is
stored and the resourceVersion stays. A dry run does not store. Only webhooks make a write wait: without any, it is done
at once. If the object changed while they were asked, the store refuses with `StaleVersion`: then begin again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from kedge.api.resource import Resource
from kedge.embedded import (
    deletion,
    namespaces,
    object_forms,
    options,
    patch_request,
    preparation,
    request_body,
    statuses,
    validation,
)
from kedge.embedded.admission.dispatch import Admission
from kedge.embedded.admission.gate import Gate, admission_gate
from kedge.embedded.custom import crd_status
from kedge.embedded.custom.crd import CRDS
from kedge.embedded.generator import Generator, StoreContext
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.options import DeleteOptions, WriteOptions
from kedge.embedded.ownership.apply import ApplyRequest
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners, after_create
from kedge.embedded.ownership.managed_fields import manager_name
from kedge.embedded.request_info import RequestInfo, ResourcePath
from kedge.embedded.selectors import Selection
from kedge.embedded.statuses import Refused
from kedge.embedded.store import AlreadyExists, StaleVersion, Store, Version, key_of, version_of
from kedge.embedded.submitted import SubmittedObject, applied, changed_by_webhook, creatable, submitted, without_version
from kedge.kube import patches
from kedge.kube.codec import Untyped

Validate: TypeAlias = Callable[[Untyped], Awaitable[None]]  # given the next state of an object; refuses it
_NAME_ATTEMPTS = 8  # to find a generated name that is free


class WriteResult(Struct, frozen=True):
    """The result of a write: the status code, the object as it is now, and warnings."""

    code: int
    version: Version
    warnings: tuple[str, ...] = ()


class Writer:
    """The writes of one server."""

    def __init__(self, store: Store, generator: Generator, admission: Admission) -> None:
        self._store = store
        self._generator = generator
        self._admission = admission
        self._context = StoreContext(store, generator)

    def gate(self, info: RequestInfo, kind: Resource | None = None) -> Gate | None:
        """The way of a request through admission; None if no webhook is asked."""
        return admission_gate(self._admission, info, kind)

    async def create(self, info: RequestInfo) -> WriteResult:
        asked = options.for_write(info.request, "CreateOptions")
        return await self._create(info, submitted(info, asked), asked)

    async def put(self, info: RequestInfo) -> WriteResult:
        kind, path = info.kind, info.path
        asked = options.for_write(info.request, "UpdateOptions")
        sent = submitted(info, asked)
        new = sent.obj
        validation.refuse_misplaced(new, path)
        if kind.put_creates and not path.subresource and not self._exists(kind, path):
            validation.refuse_other_uid(kind, "", new)
            return await self._create(info, SubmittedObject(without_version(new), sent.warnings), asked)
        current = self.current(kind, path)
        old = object_forms.as_served(kind, current)
        validation.refuse_other_uid(kind, old["metadata"]["uid"], new)
        if kind.put_needs_version and "resourceVersion" not in new["metadata"]:
            raise statuses.version_required(kind.resource, path.name)
        return await self.change(info, current, old, sent, asked)

    async def patch(self, info: RequestInfo) -> WriteResult:
        """Patch an object by the content type of the request."""
        if info.request.content_type.partition(";")[0].strip() == patches.APPLY:
            return await self._apply(info)
        asked = options.for_write(info.request, "PatchOptions")
        patch = patch_request.patch_in(info.request, info.kind, asked.validation)
        current = self.current(info.kind, info.path)
        old = object_forms.as_served(info.kind, current)
        try:
            made = patch.made_of(
                info.kind, object_forms.with_owners(old, current.owners) if patch.is_about_owners else old
            )
        except Refused:
            made = patch.made_of(
                info.kind, object_forms.with_owners(old, current.owners)
            )  # the refusal quotes all of the object
        validation.refuse_misplaced(made.obj, info.path)
        return await self.change(info, current, old, SubmittedObject(made.obj, made.warnings), asked)

    async def delete(self, info: RequestInfo, asked: DeleteOptions) -> Version | None:
        """Delete an object; gives it if it stays for now, with a deletionTimestamp."""
        current = self.current(info.kind, info.path)
        await self._admit_deletion(info, current, asked)
        return self.delete_admitted(info.kind, current, asked)

    async def delete_all(self, info: RequestInfo, selection: Selection, asked: DeleteOptions) -> list[Version]:
        """Delete the selected objects; gives what they were."""
        snapshot = self._store.all(info.kind).at(self._store.number)
        chosen = [version for version in snapshot.within(selection.prefix) if selection.selects(version)]
        for version in chosen:
            await self._delete_one_of_many(info, version, asked)
        return chosen

    def current(self, kind: Kind, path: ResourcePath) -> Version:
        """The newest version of an object."""
        found = self._store.all(kind).get(key_of(path.namespace, path.name))
        if found is None:
            raise statuses.not_found(kind.resource, path.name)
        return found

    async def change(
        self,
        info: RequestInfo,
        current: Version,
        old: Untyped,
        sent: SubmittedObject,
        asked: WriteOptions,
        *,
        validate: Validate | None = None,
    ) -> WriteResult:
        """Store the next state of an object, if it differs. `validate` is asked in place of webhooks."""
        with statuses.with_warnings(sent.warnings):
            return await self._change(info, current, old, sent, asked, validate)

    async def _change(
        self,
        info: RequestInfo,
        current: Version,
        old: Untyped,
        sent: SubmittedObject,
        asked: WriteOptions,
        validate: Validate | None,
    ) -> WriteResult:
        kind, part = info.kind, info.path.subresource
        validation.refuse_stale(kind, current, sent.obj)
        validation.check_change(kind, old, sent.obj)
        new = sent.obj if part == "finalize" else object_forms.with_defaults(kind, sent.obj, old)
        owners = sent.owners or self._owners_after(info, current, old, object_forms.with_zero_values(kind, new), asked)
        gate = None if validate else self.gate(info)
        if gate:
            new = await self._mutated_change(gate, info, current, old, new, owners)
        result = self._next_state(info, old, new)
        if gate:
            await gate.validate(
                "UPDATE", object_forms.with_owners(result, owners), object_forms.with_owners(old, current.owners)
            )
        elif validate:
            await validate(result)
        result = object_forms.as_stored(kind, result)
        version = version_of(kind, current.key, current.number, result, owners)
        warnings = (*sent.warnings, *object_forms.warnings(kind, result, old))
        if asked.dry_run or (version.body == current.body and owners.same_but_for_times(current.owners)):
            return WriteResult(200, version, warnings)
        if deletion.can_be_removed(kind, result):
            self._store.remove(kind, current)
            return WriteResult(200, version, warnings)
        return WriteResult(200, self._store.replace(kind, current, result, owners), warnings)

    async def _mutated_change(
        self, gate: Gate, info: RequestInfo, current: Version, old: Untyped, new: Untyped, owners: FieldOwners
    ) -> Untyped:
        """The next state of an object as mutating webhooks want it."""

        def accept(made: Untyped) -> Untyped:
            decoded = changed_by_webhook(info.kind, made)
            return (
                decoded if info.path.subresource == "finalize" else object_forms.with_defaults(info.kind, decoded, old)
            )

        shown = object_forms.with_owners(old, current.owners)
        made = await gate.mutate("UPDATE", object_forms.with_owners(new, owners), shown, accept)
        validation.refuse_misplaced(made, info.path)
        validation.check_change(info.kind, old, made)
        return made

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
            result = object_forms.with_zero_values(kind, preparation.prepare_update(kind, old, new, part))
            validation.check_status(kind, old, result)
            return result
        carried = kind.rules.prepare_changed(old, preparation.with_old_status(kind, old, new))
        result = object_forms.with_zero_values(
            kind, preparation.prepare_update(kind, old, kind.rules.allocate_changed(old, carried, self._context))
        )
        validation.check_result(kind, old, result)
        return result

    async def _create(self, info: RequestInfo, sent: SubmittedObject, asked: WriteOptions) -> WriteResult:
        kind, namespace, obj = info.kind, info.path.namespace, sent.obj
        validation.refuse_other_namespace(obj, namespace)
        if obj["metadata"].get("resourceVersion"):
            raise statuses.internal_error("resourceVersion should not be set on objects to be created")
        if kind.resource.namespaced:
            namespaces.refuse_missing_or_terminating(self._store, kind, namespace, obj["metadata"].get("name", ""))
        labelled = namespaces.with_name_label(obj) if kind.resource == NAMESPACES and "name" in obj["metadata"] else obj
        new = kind.rules.with_defaults(labelled)
        manager = manager_name(asked.manager, info.caller.agent)
        owners = sent.owners or after_create(kind.ownership, new, manager=manager, time=self._generator.now())
        with statuses.with_warnings(sent.warnings):
            if gate := self.gate(info):
                new = await _mutated_new(gate, info, new, owners)
            return await self._store_named(info, SubmittedObject(new, sent.warnings, owners), asked)

    async def _store_named(self, info: RequestInfo, sent: SubmittedObject, asked: WriteOptions) -> WriteResult:
        """Store a new object; try other generated names if one is in use."""
        attempts = 1 if sent.obj["metadata"].get("name") else _NAME_ATTEMPTS
        while True:
            attempts -= 1
            try:
                return await self._store_new(info, sent, asked)
            except AlreadyExists as error:
                if not attempts:
                    raise _already_exists(info.kind, error.version) from None

    async def _store_new(self, info: RequestInfo, sent: SubmittedObject, asked: WriteOptions) -> WriteResult:
        kind, owners = info.kind, sent.owners or NO_OWNERS
        prepared = preparation.prepare_create(kind, sent.obj, info.path.namespace, self._generator)
        obj = (
            object_forms.with_zero_values(kind, kind.rules.prepare_new(prepared, self._context))
            if "name" in prepared["metadata"]
            else prepared
        )
        validation.check(kind, obj)
        if gate := self.gate(info):
            await gate.validate("CREATE", object_forms.with_owners(obj, owners), None)
        if kind.resource.namespaced:
            namespaces.refuse_over_quota(self._store, kind, info.path.namespace, obj["metadata"]["name"])
        obj = object_forms.as_stored(kind, obj)
        key = key_of(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        warnings = (*sent.warnings, *object_forms.warnings(kind, obj))
        if not asked.dry_run:
            return WriteResult(201, self._store.create(kind, key, obj, owners), warnings)
        if existing := self._store.all(kind).get(key):
            raise AlreadyExists(existing)
        return WriteResult(201, version_of(kind, key, 0, obj, owners), warnings)

    async def _apply(self, info: RequestInfo) -> WriteResult:
        """Server-side apply: create the object, or merge into it."""
        kind, path = info.kind, info.path
        asked = options.for_apply(info.request)
        config = request_body.applied_object_in(info.request, kind.resource)
        config = {**config, "metadata": {"name": path.name, **(config.get("metadata") or {})}}
        validation.refuse_misplaced(config, path)
        application = ApplyRequest(config, asked.manager, self._generator.now(), asked.force, path.subresource)
        if not path.subresource and not self._exists(kind, path):
            made = NO_OWNERS.after_apply(kind.ownership, None, application)
            return await self._create(info, applied(kind, creatable(kind, made.object), made.owners, asked), asked)
        current = self.current(kind, path)
        old = object_forms.as_served(kind, current)
        validation.refuse_other_uid(kind, old["metadata"]["uid"], config)
        merged = current.owners.after_apply(kind.ownership, old, application)
        return await self.change(info, current, old, applied(kind, merged.object, merged.owners, asked), asked)

    async def _delete_one_of_many(self, info: RequestInfo, chosen: Version, asked: DeleteOptions) -> None:
        """Delete a selected object as it is now; it may be gone since it was selected."""
        current: Version | None = chosen
        while current is not None:
            await self._admit_deletion(info, current, asked)
            try:
                self.delete_admitted(info.kind, current, asked)
            except StaleVersion:
                current = self._store.all(info.kind).get(chosen.key)
            else:
                return

    async def _admit_deletion(self, info: RequestInfo, current: Version, asked: DeleteOptions) -> None:
        """Ask webhooks about a deletion, unless it only waits for the one that is under way."""
        gate = self.gate(info)
        if gate is None:
            return
        old = object_forms.as_served(info.kind, current)
        deletion.check_preconditions(asked.checked_preconditions, info.kind, old["metadata"])
        if not deletion.is_pending(old, asked):
            await gate.delete(object_forms.with_owners(old, current.owners), asked)

    def delete_admitted(self, kind: Kind, current: Version, asked: DeleteOptions) -> Version | None:
        """Delete an object that no webhook needs to be asked about any more."""
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


async def _mutated_new(gate: Gate, info: RequestInfo, new: Untyped, owners: FieldOwners) -> Untyped:
    """A new object as mutating webhooks want it."""
    path, kind = info.path, info.kind
    placed = {"namespace": path.namespace} if path.namespace else {}
    shown = object_forms.with_owners({**new, "metadata": {**new["metadata"], **placed}}, owners)
    made = await gate.mutate("CREATE", shown, None, lambda obj: kind.rules.with_defaults(changed_by_webhook(kind, obj)))
    validation.refuse_other_namespace(made, path.namespace)
    return made


def _already_exists(kind: Kind, existing: Version) -> Refused:
    going = "deletionTimestamp" in existing.decode()["metadata"]
    return statuses.already_exists(kind.resource, existing.name, being_deleted=going)
