"""Writing: create, replace, patch, apply and delete, each as one step of the store.

A write reads the newest version, works out the next one, checks it, and keeps it; if nothing changed, nothing is
written, and the resourceVersion stays. A dry run stops short of keeping.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.embedded import bodies, deletion, namespaces, objects, options, patching, statuses, validation
from kedge.embedded.around import Around
from kedge.embedded.callers import Caller
from kedge.embedded.options import DeleteOptions, WriteOptions
from kedge.embedded.patching import overlay
from kedge.embedded.paths import Place
from kedge.embedded.registry import NAMESPACES, Kind
from kedge.embedded.selectors import Wanted
from kedge.embedded.stamps import Stamps
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store, Taken, Untyped, Version, encode, key_of, version_of
from kedge.kube import patches
from kedge.kube.transport import Request

_NAME_ATTEMPTS = 8  # before two objects that were to be named by the server are called a conflict


class Written(Struct, frozen=True):
    """What came of a write: the code to answer with, the object as it is now, and what its writer should know."""

    code: int
    version: Version
    warnings: tuple[str, ...] = ()


class Order(Struct, frozen=True):
    """One write, as it was asked for."""

    kind: Kind
    place: Place
    request: Request
    caller: Caller


class Writing:
    """The writes of one server."""

    def __init__(self, store: Store, stamps: Stamps) -> None:
        self._store = store
        self._stamps = stamps
        self._around = Around(store, stamps)

    def create(self, order: Order) -> Written:
        asked = options.for_write(order.request, "CreateOptions")
        return self._create(order, bodies.posted(order.request, order.kind.resource), asked)

    def put(self, order: Order) -> Written:
        kind, place = order.kind, order.place
        asked = options.for_write(order.request, "UpdateOptions")
        new = bodies.posted(order.request, kind.resource)
        refuse_misplaced(new, place)
        if kind.put_creates and not place.subresource and not self._is_there(kind, place):
            _refuse_other_uid(kind, "", new)
            return self._create(order, _without_version(new), asked)
        seen = self.seen(kind, place)
        old = seen.decode()
        _refuse_other_uid(kind, old["metadata"]["uid"], new)
        if kind.put_needs_version and "resourceVersion" not in new["metadata"]:
            raise statuses.must_name_version(kind.resource, place.name)
        return self.change(order, seen, old, new, asked)

    def patch(self, order: Order) -> Written:
        """Change part of an object, in one of the ways the content type names."""
        if order.request.content_type.partition(";")[0].strip() == patches.APPLY:
            return self._apply(order)
        patch = patching.asked_for(order.request)
        asked = options.for_write(order.request, "PatchOptions")
        seen = self.seen(order.kind, order.place)
        old = seen.decode()
        new = _still_of_kind(order.kind, patch(old))
        refuse_misplaced(new, order.place)
        return self.change(order, seen, old, new, asked)

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

    def change(self, order: Order, seen: Version, old: Untyped, new: Untyped, asked: WriteOptions) -> Written:
        """Keep the next state of an object, if it is one."""
        kind = order.kind
        _refuse_stale(kind, seen, new)
        validation.check_change(kind, old, new)
        result = self._next_state(order, old, new)
        version = version_of(kind, seen.key, seen.number, result)
        if asked.dry_run or version.body == seen.body:
            return Written(200, version)
        if deletion.may_go(kind, result):
            self._store.remove(kind, seen)
            return Written(200, version)
        return Written(200, self._store.replace(kind, seen, result))

    def _next_state(self, order: Order, old: Untyped, new: Untyped) -> Untyped:
        """What a write makes of an object; refused if it breaks a rule."""
        kind, part = order.kind, order.place.subresource
        if part:
            result = objects.changed(kind, old, new, part)
            validation.check_status(kind, result)
            return result
        kept = kind.rules.carry(old, kind.rules.complete(new))
        result = objects.changed(kind, old, kind.rules.renew(old, kept, self._around))
        validation.check_result(kind, old, result)
        return result

    def _create(self, order: Order, obj: Untyped, asked: WriteOptions) -> Written:
        kind, namespace = order.kind, order.place.namespace
        _refuse_other_namespace(obj, namespace)
        if obj["metadata"].get("resourceVersion"):
            raise statuses.internal("resourceVersion should not be set on objects to be created")
        if kind.resource.namespaced:
            namespaces.refuse_closed(self._store, kind, namespace, obj["metadata"].get("name", ""))
        whole = kind.rules.complete(obj)
        attempts = 1 if obj["metadata"].get("name") else _NAME_ATTEMPTS
        while True:
            attempts -= 1
            try:
                return Written(201, self._keep_new(kind, objects.born(kind, whole, namespace, self._stamps), asked))
            except Taken as error:
                if not attempts:
                    raise _already_there(kind, error.version) from None

    def _keep_new(self, kind: Kind, born: Untyped, asked: WriteOptions) -> Version:
        obj = kind.rules.begin(born, self._around) if "name" in born["metadata"] else born
        validation.check(kind, obj)
        key = key_of(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if not asked.dry_run:
            return self._store.create(kind, key, obj)
        if existing := self._store.all(kind).get(key):
            raise Taken(existing)
        return version_of(kind, key, 0, obj)

    def _apply(self, order: Order) -> Written:
        """Create, or lay over what is there: see `patching.overlay` for what this is not yet."""
        kind, place = order.kind, order.place
        asked = options.for_apply(order.request)
        applied = bodies.applied(order.request, kind.resource)
        applied["metadata"] = {"name": place.name, **applied["metadata"]}
        refuse_misplaced(applied, place)
        if not place.subresource and not self._is_there(kind, place):
            return self._create(order, _fit_to_create(kind, applied), asked)
        seen = self.seen(kind, place)
        old = seen.decode()
        return self.change(order, seen, old, overlay(old, applied), asked)

    def _delete(self, kind: Kind, seen: Version, asked: DeleteOptions) -> Version | None:
        obj = seen.decode()
        deletion.refuse_unless(asked.must, kind, obj["metadata"])
        if kind.resource == NAMESPACES:
            namespaces.refuse_immortal(seen.name)
        marked = deletion.marked(kind, deletion.held(obj, asked), asked.grace_period_seconds, self._stamps)
        if deletion.may_go(kind, marked):
            if not asked.dry_run:
                self._store.remove(kind, seen)
            return None
        if asked.dry_run or marked == obj:
            return version_of(kind, seen.key, seen.number, marked)
        return self._store.replace(kind, seen, marked)

    def _is_there(self, kind: Kind, place: Place) -> bool:
        return self._store.all(kind).get(key_of(place.namespace, place.name)) is not None


def _still_of_kind(kind: Kind, patched: object) -> Untyped:
    """What a patch made of an object, unless it made it something else."""
    resource = kind.resource
    if not isinstance(patched, dict) or (patched.get("apiVersion"), patched.get("kind")) != (
        resource.api_version,
        resource.kind,
    ):
        cause = statuses.wrong("patch", encode(patched).decode(), f"it made the object no {resource.kind} any more")
        raise statuses.invalid(resource, "", [cause])
    return bodies.of_kind(patched, resource)


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
