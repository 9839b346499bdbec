"""Stale reads: the answer of a replica that lags behind, where the API allows one.

A stale answer is allowed for `resourceVersion=0` (any version) and for a version with "not older than". A read without
a version always gets the newest state, and a list at an exact version that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec
from msgspec import Struct

from kedge.embedded import request_info
from kedge.embedded.options import is_watch
from kedge.kube.transport import Request, Response


class OldVersion(Struct, frozen=True):
    """An earlier version, and the list that shows how things were then."""

    version: int
    list: Request


def choose_version(request: Request, newest: int, most: int, rng: Random) -> OldVersion | None:
    """The version to answer from, at most so many writes old; None if only the newest is allowed."""
    query = dict(request.query)
    least = _not_older_than(request, query)
    if least is None:
        return None
    version = rng.randint(max(1, least, newest - most), max(1, least, newest))
    place = request_info.parse_path(request.path)
    assert place is not None
    selectors = {key: query[key] for key in ("labelSelector", "fieldSelector") if key in query}
    path = request.path
    if place.name:
        path, selectors = path.rpartition("/")[0], {"fieldSelector": f"metadata.name={place.name}"}
    then = {"resourceVersion": str(version), "resourceVersionMatch": "Exact"}
    return OldVersion(version, Request("GET", path, tuple((selectors | then).items())))


def _not_older_than(request: Request, query: Mapping[str, str]) -> int | None:
    """The oldest allowed version; None if only the newest is allowed, or an exact one."""
    version, place = query.get("resourceVersion", ""), request_info.parse_path(request.path)
    if request.method != "GET" or place is None or place.subresource or not version.isdecimal():
        return None
    if "PartialObjectMetadata" in request.accept or "Table" in request.accept:
        return None  # the list of old would have to be asked for in that form too
    if is_watch(request):
        return 0 if version == "0" and "sendInitialEvents" not in query else None
    if place.name:
        return int(version)
    exact = query.get("resourceVersionMatch") == "Exact" or "continue" in query
    paged = "limit" in query and version != "0" and "resourceVersionMatch" not in query
    return None if exact or paged else int(version)


def as_object(found: Response) -> Response | None:
    """The only object in a list, as the answer to a get; None if there is none."""
    objects = items(found)
    return Response(200, objects[0], found.headers) if len(objects) == 1 else None


def as_events(found: Response) -> list[bytes]:
    """The objects in a list, as a watch begins with them."""
    return [b'{"type":"ADDED","object":' + item + b"}" for item in items(found)]


def items(found: Response) -> list[bytes]:
    """The objects in a list, each complete."""
    listed = msgspec.json.decode(found.body)
    shown = {"kind": listed["kind"].removesuffix("List"), "apiVersion": listed["apiVersion"]}
    return [msgspec.json.encode({**shown, **item}) for item in listed["items"]]
