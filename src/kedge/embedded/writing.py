"""Writing: create, replace, patch, apply and delete, each as one step of the store.

A write reads the newest version, works out the next one, checks it, and keeps it; if nothing changed, nothing is
written, and the resourceVersion stays. A dry run stops short of keeping.
"""

from __future__ import annotations

from collections.abc import Callable

from kedge.embedded import bodies, deletion, namespaces, objects, options, statuses, validation
from kedge.embedded.options import DeleteOptions, WriteOptions
from kedge.embedded.patching import json_patch, merge_patch, overlay
from kedge.embedded.paths import Place
from kedge.embedded.registry import NAMESPACES, Kind
from kedge.embedded.selectors import Wanted
from kedge.embedded.stamps import Stamps
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store, Taken, Untyped, Version, encode, key_of
from kedge.kube import patches
from kedge.kube.patches import JsonPatch, MergePatch
from kedge.kube.transport import Request

_NAME_ATTEMPTS = 8  # before two objects that were to be named by the server are called a conflict


class Writing:
    """The writes of one server. Each gives the HTTP code and the bytes to answer with."""

    def __init__(self, store: Store, stamps: Stamps) -> None:
        self._store = store
        self._stamps = stamps

    def create(self, kind: Kind, place: Place, request: Request) -> tuple[int, bytes]:
        asked = options.for_write(request, "CreateOptions")
        return self._create(kind, place.namespace, bodies.posted(request, kind.resource), asked)

    def put(self, kind: Kind, place: Place, request: Request) -> tuple[int, bytes]:
        asked = options.for_write(request, "UpdateOptions")
        new = bodies.posted(request, kind.resource)
        _refuse_misplaced(new, place)
        if kind.put_creates and not place.subresource and not self._is_there(kind, place):
            _refuse_other_uid(kind, "", new)
            return self._create(kind, place.namespace, _without_version(new), asked)
        seen = self._seen(kind, place)
        old = seen.decode()
        _refuse_other_uid(kind, old["metadata"]["uid"], new)
        if kind.put_needs_version and "resourceVersion" not in new["metadata"]:
            raise statuses.must_name_version(kind.resource, place.name)
        return 200, self._change(kind, place, seen, old, new, asked)

    def patch(self, kind: Kind, place: Place, request: Request) -> tuple[int, bytes]:
        """Change part of an object, in one of the ways the content type names."""
        match request.content_type.partition(";")[0].strip():
            case MergePatch.content_type:
                patch = bodies.merge_from(request)
                return self._patch(kind, place, request, lambda old: merge_patch(old, patch))
            case JsonPatch.content_type:
                operations = bodies.operations_from(request)
                return self._patch(kind, place, request, lambda old: json_patch(old, operations))
            case patches.APPLY:
                return self._apply(kind, place, request)
        raise statuses.unsupported_type(JsonPatch.content_type, MergePatch.content_type, patches.APPLY)

    def delete(self, kind: Kind, place: Place, request: Request) -> tuple[int, bytes]:
        asked = options.for_delete(request)
        seen = self._seen(kind, place)
        return 200, self._delete(kind, seen, asked)

    def delete_all(self, kind: Kind, wanted: Wanted, request: Request) -> list[Version]:
        """Delete what is wanted; gives what that was."""
        asked = options.for_delete(request)
        snapshot = self._store.all(kind).at(self._store.number)
        chosen = [version for version in snapshot.within(wanted.prefix) if wanted.selects(version)]
        for version in chosen:
            self._delete(kind, version, asked)
        return chosen

    def _create(self, kind: Kind, namespace: str, obj: Untyped, asked: WriteOptions) -> tuple[int, bytes]:
        _refuse_other_namespace(obj, namespace)
        if obj["metadata"].get("resourceVersion"):
            raise statuses.internal("resourceVersion should not be set on objects to be created")
        if kind.resource.namespaced:
            namespaces.refuse_closed(self._store, kind, namespace, obj["metadata"].get("name", ""))
        attempts = 1 if obj["metadata"].get("name") else _NAME_ATTEMPTS
        while True:
            attempts -= 1
            try:
                return 201, self._keep_new(kind, objects.born(kind, obj, namespace, self._stamps), asked)
            except Taken as error:
                if not attempts:
                    raise _already_there(kind, error.version) from None

    def _keep_new(self, kind: Kind, obj: Untyped, asked: WriteOptions) -> bytes:
        validation.check(kind, obj)
        key = key_of(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if not asked.dry_run:
            return self._store.create(kind, key, obj).body
        if existing := self._store.all(kind).get(key):
            raise Taken(existing)
        return encode(obj)

    def _patch(
        self, kind: Kind, place: Place, request: Request, patched: Callable[[Untyped], Untyped]
    ) -> tuple[int, bytes]:
        asked = options.for_write(request, "PatchOptions")
        seen = self._seen(kind, place)
        old = seen.decode()
        new = _still_of_kind(kind, patched(old))
        _refuse_misplaced(new, place)
        return 200, self._change(kind, place, seen, old, new, asked)

    def _apply(self, kind: Kind, place: Place, request: Request) -> tuple[int, bytes]:
        """Create, or lay over what is there: see `patching.overlay` for what this is not yet."""
        asked = options.for_apply(request)
        applied = bodies.applied(request, kind.resource)
        applied["metadata"] = {"name": place.name, **applied["metadata"]}
        _refuse_misplaced(applied, place)
        seen = self._store.all(kind).get(key_of(place.namespace, place.name))
        if seen is None and not place.subresource:
            return self._create(kind, place.namespace, _fit_to_create(kind, applied), asked)
        seen = self._seen(kind, place)
        old = seen.decode()
        return 200, self._change(kind, place, seen, old, overlay(old, applied), asked)

    def _change(
        self, kind: Kind, place: Place, seen: Version, old: Untyped, new: Untyped, asked: WriteOptions
    ) -> bytes:
        """Keep the next state of an object, if it is one."""
        _refuse_stale(kind, seen, new)
        validation.check_change(kind, old, new)
        result = objects.changed(kind, old, new, place.subresource)
        validation.check(kind, result)
        body = encode(result)
        if asked.dry_run or body == seen.body:
            return body
        if deletion.may_go(kind, result):
            self._store.remove(kind, seen)
            return body
        return self._store.replace(kind, seen, result).body

    def _delete(self, kind: Kind, seen: Version, asked: DeleteOptions) -> bytes:
        obj = seen.decode()
        deletion.refuse_unless(asked.must, kind, obj["metadata"])
        if kind.resource == NAMESPACES:
            namespaces.refuse_immortal(seen.name)
        marked = deletion.marked(kind, obj, asked.grace_period_seconds, self._stamps)
        if deletion.may_go(kind, marked):
            if not asked.dry_run:
                self._store.remove(kind, seen)
            return statuses.deleted(kind.resource, seen.name, obj["metadata"]["uid"])
        if asked.dry_run or marked is obj:
            return encode(marked)
        return self._store.replace(kind, seen, marked).body

    def _is_there(self, kind: Kind, place: Place) -> bool:
        return self._store.all(kind).get(key_of(place.namespace, place.name)) is not None

    def _seen(self, kind: Kind, place: Place) -> Version:
        found = self._store.all(kind).get(key_of(place.namespace, place.name))
        if found is None:
            raise statuses.not_found(kind.resource, place.name)
        return found


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


def _refuse_misplaced(obj: Untyped, place: Place) -> None:
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
