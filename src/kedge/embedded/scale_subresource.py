"""Scale subresource: the `Scale` of an object: desired and current replicas, and their selector.

A `Scale` shows one field of the object behind it. Its field owners are those of that field, as if they had written the
`Scale`. What they own of it after a write is put back; writes to the scale have no time, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from kedge.api.openapi.builtin import schema_of
from kedge.api.resource import Resource
from kedge.embedded import options, patch_request, request_body, statuses, validation
from kedge.embedded.admission.gate import Gate
from kedge.embedded.causes import NOT_NEGATIVE, invalid_value
from kedge.embedded.kind import Kind, ScalePaths, value_at
from kedge.embedded.options import WriteOptions
from kedge.embedded.ownership import field_set, managed_fields
from kedge.embedded.ownership.field_owners import FieldOwners
from kedge.embedded.ownership.field_set import FieldSet, difference, intersection
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.embedded.ownership.managed_fields import (
    Entries,
    Entry,
    Manager,
    after_write,
    entry_of,
    manager_name,
    tracked_write,
    with_fields,
)
from kedge.embedded.request_info import RequestInfo
from kedge.embedded.store import Version, encode, part, version_of
from kedge.embedded.submitted import SubmittedObject
from kedge.embedded.tables.cell_text import selector_text
from kedge.embedded.writer import Writer, WriteResult
from kedge.kube.codec import Untyped

SCALES = Resource("autoscaling", "v1", "Scale", "scales")
SCALE_KIND = Kind(SCALES)
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, version: Version) -> Version:
    """An object's Scale."""
    obj, paths = version.decode(), _scale_paths(kind)
    wanted = value_at(obj, paths.spec_replicas) or 0
    status: Untyped = {"replicas": value_at(obj, paths.status_replicas) or 0}
    if selector := _selector(value_at(obj, paths.selector)):
        status["selector"] = selector
    scale = {
        "apiVersion": SCALES.api_version,
        "kind": SCALES.kind,
        "metadata": {key: obj["metadata"][key] for key in _SHOWN if key in obj["metadata"]},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }
    return version_of(SCALE_KIND, version.key, version.number, scale)


async def put_scale(writer: Writer, info: RequestInfo) -> WriteResult:
    """Set the replicas of the Scale that was sent."""
    asked = options.for_write(info.request, "UpdateOptions")
    new = request_body.with_clean_metadata(request_body.object_in(info.request, SCALES))
    validation.refuse_misplaced(new, info.path)
    return await _write_scale(writer, info, new, asked)


async def patch_scale(writer: Writer, info: RequestInfo) -> WriteResult:
    """Set the replicas of the patched Scale."""
    asked = options.for_write(info.request, "PatchOptions")
    change = patch_request.patch_in(info.request, SCALE_KIND, asked.validation)
    old = scale_of(info.kind, writer.current(info.kind, info.path)).decode()
    return await _write_scale(writer, info, change.made_of(SCALE_KIND, old).obj, asked)


async def _write_scale(writer: Writer, info: RequestInfo, scale: Untyped, asked: WriteOptions) -> WriteResult:
    kind = info.kind
    current = writer.current(kind, info.path)
    gate = writer.gate(info, SCALES)
    before = scale_of(kind, current).decode()
    if gate:
        scale = await gate.mutate("UPDATE", scale, before, request_body.with_clean_metadata)
    old = current.decode()
    wanted = part(scale, "spec").get("replicas", 0)
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise statuses.bad_request(f"Scale: spec.replicas is {encode(wanted).decode()}, not an integer")
    if wanted < 0:
        cause = invalid_value("spec.replicas", wanted, NOT_NEGATIVE)
        raise statuses.invalid(SCALES, info.path.name, [cause])
    new = _with(old, _scale_paths(kind).spec_replicas.split("."), wanted)
    named = {key: scale["metadata"][key] for key in ("uid", "resourceVersion") if key in scale["metadata"]}
    new["metadata"] = {**old["metadata"], **named}
    manager = manager_name(asked.manager, info.caller.agent)
    after = {**scale, "spec": {"replicas": wanted}}
    where = [f"f:{step}" for step in _scale_paths(kind).spec_replicas.split(".") if step]
    owners = owners_after_scale(current.owners, kind.ownership, before, after, manager=manager, replicas=where)
    sent = SubmittedObject(new, owners=owners)
    validate = partial(_validate_scale, gate, kind, current) if gate else None
    written = await writer.change(info.without_subresource, current, old, sent, asked, validate=validate)
    return WriteResult(written.code, scale_of(kind, written.version), written.warnings)


async def _validate_scale(gate: Gate, kind: Kind, current: Version, new: Untyped) -> None:
    """Ask webhooks about a Scale, which is all they see of the object."""
    made = version_of(kind, current.key, current.number, new)
    await gate.validate("UPDATE", scale_of(kind, made).decode(), scale_of(kind, current).decode())


def _scale_paths(kind: Kind) -> ScalePaths:
    assert kind.scale is not None, f"{kind.resource} has no scale"
    return kind.scale


def _with(obj: Untyped, steps: list[str], value: int) -> Untyped:
    step, *rest = [step for step in steps if step]
    return {**obj, step: _with(obj.get(step) or {}, rest, value) if rest else value}


def _selector(selector: Any) -> str:
    """A label selector as a string; a string is returned as it is."""
    if not isinstance(selector, dict):
        return selector if isinstance(selector, str) else ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:  # a plain map, as Services have
        return selector_text({"matchLabels": selector})
    return selector_text(selector)


REPLICAS = ("f:spec", "f:replicas")  # where most kinds say how many
SCALE = KindOwnership(
    Resource("autoscaling", "v1", "Scale", "scales"), schema_of("autoscaling", "v1", "Scale"), status=False
)
_IN_SCALE = field_set.single_field(*REPLICAS)


def owners_after_scale(
    owners: FieldOwners,
    ownership: KindOwnership,
    old: Untyped,
    new: Untyped,
    *,
    manager: str,
    replicas: Sequence[str] = REPLICAS,
) -> FieldOwners:
    """The owners after a plain write to the scale; `old` and `new` are the `Scale` before and after."""
    there = managed_fields.decode_entries(owners.encoded())
    shown = _shown(ownership, there, field_set.single_field(*replicas))
    if not shown:
        return owners  # nobody owns it: plain writes are not tracked
    written = after_write(shown, tracked_write(SCALE, old, new, manager=manager, time="", subresource="scale"))
    return FieldOwners(
        managed_fields.encode_entries(_put_back(ownership, there, written, field_set.single_field(*replicas)))
    )


def _shown(ownership: KindOwnership, there: Entries, place: FieldSet) -> Entries:
    """The owners of the replicas, as owners of the scale."""
    return tuple(
        entry_of(entry.by, SCALE.api_version, entry.time, _IN_SCALE)
        for entry in there
        if ownership.serves(entry.api_version) and intersection(entry.fields_v1, place)
    )


def _put_back(ownership: KindOwnership, there: Entries, written: Entries, place: FieldSet) -> Entries:
    """The owners of the object, of its replicas those of the scale."""
    still = {entry.by for entry in written}
    lasting = tuple(_without_replicas(ownership, there, still, place))
    kept = {entry.by for entry in lasting if intersection(entry.fields_v1, place)}
    new = [entry for entry in written if entry.by not in kept and intersection(entry.fields_v1, _IN_SCALE)]
    return (*lasting, *(entry_of(entry.by, ownership.api_version, "", place) for entry in new))


def _without_replicas(
    ownership: KindOwnership, there: Entries, still: set[Manager], place: FieldSet
) -> Iterator[Entry]:
    for entry in there:
        if not ownership.serves(entry.api_version):
            continue
        # One who updates in the version of the object is nobody the scale knows, and loses the field to itself.
        left = entry.fields_v1 if entry.by in still else difference(entry.fields_v1, place)
        if left:
            yield entry if left is entry.fields_v1 else with_fields(entry, left)
