"""Reference: reads the scale of any object that has one, and tells it how many replicas there are.

    scale = await references.read("shop", Reference("apps", "Deployment", "web"))
    await references.write_back("shop", Reference("apps", "Deployment", "web"), 5)

A reference names a group and a kind. All versions in which that kind is served are tried, the preferred one first; if
none has a scale, the problem of the first is reported. Nothing is watched: reading a scale is all that is needed of
rights, and a scale that was read lately is not read again, unless a fresh one is asked for.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.discovery import Discovery, discover
from kedge.kube.errors import ApiError, Forbidden, KubeError, NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.zoning.scaling import MOST_REPLICAS, ObservedScale, Reference, ReferenceProblem, ReferenceScale

FRESH: Final = 5.0
"""Seconds: how old a scale may be that nothing is changed for. As often as the peer reconciles."""
LOOK_FOR_KINDS: Final = 30.0
"""Seconds before a kind that is not served is looked for again."""
_MOST_REMEMBERED: Final = 1000


class _Count(Struct, frozen=True):
    replicas: int = 0


class _Scale(Struct, frozen=True):
    """As the API writes it: a number that is left out is 0."""

    kind: str
    spec: _Count = field(default_factory=_Count)
    status: _Count = field(default_factory=_Count)


class _Read(Struct, frozen=True):
    at: float
    scale: ObservedScale
    resource: Resource | None = None


class References:
    """The references of one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: Discovery | None = None
        self._asked_at = 0.0
        self._asking = asyncio.Lock()
        self._read: dict[tuple[str, Reference], _Read] = {}

    async def read(self, namespace: str, reference: Reference, *, fresh: bool = False) -> ObservedScale:
        """The scale of a reference, or why there is none. Never raises for what the server answers."""
        now, key = asyncio.get_running_loop().time(), (namespace, reference)
        before = self._read.get(key)
        if before is not None and not fresh and now - before.at < FRESH:
            return before.scale
        found = await self._find(namespace, reference, now)
        if len(self._read) >= _MOST_REMEMBERED:
            self._read.clear()
        self._read[key] = found
        return found.scale

    async def write_back(self, namespace: str, reference: Reference, replicas: int) -> None:
        """Set `status.replicas` of a reference that was read. Raises `KubeError` if it is refused."""
        before = self._read.pop((namespace, reference), None)  # what was read is not true any more
        if before is None or before.resource is None:
            return
        patch = MergePatch({"status": {"replicas": replicas}})
        await self._client.patch(untyped(before.resource), reference.name, patch, namespace, subresource="status")

    async def _find(self, namespace: str, reference: Reference, now: float) -> _Read:
        try:
            resources = await self._resources(reference)
        except KubeError as error:
            return _Read(now, ReferenceProblem(f"which kinds are served is not known: {error}"))
        if not resources:
            return _Read(now, ReferenceProblem(_not_served(reference)))
        problems: list[ReferenceProblem] = []
        for resource in resources:
            scale = await self._scale(resource, namespace, reference.name)
            if isinstance(scale, ReferenceScale):
                return _Read(now, scale, resource)
            problems.append(scale)
        return _Read(now, problems[0])

    async def _resources(self, reference: Reference) -> tuple[Resource, ...]:
        """The kind in every version in which it is served, the preferred one first."""
        found = _matching(self._served, reference)
        if not found:
            await self._discover()
            found = _matching(self._served, reference)
        return found

    async def _discover(self) -> None:
        now = asyncio.get_running_loop().time
        async with self._asking:
            if self._served is not None and now() - self._asked_at < LOOK_FOR_KINDS:
                return
            self._served = await discover(self._client)
            self._asked_at = now()

    async def _scale(self, resource: Resource, namespace: str, name: str) -> ObservedScale:
        if not resource.namespaced:
            return ReferenceProblem(f"{resource} are not in a namespace: only objects beside the StatefulSet count")
        try:
            found = await self._client.get(untyped(resource), name, namespace, subresource="scale")
        except KubeError as error:
            return ReferenceProblem(_why(error, resource, name))
        return _read_scale(found)


def _matching(served: Discovery | None, reference: Reference) -> tuple[Resource, ...]:
    kinds = [one for one in served.kinds if _is(one.resource, reference)] if served is not None else []
    return tuple(one.resource for one in sorted(kinds, key=lambda one: not one.preferred))


def _is(resource: Resource, reference: Reference) -> bool:
    return (resource.group, resource.kind) == (reference.group, reference.kind)


def _not_served(reference: Reference) -> str:
    where = f"group {reference.group}" if reference.group else "the core group"
    return f"kind {reference.kind} of {where} is not served: install its definition, or correct the annotations"


def _why(error: KubeError, resource: Resource, name: str) -> str:
    """Why there is no scale, for people."""
    if isinstance(error, Forbidden):
        return f"reading it is forbidden, allow get on {resource.plural}/scale: {error.message}"
    if isinstance(error, NotFound):
        named = error.status.details is not None and error.status.details.name == name
        return f"there is no {resource} {name}" if named else f"{resource} have no scale"
    return error.message if isinstance(error, ApiError) else str(error)


def _read_scale(found: dict[str, Any]) -> ObservedScale:
    try:
        scale = msgspec.convert(found, _Scale)
    except msgspec.ValidationError as error:
        return ReferenceProblem(f"its scale cannot be read: {error}")
    if scale.kind != "Scale" or not 0 <= scale.spec.replicas <= MOST_REPLICAS:
        return ReferenceProblem(f"its scale cannot be read: {scale.kind} with {scale.spec.replicas} replicas")
    return ReferenceScale(scale.spec.replicas, scale.status.replicas)
