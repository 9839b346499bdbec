"""Judging: whether a journey with kills went as safely as one without, and ended the same.

By raw watches and audit logs alone; what Kedge says of itself is only compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from controlplane.cluster import Cluster
from fleet.bed import MEMBERS
from fleet.comparing import compare
from fleet.journey import BAD, NAMESPACE, Record
from fleet.watching import Happening, image, is_available

_USERS = ("deployments", "configmaps", "namespaces")
"""What users have placed; pods and the like come and go by themselves."""


def judge(record: Record, calm: Record, clusters: Mapping[str, Cluster]) -> list[str]:
    """All that is wrong with a journey, given one that nobody disturbed."""
    return [
        *other_end(record, calm),
        *other_clusters(record, calm),
        *removals(record, calm),
        *deletes(record, calm, clusters),
        *disruptions(record),
        *too_many_unavailable(record),
        *bad_releases(record),
    ]


def other_end(record: Record, calm: Record) -> Iterator[str]:
    """Everything on the hub and on the members is as it would have been."""
    yield from map(str, compare(calm.rest, record.rest))
    theirs = {_place(found.where, found.obj) for found in calm.rest.objects if found.where != "hub"}
    ours = {_place(found.where, found.obj) for found in record.rest.objects if found.where != "hub"}
    yield from (f"{'/'.join(one)} should not be there" for one in sorted(ours - theirs))
    if record.configs != calm.configs:
        yield f"ConfigMaps hold {record.configs} instead of {calm.configs}"


def _place(where: str, obj: dict[str, object]) -> tuple[str, str, str, str]:
    meta = obj["metadata"]
    assert isinstance(meta, dict)
    return where, str(obj["kind"]), str(meta.get("namespace", "")), str(meta["name"])


def other_clusters(record: Record, calm: Record) -> Iterator[str]:
    """After every step the same clusters hold the Deployment, and each has as often been given it."""
    for ours, theirs in zip(record.stretches, calm.stretches, strict=True):
        if ours.holders != theirs.holders:
            yield f"{ours.step.name}: held by {sorted(ours.holders)} instead of {sorted(theirs.holders)}"
    for member in MEMBERS:
        if len(_uids(record, member)) != len(_uids(calm, member)):
            yield f"{member}: Deployments {_uids(record, member)}, instead of {len(_uids(calm, member))}"


def _uids(record: Record, member: str) -> set[str]:
    return {one.obj["metadata"]["uid"] for one in record.deployments if one.where == member}


def removals(record: Record, calm: Record) -> Iterator[str]:
    """Deployments, Works and bindings go only where the cluster is deselected."""
    for one in (*record.deployments, *record.on_hub):
        number = record.at_revision(one.revision)
        if one.is_removal and one.member not in calm.leaving(number):
            kind, name = one.obj["kind"], one.obj["metadata"]["name"]
            yield f"{record.stretches[number].step.name}: {kind} {name} of {one.member} was removed"


def deletes(record: Record, calm: Record, clusters: Mapping[str, Cluster]) -> Iterator[str]:
    """Whoever had something of the users' deleted on a member, by its audit log: only where it was deselected."""
    for member in MEMBERS:
        for event in clusters[member].audit_events():
            moment = datetime.fromisoformat(event["requestReceivedTimestamp"])
            if not record.stretches[0].begun <= moment <= record.ended or not deletes_users(event):
                continue
            number = record.at_time(moment)
            if member not in calm.leaving(number):
                who, step = event["user"]["username"], record.stretches[number].step.name
                yield f"{step}: {who} asked {member} for {event['verb']} {event['requestURI']}"


def deletes_users(event: dict[str, object]) -> bool:
    """Whether by this request something was deleted that users have placed."""
    target, answer = event.get("objectRef") or {}, event.get("responseStatus") or {}
    assert isinstance(target, dict)
    assert isinstance(answer, dict)
    ours = NAMESPACE in (target.get("namespace"), target.get("name")) and target.get("resource") in _USERS
    return ours and event["verb"] in ("delete", "deletecollection") and answer.get("code", 500) < 300


def disruptions(record: Record) -> Iterator[str]:
    """A cluster that is available is touched only while enough others stay so."""
    now: dict[str, Happening] = {}
    for one in record.deployments:
        before, step = now.get(one.where), record.stretches[record.at_revision(one.revision)].step
        others = sum(_serves(other) for where, other in now.items() if where != one.where)
        must = step.target - step.max_unavailable
        if before is not None and _serves(before) and _changes(before, one) and others < must:
            yield f"{step.name}: {one.where} was touched while only {others} others were available, not {must}"
        now[one.where] = one


def _serves(one: Happening) -> bool:
    return is_available(one) and not one.is_removal


def _changes(before: Happening, after: Happening) -> bool:
    return after.is_removal or image(before) != image(after)


def too_many_unavailable(record: Record) -> Iterator[str]:
    """Of the clusters with a new image at most so many are unavailable; the first image comes to all at once."""
    now: dict[str, Happening] = {}
    for one in record.deployments:
        now[one.where] = one
        step = record.stretches[record.at_revision(one.revision)].step
        new = [where for where, it in now.items() if image(it) == step.image and not it.is_removal]
        broken = [where for where in new if not is_available(now[where])]
        if step.is_release and len(broken) > step.max_unavailable:
            yield f"{step.name}: {step.image} was not available on {sorted(broken)} at once"


def bad_releases(record: Record) -> Iterator[str]:
    reached = {one.where for one in record.deployments if image(one) == BAD}
    if len(reached) != 1:
        yield f"the bad release reached {sorted(reached)}"
