"""Requests: the queries and bodies that the verbs of the API are made of.

A body is a mapping or a typed object. Its kind and apiVersion are added when it is encoded. Preconditions go where
the server looks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from kedge.api.meta import Value
from kedge.api.resource import Resource

Body: TypeAlias = Mapping[str, Any] | Value
Selector: TypeAlias = str | Mapping[str, str] | None
Query: TypeAlias = tuple[tuple[str, str], ...]


# Bodies


def encode(resource: Resource, body: Body) -> bytes:
    """The bytes of an object, saying what it is."""
    if isinstance(body, Mapping):
        return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **body})
    head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}"'.encode()
    rest = msgspec.json.encode(body)
    return head + (b"," if len(rest) > 2 else b"") + rest[1:]


def meta_in(body: Body, name: str) -> str | None:
    """One text of a body's metadata."""
    if isinstance(body, Mapping):
        value: str | None = (body.get("metadata") or {}).get(name)
        return value
    return getattr(getattr(body, "metadata", None), name, None)


def name_in(body: Body) -> str:
    """The name a body must have."""
    name = meta_in(body, "name")
    if not name:
        raise ValueError("the object has no metadata.name")
    return name


def for_one(body: Body, uid: str | None, resource_version: str | None) -> Body:
    """The same body, for the object with this uid and resourceVersion only."""
    if isinstance(body, Mapping):
        return with_preconditions(body, uid, resource_version)
    if uid or resource_version:
        raise TypeError("a typed object carries its preconditions itself: set them in its metadata")
    return body


def with_preconditions(body: Mapping[str, Any], uid: str | None, resource_version: str | None) -> Mapping[str, Any]:
    """The same mapping, for the object with this uid and resourceVersion only."""
    meta = preconditions(uid, resource_version)
    return {**body, "metadata": {**(body.get("metadata") or {}), **meta}} if meta else body


def delete_options(
    uid: str | None, resource_version: str | None, propagation: str | None, grace_seconds: int | None, dry_run: bool
) -> bytes:
    """The body of a DELETE."""
    options = {
        "preconditions": preconditions(uid, resource_version) or None,
        "propagationPolicy": propagation,
        "gracePeriodSeconds": grace_seconds,
        "dryRun": ["All"] if dry_run else None,  # not in the query: a server that finds a body does not look there
    }
    given = {key: value for key, value in options.items() if value is not None}
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **given})


def preconditions(uid: str | None, resource_version: str | None) -> dict[str, str]:
    """Those that are given, under their names on the wire."""
    wanted = {"uid": uid, "resourceVersion": resource_version}
    return {key: value for key, value in wanted.items() if value}


# Queries


def selector(wanted: Selector) -> str | None:
    """`{"app": "web"}` in the form of the API: `app=web`. A string stays as it is."""
    if wanted is None or isinstance(wanted, str):
        return wanted
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def query(**options: str | None) -> Query:
    """The options that are given."""
    return tuple((key, value) for key, value in options.items() if value is not None)


def write_query(manager: str | None, dry_run: bool, force: bool = False, strict: bool = False) -> Query:
    return query(
        fieldManager=manager,
        dryRun="All" if dry_run else None,
        force="true" if force else None,
        fieldValidation="Strict" if strict else None,
    )


def namespace_for(resource: Resource, namespace: str | None) -> str | None:
    """The namespace, which a namespaced kind must have."""
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} is namespaced: say in which namespace")
    return namespace


def watch_query(
    labels: Selector, fields: Selector, resource_version: str | None, initial_events: bool, seconds: float
) -> Query:
    return query(
        watch="true",
        allowWatchBookmarks="true",
        labelSelector=selector(labels),
        fieldSelector=selector(fields),
        resourceVersion=resource_version,
        timeoutSeconds=str(round(seconds)),
        sendInitialEvents="true" if initial_events else None,
        resourceVersionMatch="NotOlderThan" if initial_events else None,
    )
