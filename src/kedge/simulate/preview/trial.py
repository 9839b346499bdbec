"""Trial: what a cluster would make of a file, or why it would refuse it.

    trial = await read_trial(client, objects)
    objects = run_trial(trial)

Only reads the cluster, with the rights of the user. The file is applied to an embedded server that holds the same
objects, as `kubectl apply --server-side` does: unknown fields are refused, fields that kubectl owned and the file
leaves out go, and those of others stay. Kinds whose definition may not be read are not checked. What the cluster's own
admission webhooks say is not known here.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.api.resource import Resource
from kedge.controllers.kinds import Kinds
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.embedded.kind import Kind
from kedge.embedded.store import key_of
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response, Stream, Transport
from kedge.plan.text import object_name
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import Loop
from kedge.simulate.preview.applied_owners import KUBECTL, as_applied

_BUILT_IN: Final = frozenset((kind.resource.group, kind.resource.version, kind.resource.kind) for kind in BUILT_IN)
_DEFINITIONS: Final = untyped(CustomResourceDefinition.resource)


class TrialRefused(ValueError):
    """Why a cluster would refuse an object of a file: `Deployment shop/web: …`."""


class _Tried(Struct, frozen=True):
    """One object of a file, and what is there of it."""

    given: Untyped
    resource: Resource
    now: Untyped | None
    definition: Untyped | None
    """That of its kind, if it is a custom one that may be read."""

    @property
    def is_known(self) -> bool:
        """Whether a server can be had that knows its kind."""
        return self.definition is not None or _named(self.resource) in _BUILT_IN

    @property
    def title(self) -> str:
        meta = self.given["metadata"]
        return object_name(self.resource.kind, meta.get("namespace") or "", meta["name"])


class Trial(Struct, frozen=True):
    """The objects of a file, and what a cluster holds of them."""

    objects: tuple[_Tried, ...]
    with_rules: bool = True


async def read_trial(client: Client, objects: Sequence[Untyped], *, with_rules: bool = True) -> Trial:
    """What a cluster holds of these objects, which name their namespaces. Raises `TrialRefused` for a kind it lacks.

    Without the rules (CEL) of definitions, if the caller tells itself what these refuse.
    """
    kinds = Kinds(client)
    return Trial(tuple([await _read(client, kinds, one) for one in objects]), with_rules)


async def _read(client: Client, kinds: Kinds, given: Untyped) -> _Tried:
    resource = await kinds.find(given["apiVersion"], given["kind"])
    meta = given["metadata"]
    if resource is None:
        title = object_name(given["kind"], meta.get("namespace") or "", meta["name"])
        raise TrialRefused(f"{title}: it serves no {given['kind']} of {given['apiVersion']}")
    if not resource.namespaced:
        given = {**given, "metadata": {name: value for name, value in meta.items() if name != "namespace"}}
    now = await _there(client, resource, meta["name"], meta.get("namespace") if resource.namespaced else None)
    is_custom = _named(resource) not in _BUILT_IN
    name = f"{resource.plural}.{resource.group}"
    definition = await _there(client, CustomResourceDefinition.resource, name) if is_custom else None
    return _Tried(given, resource, now, definition)


async def _there(client: Client, resource: Resource, name: str, namespace: str | None = None) -> Untyped | None:
    with suppress(NotFound, Forbidden):
        found: Untyped = await client.get(untyped(resource), name, namespace)
        return {**found, "apiVersion": resource.api_version, "kind": resource.kind}
    return None


def run_trial(trial: Trial) -> tuple[Untyped, ...]:
    """The objects as they would be once the file is applied. Raises `TrialRefused`.

    Runs an event loop of its own, so it is called from outside of any.
    """
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(_simulate(trial))


async def _simulate(trial: Trial) -> tuple[Untyped, ...]:
    rng = Random("trial")
    cluster = EmbeddedCluster("trial", clock=LoopClock(asyncio.get_running_loop(), datetime.now(UTC)), rng=child(rng))
    client = Client(_Strict(cluster.transport()), limiter=Limiter(rate=0))
    cluster.start()
    try:
        await _load(cluster, client, trial, rng)
        return tuple([await _applied(client, one) for one in trial.objects])
    finally:
        await client.close()
        cluster.stop()


async def _load(cluster: EmbeddedCluster, client: Client, trial: Trial, rng: Random) -> None:
    for definition in _definitions(trial.objects):
        given = definition if trial.with_rules else _without_rules(definition)
        await client.create(_DEFINITIONS, given)
    places = dict.fromkeys(one.given["metadata"].get("namespace") for one in trial.objects)
    for place in filter(None, places):
        with suppress(AlreadyExists):
            await client.create(Namespace, {"metadata": {"name": place}})
    kinds = {_named(kind.resource): kind for kind in cluster.server.registry.kinds()}
    for one in trial.objects:
        if one.now is not None and one.is_known:
            await _put(cluster, client, kinds[_named(one.resource)], one.now, rng)


def _named(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.kind


async def _put(cluster: EmbeddedCluster, client: Client, kind: Kind, obj: Untyped, rng: Random) -> None:
    """Store an object as it is, with the owners of its fields."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in ("managedFields", "ownerReferences")}
    meta["uid"] = meta.get("uid") or str(uuid.UUID(int=rng.getrandbits(128), version=4))
    place = meta.get("namespace") or ""
    cluster.server.store.create(kind, key_of(place, meta["name"]), {**obj, "metadata": meta})
    if owners := obj["metadata"].get("managedFields"):
        patch = MergePatch({"metadata": {"managedFields": as_applied(owners)}})
        await client.patch(untyped(kind.resource), meta["name"], patch, place or None)


async def _applied(client: Client, one: _Tried) -> Untyped:
    if not one.is_known:
        return one.given
    try:
        found: Untyped = await client.apply(untyped(one.resource), one.given, manager=KUBECTL, force=True)
    except ApiError as error:
        raise TrialRefused(f"{one.title}: {error.message or error.answer}") from error
    return found


# Definitions


def _definitions(objects: Iterable[_Tried]) -> list[Untyped]:
    """The definitions of the kinds, each with the versions that are meant alone: nothing has to be converted."""
    found: dict[str, Untyped] = {}
    meant: dict[str, set[str]] = {}
    for one in objects:
        if one.definition is not None:
            name = one.definition["metadata"]["name"]
            found[name] = one.definition
            meant.setdefault(name, set()).add(one.resource.version)
    return [_narrowed(one, meant[name]) for name, one in found.items()]


def _narrowed(definition: Untyped, versions: set[str]) -> Untyped:
    meta = definition["metadata"]
    kept = [one for one in definition["spec"]["versions"] if one["name"] in versions]
    stored = [{**one, "storage": number == 0} for number, one in enumerate(kept)]
    spec = {name: value for name, value in definition["spec"].items() if name != "conversion"}
    return {
        "apiVersion": CustomResourceDefinition.resource.api_version,
        "kind": CustomResourceDefinition.resource.kind,
        "metadata": {"name": meta["name"], "annotations": meta.get("annotations") or {}},
        "spec": {**spec, "versions": stored},
    }


def _without_rules(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_rules(one) for name, one in value.items() if name != "x-kubernetes-validations"}
    return [_without_rules(one) for one in value] if isinstance(value, list) else value


class _Strict:
    """A transport that has unknown fields refused, as kubectl does."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request, *, timeout: float) -> Response:
        if request.method == "PATCH":
            request = replace(request, query=(*request.query, ("fieldValidation", "Strict")))
        return await self._inner.send(request, timeout=timeout)

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()
