"""Scale ownership: who owns the replicas of an object after a write to its `scale`.

A `Scale` shows one field of the object behind it. Its owners are those of that field, as if they had written the
`Scale`. What they own of it afterwards is put back; writes to the scale have no time, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kedge.api.openapi.builtin import schema_of
from kedge.api.resource import Resource
from kedge.embedded.ownership import field_set, managed_fields
from kedge.embedded.ownership.field_owners import FieldOwners
from kedge.embedded.ownership.field_set import FieldSet, difference, intersection
from kedge.embedded.ownership.kind_ownership import KindOwnership, Untyped
from kedge.embedded.ownership.managed_fields import (
    Entries,
    Entry,
    Manager,
    after_write,
    entry_of,
    tracked_write,
    with_fields,
)

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
