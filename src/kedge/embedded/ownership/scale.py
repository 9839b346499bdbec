"""Scale: who owns the replicas of an object after a write to its `scale`.

A `Scale` shows one field of the object behind it, and so do its owners: those of that field, as if they had written
the `Scale`. What they own of it afterwards is put back, for writes to the scale without a time, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kedge.api.openapi.builtin import schema_of
from kedge.api.resource import Resource
from kedge.embedded.ownership import entries as lists
from kedge.embedded.ownership import fields
from kedge.embedded.ownership.apply import Application, apply
from kedge.embedded.ownership.entries import Entries, Entry, Manager, entry_of, owning
from kedge.embedded.ownership.fields import Fields, difference, intersection
from kedge.embedded.ownership.owners import Applied, Owners
from kedge.embedded.ownership.terms import Terms, Untyped
from kedge.embedded.ownership.tracking import step, tracked

REPLICAS = ("f:spec", "f:replicas")  # where most kinds say how many
SCALE = Terms(Resource("autoscaling", "v1", "Scale", "scales"), schema_of("autoscaling", "v1", "Scale"), status=False)
_IN_SCALE = fields.path(*REPLICAS)


def scaled(
    owners: Owners, terms: Terms, old: Untyped, new: Untyped, *, manager: str, replicas: Sequence[str] = REPLICAS
) -> Owners:
    """The owners after a plain write to the scale; `old` and `new` are the `Scale` before and after."""
    there = lists.decode(owners.encoded())
    shown = _shown(terms, there, fields.path(*replicas))
    if not shown:
        return owners  # nobody owns it: plain writes are not tracked
    written = tracked(shown, step(SCALE, old, new, manager=manager, time="", subresource="scale"))
    return Owners(lists.encode(_put_back(terms, there, written, fields.path(*replicas))))


def scale_applied(
    owners: Owners, terms: Terms, live: Untyped, asked: Application, *, replicas: Sequence[str] = REPLICAS
) -> Applied:
    """The `Scale` and the owners after somebody applies to the scale. Refuses conflicts."""
    there = lists.decode(owners.encoded())
    outcome = apply(SCALE, live, _shown(terms, there, fields.path(*replicas)), asked)
    back = _put_back(terms, there, outcome.entries, fields.path(*replicas))
    return Applied(outcome.object, Owners(lists.encode(back)))


def _shown(terms: Terms, there: Entries, place: Fields) -> Entries:
    """The owners of the replicas, as owners of the scale."""
    return tuple(
        entry_of(entry.by, SCALE.api_version, entry.time, _IN_SCALE)
        for entry in there
        if terms.serves(entry.api_version) and intersection(entry.fields_v1, place)
    )


def _put_back(terms: Terms, there: Entries, written: Entries, place: Fields) -> Entries:
    """The owners of the object, of its replicas those of the scale."""
    still = {entry.by for entry in written}
    lasting = tuple(_without_replicas(terms, there, still, place))
    kept = {entry.by for entry in lasting if intersection(entry.fields_v1, place)}
    new = [entry for entry in written if entry.by not in kept and intersection(entry.fields_v1, _IN_SCALE)]
    return (*lasting, *(entry_of(entry.by, terms.api_version, "", place) for entry in new))


def _without_replicas(terms: Terms, there: Entries, still: set[Manager], place: Fields) -> Iterator[Entry]:
    for entry in there:
        if not terms.serves(entry.api_version):
            continue
        # One who updates in the version of the object is nobody the scale knows, and loses the field to itself.
        left = entry.fields_v1 if entry.by in still else difference(entry.fields_v1, place)
        if left:
            yield entry if left is entry.fields_v1 else owning(entry, left)
