"""Writing: create, replace, patch, apply and delete, each as one step of the store.

A write reads the newest version, works out the next one, checks it, and keeps it; if nothing changed, nothing is
written, and the resourceVersion stays. A dry run stops short of keeping.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kedge.embedded import bodies, deletion, namespaces, objects, options, patched, quotas, statuses, validation
from kedge.embedded.around import Around
from kedge.embedded.asking import Order
from kedge.embedded.custom import crd_status
from kedge.embedded.custom.crd import CRDS
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.options import DeleteOptions, WriteOptions
from kedge.embedded.ownership.apply import ApplyRequest
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners, after_create
from kedge.embedded.ownership.managed_fields import manager_name
from kedge.embedded.paths import Place
from kedge.embedded.schema import strict_decoding
from kedge.embedded.schema.zero_values import with_zero_values
from kedge.embedded.selectors import Wanted
from kedge.embedded.stamps import Stamps
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store, Taken, Untyped, Version, key_of, version_of
from kedge.kube import patches

_NAME_ATTEMPTS = 8  # before two objects that were to be named by the server are called a conflict


class Written(Struct, frozen=True):
    """What came of a write: the code to answer with, the object as it is now, and what its writer should know."""

    code: int
    version: Version
    warnings: tuple[str, ...] = ()


class Sent(Struct, frozen=True):
    """What an object is to become, what to warn of, and who owns it then, where that is settled already."""

    obj: Untyped
    warnings: tuple[str, ...] = ()
    owners: FieldOwners | None = None


class Writing:
    """The writes of one server."""

    def __init__(self, store: Store, stamps: Stamps) -> None:
        self._store = store
        self._stamps = stamps
        self._around = Around(store, stamps)

    def create(self, order: Order) -> Written:
        asked = options.for_write(order.request, "CreateOptions")
        return self._create(order, _taken_in(order, asked), asked)

    def put(self, order: Order) -> Written:
        kind, place = order.kind, order.place
        asked = options.for_write(order.request, "UpdateOptions")
        sent = _taken_in(order, asked)
        new = sent.obj
        refuse_misplaced(new, place)
        if kind.put_creates and not place.subresource and not self._is_there(kind, place):
            _refuse_other_uid(kind, "", new)
            return self._create(order, Sent(_without_version(new), sent.warnings), asked)
        seen = self.seen(kind, place)
        old = _read(kind, seen)
        _refuse_other_uid(kind, old["metadata"]["uid"], new)
        if kind.put_needs_version and "resourceVersion" not in new["metadata"]:
            raise statuses.must_name_version(kind.resource, place.name)
        return self.change(order, seen, old, sent, asked)

    def patch(self, order: Order) -> Written:
        """Change part of an object, in one of the ways the content type names."""
        if order.request.content_type.partition(";")[0].strip() == patches.APPLY:
            return self._apply(order)
        asked = options.for_write(order.request, "PatchOptions")
        patch = patched.asked_for(order.request, order.kind, asked.validation)
        seen = self.seen(order.kind, order.place)
        old = _read(order.kind, seen)
        try:
            made = patch.made_of(order.kind, _with_owners(old, seen) if patch.is_about_owners else old)
        except Refused:
            made = patch.made_of(order.kind, _with_owners(old, seen))  # the refusal quotes all of the object
        refuse_misplaced(made.obj, order.place)
        return self.change(order, seen, old, Sent(made.obj, made.warnings), asked)

    def delete(self, kind: Kind, place: Place, asked: DeleteOptions) -> Version | None:
        """Delete an object; gives it if it stays for now, marked."""
        return self._delete(kind, self.seen(kind, place), asked)

    def delete_all(self, kind: Kind, wanted: Wanted, asked: DeleteOptions) -> list[Version]:
        """Delete what is wanted; gives what that was."""
        snapshot = self._store.all(kind).at(self._store.number)
        chosen = [version for version in snapshot.within(wanted.prefix) if wanted.selects(version)]
        for version in chosen:
            self._delete(kind, version, asked)
        return chosen

    def seen(self, kind: Kind, place: Place) -> Version:
        """The object at a place, as it is now."""
        found = self._store.all(kind).get(key_of(place.namespace, place.name))
        if found is None:
            raise statuses.not_found(kind.resource, place.name)
        return found

    def change(self, order: Order, seen: Version, old: Untyped, sent: Sent, asked: WriteOptions) -> Written:
        """Keep the next state of an object, if it is one."""
        with statuses.warned(sent.warnings):
            return self._change(order, seen, old, sent, asked)

    def _change(self, order: Order, seen: Version, old: Untyped, sent: Sent, asked: WriteOptions) -> Written:
        kind, part = order.kind, order.place.subresource
        _refuse_stale(kind, seen, sent.obj)
        validation.check_change(kind, old, sent.obj)
        new = sent.obj if part == "finalize" else _complete(kind, sent.obj, old)
        owners = sent.owners or self._owners_after(order, seen, old, _filled(kind, new), asked)
        result = _kept(kind, self._next_state(order, old, new))
        version = version_of(kind, seen.key, seen.number, result, owners)
        warnings = (*sent.warnings, *_warnings(kind, result, old))
        if asked.dry_run or (version.body == seen.body and owners.same_but_for_times(seen.owners)):
            return Written(200, version, warnings)
        if deletion.may_go(kind, result):
            self._store.remove(kind, seen)
            return Written(200, version, warnings)
        return Written(200, self._store.replace(kind, seen, result, owners), warnings)

    def _owners_after(
        self, order: Order, seen: Version, old: Untyped, new: Untyped, asked: WriteOptions
    ) -> FieldOwners:
        """Who owns what after a plain write."""
        return seen.owners.after_update(
            order.kind.ownership,
            old,
            new,
            manager=manager_name(asked.manager, order.caller.agent),
            time=self._stamps.now(),
            subresource=order.place.subresource,
        )

    def _next_state(self, order: Order, old: Untyped, new: Untyped) -> Untyped:
        """What a write makes of an object; refused if it breaks a rule."""
        kind, part = order.kind, order.place.subresource
        if part:
            result = _filled(kind, objects.changed(kind, old, new, part))
            validation.check_status(kind, old, result)
            return result
        carried = kind.rules.prepare_changed(old, objects.with_status_of(kind, old, new))
        result = _filled(kind, objects.changed(kind, old, kind.rules.allocate_changed(old, carried, self._around)))
        validation.check_result(kind, old, result)
        return result

    def _create(self, order: Order, sent: Sent, asked: WriteOptions) -> Written:
        kind, namespace, obj = order.kind, order.place.namespace, sent.obj
        _refuse_other_namespace(obj, namespace)
        if obj["metadata"].get("resourceVersion"):
            raise statuses.internal("resourceVersion should not be set on objects to be created")
        if kind.resource.namespaced:
            namespaces.refuse_closed(self._store, kind, namespace, obj["metadata"].get("name", ""))
        labelled = namespaces.labelled(obj) if kind.resource == NAMESPACES and "name" in obj["metadata"] else obj
        whole = Sent(kind.rules.with_defaults(labelled), sent.warnings, sent.owners)
        with statuses.warned(sent.warnings):
            return self._keep_named(order, whole, asked)

    def _keep_named(self, order: Order, sent: Sent, asked: WriteOptions) -> Written:
        """Keep a new object, under another name if it is to have any and that is taken."""
        attempts = 1 if sent.obj["metadata"].get("name") else _NAME_ATTEMPTS
        while True:
            attempts -= 1
            try:
                return self._keep_new(order, sent, asked)
            except Taken as error:
                if not attempts:
                    raise _already_there(order.kind, error.version) from None

    def _keep_new(self, order: Order, sent: Sent, asked: WriteOptions) -> Written:
        kind = order.kind
        born = objects.born(kind, sent.obj, order.place.namespace, self._stamps)
        obj = _filled(kind, kind.rules.prepare_new(born, self._around)) if "name" in born["metadata"] else born
        validation.check(kind, obj)
        if kind.resource.namespaced:
            quotas.refuse_one_more(self._store, kind, order.place.namespace, obj["metadata"]["name"])
        obj = _kept(kind, obj)
        key = key_of(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        manager = manager_name(asked.manager, order.caller.agent)
        owners = sent.owners or after_create(kind.ownership, sent.obj, manager=manager, time=self._stamps.now())
        warnings = (*sent.warnings, *_warnings(kind, obj))
        if not asked.dry_run:
            return Written(201, self._store.create(kind, key, obj, owners), warnings)
        if existing := self._store.all(kind).get(key):
            raise Taken(existing)
        return Written(201, version_of(kind, key, 0, obj, owners), warnings)

    def _apply(self, order: Order) -> Written:
        """Server-side apply: create, or merge into what is there, as one of its owners."""
        kind, place = order.kind, order.place
        asked = options.for_apply(order.request)
        config = bodies.applied(order.request, kind.resource)
        config = {**config, "metadata": {"name": place.name, **(config.get("metadata") or {})}}
        refuse_misplaced(config, place)
        application = ApplyRequest(config, asked.manager, self._stamps.now(), asked.force, place.subresource)
        if not place.subresource and not self._is_there(kind, place):
            made = NO_OWNERS.after_apply(kind.ownership, None, application)
            return self._create(order, _merged(kind, _fit_to_create(kind, made.object), made.owners, asked), asked)
        seen = self.seen(kind, place)
        old = _read(kind, seen)
        _refuse_other_uid(kind, old["metadata"]["uid"], config)
        merged = seen.owners.after_apply(kind.ownership, old, application)
        return self.change(order, seen, old, _merged(kind, merged.object, merged.owners, asked), asked)

    def _delete(self, kind: Kind, seen: Version, asked: DeleteOptions) -> Version | None:
        obj = seen.decode()
        deletion.refuse_unless(asked.must, kind, obj["metadata"])
        if kind.resource == NAMESPACES:
            namespaces.refuse_immortal(seen.name)
        marked = deletion.marked(kind, deletion.held(obj, asked), asked.grace_period_seconds, self._stamps)
        if kind.resource == CRDS and not obj["metadata"].get("deletionTimestamp"):
            marked = crd_status.mark_terminating(marked, self._stamps.now())
        if deletion.may_go(kind, marked):
            if not asked.dry_run:
                self._store.remove(kind, seen)
            return None
        if asked.dry_run or marked == obj:
            return version_of(kind, seen.key, seen.number, marked, seen.owners)
        return self._store.replace(kind, seen, marked)

    def _is_there(self, kind: Kind, place: Place) -> bool:
        return self._store.all(kind).get(key_of(place.namespace, place.name)) is not None


def _warnings(kind: Kind, obj: Untyped, old: Untyped | None = None) -> Iterable[str]:
    return kind.custom.warnings(obj, old) if kind.custom else kind.rules.warnings(obj)


def _read(kind: Kind, seen: Version) -> Untyped:
    """An object as the asked version of its kind has it."""
    return kind.custom.to_served(seen.decode(), seen.number) if kind.custom else seen.decode()


def _complete(kind: Kind, obj: Untyped, old: Untyped) -> Untyped:
    """The next state of an object with its defaults."""
    return kind.custom.with_defaults(obj, old) if kind.custom else kind.rules.with_defaults(obj)


def _kept(kind: Kind, obj: Untyped) -> Untyped:
    """An object as it is stored."""
    return kind.custom.to_stored(obj) if kind.custom else obj


def _with_owners(obj: Untyped, seen: Version) -> Untyped:
    """The object as clients see it, who may change who owns its fields."""
    return {**obj, "metadata": {**obj["metadata"], "managedFields": seen.owners.entries()}}


def _taken_in(order: Order, asked: WriteOptions) -> Sent:
    """The object that was sent whole."""
    return _taken(order.kind, bodies.posted(order.request, order.kind.resource), bodies.json_text(order.request), asked)


def _taken(kind: Kind, obj: Untyped, text: bytes, asked: WriteOptions) -> Sent:
    schema, custom = kind.schema, kind.custom is not None
    if schema is None:
        return Sent(bodies.of_kind(obj, kind.resource))
    found = strict_decoding.decode_sent(schema, kind.resource, obj, text, asked.validation, custom=custom)
    return Sent(bodies.shaped(found.obj, obj), found.warnings)


def _merged(kind: Kind, obj: Untyped, owners: FieldOwners, asked: WriteOptions) -> Sent:
    """What an apply made, read as if it had been sent."""
    if kind.custom:
        validation.refuse_nulls(kind, obj)
    sent = _taken(kind, obj, b"", asked)
    return Sent(sent.obj, sent.warnings, owners)


def _filled(kind: Kind, obj: Untyped) -> Untyped:
    """The object with what kube-apiserver always writes."""
    schema = kind.schema
    return obj if schema is None or kind.custom else with_zero_values(schema, obj)


def _fit_to_create(kind: Kind, applied: Untyped) -> Untyped:
    """What to create when there is nothing to lay it over."""
    metadata = dict(applied["metadata"])
    metadata.pop("resourceVersion", None)
    if uid := metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise statuses.conflict(kind.resource, metadata["name"], why)
    return {**applied, "metadata": metadata}


def refuse_misplaced(obj: Untyped, place: Place) -> None:
    """Refuse an object that says it is another than the path says."""
    name = obj["metadata"].get("name")
    if not name:
        why = "name must be provided"
        raise statuses.bad_request(f"the name of the object ({place.name} based on URL) was undeterminable: {why}")
    if name != place.name:
        raise statuses.bad_request(f"the name of the object ({name}) does not match the name on the URL ({place.name})")
    _refuse_other_namespace(obj, place.namespace)


def _refuse_other_namespace(obj: Untyped, namespace: str) -> None:
    # Of a cluster-scoped object the namespace is dropped, as kube-apiserver does.
    if namespace and obj["metadata"].get("namespace", namespace) != namespace:
        raise statuses.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _without_version(obj: Untyped) -> Untyped:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


def _refuse_other_uid(kind: Kind, there: str, new: Untyped) -> None:
    sent = new["metadata"].get("uid")
    if sent and sent != there:
        why = f"Precondition failed: UID in precondition: {sent}, UID in object meta: {there}"
        raise statuses.conflict(kind.resource, new["metadata"]["name"], why)


def _refuse_stale(kind: Kind, seen: Version, new: Untyped) -> None:
    version = new["metadata"].get("resourceVersion")
    if version and options.number(version) != seen.number:
        raise statuses.conflict(kind.resource, seen.name)


def _already_there(kind: Kind, existing: Version) -> Refused:
    going = "deletionTimestamp" in existing.decode()["metadata"]
    return statuses.already_exists(kind.resource, existing.name, being_deleted=going)
